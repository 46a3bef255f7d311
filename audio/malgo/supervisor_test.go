package malgo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

// A bench has devices that fail on demand, on the fake clock of a synctest bubble.
type bench struct {
	out *audio.Output

	mu       sync.Mutex
	broken   map[Side]error // opening fails with this
	ails     map[Side]Reason
	opens    map[Side][]time.Duration // since the start
	backends []string                 // that were asked for
	open     map[Side]int             // devices at the moment
	began    time.Time
	told     []string
}

func newBench() *bench {
	return &bench{
		out: audio.NewOutput(0), broken: map[Side]error{}, ails: map[Side]Reason{}, opens: map[Side][]time.Duration{},
		open: map[Side]int{}, began: time.Now(),
	}
}

func (b *bench) set(side Side, broken error, ails Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken[side], b.ails[side] = broken, ails
}

func (b *bench) state(side Side) (Reason, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ails[side], b.broken[side]
}

func (b *bench) opened(side Side) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.opens[side])
}

// news returns what was told since the last call.
func (b *bench) news() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.Join(b.told, ", ")
	b.told = nil
	return s
}

func (b *bench) tell(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, s)
}

func (b *bench) openHalf(o Options, side Side, out *audio.Output) (*half, error) {
	b.mu.Lock()
	b.opens[side] = append(b.opens[side], time.Since(b.began))
	b.backends = append(b.backends, o.Backend)
	b.mu.Unlock()
	ails, err := b.state(side)
	if ails == Hangs {
		time.Sleep(20 * time.Second)
	}
	if err != nil {
		return nil, err
	}
	h := &half{side: side, name: "fake", backend: "null", shape: inner, stopped: make(chan struct{}, 1), messages: make(chan string)}
	if side == Microphone {
		mix, err := o.mixdown(1)
		if err != nil {
			return nil, err
		}
		if h.capture, err = newCapture(inner, 1, mix); err != nil {
			return nil, err
		}
	} else if h.playback, err = newPlayback(inner, out); err != nil {
		return nil, err
	}
	running := false
	closed, over := make(chan struct{}), make(chan struct{})
	h.started = func() bool { ails, _ := b.state(side); return ails != Stopped }
	h.start = func() error {
		b.mu.Lock()
		running = true
		b.open[side]++
		if b.open[side] > 1 {
			b.told = append(b.told, "two at a time")
		}
		b.mu.Unlock()
		go func() {
			defer close(over)
			b.run(h, closed)
		}()
		return nil
	}
	h.close = func() {
		if !running {
			return
		}
		b.mu.Lock()
		b.open[side]--
		b.mu.Unlock()
		close(closed)
		<-over
	}
	return h, nil
}

// run is the device's thread.
func (b *bench) run(h *half, closed chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	memory := make([]byte, 640)
	for n := 0; ; n++ {
		select {
		case <-closed:
			return
		case <-tick.C:
		}
		ails, _ := b.state(h.side)
		size := len(memory)
		switch ails {
		case Stalled, Stopped:
			continue
		case Rate:
			size /= 2
		}
		if h.capture == nil {
			h.playback.give(memory[:size])
			continue
		}
		for i := range memory[:size] {
			memory[i] = 5
			if ails != Constant {
				memory[i] = byte(i * n)
			}
		}
		h.capture.take(memory[:size])
	}
}

// supervised runs a test with a supervisor in a bubble.
func supervised(t *testing.T, o Options, test func(t *testing.T, b *bench, s *Supervisor), prepare ...func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		for _, p := range prepare {
			p(b)
		}
		o.OnTrouble = func(f *Fault) { b.tell(string(f.Side) + " " + string(f.Reason)) }
		o.OnWell = func(side Side) { b.tell(string(side) + " well") }
		s, err := newSupervisor(o, b.out, b.openHalf)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- s.Run(ctx) }()
		go func() {
			for {
				select {
				case <-s.Frames():
				case <-ctx.Done():
					return
				}
			}
		}()
		test(t, b, s)
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if b.open[Microphone]+b.open[Loudspeaker] != 0 {
			t.Error("a device is still open")
		}
	})
}

func expect(t *testing.T, b *bench, want string) {
	t.Helper()
	synctest.Wait()
	if got := b.news(); got != want {
		t.Errorf("at %v: told %q, want %q", time.Since(b.began), got, want)
	}
}

// Every fault of each side is noticed within two seconds, told once, and when it is over that is told too. The other
// side goes on meanwhile.
func TestFaultsAreNoticed(t *testing.T) {
	for _, side := range []Side{Microphone, Loudspeaker} {
		for _, reason := range []Reason{Stalled, Stopped, Constant, Rate} {
			if side == Loudspeaker && reason == Constant {
				continue
			}
			t.Run(string(side)+" "+string(reason), func(t *testing.T) {
				supervised(t, Options{}, func(t *testing.T, b *bench, s *Supervisor) {
					time.Sleep(5 * time.Second)
					expect(t, b, "")
					if !s.Flowing() || s.Wedged() {
						t.Errorf("flowing %v, wedged %v", s.Flowing(), s.Wedged())
					}
					b.set(side, nil, reason)
					time.Sleep(2 * time.Second)
					expect(t, b, string(side)+" "+string(reason))
					if s.Flowing() != (reason == Constant) {
						t.Errorf("flowing: %v", s.Flowing())
					}
					before := s.Stats()
					time.Sleep(time.Minute)
					expect(t, b, "")
					since := s.Stats().Since(before)
					other, own := since.Loudspeaker, since.Microphone
					if side == Loudspeaker {
						other, own = own, other
					}
					if other.Frames < 2990 || other.Opened != 0 {
						t.Errorf("the other side had %d frames in a minute, and was opened %d times", other.Frames, other.Opened)
					}
					// 1, 3, 7, 15, 31 s, and what it takes to notice each time.
					if own.Opened < 4 || own.Opened > 6 {
						t.Errorf("opened %d times in a minute of trouble", own.Opened)
					}
					if n := b.out.Stats().Pulled; n < 60*50 {
						t.Errorf("%d frames pulled in 67 s: a turn would wait", n)
					}
					b.set(side, nil, "")
					time.Sleep(lastWait + 3*time.Second)
					expect(t, b, string(side)+" well")
					if !s.Flowing() || s.Wedged() {
						t.Errorf("flowing %v, wedged %v", s.Flowing(), s.Wedged())
					}
				})
			})
		}
	}
}

// A microphone that is constant is kept meanwhile: there may be nothing wrong but a switch, and then it is well at once.
func TestConstantIsKept(t *testing.T) {
	supervised(t, Options{}, func(t *testing.T, b *bench, s *Supervisor) {
		b.set(Microphone, nil, Constant)
		time.Sleep(4 * time.Minute)
		expect(t, b, "microphone constant")
		before := s.Stats()
		time.Sleep(10 * time.Second)
		if n := s.Stats().Since(before).Microphone.Frames; n < 490 {
			t.Errorf("%d frames in 10 s", n)
		}
		b.set(Microphone, nil, "")
		time.Sleep(time.Second)
		expect(t, b, "microphone well")
	})
}

// The appliance starts without a microphone or a loudspeaker, or with both busy, and has them when they come.
func TestStartWithoutDevices(t *testing.T) {
	supervised(t, Options{}, func(t *testing.T, b *bench, s *Supervisor) {
		synctest.Wait()
		news := strings.Split(b.news(), ", ")
		slices.Sort(news)
		if !slices.Equal(news, []string{"loudspeaker missing", "microphone missing"}) {
			t.Errorf("told %q", news)
		}
		stream := b.out.Open()
		for range 100 {
			if err := stream.Write(t.Context(), audio.Frame{1}); err != nil {
				t.Fatal(err)
			}
		}
		stream.Finish()
		at := time.Now()
		if err := stream.Drain(t.Context()); err != nil || time.Since(at) > 3*time.Second {
			t.Errorf("without a loudspeaker two seconds of speech end with %v after %v", err, time.Since(at))
		}
		time.Sleep(100 * time.Second)
		var want []time.Duration
		for _, at := range []int{0, 1, 3, 7, 15, 31, 61, 91} {
			want = append(want, time.Duration(at)*time.Second)
		}
		if got := b.opened(Microphone); !slices.Equal(got, want) {
			t.Errorf("opened at %v, want %v", got, want)
		}
		if s.Flowing() || s.Wedged() || b.out.Audible() {
			t.Errorf("flowing %v, wedged %v, audible %v: what isn't there is not cured by starting again", s.Flowing(), s.Wedged(), b.out.Audible())
		}
		b.set(Microphone, nil, "")
		b.set(Loudspeaker, nil, "")
		time.Sleep(lastWait + steady + time.Second)
		if !s.Flowing() || s.Info().Capture != "fake" || s.Info().Playback != "fake" || !b.out.Audible() {
			t.Errorf("flowing %v, audible %v, %+v", s.Flowing(), b.out.Audible(), s.Info())
		}
		if b.backends[0] != "" || b.backends[len(b.backends)-1] != "" {
			t.Errorf("asked for %q", b.backends)
		}
		// What worked once is what is meant.
		b.set(Microphone, nil, Stalled)
		time.Sleep(4 * time.Second)
		if got := b.backends[len(b.backends)-1]; got != "null" {
			t.Errorf("after null worked %q was tried", got)
		}
	}, func(b *bench) {
		b.set(Microphone, errors.New("device or resource busy"), "")
		b.set(Loudspeaker, errors.New("none"), "")
	})
}

// A device that can be opened but never works, and one whose opening hangs, are for the watchdog.
func TestWedged(t *testing.T) {
	supervised(t, Options{}, func(t *testing.T, b *bench, s *Supervisor) {
		b.set(Loudspeaker, nil, Stalled)
		time.Sleep(10 * time.Second)
		if s.Wedged() {
			t.Error("wedged at once")
		}
		time.Sleep(2 * time.Minute)
		if !s.Wedged() {
			t.Error("not wedged after two minutes")
		}
		b.set(Loudspeaker, nil, "")
		time.Sleep(lastWait + time.Second)
		if s.Wedged() {
			t.Error("wedged though it works")
		}
		b.news()
		b.set(Microphone, nil, Stalled)
		time.Sleep(2 * time.Second)
		b.set(Microphone, nil, Hangs)
		time.Sleep(10 * time.Second)
		expect(t, b, "microphone stalled, microphone hangs")
		if !s.Wedged() {
			t.Error("opening hangs, and that is all right")
		}
		b.set(Microphone, nil, "")
		time.Sleep(20 * time.Second)
		expect(t, b, "microphone well")
	})
}

// Stopping doesn't wait for a device that is being opened.
func TestStopWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.set(Microphone, nil, Hangs)
		s, err := newSupervisor(Options{}, b.out, b.openHalf)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		at := time.Now()
		if err := s.Run(ctx); err != nil || time.Since(at) > 1100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(at))
		}
		time.Sleep(time.Minute) // it comes, and is closed
	})
}

// What only a busy machine does is no fault: it looks late, sees bursts, loses some samples.
func TestRateUnderLoad(t *testing.T) {
	at := time.Unix(0, 0)
	w := newWatch(Microphone, "x", at)
	moments := uint64(0)
	for n := range 300 {
		d := lookEvery
		if n%7 == 0 {
			d *= 3
		}
		at = at.Add(d)
		moments += uint64(d * 16 / time.Millisecond)
		if n%5 == 0 {
			moments -= 1600 // half a look is lost
		}
		if f := w.look(at, vitals{started: true, moments: moments, rate: 16000}); f != nil {
			t.Fatalf("look %d: %v", n, f)
		}
	}
	// 44.1 kHz instead of 48.
	for n := 1; ; n++ {
		at = at.Add(lookEvery)
		moments += 8820
		if f := w.look(at, vitals{started: true, moments: moments, rate: 48000}); f != nil {
			if d := time.Duration(n) * lookEvery; f.Reason != Rate || d > 2*time.Second || !strings.Contains(f.Error(), "44100") {
				t.Errorf("after %v: %v", d, f)
			}
			break
		}
		if n > 100 {
			t.Fatal("never noticed")
		}
	}
}

func TestBeat(t *testing.T) {
	for d := time.Duration(0); d < 40*time.Millisecond; d += 700 * time.Nanosecond {
		c := class(d)
		if d < 16*time.Millisecond && (d > upTo(c)+time.Microsecond || c > 4 && d < upTo(c-1)-time.Microsecond) {
			t.Fatalf("%v is in class %d, which goes up to %v", d, c, upTo(c))
		}
	}
	var b beat
	for n := range 1000 {
		d := 100 * time.Microsecond
		if n >= 990 {
			d = 5 * time.Millisecond
		}
		b.took[class(d)].Add(1)
	}
	if p50, p999 := b.quantile(0.5), b.quantile(0.999); p50 < 100*time.Microsecond || p50 > 125*time.Microsecond ||
		p999 < 5*time.Millisecond || p999 > 6250*time.Microsecond {
		t.Errorf("p50 %v, p99.9 %v", p50, p999)
	}
}

// The threads of the devices, who listens, who asks for counts and who speaks, all at once, for the race detector.
func TestUnderLoad(t *testing.T) {
	b := newBench()
	troubles := make(chan Side, 16)
	s, err := newSupervisor(Options{Channel: Best, OnTrouble: func(f *Fault) { troubles <- f.Side }}, b.out, b.openHalf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	busy := func(f func()) {
		wg.Go(func() {
			for ctx.Err() == nil {
				f()
			}
		})
	}
	busy(func() { s.Stats(); s.Flowing(); s.Wedged(); s.Info(); s.CallbackTime(Microphone, 0.999) })
	busy(func() { b.out.Duck()(); b.out.SetVolume(50) })
	busy(func() {
		st := b.out.Open()
		for range 20 {
			st.Write(ctx, audio.Frame{})
		}
		st.Pause()
		st.Resume()
	})
	for n := range 50 {
		if n == 25 {
			b.set(Microphone, nil, Stopped)
			b.set(Loudspeaker, nil, Stopped)
			for seen := map[Side]bool{}; len(seen) < 2; seen[<-troubles] = true {
			}
			b.set(Microphone, nil, "")
			b.set(Loudspeaker, nil, "")
		}
		if g := <-s.Groups(); g.Channels != 1 {
			t.Fatalf("%d channels", g.Channels)
		}
	}
	cancel()
	wg.Wait()
}

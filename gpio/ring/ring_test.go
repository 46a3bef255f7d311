package ring

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/event"
	"bellbird/gpio/led"
)

// A lamppost remembers the frames it was sent.
type lamppost struct {
	mu     sync.Mutex
	frames [][]led.Color
	at     []time.Time
	broken error
}

func (l *lamppost) send(frame []led.Color) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	l.frames = append(l.frames, slices.Clone(frame))
	l.at = append(l.at, time.Now())
	return nil
}

func (l *lamppost) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.frames)
}

func (l *lamppost) last() []led.Color {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frames[len(l.frames)-1]
}

// animated runs a ring of twelve LEDs in a bubble of virtual time. It has booted.
func animated(t *testing.T, o Options, f func(r *Ring, l *lamppost)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var l lamppost
		o.Count, o.Send = 12, l.send
		r := New(o)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		r.Hide(Booting)
		synctest.Wait()
		time.Sleep(time.Second)
		f(r, &l)
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestHigherRungsWin(t *testing.T) {
	now := time.Now()
	for _, high := range Rungs() {
		for _, low := range Rungs() {
			if low <= high {
				continue
			}
			var b board
			b.hold(low, Args{Total: 1}, time.Second, now)
			b.hold(high, Args{Total: 1}, time.Second, now)
			if s, _ := b.top(now); s.Rung != high {
				t.Errorf("%v and %v: %v shows", high, low, s.Rung)
			}
		}
	}
}

// What doesn't show while the microphone is muted doesn't hide what does.
func TestMutedLadder(t *testing.T) {
	now := time.Now()
	var b board
	b.muted = true
	for _, r := range Rungs() {
		b.hold(r, Args{}, time.Second, now)
	}
	var shown []Rung
	for {
		s, _ := b.top(now)
		if s.Rung == Idle {
			break
		}
		shown = append(shown, s.Rung)
		b.claims[s.Rung] = claim{}
	}
	want := []Rung{ResetArmed, ResetWarning, Updating, Identify, Volume, Ringing, Touched, Thinking, Speaking, Failed}
	if !slices.Equal(shown, want) {
		t.Errorf("shown while muted: %v, want %v", shown, want)
	}
}

func TestTemporaryRungsEnd(t *testing.T) {
	lasting := []Rung{Deaf, NoServer, Private, Light, Timer, Idle}
	for _, r := range Rungs() {
		if (r.Lasts() == 0) != slices.Contains(lasting, r) {
			t.Errorf("%v lasts %v", r, r.Lasts())
		}
		if r.Lasts() == 0 {
			continue
		}
		now := time.Now()
		for _, for_ := range []time.Duration{0, -1, time.Hour} {
			var b board
			b.hold(r, Args{}, for_, now)
			if s, ends := b.top(now); s.Rung != r || ends != r.Lasts() {
				t.Errorf("%v for %v: %v shows for %v", r, for_, s.Rung, ends)
			}
			if s, _ := b.top(now.Add(r.Lasts())); s.Rung != Idle {
				t.Errorf("%v for %v: %v shows afterwards", r, for_, s.Rung)
			}
		}
	}
}

// scenes are random ones.
func scene(rnd *rand.Rand) Scene {
	return Scene{
		Rung: Rung(rnd.IntN(rungs)), Elapsed: time.Duration(rnd.Int64N(int64(30 * time.Second))), Level: rnd.Float64(),
		Args: Args{
			Fraction: 3*rnd.Float64() - 1, Silent: rnd.IntN(2) == 0, Kind: []string{"model", "voice", "?"}[rnd.IntN(3)],
			Left: time.Duration(rnd.Int64N(1e12)), Total: time.Duration(rnd.Int64N(1e12)),
			Color: led.Color{R: uint8(rnd.UintN(256)), G: 255}, Effect: Effects()[rnd.IntN(3)],
		},
		Private: rnd.IntN(2) == 0, Night: max(0, rnd.Float64()*2-1),
	}
}

// Whatever else is to be shown, whoever looks sees that the microphone is muted, and only then.
func TestMuteCannotBeHidden(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		s := scene(rnd)
		s.Muted = true
		leds := make([]led.Color, 1+rnd.IntN(40))
		Draw(leds, s)
		for i := 0; i < len(leds); i += 4 {
			if c := leds[i]; c.R < 50 || c.G != 0 || c.B != 0 {
				t.Fatalf("%+v: LED %d of %d is %v", s, i, len(leds), c)
			}
		}
	}
}

// Nobody can make the ring look as if the microphone were muted, while it isn't.
func TestLampsDoNotLookLikeMute(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for range 20000 {
		s := scene(rnd)
		s.Rung, s.Muted = []Rung{Light, Borrowed}[rnd.IntN(2)], false
		s.Args.Color = led.Color{R: uint8(rnd.UintN(256)), G: uint8(rnd.UintN(40)), B: uint8(rnd.UintN(40))}
		leds := make([]led.Color, 1+rnd.IntN(40))
		Draw(leds, s)
		if c := leds[0]; c.R >= 50 && c.G < c.R/4 && c.B < c.R/4 {
			t.Fatalf("%+v: the top is %v", s, c)
		}
	}
}

func TestDrawIsPure(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		s := scene(rnd)
		first, again := make([]led.Color, 1+rnd.IntN(led.MaxCount)), []led.Color(nil)
		again = append(again, first...)
		for i := range again {
			again[i] = led.Color{R: 1, G: 2, B: 3} // what was there before doesn't matter
		}
		Draw(first, s)
		Draw(again, s)
		if !slices.Equal(first, again) {
			t.Fatalf("%+v: %v, and %v", s, first, again)
		}
	}
}

// The states that matter look different from each other, also on the smallest rings, at some moment.
func TestRungsLookDifferent(t *testing.T) {
	looks := make(map[string]string)
	for _, e := range examples() {
		if strings.Contains(e.name, "volume") {
			continue // an arc of one LED is just a light
		}
		var film []led.Color
		for n := range 100 {
			leds := make([]led.Color, 3)
			e.scene.Elapsed, e.scene.Level = time.Duration(n)*frame, 0.5
			Draw(leds, e.scene)
			film = append(film, leds...)
		}
		var b strings.Builder
		for _, c := range film {
			b.Write([]byte{c.R, c.G, c.B})
		}
		if other := looks[b.String()]; other != "" {
			t.Errorf("%s looks like %s", e.name, other)
		}
		looks[b.String()] = e.name
	}
}

func TestNothingIsSentWhileNothingMoves(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		still := []struct {
			name  string
			begin func()
			rests time.Duration
		}{
			{"idle", func() {}, 0},
			{"muted", func() { r.SetMuted(true) }, 0},
			{"unmuted", func() { r.SetMuted(false) }, 0},
			{"private", func() { r.Show(Private, Args{}, 0) }, 0},
			{"no server", func() { r.Show(NoServer, Args{}, 0) }, 4 * time.Second},
			{"no microphone", func() { r.Show(Deaf, Args{}, 0) }, 6 * time.Second},
			{"a lamp", func() { r.Hide(Deaf, NoServer, Private); r.SetLight(true, white, 1, Solid) }, 0},
		}
		for _, s := range still {
			s.begin()
			time.Sleep(s.rests + 50*time.Millisecond)
			before := l.count()
			time.Sleep(time.Hour)
			if n := l.count() - before; n != 0 {
				t.Errorf("%s: %d frames in an hour", s.name, n)
			}
		}
	})
}

func TestSlowChangesAreSentWhenTheyShow(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		const week = 7 * 24 * time.Hour
		r.Show(Timer, Args{Left: week, Total: week}, week)
		before := l.count()
		time.Sleep(time.Hour)
		if n := l.count() - before; n < 2 || n > 20 {
			t.Errorf("%d frames in an hour of a week", n)
		}
	})
}

func TestFiftyFramesASecond(t *testing.T) {
	loud := 0.0
	heard := func() float64 { loud += 0.013; return loud - float64(int(loud)) }
	animated(t, Options{Heard: heard, Spoken: heard}, func(r *Ring, l *lamppost) {
		for _, rung := range []Rung{Thinking, Updating, Booting} {
			r.Show(rung, Args{}, 0)
			before := l.count()
			time.Sleep(10 * time.Second)
			if n := l.count() - before; n < 490 || n > 505 {
				t.Errorf("%v: %d frames in 10 s", rung, n)
			}
			r.Hide(rung)
		}
	})
}

// However often something changes, there are no more frames than the wire and the eye can take.
func TestStormsAreBounded(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		before := l.count()
		for i := range 10_000 {
			r.Show(Volume, Args{Fraction: float64(i%61) / 61}, 0)
			time.Sleep(100 * time.Microsecond)
		}
		if n := l.count() - before; n < 90 || n > 105 {
			t.Errorf("%d frames in a second", n)
		}
	})
}

func TestChangesShowAtOnce(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		began := time.Now()
		r.Show(Listening, Args{}, 0)
		synctest.Wait()
		if now := l.at[len(l.at)-1]; !now.Equal(began) || l.last()[0] == (led.Color{}) {
			t.Errorf("%v later: %v", now.Sub(began), l.last())
		}
		time.Sleep(2 * time.Minute)
		if l.last()[0] != (led.Color{}) {
			t.Error("it shows for ever")
		}
	})
}

func TestRingThatFailsIsTriedAgain(t *testing.T) {
	faults := make(chan error, 10)
	o := Options{OnFault: func(err error) { faults <- err }}
	animated(t, o, func(r *Ring, l *lamppost) {
		unplugged := errors.New("unplugged")
		l.mu.Lock()
		l.broken = unplugged
		l.mu.Unlock()
		r.Show(Thinking, Args{}, time.Minute)
		time.Sleep(10 * time.Second)
		if err := <-faults; err != unplugged || len(faults) != 0 {
			t.Errorf("told %v and %d more", err, len(faults))
		}
		l.mu.Lock()
		l.broken = nil
		l.mu.Unlock()
		time.Sleep(time.Minute)
		if err := <-faults; err != nil || len(faults) != 0 {
			t.Errorf("told %v and %d more", err, len(faults))
		}
		r.SetMuted(true)
		synctest.Wait()
		if l.last()[0] != muteColor {
			t.Errorf("shows %v", l.last())
		}
	})
}

func TestLeavesItDark(t *testing.T) {
	var l *lamppost
	animated(t, Options{}, func(r *Ring, post *lamppost) {
		l = post
		r.SetMuted(true)
		time.Sleep(time.Second)
	})
	if l.last()[0] != (led.Color{}) {
		t.Errorf("it was left showing %v", l.last())
	}
}

func TestBorrow(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		pink := led.Color{R: 255, G: 100, B: 180}
		show := func(owner string, d time.Duration) error { return r.Borrow(owner, pink, Solid, d) }
		if show("a", time.Hour) == nil || show("a", 0) == nil || r.Borrow("a", pink, "strobe", time.Second) == nil {
			t.Error("lent for ever, for nothing or with an unknown effect")
		}
		if err := show("a", 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := show("b", time.Second); !errors.Is(err, ErrLent) {
			t.Errorf("lent twice: error %v", err)
		}
		time.Sleep(9 * time.Second)
		if err := show("a", 10*time.Second); err != nil { // may change it, but not make it longer
			t.Error(err)
		}
		if r.Showing().Rung != Borrowed {
			t.Errorf("%v shows", r.Showing().Rung)
		}
		r.Show(Timer, Args{Left: time.Minute, Total: time.Minute}, time.Minute)
		time.Sleep(1100 * time.Millisecond)
		if r.Showing().Rung != Timer {
			t.Errorf("after the loan %v shows", r.Showing().Rung)
		}
		if err := show("a", time.Second); !errors.Is(err, ErrLent) {
			t.Errorf("lent again at once: error %v", err)
		}
		time.Sleep(10 * time.Second)
		if err := show("b", time.Second); err != nil {
			t.Error(err)
		}
		for _, above := range []Rung{NoServer, Listening, Failed, ResetArmed} {
			r.Show(above, Args{}, 0)
			if r.Showing().Rung != above {
				t.Errorf("borrowed hides %v", above)
			}
			r.Hide(above)
		}
		r.Return("a") // not his
		if r.Showing().Rung != Borrowed {
			t.Error("returned by another")
		}
		r.Return("b")
		if r.Showing().Rung != Timer {
			t.Error("not returned")
		}
	})
}

func TestFacts(t *testing.T) {
	animated(t, Options{}, func(r *Ring, _ *lamppost) {
		f := NewFacts(r)
		steps := []struct {
			fact event.Fact
			wait time.Duration
			want Rung
		}{
			{event.ButtonMoved{Down: true}, 0, Touched},
			{event.ButtonMoved{}, 0, Idle},
			{event.Woke{Word: "nabu"}, 0, Waking},
			{event.StateChanged{To: event.Listening}, 0, Waking},
			{event.StateChanged{To: event.Listening}, time.Second, Listening},
			{event.StateChanged{To: event.Thinking}, 0, Thinking},
			{event.StateChanged{To: event.Speaking}, 0, Speaking},
			{event.VolumeChanged{Percent: 40}, 0, Volume},
			{event.Woke{Stops: true}, 2 * time.Second, Speaking},
			{event.StateChanged{To: event.FollowUp}, 0, FollowUp},
			{event.StateChanged{To: event.Failed}, 0, Idle},
			{event.TurnEnded{Record: event.Record{Outcome: event.FailedTurn, Error: event.ModelFailed}}, 0, Failed},
			{event.StateChanged{To: event.Idle}, 5 * time.Second, Idle},
			{event.TurnEnded{Record: event.Record{Outcome: event.Completed}}, 0, Idle},
			{event.PrivacyChanged{Private: true}, 0, Private},
			{event.PrivacyChanged{}, 0, Idle},
			{event.ProviderSwitched{Kind: "tts", Instead: true}, 0, Idle},
			{event.ProviderSwitched{Kind: "llm", Instead: true}, time.Hour, NoServer},
			{event.ProviderSwitched{Kind: "llm"}, 0, Idle},
			{event.MicrophoneFault{}, 0, Deaf},
			{event.MicrophoneWell{}, 0, Idle},
			{timer(1, event.TimerSet, time.Minute), 0, Timer},
			{timer(2, event.TimerSet, time.Hour), 0, Timer},
			{timer(1, event.TimerRinging, 0), 0, Ringing},
			{timer(1, event.TimerSilenced, 0), 0, Timer},
			{timer(2, event.TimerCancelled, 0), 0, Idle},
			{timer(3, event.TimerSet, time.Second), 2 * time.Second, Idle}, // it didn't tell that it rang
			{event.TimerChanged{ID: 4, Alarm: true, What: event.TimerSet, Ends: time.Now().Add(time.Hour)}, 0, Idle},
			{event.ButtonPressed{Gesture: event.ResetWarned}, 0, ResetWarning},
			{event.ButtonPressed{Gesture: event.ResetArmed}, 0, ResetArmed},
			{event.ButtonPressed{Gesture: event.ResetReleased}, 0, Idle},
			{event.ButtonPressed{Gesture: event.ResetWarned}, 0, ResetWarning},
			{event.ButtonPressed{Gesture: event.ResetAbandoned}, 0, Idle},
			{event.ButtonPressed{Gesture: event.Press}, 0, Idle},
		}
		for i, s := range steps {
			f.Tell(s.fact)
			time.Sleep(s.wait)
			if got := r.Showing().Rung; got != s.want {
				t.Fatalf("step %d, %#v: %v shows, want %v", i, s.fact, got, s.want)
			}
		}
	})
}

func timer(id int, what event.TimerChange, left time.Duration) event.Fact {
	// By a clock of its own, far from this machine's.
	at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	return event.TimerChanged{At: at, ID: id, What: what, Ends: at.Add(left), Total: left}
}

func TestTimeLeft(t *testing.T) {
	animated(t, Options{}, func(r *Ring, l *lamppost) {
		NewFacts(r).Tell(timer(1, event.TimerSet, 12*time.Minute))
		lit := func() (n int) {
			for _, c := range l.last() {
				if c != (led.Color{}) {
					n++
				}
			}
			return n
		}
		for want := 12; want > 1; want-- {
			time.Sleep(30 * time.Second)
			if n := lit(); n != want {
				t.Errorf("%d LEDs are lit, want %d", n, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

func TestFramesAllocateNothing(t *testing.T) {
	for _, rung := range Rungs() {
		r := New(Options{Count: 12, Send: func([]led.Color) error { return nil }})
		r.Hide(Booting)
		r.Show(rung, Args{Fraction: 0.5, Kind: "model", Left: time.Minute, Total: time.Minute, Effect: Breathe}, 0)
		now := time.Now()
		if n := testing.AllocsPerRun(100, func() {
			now = now.Add(frame)
			if _, err := r.step(now); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", rung, n)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	r := New(Options{Count: 12, Send: func([]led.Color) error { return nil }})
	r.Show(Thinking, Args{}, 0)
	began, n := time.Now(), 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		r.step(began.Add(time.Duration(n%10_000) * frame))
	}
}

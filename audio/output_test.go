package audio_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

func pull(o *audio.Output) (f audio.Frame) {
	o.Pull(&f)
	return f
}

func write(t *testing.T, s *audio.Stream, frames ...audio.Frame) {
	t.Helper()
	for _, f := range frames {
		if err := s.Write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutputIsSilentByItself(t *testing.T) {
	o := audio.NewOutput(0)
	for range 3 {
		if pull(o) != (audio.Frame{}) {
			t.Fatal("sound out of nothing")
		}
	}
	if s := o.Stats(); s.Pulled != 3 || s.Underruns != 0 || s.Spoken != 0 || o.Sounding() {
		t.Errorf("stats %+v, sounding %v", s, o.Sounding())
	}
}

func TestStreamFromBeginningToEnd(t *testing.T) {
	o := audio.NewOutput(30 * time.Millisecond) // two frames
	s := o.Open()
	write(t, s, numbered(1), numbered(2))
	select {
	case <-s.Started():
		t.Fatal("started before the device took anything")
	default:
	}
	if q := o.Queued(); q != 40*time.Millisecond {
		t.Errorf("%v queued, want 40ms", q)
	}
	if pull(o) != numbered(1) {
		t.Fatal("the first frame is not what was written")
	}
	<-s.Started()
	if pull(o) != numbered(2) || s.Played() != 2 || s.Written() != 2 || o.Queued() != 0 {
		t.Fatalf("played %d, written %d, queued %v", s.Played(), s.Written(), o.Queued())
	}
	if age := s.Age(); age != 20*time.Millisecond {
		t.Errorf("the first frame was taken %v ago, want 20ms", age)
	}
	s.Finish()

	// The last frame was taken; it has been heard after itself and the latency, that is with the third pull.
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(context.Background()) }()
	for i := range 2 {
		pull(o)
		select {
		case <-drained:
			t.Fatalf("drained after %d frames of silence, want 3", i+1)
		default:
		}
		if !o.Sounding() {
			t.Error("not sounding while the last frame is under way")
		}
	}
	pull(o)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if o.Sounding() {
		t.Error("sounding after the end")
	}
	if st := o.Stats(); st.Underruns != 0 || st.Spoken != 2 {
		t.Errorf("stats %+v", st)
	}
	if err := s.Write(t.Context(), numbered(3)); err == nil {
		t.Error("a finished stream took a frame")
	}
}

func TestEmptyStreamIsDrainedAtOnce(t *testing.T) {
	o := audio.NewOutput(time.Second)
	s := o.Open()
	s.Finish()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Finish and Drain in the other order: the device must not have to play the latency of nothing.
	s = o.Open()
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(context.Background()) }()
	s.Finish()
	pull(o)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
}

func TestWriteWaitsForTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := audio.NewOutput(0)
		s := o.Open()
		n := 0
		for !s.Full() {
			write(t, s, numbered(1))
			n++
		}
		if d := time.Duration(n) * audio.FrameDuration; d < 2*time.Second || d > 3*time.Second {
			t.Errorf("room for %v, want about two seconds", d)
		}
		done := make(chan error, 1)
		go func() { done <- s.Write(t.Context(), numbered(2)) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("wrote into a full ring: %v", err)
		default:
		}
		pull(o)
		if err := <-done; err != nil {
			t.Fatal(err)
		}

		// A device that takes nothing keeps a writer only until its context ends.
		cause := errors.New("too slow")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		if err := s.Write(ctx, numbered(3)); err != cause {
			t.Errorf("got %v, want the cause", err)
		}
		if err := s.Drain(ctx); err != cause {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := audio.NewOutput(0)
		s := o.Open()
		loud := numbered(10000)
		for !s.Full() {
			write(t, s, loud)
		}
		if f := pull(o); f[0] != 0 || f[audio.FrameSize-1] != loud[0] {
			t.Fatalf("loud speech begins with %d and goes on with %d, want it to swell up", f[0], f[audio.FrameSize-1])
		}
		write(t, s, loud)
		writer, drainer := make(chan error, 1), make(chan error, 1)
		go func() { writer <- s.Write(context.Background(), loud) }()
		go func() { drainer <- s.Drain(context.Background()) }()
		synctest.Wait()
		s.Cut()
		s.Cut()
		if err := <-writer; err != audio.ErrCut {
			t.Errorf("the writer got %v", err)
		}
		if err := <-drainer; err != audio.ErrCut {
			t.Errorf("the drainer got %v", err)
		}
		if o.Queued() != 0 {
			t.Errorf("%v queued after a cut", o.Queued())
		}
		f := pull(o)
		for i := 1; i < audio.FrameSize/2; i++ {
			if f[i] > f[i-1] || f[i-1]-f[i] > 200 {
				t.Fatalf("sample %d is %d after %d: that clicks", i, f[i], f[i-1])
			}
		}
		for i := audio.FrameSize / 2; i < audio.FrameSize; i++ {
			if f[i] != 0 {
				t.Fatalf("sample %d is %d: not silent after 10 ms", i, f[i])
			}
		}
		if pull(o) != (audio.Frame{}) {
			t.Error("more than one frame after the cut")
		}
		if s.Played() != 1 {
			t.Errorf("%d frames count as played, want 1", s.Played())
		}
	})
}

func TestOpenCutsTheOlder(t *testing.T) {
	o := audio.NewOutput(0)
	a := o.Open()
	write(t, a, numbered(1000), numbered(1000), numbered(1000))
	b := o.Open()
	if err := a.Write(t.Context(), numbered(1000)); err != audio.ErrCut {
		t.Errorf("the older stream: %v", err)
	}
	write(t, b, numbered(200))
	if pull(o) != numbered(200) {
		t.Error("something of the stream that nobody heard got into the next one")
	}
	// A voice that is late with the sound of a stream that was cut must not end the one that speaks now.
	a.Finish()
	a.Cut()
	write(t, b, numbered(2001))
	if pull(o) != numbered(2001) {
		t.Error("the end of the older stream was felt by the newer")
	}
}

func TestUnderrunsAndGaps(t *testing.T) {
	o := audio.NewOutput(0)
	s := o.Open()
	pull(o) // not begun: no underrun
	write(t, s, numbered(8000))
	pull(o)
	f := pull(o)
	if f[0] < 7000 || f[audio.FrameSize/4] != 0 {
		t.Errorf("speech that stops short of zero ends in %d … %d, want a release", f[0], f[audio.FrameSize/4])
	}
	pull(o)
	write(t, s, numbered(8000))
	if f := pull(o); f[0] != 0 || f[audio.FrameSize-1] != 8000 {
		t.Errorf("speech after a hole begins with %d and ends with %d, want it to swell up", f[0], f[audio.FrameSize-1])
	}
	pull(o)
	s.Finish()
	pull(o)
	if st := o.Stats(); st.Underruns != 3 || st.Gaps != 1 {
		t.Errorf("%d underruns and %d gaps, want 3 and 1", st.Underruns, st.Gaps)
	}
}

// Frames come out in order, none after a cut, none twice, and nothing of a cut stream is heard in the next one, whatever
// the goroutines do.
func TestStress(t *testing.T) {
	o := audio.NewOutput(40 * time.Millisecond)
	stop := make(chan struct{})
	var device sync.WaitGroup
	cut := make([]bool, 60) // by stream
	var mu sync.Mutex
	device.Go(func() {
		seen, last := 0, 0
		for {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock()
			over := append([]bool(nil), cut...)
			mu.Unlock()
			f := pull(o)
			whole := f[0] != 0
			for _, v := range f {
				whole = whole && v == f[0]
			}
			if !whole {
				continue // silence, a fade, a release, or a swell
			}
			stream, n := int(f[0])/500, int(f[0])%500
			switch {
			case stream < seen, stream == seen && n <= last:
				t.Errorf("frame %d of stream %d after frame %d of stream %d", n, stream, last, seen)
			case over[stream]:
				t.Errorf("frame %d of stream %d, which had been cut", n, stream)
			}
			seen, last = stream, n
		}
	})
	rnd := rand.New(rand.NewPCG(1, 1))
	for stream := 1; stream < len(cut); stream++ {
		s := o.Open()
		mu.Lock()
		cut[stream-1] = true
		mu.Unlock()
		frames, cutAt := 100+rnd.IntN(300), rnd.IntN(600)
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := 1; n <= frames; n++ {
				err := s.Write(t.Context(), numbered(stream*500+n))
				if err == audio.ErrCut {
					return
				}
				if err != nil {
					t.Error(err)
				}
			}
			s.Finish()
		})
		wg.Go(func() {
			if cutAt >= frames {
				if err := s.Drain(t.Context()); err != nil || s.Played() != frames {
					t.Errorf("drained with %v after %d of %d frames", err, s.Played(), frames)
				}
				return
			}
			for s.Written() < cutAt {
				o.Queued()
				runtime.Gosched()
			}
			s.Cut()
			mu.Lock()
			cut[stream] = true
			mu.Unlock()
			if err := s.Drain(t.Context()); err != audio.ErrCut && err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			ring := o.Sound(make([]audio.Frame, 3), true)
			release := o.Duck()
			o.Sound(make([]audio.Frame, 2), false)()
			o.Sounding()
			o.Stats()
			release()
			ring()
		})
		wg.Wait()
	}
	close(stop)
	device.Wait()
}

func TestVolume(t *testing.T) {
	o := audio.NewOutput(0)
	stop := o.Sound([]audio.Frame{numbered(10000)}, true)
	defer stop()
	level := func() int16 {
		before := pull(o)
		f := pull(o)
		for i := 1; i < audio.FrameSize; i++ {
			if d := int(before[i]) - int(before[i-1]); d > 40 || d < -40 {
				t.Fatalf("the volume jumps by %d at sample %d", d, i)
			}
		}
		return f[0]
	}
	for _, row := range []struct{ percent, low, high int }{{100, 10000, 10000}, {50, 990, 1010}, {75, 3140, 3180}, {1, 100, 110}, {0, 0, 0}, {200, 10000, 10000}, {-5, 0, 0}} {
		o.SetVolume(row.percent)
		if got := int(level()); got < row.low || got > row.high {
			t.Errorf("volume %d: %d, want %d to %d", row.percent, got, row.low, row.high)
		}
	}
	o.SetVolume(100)
	level()
	o.SetMuted(true)
	if level() != 0 || o.Volume() != 100 || !o.Muted() {
		t.Error("mute isn't silent, or forgets the volume")
	}
	o.SetMuted(false)
	if level() != 10000 {
		t.Error("the volume isn't restored")
	}
}

func TestPullDoesNotAllocate(t *testing.T) {
	o := audio.NewOutput(0)
	o.SetVolume(70)
	o.Sound(audio.RingTone(), true)
	s := o.Open()
	var f audio.Frame
	ctx := t.Context()
	n := testing.AllocsPerRun(1000, func() {
		s.Write(ctx, f)
		o.Sound(nil, false)
		o.Pull(&f)
	})
	if n != 0 {
		t.Errorf("%v allocations for a frame, want none", n)
	}
}

func BenchmarkPull(b *testing.B) {
	ring := audio.RingTone()
	for _, row := range []struct {
		name          string
		speech, rings bool
		volume        int
	}{{"silence", false, false, 100}, {"speech", true, false, 100}, {"speech at 60%", true, false, 60}, {"speech over a ring at 60%", true, true, 60}} {
		b.Run(row.name, func(b *testing.B) {
			o := audio.NewOutput(0)
			o.SetVolume(row.volume)
			if row.rings {
				o.Sound(ring, true)
			}
			s := o.Open()
			var f audio.Frame
			b.ReportAllocs()
			for b.Loop() {
				if row.speech {
					s.Write(b.Context(), ring[0])
				}
				o.Pull(&f)
			}
		})
	}
}

func ExampleOutput() {
	o := audio.NewOutput(0)
	s := o.Open()
	s.Write(context.Background(), audio.Frame{1, 2, 3})
	s.Finish()

	var f audio.Frame
	o.Pull(&f) // what a sound card does every 20 ms
	fmt.Println(f[0], f[1], f[2])
	o.Pull(&f) // the frame has been heard when the next one is asked for
	fmt.Println(s.Drain(context.Background()))
	// Output:
	// 1 2 3
	// <nil>
}

package audio_test

import (
	"context"
	"testing"
	"time"

	"bellbird/audio"
)

// steps is the largest step between two samples that follow each other, from last on.
func steps(last *int16, f audio.Frame) (most int) {
	for _, s := range f {
		d := int(s) - int(*last)
		most = max(most, d, -d)
		*last = s
	}
	return most
}

// smooth is a step that is not heard as a click: what the fades make of a constant of 10 000, and no more.
const smooth = 150

func TestMusicGivesWay(t *testing.T) {
	o := audio.NewOutput(0)
	m := o.OpenMusic()
	fill := func() {
		for !m.Full() {
			write(t, m, numbered(10000))
		}
	}
	var last int16
	level := func(n int) int16 {
		t.Helper()
		for range n {
			fill()
			if d := steps(&last, pull(o)); d > smooth {
				t.Fatalf("a step of %d: that clicks", d)
			}
		}
		return last
	}
	if got := level(2); got != 10000 {
		t.Fatalf("music at %d, want 10000", got)
	}

	// Two claims: the first that is released must not lift the other.
	a, b := o.Duck(), o.Duck()
	if got := level(2); got != 1000 {
		t.Errorf("ducked music at %d, want 1000", got)
	}
	a()
	a()
	if got := level(30); got != 1000 {
		t.Errorf("one claim left: music at %d, want 1000", got)
	}
	// A volume that is set meanwhile sets the base.
	o.SetVolume(50)
	if got := level(2); got < 99 || got > 101 {
		t.Errorf("ducked at half the volume: %d, want 100", got)
	}
	b()
	if got := level(30); got < 999 || got > 1001 {
		t.Errorf("not ducked any more at half the volume: %d, want 1000", got)
	}
	o.SetVolume(100)
	level(2)

	// Speech ducks it too, and a ring, which speech ducks in turn.
	s := o.Open()
	write(t, s, numbered(1), numbered(1), numbered(1))
	if got := level(2); got != 1001 {
		t.Errorf("speech over music: %d, want 1001", got)
	}
	s.Cut()
	if got := level(40); got != 10000 {
		t.Errorf("after speech music is at %d", got)
	}
	stop := o.Sound([]audio.Frame{numbered(100)}, true)
	if got := level(2); got != 1100 {
		t.Errorf("a ring over music: %d, want 1100", got)
	}
	stop()
	level(40)
	st := o.Stats()
	if st.MusicUnderruns != 0 || st.MusicGaps != 0 || st.MusicPlayed != st.Pulled || st.Spoken != 2 {
		t.Errorf("%+v", st)
	}

	// The newer music cuts the older, and not the speech.
	s = o.Open()
	o.OpenMusic()
	write(t, s, numbered(1))
	if err := m.Write(t.Context(), audio.Frame{}); err != audio.ErrCut {
		t.Errorf("the older music got %v", err)
	}
}

func TestPause(t *testing.T) {
	for name, of := range map[string]func(*audio.Output) *audio.Stream{"speech": (*audio.Output).Open, "music": (*audio.Output).OpenMusic} {
		o := audio.NewOutput(40 * time.Millisecond)
		s := of(o)
		write(t, s, numbered(9000), numbered(9001), numbered(9002), numbered(9003))
		var last int16
		next := func() audio.Frame {
			t.Helper()
			f := pull(o)
			if d := steps(&last, f); d > smooth {
				t.Fatalf("%s: a step of %d: that clicks", name, d)
			}
			return f
		}
		next()
		next()
		s.Pause()
		f := next()
		if f[0] < 8900 || f[audio.FrameSize/2] != 0 {
			t.Errorf("%s: a pause begins with %d and is at %d after 10 ms, want a fade", name, f[0], f[audio.FrameSize/2])
		}
		if !o.Sounding() {
			t.Errorf("%s: what the device still has doesn't count as sounding", name)
		}
		for range 5 {
			if next() != (audio.Frame{}) {
				t.Errorf("%s: something is heard in the pause", name)
			}
		}
		if o.Sounding() || s.Played() != 2 || !s.Paused() {
			t.Errorf("%s: sounding %v, %d played, paused %v", name, o.Sounding(), s.Played(), s.Paused())
		}
		s.Finish()
		s.Resume()
		if f := next(); f[0] != 0 || f[audio.FrameSize-1] != 9002 {
			t.Errorf("%s: goes on with %d … %d, want the frame that died away", name, f[0], f[audio.FrameSize-1])
		}
		if f := next(); f != numbered(9003) {
			t.Errorf("%s: then comes %d", name, f[0])
		}
		for range 4 {
			next()
		}
		if err := s.Drain(t.Context()); err != nil || s.Played() != 4 {
			t.Errorf("%s: drained with %v after %d frames", name, err, s.Played())
		}

		// One that is cut in the pause is silent.
		s = of(o)
		write(t, s, numbered(9000), numbered(9000), numbered(9000))
		next()
		s.Pause()
		next()
		s.Cut()
		for range 3 {
			if next() != (audio.Frame{}) {
				t.Errorf("%s: a stream is heard that was cut in the pause", name)
			}
		}
		if st := o.Stats(); st.Underruns+st.Gaps+st.MusicUnderruns+st.MusicGaps != 0 {
			t.Errorf("%s: a pause counts as missing sound: %+v", name, st)
		}
	}
}

func TestTap(t *testing.T) {
	o := audio.NewOutput(0)
	o.SetVolume(50)
	tap, other := o.Tap(4), o.Tap(64)
	defer other.Close()
	s := o.Open()
	var played []audio.Frame
	for n := range 6 {
		write(t, s, numbered(200+n))
		played = append(played, pull(o))
	}
	var f audio.Frame
	for n := range 4 {
		if !tap.Pop(&f) || f != played[n] {
			t.Errorf("frame %d of the tap is not what was played", n)
		}
	}
	if tap.Pop(&f) || tap.Dropped() != 2 || other.Len() != 6 || other.Dropped() != 0 {
		t.Errorf("%d dropped of a full tap, %d; the other has %d", tap.Dropped(), other.Dropped(), other.Len())
	}
	tap.Close()
	pull(o)
	if tap.Pop(&f) || other.Len() != 7 {
		t.Error("a closed tap still runs")
	}
	if n := testing.AllocsPerRun(100, func() { o.Pull(&f) }); n != 0 {
		t.Errorf("%v allocations for a frame with taps", n)
	}
}

func TestStatsSince(t *testing.T) {
	o := audio.NewOutput(0)
	s := o.Open()
	turn := func() audio.Stats {
		before := o.Stats()
		write(t, s, numbered(1))
		for range 3 {
			pull(o)
		}
		return o.Stats().Since(before)
	}
	turn()
	if st := turn(); st.Pulled != 3 || st.Spoken != 1 || st.Underruns != 2 || st.Gaps != 1 {
		t.Errorf("a turn counts %+v", st)
	}
}

func ExampleOutput_OpenMusic() {
	o := audio.NewOutput(0)
	m := o.OpenMusic()
	m.Write(context.Background(), audio.Frame{})
	release := o.Duck() // the user is being listened to
	defer release()
}

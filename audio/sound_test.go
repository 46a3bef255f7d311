package audio_test

import (
	"testing"

	"bellbird/audio"
)

func TestSounds(t *testing.T) {
	o := audio.NewOutput(0)
	a, b := []audio.Frame{numbered(100), numbered(101)}, []audio.Frame{numbered(200)}
	o.Sound(a, false)
	o.Sound(b, false)
	for i, want := range []int{100, 101, 200, 0} {
		if got := pull(o); got != numbered(want) {
			t.Errorf("frame %d is %d, want %d: short sounds come one after the other", i, got[0], want)
		}
	}

	// Mixed with speech, and saturating.
	s := o.Open()
	write(t, s, numbered(1), numbered(30000), numbered(30000))
	pull(o)
	o.Sound([]audio.Frame{numbered(1000), numbered(10000)}, false)
	if f := pull(o); f != numbered(31000) {
		t.Errorf("the mix of 30000 and 1000 is %d", f[0])
	}
	if f := pull(o); f != numbered(32767) {
		t.Errorf("the mix of 30000 and 10000 is %d", f[0])
	}
	s.Cut()
	pull(o)

	stop := o.Sound([]audio.Frame{numbered(300), numbered(300), numbered(300)}, false)
	pull(o)
	stop()
	if f := pull(o); f[0] != 300 || f[audio.FrameSize/2] != 0 {
		t.Error("a stopped sound doesn't fade")
	}
	if pull(o) != (audio.Frame{}) {
		t.Error("a stopped sound goes on")
	}

	for range 5 {
		o.Sound(a, false)
	}
	if n := o.Stats().Refused; n != 1 {
		t.Errorf("%d sounds refused, want 1", n)
	}
	if o.Sound(nil, true); o.Stats().Refused != 1 {
		t.Error("an empty sound counts")
	}
}

func TestRings(t *testing.T) {
	o := audio.NewOutput(0)
	stopA := o.Sound([]audio.Frame{numbered(1000), numbered(1001)}, true)
	for i, want := range []int{1000, 1001, 1000} {
		if f := pull(o); f != numbered(want) {
			t.Fatalf("frame %d of the ring is %d, want %d", i, f[0], want)
		}
	}
	stopB := o.Sound([]audio.Frame{numbered(2000)}, true)
	pull(o) // the change fades
	if f := pull(o); f != numbered(2000) {
		t.Errorf("the newer ring isn't heard: %d", f[0])
	}
	stopB()
	stopB()
	pull(o)
	if f := pull(o); f != numbered(1001) {
		t.Errorf("the older ring isn't heard again: %d", f[0])
	}

	// Ducked under speech and for every claim, and back only when the last is gone.
	one, two := o.Duck(), o.Duck()
	pull(o)
	if f := pull(o); f[0] < 95 || f[0] > 105 {
		t.Errorf("the ducked ring is at %d, want about 100", f[0])
	}
	one()
	one()
	for range 50 {
		pull(o)
	}
	if f := pull(o); f[0] > 105 {
		t.Errorf("the duck was lifted while somebody still claimed it: %d", f[0])
	}
	two()
	for range 50 {
		pull(o)
	}
	if f := pull(o); f[0] < 1000 {
		t.Errorf("the ring stays ducked: %d", f[0])
	}
	s := o.Open()
	write(t, s, audio.Frame{}, audio.Frame{})
	pull(o)
	if f := pull(o); f[0] > 105 {
		t.Errorf("speech doesn't duck the ring: %d", f[0])
	}
	s.Cut()
	stopA()
	pull(o)
	if pull(o) != (audio.Frame{}) || o.Sounding() {
		t.Error("the ring goes on")
	}
}

func ExampleOutput_Sound() {
	o := audio.NewOutput(0)
	o.Sound(audio.WakeTone(), false) // now, or after the sound before it
	silence := o.Sound(audio.RingTone(), true)
	silence() // when the user says so
}

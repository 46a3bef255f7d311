package espeak_test

import (
	"math"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/tts/espeak"
)

func TestSound(t *testing.T) {
	v, err := espeak.New(espeak.Options{Pause: -1})
	if err != nil {
		t.Skip(err)
	}
	length := func(v *espeak.Voice) time.Duration {
		t.Helper()
		n := 0
		if err := v.Synthesize(t.Context(), "This is how fast I speak.", func(audio.Frame) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * audio.FrameDuration
	}
	usual := length(v)
	if err := v.SetSpeed(0.6); err != nil {
		t.Fatal(err)
	}
	if slow := length(v); slow < usual*5/4 {
		t.Errorf("at 0.6 of its speed it needs %v instead of %v", slow, usual)
	}
	for _, bad := range []float64{0, -1, 5, math.NaN(), math.Inf(1)} {
		if v.SetSpeed(bad) == nil || v.SetPitch(bad) == nil {
			t.Errorf("a factor of %v is taken", bad)
		}
	}
	for _, bad := range []string{"no_such_voice", "--help"} {
		if v.SetVoice(bad) == nil {
			t.Errorf("voice %q is taken", bad)
		}
		if _, err := v.Named(bad); err == nil {
			t.Errorf("voice %q is taken", bad)
		}
	}
	if name, speed := v.Settings(); name != "en-us" || speed != 0.6 {
		t.Errorf("%q, %v", name, speed)
	}
	if err := v.SetVoice("en-gb"); err != nil {
		t.Fatal(err)
	}
	german, err := v.Named("de")
	if err != nil {
		t.Fatal(err)
	}
	length(german)
	length(v)
	if name, _ := german.Settings(); name != "de" {
		t.Errorf("%q", name)
	}
	if err := v.SetVoice(""); err != nil {
		t.Fatal(err)
	}
	if name, _ := v.Settings(); name != "en-us" {
		t.Errorf("%q", name)
	}
}

package audio_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"bellbird/audio"
)

// The sweep is found to the sample under noise that is louder than it, and not found where it isn't.
func TestFind(t *testing.T) {
	sweep := audio.Sweep(500 * time.Millisecond)
	if l := audio.Measure(sweep); l.Peak < -12.2 || l.Peak > -11.9 {
		t.Errorf("the sweep's peak is at %.1f dB", l.Peak)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct {
		gain  float64
		noise float64
		min   float64
		max   float64
	}{{1, 0, 0.99, 1}, {-0.5, 100, 0.9, 1}, {0.01, 200, 0.15, 0.6}, {0, 200, 0, 0.1}, {0, 0, 0, 0}} {
		in := make([]int16, 16000)
		for i := range in {
			in[i] = int16(random.NormFloat64() * row.noise)
		}
		const at = 1777
		for i, s := range sweep {
			in[at+i] += int16(float64(s) * row.gain)
		}
		got, likeness := audio.Find(sweep, in)
		if likeness < row.min || likeness > row.max || row.gain != 0 && got != at {
			t.Errorf("%+v: found at %d, likeness %.2f", row, got, likeness)
		}
	}
	if _, likeness := audio.Find(sweep, sweep[1:]); likeness != 0 {
		t.Error("found in something shorter")
	}
	if audio.Clipped([]int16{32767, -32768, 32766, 0}) != 2 {
		t.Error("clipped samples are not counted")
	}
}

func ExampleFind() {
	sweep := audio.Sweep(100 * time.Millisecond)
	heard := append(make([]int16, 320), sweep...)
	at, likeness := audio.Find(sweep, heard)
	fmt.Printf("%d %.2f\n", at, likeness)
	// Output: 320 1.00
}

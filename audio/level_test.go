package audio_test

import (
	"math"
	"testing"
	"time"

	"bellbird/audio"
)

func TestMeasure(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.02 }
	for _, row := range []struct {
		name      string
		samples   []int16
		rms, peak float64
	}{
		{"nothing", nil, audio.Silence, audio.Silence},
		{"silence", make([]int16, 320), audio.Silence, audio.Silence},
		{"full sine", sine(16000, 1000, 1, 16000), -3.01, 0},
		{"half sine", sine(16000, 1000, 0.5, 16000), -9.03, -6.02},
		{"lowest sample", []int16{-32768}, 0, 0},
		{"one step", []int16{1, -1}, -90.31, -90.31},
	} {
		if got := audio.Measure(row.samples); !near(got.RMS, row.rms) || !near(got.Peak, row.peak) {
			t.Errorf("%s: %+v, want %.2f and %.2f", row.name, got, row.rms, row.peak)
		}
	}
}

func TestTones(t *testing.T) {
	for name, row := range map[string]struct {
		frames  []audio.Frame
		longest time.Duration
	}{
		"wake":   {audio.WakeTone(), 150 * time.Millisecond},
		"done":   {audio.DoneTone(), 200 * time.Millisecond},
		"error":  {audio.ErrorTone(), 400 * time.Millisecond},
		"ring":   {audio.RingTone(), 2 * time.Second},
		"mute":   {audio.MuteTone(), 200 * time.Millisecond},
		"unmute": {audio.UnmuteTone(), 200 * time.Millisecond},
	} {
		var all []int16
		for _, f := range row.frames {
			all = append(all, f[:]...)
		}
		if d := time.Duration(len(row.frames)) * audio.FrameDuration; d > row.longest {
			t.Errorf("%s takes %v, want at most %v", name, d, row.longest)
		}
		if l := audio.Measure(all); l.Peak > -6 || l.Peak < -20 {
			t.Errorf("%s has a peak of %.1f dB: too loud or too soft beside speech", name, l.Peak)
		}
		if all[0] != 0 || all[len(all)-1] > 8 || all[len(all)-1] < -8 {
			t.Errorf("%s begins with %d and ends with %d: that clicks", name, all[0], all[len(all)-1])
		}
		// What clicks has energy where no note has any: the second difference of a 2.7 kHz sine is bounded.
		for i := 2; i < len(all); i++ {
			if d := int(all[i]) - 2*int(all[i-1]) + int(all[i-2]); d > 3000 || d < -3000 {
				t.Errorf("%s has an edge at sample %d", name, i)
				break
			}
		}
	}
}

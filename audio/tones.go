package audio

import (
	"math"
	"time"
)

// The sounds that the appliance makes itself. They are computed, not recorded, so that there is nothing to install and
// nothing to license. All are short, quieter than speech, and begin and end in silence.

// WakeTone says "I'm listening": two quick rising notes. It is over in 120 ms, because the user is about to speak.
func WakeTone() []Frame {
	return render(120*time.Millisecond,
		note{at: 0, length: 60 * time.Millisecond, hertz: 659.26, gain: 0.22},
		note{at: 45 * time.Millisecond, length: 75 * time.Millisecond, hertz: 987.77, gain: 0.22})
}

// DoneTone says "done": the two notes of the wake tone, falling and softer.
func DoneTone() []Frame {
	return render(160*time.Millisecond,
		note{at: 0, length: 75 * time.Millisecond, hertz: 880, gain: 0.18},
		note{at: 65 * time.Millisecond, length: 95 * time.Millisecond, hertz: 659.26, gain: 0.18})
}

// ErrorTone says "that didn't work": two low notes.
func ErrorTone() []Frame {
	return render(320*time.Millisecond,
		note{at: 0, length: 140 * time.Millisecond, hertz: 311.13, gain: 0.25},
		note{at: 150 * time.Millisecond, length: 170 * time.Millisecond, hertz: 233.08, gain: 0.25})
}

// MuteTone says "I don't hear anything any more": one low note, and a lower one. UnmuteTone says that it's over, with the
// same notes rising.
func MuteTone() []Frame {
	return render(180*time.Millisecond,
		note{at: 0, length: 80 * time.Millisecond, hertz: 523.25, gain: 0.18},
		note{at: 70 * time.Millisecond, length: 110 * time.Millisecond, hertz: 392, gain: 0.2})
}

// UnmuteTone is described at MuteTone.
func UnmuteTone() []Frame {
	return render(180*time.Millisecond,
		note{at: 0, length: 80 * time.Millisecond, hertz: 392, gain: 0.2},
		note{at: 70 * time.Millisecond, length: 110 * time.Millisecond, hertz: 523.25, gain: 0.18})
}

// RingTone is one round of a timer's ring, made to be looped: three bell-like strokes, then a rest in which a "stop" can
// be heard.
func RingTone() []Frame {
	var notes []note
	for i := range 3 {
		at := time.Duration(i) * 200 * time.Millisecond
		notes = append(notes,
			note{at: at, length: 330 * time.Millisecond, hertz: 880, gain: 0.25, bell: true},
			note{at: at, length: 330 * time.Millisecond, hertz: 1318.51, gain: 0.12, bell: true})
	}
	return render(1500*time.Millisecond, notes...)
}

type note struct {
	at, length time.Duration
	hertz      float64
	gain       float64
	bell       bool // dies away from the start instead of being held
}

// render adds up the notes in a piece of the given length. Each note swells and fades along a raised cosine, so that it
// has no edge that could click, and has a weak octave above it, which small loudspeakers carry better.
func render(length time.Duration, notes ...note) []Frame {
	sum := make([]float64, Frames(length)*FrameSize)
	for _, n := range notes {
		start, count := samplesIn(n.at), samplesIn(n.length)
		attack, release := min(count/4, samplesIn(8*time.Millisecond)), count/3
		for i := range min(count, len(sum)-start) {
			env := n.gain
			if i < attack {
				env *= 0.5 - 0.5*math.Cos(math.Pi*float64(i)/float64(attack))
			}
			if left := count - i; left < release {
				env *= 0.5 - 0.5*math.Cos(math.Pi*float64(left)/float64(release))
			}
			if n.bell {
				env *= math.Exp(-4 * float64(i) / float64(count))
			}
			t := 2 * math.Pi * n.hertz * float64(i) / float64(SampleRate)
			sum[start+i] += env * (0.85*math.Sin(t) + 0.15*math.Sin(2*t))
		}
	}
	frames := make([]Frame, len(sum)/FrameSize)
	for i, v := range sum {
		frames[i/FrameSize][i%FrameSize] = saturate(int32(math.Round(v * 32767)))
	}
	return frames
}

func samplesIn(d time.Duration) int {
	return int(d * time.Duration(SampleRate) / time.Second)
}

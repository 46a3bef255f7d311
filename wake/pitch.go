package wake

import (
	"math"

	"bellbird/audio"
)

// pitch tells how periodic the last 40 ms were at the rates at which vocal folds open, 0 to 1. Clatter and water are
// not; vowels are.
type pitch struct {
	recent [160]float32 // the sound at 4 kHz, below about 900 Hz
}

const (
	pitchLeast = 10 // samples of 4 kHz: 400 Hz
	pitchMost  = 57 // 70 Hz
)

// write takes 20 ms of sound.
func (p *pitch) write(frame *audio.Frame) float32 {
	copy(p.recent[:], p.recent[80:])
	out := p.recent[80:]
	for i := range out {
		var s int32
		for _, x := range frame[4*i : 4*i+4] {
			s += int32(x)
		}
		out[i] = float32(s)
	}
	var mean float32
	for _, x := range p.recent {
		mean += x
	}
	mean /= float32(len(p.recent))
	var x [160]float32
	for i := range x {
		x[i] = p.recent[i] - mean
	}
	const n = len(x) - pitchMost
	var best float32
	var e0 float32
	for _, v := range x[:n] {
		e0 += v * v
	}
	for lag := pitchLeast; lag <= pitchMost; lag++ {
		var c, e float32
		for i, v := range x[:n] {
			w := x[i+lag]
			c += v * w
			e += w * w
		}
		if c > 0 {
			best = max(best, c*c/(e0*e+1))
		}
	}
	return float32(math.Sqrt(float64(best)))
}

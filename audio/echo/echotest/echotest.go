// Package echotest makes rooms of numbers for measuring echo cancellers: what a loudspeaker plays comes back through an
// impulse response, a clock that is not the microphone's, and a loudspeaker that distorts. It is for tests and
// measurements, not for the appliance.
package echotest

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/dsp/fourier"

	"bellbird/audio"
)

// A Room is how a loudspeaker is heard by a microphone.
type Room struct {
	Delay time.Duration // until the direct sound, devices included
	RT60  time.Duration // until the reverberation is 60 dB weaker; 0 is no reverberation
	Gain  float64       // of the direct sound
	Noise float64       // RMS of the background, in units of a sample
	PPM   float64       // by how much the loudspeaker's clock is faster, in millionths
	Clip  float64       // a soft limit of the loudspeaker, in units of a sample; 0 is none
	Seed  uint64
}

// Samples is how many samples there are in d.
func Samples(d time.Duration) int { return int(d.Seconds() * float64(audio.SampleRate)) }

// Response is the room's impulse response, delay included.
func (r Room) Response() []float64 {
	n := Samples(r.RT60)
	delay := Samples(r.Delay)
	h := make([]float64, delay+max(n, 1))
	h[delay] = r.Gain
	g := rand.New(rand.NewPCG(r.Seed, 1))
	// The reverberation has half the energy of the direct sound: microphone and loudspeaker are in one case.
	gain := r.Gain * math.Sqrt(0.5*6*math.Ln10/float64(max(n, 1)))
	for i := 20; i < n; i++ {
		h[delay+i] = gain * g.NormFloat64() * math.Pow(10, -3*float64(i)/float64(n))
	}
	return h
}

// Echo is what the microphone hears of what is played, without the background.
func (r Room) Echo(played []int16) []float64 {
	x := make([]float64, len(played))
	for i, v := range played {
		x[i] = float64(v)
	}
	if r.Clip > 0 {
		for i, v := range x {
			x[i] = r.Clip * math.Tanh(v/r.Clip)
		}
	}
	if r.PPM != 0 {
		x = drift(x, r.PPM)
	}
	return convolve(x, r.Response())
}

// Hear is what the microphone hears: parts, which are added, and the background.
func (r Room) Hear(parts ...[]float64) []int16 {
	n := 0
	for _, p := range parts {
		n = max(n, len(p))
	}
	g := rand.New(rand.NewPCG(r.Seed, 2))
	out := make([]int16, n)
	for i := range out {
		v := g.NormFloat64() * r.Noise
		for _, p := range parts {
			if i < len(p) {
				v += p[i]
			}
		}
		out[i] = int16(math.RoundToEven(min(max(v, math.MinInt16), math.MaxInt16)))
	}
	return out
}

// drift reads x faster than it was written.
func drift(x []float64, ppm float64) []float64 {
	const half = 24
	const width = math.Pi / (half + 1)
	var cos, sin [2 * half]float64 // of the window's angle, from one neighbour to the next
	for i := range cos {
		sin[i], cos[i] = math.Sincos(width * float64(i-half+1))
	}
	y := make([]float64, len(x))
	for i := range y {
		at := float64(i) * (1 + ppm*1e-6)
		whole := int(at)
		part := at - float64(whole)
		if part == 0 {
			if whole < len(x) {
				y[i] = x[whole]
			}
			continue
		}
		s, c := math.Sincos(width * part)
		scale := math.Sin(math.Pi*part) / (2 * math.Pi)
		for n := range cos {
			k := n - half + 1
			if at := whole + k; at < 0 || at >= len(x) {
				continue
			}
			v := x[whole+k] * scale * (1 + c*cos[n] + s*sin[n]) / (part - float64(k))
			if k%2 != 0 {
				v = -v
			}
			y[i] += v
		}
	}
	return y
}

// convolve is as long as x.
func convolve(x, h []float64) []float64 {
	size := 1
	for size < 4*len(h) {
		size *= 2
	}
	f := fourier.NewFFT(size)
	padded := make([]float64, size)
	copy(padded, h)
	response := f.Coefficients(nil, padded)
	spectrum := make([]complex128, len(response))
	y := make([]float64, len(x))
	step := size - len(h)
	for at := 0; at < len(x); at += step {
		clear(padded)
		copy(padded, x[at:min(at+step, len(x))])
		f.Coefficients(spectrum, padded)
		for k := range spectrum {
			spectrum[k] *= response[k]
		}
		f.Sequence(padded, spectrum)
		for i, v := range padded[:min(size, len(y)-at)] {
			y[at+i] += v / float64(size)
		}
	}
	return y
}

// Noise is n samples of white noise of the given RMS.
func Noise(n int, rms float64, seed uint64) []int16 {
	g := rand.New(rand.NewPCG(seed, 3))
	x := make([]int16, n)
	for i := range x {
		x[i] = int16(min(max(g.NormFloat64()*rms, math.MinInt16), math.MaxInt16))
	}
	return x
}

// Babble is n samples of noise that is coloured and comes and goes, like the syllables of speech.
func Babble(n int, rms float64, seed uint64) []int16 {
	g := rand.New(rand.NewPCG(seed, 4))
	x := make([]int16, n)
	var low, gain, want, colour float64
	for i := range x {
		if i%2000 == 0 { // 125 ms
			want = max(0, g.NormFloat64()+0.3)
			colour = 0.5 + 0.45*g.Float64()
		}
		gain += (want - gain) * 0.002
		low = colour*low + math.Sqrt(1-colour*colour)*g.NormFloat64()
		x[i] = int16(min(max(low*gain*rms, math.MinInt16), math.MaxInt16))
	}
	return x
}

// Reduction is by how many dB y is weaker than x, over as long as both are.
func Reduction(x, y []int16) float64 {
	n := min(len(x), len(y))
	return Level(x[:n]) - Level(y[:n])
}

// Level is the mean power in dB of a unit of a sample.
func Level(x []int16) float64 {
	sum := 1e-3
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(sum/float64(max(len(x), 1)))
}

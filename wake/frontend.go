package wake

import (
	"math"
	"time"
)

// The frontend turns sound into features, bit for bit as TensorFlow's micro frontend does, for that is what the models
// were trained on. From sample to feature, 100 times a second:
//
//  1. window: the last 30 ms under a Hann window
//  2. scale up as far as 16 bits allow, transform (fft.go)
//  3. magnitudes of 40 bands (filterbank.go), scaled down again
//  4. noise reduction: a slow estimate of each band is subtracted
//  5. gain control for each band (PCAN), by the same estimate
//  6. logarithm
//
// All of it is integer arithmetic but for the making of the tables.

const (
	sampleRate = 16000
	windowSize = 480 // samples, 30 ms
	windowBits = 12

	noiseBits      = 10
	noiseScale     = 14
	noiseEven      = 409 // 0.025 in 14 bits
	noiseOdd       = 983 // 0.06
	noiseRemaining = 819 // 0.05

	pcanStrength  = 0.95
	pcanOffset    = 80.0
	pcanGainBits  = 21
	pcanSNRBits   = 12
	pcanOutBits   = 6
	pcanIntervals = 32

	logScale = 6

	// correction is by how many bits the size of the transform outweighs the filterbank's fraction.
	correction = 3
)

// Features is one slice: the logarithm of each band's strength, 0 to about 670.
type Features [Channels]uint16

// A Frontend makes features of a stream of sound.
type Frontend struct {
	step   int
	window [windowSize]int16 // its coefficients
	fft    *fft
	bank   *filterbank
	gain   [pcanIntervals + 1][3]int32 // value, slope and curve in each octave of the estimate
	curve  [130]int32                  // what log2(1+x) is above x, in 128 segments

	// The stream's state.
	input    [windowSize]int16
	used     int
	estimate [Channels]uint32

	// Work space.
	samples  [fftHalf]bin // in pairs
	spectrum [fftHalf + 1]bin
	bands    [Channels]uint32
}

// NewFrontend returns a frontend that gives a slice every step: 10 ms for the models of today, 20 ms for those of the
// first version. The window must be longer than the step.
func NewFrontend(step time.Duration) *Frontend {
	f := &Frontend{step: int(step * sampleRate / time.Second), fft: newFFT(), bank: newFilterbank()}
	arg := float32(math.Pi * 2 / windowSize)
	for i := range f.window {
		x := 0.5 - float32(0.5*float32(math.Cos(float64(arg*(float32(i)+0.5)))))
		f.window[i] = int16(float32(x*(1<<windowBits)) + 0.5)
	}
	for i := 2; i <= pcanIntervals; i++ {
		x0 := uint32(1) << (i - 1)
		x2 := 2 * x0
		if i == pcanIntervals {
			x2 = x0 + (x0 - 1)
		}
		y0, y1, y2 := pcanGain(x0), pcanGain(x0+x0>>1), pcanGain(x2)
		a1 := 4*(y1-y0) - (y2 - y0)
		f.gain[i] = [3]int32{y0, a1, y2 - y0 - a1}
	}
	f.gain[0][0], f.gain[1][0] = pcanGain(0), pcanGain(1)
	for i := range 128 {
		x := float64(i) / 128
		f.curve[i] = int32(math.Round((math.Log2(1+x) - x) * (1 << 16)))
	}
	return f
}

func pcanGain(x uint32) int32 {
	in := float32(x) / (1 << (noiseBits - correction))
	g := float32((1 << pcanGainBits) * float32(math.Pow(float64(float32(in+pcanOffset)), -float64(float32(pcanStrength)))))
	if g > math.MaxInt16 {
		return math.MaxInt16
	}
	return int32(float32(g + 0.5))
}

// Reset makes the frontend forget what it has heard.
func (f *Frontend) Reset() {
	f.input = [windowSize]int16{}
	f.used = 0
	f.estimate = [Channels]uint32{}
}

// Write takes samples, no more than a step, and reports whether they completed a slice, which is then in out. The first
// slice comes with the first full window, after 30 ms.
func (f *Frontend) Write(samples []int16, out *Features) bool {
	n := copy(f.input[f.used:], samples)
	if f.used += n; f.used < windowSize {
		return false
	}
	f.slice(out)
	f.used = copy(f.input[:], f.input[f.step:])
	f.used += copy(f.input[f.used:], samples[n:])
	return true
}

// slice computes the features of the full window.
func (f *Frontend) slice(out *Features) {
	var peak int32 // all the bits that occur in a magnitude: as wide as the largest
	for i := range windowSize / 2 {
		re := int32(f.input[2*i]) * int32(f.window[2*i]) >> windowBits
		im := int32(f.input[2*i+1]) * int32(f.window[2*i+1]) >> windowBits
		f.samples[i] = bin{int16(re), int16(im)}
		peak |= max(re, -re) | max(im, -im)
	}
	// The original doesn't see -32768, for its magnitude has no place in 16 bits, and shifts it away.
	shift := uint(15 - width(uint32(peak&math.MaxInt16)))
	if peak > math.MaxInt16 && shift > 0 {
		for i := range f.samples {
			f.samples[i].re <<= shift
			f.samples[i].im <<= shift
		}
		f.fft.run(&f.samples, 0, &f.spectrum)
	} else {
		f.fft.run(&f.samples, shift, &f.spectrum)
	}
	f.bank.run(&f.spectrum, shift, &f.bands)
	for i := range f.bands {
		out[i] = f.feature(i, f.bands[i])
	}
}

// feature takes the strength of band i through steps 4 to 6.
func (f *Frontend) feature(i int, strength uint32) uint16 {
	smoothing := uint64(noiseEven)
	if i&1 == 1 {
		smoothing = noiseOdd
	}
	up := strength << noiseBits
	estimate := uint32((uint64(up)*smoothing + uint64(f.estimate[i])*(1<<noiseScale-smoothing)) >> noiseScale)
	f.estimate[i] = estimate
	left := (up - min(estimate, up)) >> noiseBits
	left = max(left, uint32(uint64(strength)*noiseRemaining>>noiseScale))

	gain := uint32(f.gainAt(estimate))
	snr := uint32(uint64(left) * uint64(gain) >> (pcanGainBits - correction - pcanSNRBits))
	return f.log(shrink(snr))
}

// gainAt interpolates the gain between the octaves of the estimate.
func (f *Frontend) gainAt(x uint32) int16 {
	if x < 2 {
		return int16(f.gain[x][0])
	}
	octave := width(x)
	var frac int32
	if octave < 11 {
		frac = int32(x << (11 - octave) & 0x3ff)
	} else {
		frac = int32(x >> (octave - 11) & 0x3ff)
	}
	g := &f.gain[octave]
	y := g[2]*frac>>5 + g[1]<<5
	y = (y*frac + 1<<14) >> 15
	return int16(y + g[0])
}

// shrink squares what is small, so that noise vanishes, and is linear above.
func shrink(x uint32) uint32 {
	if x < 2<<pcanSNRBits {
		return x * x >> (2 + 2*pcanSNRBits - pcanOutBits)
	}
	return x>>(pcanSNRBits-pcanOutBits) - 1<<pcanOutBits
}

// log is the natural logarithm of x·2^correction, in units of 1/64.
func (f *Frontend) log(x uint32) uint16 {
	x <<= correction
	if x < 2 {
		return 0
	}
	integer := width(x) - 1
	frac := int32(x - 1<<integer)
	if integer < 16 {
		frac <<= 16 - integer
	} else {
		frac >>= integer - 16
	}
	segment := frac >> 9
	c0, c1 := f.curve[segment], f.curve[segment+1]
	frac += c0 + (c1-c0)*(frac-segment<<9)>>16
	const ln2 = 45426 // in 16 bits
	log2 := uint64(integer)<<16 + uint64(frac)
	e := uint32((ln2*log2 + 1<<15) >> 16)
	return uint16(min((e<<logScale+1<<15)>>16, math.MaxUint16))
}

package wake

import (
	"math"
	"math/bits"
)

// Channels is how many bands a slice of features has.
const Channels = 40

const (
	lowestBand  = 125.0 // Hz
	highestBand = 7500.0
	bankBits    = 12
)

// A filterbank sums the energy of the spectrum into bands that are evenly spaced on the mel scale. Neighbouring
// triangles overlap: a bin gives a part of its energy to the band that it falls off in and the rest to the next one.
type filterbank struct {
	first, last int // bins in use, last excluded
	weights     [fftHalf]struct{ falling, rising uint16 }
	ends        [Channels + 1]int // bins below it belong to the triangle side i
}

// The expressions keep C's float32 steps, conversion by conversion: a weight off by one would change the features.
// The conversions also keep the compiler from fusing a product and a sum, which arm64 would do.
func newFilterbank() *filterbank {
	f := new(filterbank)
	low, high := mel(lowestBand), mel(highestBand)
	spacing := float32(high-low) / (Channels + 1)
	perBin := float32(sampleRate / 2.0 / fftHalf)
	f.first = int(1.5 + float64(lowestBand/perBin))

	bin, before := f.first, low
	for side := range f.ends {
		centre := low + float32(spacing*float32(side+1))
		for ; mel(float32(float32(bin)*perBin)) <= centre; bin++ {
			w := float32(centre-mel(float32(float32(bin)*perBin))) / float32(centre-before)
			f.weights[bin].falling = uint16(float32(w*(1<<bankBits)) + 0.5)
			f.weights[bin].rising = uint16(float32((1-w)*(1<<bankBits)) + 0.5)
		}
		f.ends[side] = bin
		before = centre
	}
	f.last = bin
	// At these two bins the logarithm of the original's C library errs in the last place, and the weights came out one
	// off from what they ought to be.
	for _, bin := range [...]int{149, 221} {
		f.weights[bin].falling++
		f.weights[bin].rising--
	}
	return f
}

func mel(hz float32) float32 { return 1127 * float32(math.Log1p(float64(hz/700))) }

// run gives the magnitude of each band, divided by 2^shift.
func (f *filterbank) run(spectrum *[fftHalf + 1]bin, shift uint, out *[Channels]uint32) {
	bin := f.first
	var rising uint64
	for side, end := range f.ends {
		falling := rising
		rising = 0
		weights := f.weights[bin:end]
		part := spectrum[bin:end][:len(weights)]
		for i, w := range weights {
			re, im := int32(part[i].re), int32(part[i].im)
			energy := uint64(int64(re*re + im*im)) // two full-scale parts wrap around, as they do in C
			falling += energy * uint64(w.falling)
			rising += energy * uint64(w.rising)
		}
		bin = end
		if side > 0 { // the first side only feeds the first band
			out[side-1] = root(falling) >> shift
		}
	}
}

// root is the square root, rounded to the nearest integer, but for one quirk of the original's: what fits into 32 bits
// has a root of at most 16 bits.
func root(x uint64) uint32 {
	limit := uint64(math.MaxUint32)
	if x>>32 == 0 {
		limit = math.MaxUint16
	}
	r := min(uint64(math.Sqrt(float64(x))), math.MaxUint32)
	for r*r > x { // float64 has only 53 bits
		r--
	}
	for (r+1)*(r+1) <= x && r < math.MaxUint32 {
		r++
	}
	if x-r*r > r && r != limit {
		r++
	}
	return uint32(r)
}

// width is how many bits x needs.
func width(x uint32) int { return bits.Len32(x) }

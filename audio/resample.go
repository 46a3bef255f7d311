package audio

import (
	"fmt"
	"math"
)

// How a Resampler works, in the order of the functions below:
//
//  1. NewResampler computes a low-pass filter (a sinc under a Kaiser window) once, cut into phases: for each place that
//     an output sample can have between two input samples, the weights of the input samples around it.
//  2. Process takes input in pieces of any size, and feed keeps what the filter needs to look back and ahead at.
//  3. produce slides the filter over the input, one weighted sum for each output sample, and moves on by the ratio of the
//     rates in whole numbers, so that no error adds up however long the stream is.
//  4. Flush lets the end of the sound pass through the filter.

const (
	// The filter passes all up to about 0.45 of the lower rate and stops all from 0.5 of it, by more than 80 dB. The
	// width between decides how many samples it must look at.
	filterCut   = 0.475 // middle of the slope, as a part of the lower rate
	filterBeta  = 9.0   // the window's parameter: about 90 dB
	filterReach = 58    // samples of the lower rate on either side

	// Rates without a common measure would need a table of many megabytes. Above this number of phases, two
	// neighbours are interpolated instead, which is exact to some 100 dB.
	maxPhases    = 1024
	interpolated = 512

	resampleBlock = 1024 // input samples at a time
)

// A Resampler changes the rate of a stream of mono samples. Sample 0 of what comes out is at the same instant as sample 0
// of what goes in, and n samples in make n·to/from out, rounded up, however they were cut into pieces. It is for one
// goroutine at a time.
type Resampler struct {
	up, down int // the ratio of the rates, in lowest terms
	reach    int // input samples on either side
	phases   int // of the table
	taps     []float32

	buf   []float32 // input: what the filter still looks back at, then what is new
	at    int       // index in buf of the last input sample that is not after the next output sample
	frac  int       // how far after it, in 1/up of an input sample
	in    int64     // samples taken
	out   int64     // samples made
	plain bool      // the rates are equal
}

// NewResampler returns a resampler between two rates of 1 kHz to 768 kHz.
func NewResampler(from, to Rate) (*Resampler, error) {
	for _, r := range []Rate{from, to} {
		if r < 1000 || r > 768000 {
			return nil, fmt.Errorf("resample: a rate of %d Hz: only 1000 to 768000 are possible", r)
		}
	}
	g := gcd(int(from), int(to))
	r := &Resampler{up: int(to) / g, down: int(from) / g, plain: from == to}
	if r.plain {
		return r, nil
	}
	lower := min(from, to)
	r.reach = int(math.Ceil(filterReach * float64(from) / float64(lower)))
	r.phases = r.up
	if r.up > maxPhases {
		r.phases = interpolated
	}
	// One phase more than there are, so that the last has a neighbour to be interpolated with.
	width := 2 * r.reach
	r.taps = make([]float32, (r.phases+1)*width)
	cut := filterCut * float64(lower) / float64(from)
	phase := make([]float64, width)
	top := bessel(filterBeta)
	for p := range r.phases + 1 {
		sum := 0.0
		for t := range phase {
			x := float64(t-r.reach+1) - float64(p)/float64(r.phases)
			phase[t] = sinc(2*cut*x) * kaiser(x/float64(r.reach)) / top
			sum += phase[t]
		}
		for t := range phase {
			r.taps[p*width+t] = float32(phase[t] / sum) // a constant stays exactly what it was
		}
	}
	r.buf = make([]float32, 0, width+resampleBlock)
	r.Reset()
	return r, nil
}

// Fork returns a resampler for another stream between the same rates. It shares the filter, which takes milliseconds to
// compute, and may be used at the same time.
func (r *Resampler) Fork() *Resampler {
	f := *r
	f.buf = make([]float32, 0, cap(r.buf))
	f.Reset()
	return &f
}

// Reset makes the resampler ready for another stream.
func (r *Resampler) Reset() {
	r.in, r.out, r.frac = 0, 0, 0
	if r.plain {
		return
	}
	r.buf = r.buf[:r.reach-1] // the silence before the first sample
	clear(r.buf)
	r.at = r.reach - 1
}

// Process takes all of src and appends to dst what can be made of it: everything up to a few milliseconds before its end,
// which wait for the samples that come after them. Nothing is allocated if dst has room.
func (r *Resampler) Process(dst, src []int16) []int16 {
	r.in += int64(len(src))
	if r.plain {
		return append(dst, src...)
	}
	for len(src) > 0 {
		n := min(len(src), r.room())
		for _, s := range src[:n] {
			r.buf = append(r.buf, float32(s))
		}
		src = src[n:]
		dst = r.produce(dst, math.MaxInt64)
	}
	return dst
}

// Flush appends the rest, as if silence followed, and makes the resampler ready for another stream.
func (r *Resampler) Flush(dst []int16) []int16 {
	if !r.plain {
		total := (r.in*int64(r.up) + int64(r.down) - 1) / int64(r.down)
		for r.out < total {
			n := min(r.reach, r.room())
			end := len(r.buf)
			r.buf = r.buf[:end+n]
			clear(r.buf[end:])
			dst = r.produce(dst, total)
		}
	}
	r.Reset()
	return dst
}

// Max is the most samples that Process can make of n.
func (r *Resampler) Max(n int) int { return (n*r.up)/r.down + 2 + r.reach*r.up/r.down }

// produce makes what it can of the buffer, but no more than limit samples in all.
func (r *Resampler) produce(dst []int16, limit int64) []int16 {
	width := 2 * r.reach
	for r.at+r.reach < len(r.buf) && r.out < limit {
		first := r.at - r.reach + 1
		window := r.buf[first : first+width]
		var v float32
		if r.phases == r.up {
			v = dot(window, r.taps[r.frac*width:])
		} else {
			place := float64(r.frac) * float64(r.phases) / float64(r.up)
			p := int(place)
			a, b := dot(window, r.taps[p*width:]), dot(window, r.taps[(p+1)*width:])
			v = a + (b-a)*float32(place-float64(p))
		}
		dst = append(dst, saturate(int32(math.Floor(float64(v)+0.5))))
		r.out++
		r.frac += r.down
		r.at += r.frac / r.up
		r.frac %= r.up
	}
	return dst
}

// room is how many samples there is room for in the buffer, once those that nobody needs any more have made place.
func (r *Resampler) room() int {
	if len(r.buf) == cap(r.buf) {
		drop := min(r.at-r.reach+1, len(r.buf))
		r.buf = r.buf[:copy(r.buf, r.buf[drop:])]
		r.at -= drop
	}
	return cap(r.buf) - len(r.buf)
}

// dot is the sum of the products of x and as much of taps. Four sums side by side keep the processor busy.
func dot(x, taps []float32) float32 {
	taps = taps[:len(x)]
	var a, b, c, d float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		x, t := x[i:i+4:i+4], taps[i:i+4:i+4]
		a += x[0] * t[0]
		b += x[1] * t[1]
		c += x[2] * t[2]
		d += x[3] * t[3]
	}
	for ; i < len(x); i++ {
		a += x[i] * taps[i]
	}
	return (a + b) + (c + d)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser is the window at x, which is -1 to 1 from one end to the other. Its top is bessel(filterBeta).
func kaiser(x float64) float64 {
	if x <= -1 || x >= 1 {
		return 0
	}
	return bessel(filterBeta * math.Sqrt(1-x*x))
}

// bessel is the modified Bessel function of the first kind, of order 0, by its power series.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

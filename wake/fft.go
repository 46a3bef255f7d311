package wake

import "math"

// The frontend's Fourier transform: 512 real samples in fixed point, exactly as the models were trained with it. Each
// of the four radix-4 passes scales down by 4 first, so that nothing overflows; where it rounds is part of the result,
// and so is where 16 bits wrap around. That rules out any library.

const (
	fftSize = 512
	fftHalf = fftSize / 2 // the real transform is one of half as many complex numbers
)

// A bin is a complex number in 16 bits each.
type bin struct{ re, im int16 }

type fft struct {
	twiddles [fftHalf]bin     // e^(-2πi k/256)
	super    [fftHalf / 2]bin // takes the packed transform apart again
	order    [fftHalf]uint8   // which input the k-th place begins with
	work     [fftHalf]bin
}

func newFFT() *fft {
	f := new(fft)
	for k := range f.twiddles {
		f.twiddles[k] = unit(-2 * math.Pi * float64(k) / fftHalf)
	}
	for k := range f.super {
		f.super[k] = unit(-math.Pi * (float64(k+1)/fftHalf + 0.5))
	}
	for k := range f.order {
		// The base-4 digits in reverse.
		f.order[k] = uint8(k>>6&3 | k>>4&3<<2 | k>>2&3<<4 | k&3<<6)
	}
	return f
}

func unit(phase float64) bin {
	q := func(x float64) int16 { return int16(math.Floor(0.5 + float64(math.MaxInt16*x))) }
	return bin{q(math.Cos(phase)), q(math.Sin(phase))}
}

// q15 rounds a product of two 15-bit fractions to one.
func q15(x int32) int16 { return int16((x + 1<<14) >> 15) }

// over divides by n, by multiplying.
func (b bin) over(n int32) bin {
	f := math.MaxInt16 / n
	return bin{q15(int32(b.re) * f), q15(int32(b.im) * f)}
}

func (b bin) times(c bin) bin {
	br, bi, cr, ci := int32(b.re), int32(b.im), int32(c.re), int32(c.im)
	return bin{q15(br*cr - bi*ci), q15(br*ci + bi*cr)}
}

func (b bin) plus(c bin) bin  { return bin{b.re + c.re, b.im + c.im} }
func (b bin) minus(c bin) bin { return bin{b.re - c.re, b.im - c.im} }

// run transforms the samples into out[0..256].
func (f *fft) run(samples *[fftSize]int16, out *[fftHalf + 1]bin) {
	w := &f.work
	for k, from := range f.order {
		w[k] = bin{samples[2*int(from)], samples[2*int(from)+1]}
	}
	for m := 1; m < fftHalf; m *= 4 {
		f.pass(m)
	}

	// The even samples went in as real and the odd ones as imaginary parts; their transforms come apart by symmetry.
	dc := w[0].over(2)
	out[0] = bin{dc.re + dc.im, 0}
	out[fftHalf] = bin{dc.re - dc.im, 0}
	for k := 1; k <= fftHalf/2; k++ {
		a := w[k].over(2)
		b := bin{w[fftHalf-k].re, -w[fftHalf-k].im}.over(2)
		even := a.plus(b)
		odd := a.minus(b).times(f.super[k-1])
		er, ei, or, oi := int32(even.re), int32(even.im), int32(odd.re), int32(odd.im)
		out[k] = bin{int16((er + or) >> 1), int16((ei + oi) >> 1)}
		out[fftHalf-k] = bin{int16((er - or) >> 1), int16((oi - ei) >> 1)}
	}
}

// pass joins each four transforms of size m to one of size 4m.
func (f *fft) pass(m int) {
	stride := fftHalf / (4 * m)
	for base := 0; base < fftHalf; base += 4 * m {
		g := f.work[base:][:4*m]
		for k := range m {
			a := g[k].over(4)
			b := g[k+m].over(4).times(f.twiddles[k*stride])
			c := g[k+2*m].over(4).times(f.twiddles[2*k*stride])
			d := g[k+3*m].over(4).times(f.twiddles[3*k*stride])

			diff := a.minus(c)
			a = a.plus(c)
			s, t := b.plus(d), b.minus(d)
			g[k] = a.plus(s)
			g[k+2*m] = a.minus(s)
			g[k+m] = bin{diff.re + t.im, diff.im - t.re}
			g[k+3*m] = bin{diff.re - t.im, diff.im + t.re}
		}
	}
}

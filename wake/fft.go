package wake

import "math"

// The frontend's Fourier transform: 512 real samples in fixed point, exactly as the models were trained with it. Each
// of the four radix-4 passes scales down by 4 first, so that nothing overflows; where it rounds is part of the result,
// and so is where 16 bits wrap around. That rules out any library.

const (
	fftSize   = 512
	fftHalf   = fftSize / 2 // the real transform is one of half as many complex numbers
	fftPasses = 4           // 4⁴ is 256
)

// A bin is a complex number in 16 bits each.
type bin struct{ re, im int16 }

type fft struct {
	twiddles [fftPasses - 1][]turn // of each pass but the first
	super    [fftHalf / 2]bin      // takes the packed transform apart again
	order    [fftHalf]uint8        // which input the k-th place begins with
	work     [fftHalf]bin
}

// A turn is what the second to fourth input of a butterfly are multiplied by: powers of e^(-2πi k/256).
type turn struct{ b, c, d wide }

// wide is a bin in registers' width.
type wide struct{ re, im int32 }

func newFFT() *fft {
	f := new(fft)
	for pass, m := 0, 4; m < fftHalf; pass, m = pass+1, 4*m {
		at := func(k int) wide {
			b := unit(-2 * math.Pi * float64(k*fftHalf/(4*m)) / fftHalf)
			return wide{int32(b.re), int32(b.im)}
		}
		for k := range m {
			f.twiddles[pass] = append(f.twiddles[pass], turn{at(k), at(2 * k), at(3 * k)})
		}
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
func q15(x int32) int32 { return (x + 1<<14) >> 15 }

// over divides, by multiplying by a fraction: quarter or half. What it returns is at most 2^13 or 2^14, so that sums and
// products of it stay within 32 bits; where the original's 16 bits may wrap around, the conversion to int16 does it here.
// The fractions are variables to the compiler, which would otherwise make four instructions of one multiplication.
func (b bin) over(f int32) wide { return wide{q15(int32(b.re) * f), q15(int32(b.im) * f)} }

const (
	quarter = math.MaxInt16 / 4
	half    = math.MaxInt16 / 2
)

func (b wide) times(c wide) wide {
	return wide{q15(b.re*c.re - b.im*c.im), q15(b.re*c.im + b.im*c.re)}
}

func (b wide) plus(c wide) bin  { return bin{int16(b.re + c.re), int16(b.im + c.im)} }
func (b wide) minus(c wide) bin { return bin{int16(b.re - c.re), int16(b.im - c.im)} }

// run transforms the samples, which lie in pairs, times 2^shift, into out[0..256]. The samples have room for the shift.
func (f *fft) run(samples *[fftHalf]bin, shift uint, out *[fftHalf + 1]bin) {
	f.begin(samples, quarter<<shift)
	for pass, m := 0, 4; m < fftHalf; pass, m = pass+1, 4*m {
		f.pass(m, f.twiddles[pass], quarter)
	}
	f.apart(out, half)
}

// begin is the first pass, which joins each four single inputs. It has nothing to multiply: the factor is 1 - 2^-15,
// which rounding makes 1 of numbers as small as quarters.
func (f *fft) begin(samples *[fftHalf]bin, q int32) {
	for k := 0; k < fftHalf; k += 4 {
		w, from := (*[4]bin)(f.work[k:]), (*[4]uint8)(f.order[k:])
		a, b, c, d := samples[from[0]].over(q), samples[from[1]].over(q), samples[from[2]].over(q), samples[from[3]].over(q)
		sum, diff := wide{a.re + c.re, a.im + c.im}, wide{a.re - c.re, a.im - c.im}
		s, t := wide{b.re + d.re, b.im + d.im}, wide{b.re - d.re, b.im - d.im}
		w[0] = sum.plus(s)
		w[2] = sum.minus(s)
		w[1] = diff.plus(wide{t.im, -t.re})
		w[3] = diff.minus(wide{t.im, -t.re})
	}
}

// pass joins each four transforms of size m to one of size 4m.
func (f *fft) pass(m int, twiddles []turn, q int32) {
	for base := 0; base < fftHalf; base += 4 * m {
		g := f.work[base:][:4*m]
		ga, gb, gc, gd := g[:m], g[m:][:m], g[2*m:][:m], g[3*m:][:m]
		for k, t := range twiddles[:m] {
			a := ga[k].over(q)
			b := gb[k].over(q).times(t.b)
			c := gc[k].over(q).times(t.c)
			d := gd[k].over(q).times(t.d)
			sum, diff := wide{a.re + c.re, a.im + c.im}, wide{a.re - c.re, a.im - c.im}
			s, t := wide{b.re + d.re, b.im + d.im}, wide{b.re - d.re, b.im - d.im}
			ga[k] = sum.plus(s)
			gc[k] = sum.minus(s)
			gb[k] = diff.plus(wide{t.im, -t.re})
			gd[k] = diff.minus(wide{t.im, -t.re})
		}
	}
}

// apart takes apart what went in as real and imaginary parts, the even samples and the odd ones: by symmetry.
func (f *fft) apart(out *[fftHalf + 1]bin, h int32) {
	w := &f.work
	dc := w[0].over(h)
	out[0] = bin{int16(dc.re + dc.im), 0}
	out[fftHalf] = bin{int16(dc.re - dc.im), 0}
	for k := 1; k <= fftHalf/2; k++ {
		a, b := w[k].over(h), bin{w[fftHalf-k].re, -w[fftHalf-k].im}.over(h)
		s := f.super[k-1]
		odd := wide{a.re - b.re, a.im - b.im}.times(wide{int32(s.re), int32(s.im)})
		er, ei, or, oi := a.re+b.re, a.im+b.im, int32(int16(odd.re)), int32(int16(odd.im))
		out[k] = bin{int16((er + or) >> 1), int16((ei + oi) >> 1)}
		out[fftHalf-k] = bin{int16((er - or) >> 1), int16((oi - ei) >> 1)}
	}
}

package echo

import "gonum.org/v1/gonum/dsp/fourier"

// A transform is the Fourier transform of a frame and the one before it.
type transform struct {
	fft  *fourier.FFT
	work [size]float64
}

func newTransform() *transform { return &transform{fft: fourier.NewFFT(size)} }

func (t *transform) forward(dst *spectrum, x *[size]float64) { t.fft.Coefficients(dst[:], x[:]) }

// backward undoes forward. What it returns is valid until the next call.
func (t *transform) backward(s *spectrum) *[size]float64 {
	t.fft.Sequence(t.work[:], s[:])
	for i := range t.work {
		t.work[i] *= 1.0 / size
	}
	return &t.work
}

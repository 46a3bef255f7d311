package echo

import "math"

// The filter is the partitioned-block frequency-domain Kalman filter: G. Enzner and P. Vary, "Frequency-domain adaptive
// Kalman filter for acoustic echo control in hands-free telephones", Signal Processing 86 (2006), with partitions as in
// F. Kuech, E. Mabande and G. Enzner, "State-space architecture of the partitioned-block-based acoustic echo
// controller", ICASSP 2014. The state is the echo path, of which it knows at each frequency how uncertain it is; the
// measurement's noise is all that isn't echo, the user's voice above all. So it learns fast while it knows little, and
// hardly while somebody speaks.
//
// It differs from the papers in two factors that stand for the half of the samples of a transform that are new: here the
// gain is half as large, and the uncertainty shrinks more slowly. Speech, whose spectrum is anything but flat, converges
// farther that way.

const (
	// keep is how much of the squared echo path stays as it was from one frame to the next: what is sure becomes unsure
	// again, as people move.
	keep = 0.998

	// unsure is the first guess of the squared gain of the echo path at each frequency, in the first partition. It
	// halves from one to the next.
	unsure = 5.0

	shrink    = 0.2 // of the uncertainty, at the largest gain
	noisePace = 0.2 // of the measurement's noise

	// everyNth partition is constrained in a frame, the others in the next ones. It is what costs most.
	everyNth = 4
)

type filter struct {
	fft    *transform
	lag    int // frames from what was played last to the beginning of the filter
	path   [partitions]spectrum
	doubt  [partitions][bins]float64 // variance of path
	noise  [bins]float64             // power of what isn't echo
	echo   spectrum
	err    spectrum
	padded [size]float64
	scale  [bins]float64
	turn   int

	// What move works with.
	oldPath  [partitions]spectrum
	oldDoubt [partitions][bins]float64
}

func newFilter(fft *transform) *filter {
	f := &filter{fft: fft}
	f.restart()
	return f
}

// restart forgets the echo path.
func (f *filter) restart() {
	for p := range f.path {
		f.forget(p)
	}
	f.noise = [bins]float64{}
}

func (f *filter) forget(p int) {
	f.path[p] = spectrum{}
	guess := unsure * math.Pow(0.5, float64(p))
	for k := range f.doubt[p] {
		f.doubt[p][k] = guess
	}
}

// move lets the filter begin at another lag. What it knows of the echo path stays where it is; if it is of no use, the
// filter begins anew.
func (f *filter) move(lag int, useful bool) {
	by := lag - f.lag
	f.lag = lag
	if !useful {
		f.restart()
		return
	}
	f.oldPath, f.oldDoubt = f.path, f.doubt
	for p := range f.path {
		if from := p + by; from >= 0 && from < partitions {
			f.path[p], f.doubt[p] = f.oldPath[from], f.oldDoubt[from]
		} else {
			f.forget(p)
		}
	}
}

// estimate is the echo that should be in the microphone's frame.
func (f *filter) estimate(c *Canceller, echo *[block]float64) {
	f.echo = spectrum{}
	for p := range f.path {
		x, w := c.reference(f.lag+p), &f.path[p]
		for k := range f.echo {
			f.echo[k] += x[k] * w[k]
		}
	}
	copy(echo[:], f.fft.backward(&f.echo)[block:])
}

// learn corrects the echo path by what is left of the microphone's frame. Without learning, only time passes.
func (f *filter) learn(c *Canceller, err *[block]float64, learning bool) {
	if !learning {
		for p := range f.path {
			w, d := &f.path[p], &f.doubt[p]
			for k := range d {
				d[k] = keep*d[k] + (1-keep)*squared(w[k])
			}
		}
		return
	}
	copy(f.padded[block:], err[:])
	f.fft.forward(&f.err, &f.padded)

	// How much of what is left is doubt about the echo path, at each frequency, and how much is noise.
	f.scale = [bins]float64{}
	for p := range f.path {
		x, d := c.reference(f.lag+p), &f.doubt[p]
		for k := range f.scale {
			f.scale[k] += d[k] * squared(x[k])
		}
	}
	for k, e := range f.err {
		f.noise[k] += (squared(e) - f.noise[k]) * noisePace
		f.scale[k] = 1 / (f.scale[k] + f.noise[k] + 1)
	}
	for p := range f.path {
		x, w, d := c.reference(f.lag+p), &f.path[p], &f.doubt[p]
		for k := range w {
			gain := d[k] * f.scale[k]
			xr, xi, er, ei := real(x[k]), imag(x[k]), real(f.err[k]), imag(f.err[k])
			w[k] += complex(gain*(xr*er+xi*ei), gain*(xr*ei-xi*er))
			d[k] = keep*(1-shrink*gain*(xr*xr+xi*xi))*d[k] + (1-keep)*squared(w[k])
		}
		if (p+f.turn)%everyNth == 0 {
			f.constrain(w)
		}
	}
	f.turn++
}

// constrain keeps a partition to the length of a frame: without that it would be a circular filter.
func (f *filter) constrain(w *spectrum) {
	t := f.fft.backward(w)
	clear(t[block:])
	f.fft.forward(w, t)
}

func squared(c complex128) float64 { return real(c)*real(c) + imag(c)*imag(c) }

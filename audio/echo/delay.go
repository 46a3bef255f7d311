package echo

import "math"

// The delay is found by generalised cross-correlation with phase transform (C. Knapp and G. Carter, "The generalized
// correlation method for estimation of time delay", 1976), in steps of whole frames and kept apart by frequency: for each
// lag and each frequency of the range of speech, the phase between what is heard and what was played lag frames ago is
// averaged. Where the echo is, the phases agree; elsewhere they cancel out. That needs no other transforms than those that
// are there already, and costs the same in each frame.

const (
	lowBin, highBin = 12, 132 // 300 Hz to 3.3 kHz
	delayBins       = highBin - lowBin

	agreementPace = 0.03 // of the average: 0.7 s
	agreed        = 10   // frames of which an average means something
	clearly       = 2.5  // times the mean agreement of all lags: the echo
	steadily      = 6    // frames in which the same lag must be the best
	apartFrames   = 25   // between two looks at the phases
	farApart      = 3.0  // samples that the echo may come later from one to the other
	soft          = 1e4  // power of a frequency below which its phase says nothing
)

// Directions are complex numbers of length 1, or 0.
type directions [delayBins]complex128

type delay struct {
	played    [history]directions
	loud      [history]bool // whether there was anything
	agreement [maxLag + 1]directions
	seen      [maxLag + 1]int // frames in the average
	best      int             // the last lag that was best,
	since     int             // and for how many frames it has been, clearly

	before directions // agreement of the best lag some frames ago
	ago    int        // so many
}

func newDelay() *delay { return new(delay) }

// found tells whether it is known that there is an echo, and where.
func (d *delay) found() bool { return d.since >= steadily }

// remember takes the newest frame of what was played.
func (d *delay) remember(c *Canceller) {
	d.loud[c.at] = energy(&c.played) >= faint
	d.played[c.at] = directions{}
	if d.loud[c.at] {
		d.played[c.at].set(c.reference(0))
	}
}

// turn moves everything, for the newest frame is now newer by so many.
func (d *delay) turn(by int) {
	if by != 0 {
		d.ago = 0
	}
	for ; by > 0; by-- {
		copy(d.agreement[1:], d.agreement[:])
		copy(d.seen[1:], d.seen[:])
		d.best = min(d.best+1, maxLag)
	}
	for ; by < 0; by++ {
		copy(d.agreement[:], d.agreement[1:])
		copy(d.seen[:], d.seen[1:])
		d.best = max(d.best-1, 0)
	}
}

// find compares the microphone's frame and tells, if it knows, where the filter should begin. A filter that is useful is
// left where it is as long as it can be.
func (d *delay) find(c *Canceller, useful bool) (lag int, ok bool) {
	var y directions
	y.set(&c.heard)
	var sum, most float64
	best, counted := 0, 0
	for lag := range d.agreement {
		at := (c.at + history - lag) % history
		a, x := &d.agreement[lag], &d.played[at]
		if d.loud[at] {
			d.seen[lag]++
			pace := max(agreementPace, 1/float64(d.seen[lag]))
			for k := range a {
				xr, xi, yr, yi := real(x[k]), imag(x[k]), real(y[k]), imag(y[k])
				ar, ai := real(a[k]), imag(a[k])
				a[k] = complex(ar+(yr*xr+yi*xi-ar)*pace, ai+(yi*xr-yr*xi-ai)*pace)
			}
		}
		if d.seen[lag] < agreed {
			continue
		}
		counted++
		score := 0.0
		for _, v := range a {
			score += squared(v)
		}
		sum += score
		if score > most {
			most, best = score, lag
		}
	}
	if best != d.best || counted <= maxLag/2 || most < clearly*sum/float64(counted) {
		d.best, d.since, d.ago = best, 0, 0
	}
	d.since++
	if !d.found() {
		return 0, false
	}
	// The echo begins in the best lag or in the frame before. A filter that has a frame or more than it needs is left
	// where it is, so that an echo between two lags doesn't move it all the time.
	room := 2
	if useful {
		room = 4
	}
	if more := best - c.filter.lag; more >= 1 && more <= room {
		return c.filter.lag, true
	}
	return max(best-1, 0), true
}

// apart measures how much later the echo comes with each frame, in samples, from how the phases turn; ok tells that it is
// known, which it is twice a second at most. The loop of the clocks is far finer, but knows nothing before the filter
// does, and a filter learns nothing while the clocks run apart fast.
func (d *delay) apart() (samples float64, ok bool) {
	if !d.found() {
		return 0, false
	}
	if d.ago++; d.ago == 1 {
		d.before = d.agreement[d.best]
	}
	if d.ago <= apartFrames {
		return 0, false
	}
	var turned directions
	var all, most float64
	for k, now := range d.agreement[d.best] {
		b := d.before[k]
		turned[k] = now * complex(real(b), -imag(b))
		all += math.Sqrt(squared(turned[k]))
	}
	for later := -farApart; later <= farApart; later += farApart / 12 {
		sum := 0.0
		for k, v := range turned {
			sin, cos := math.Sincos(math.Pi * float64(lowBin+k) / block * later)
			sum += real(v)*cos - imag(v)*sin
		}
		if sum > most {
			most, samples = sum, later/apartFrames
		}
	}
	d.ago = 0
	return samples, most > all/2
}

// set takes the directions of a spectrum.
func (d *directions) set(s *spectrum) {
	for k, v := range s[lowBin:highBin] {
		d[k] = 0
		if p := squared(v); p >= soft {
			p = 1 / math.Sqrt(p)
			d[k] = complex(real(v)*p, imag(v)*p)
		}
	}
}

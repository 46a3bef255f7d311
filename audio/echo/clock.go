package echo

import (
	"math"

	"bellbird/audio"
)

// The microphone and the loudspeaker may have clocks of their own: two USB devices may differ by 200 samples in a million.
// A filter that only follows that is always late, so the played sound is resampled to the microphone's clock. How fast the
// clocks run apart is learned from the filter: when the echo begins to come later than it expects, what is left resembles
// the slope of the estimated echo. A loop of the second order makes that vanish, as in any receiver.

const (
	taps   = 32 // of the interpolation, which needs half of them ahead
	ahead  = taps / 2
	phases = 128
	slack  = 64 // samples between two turns, at least
	piece  = 32 // samples for which the delay is taken as constant

	pull     = 0.1   // the loop's gains: of the delay,
	rate     = 0.006 // and of how fast it changes
	meanPace = 0.04  // of the statistics by which chance is told from drift
	chance   = 4.0   // standard errors, squared
	fastest  = 0.2   // samples a frame that the clocks may run apart: 625 in a million
	farthest = 0.5   // samples: more than that is not believed at once
)

type clocks struct {
	table [phases + 1][taps]float64
	raw   [3 * block]float64 // what was played, as it came

	late  float64 // samples by which the played sound is delayed, from ahead to ahead+block+slack
	apart float64 // samples by which that grows in each frame

	mean, spread float64 // of what the loop is asked for, and of its square
}

func newClocks() *clocks {
	c := &clocks{late: ahead + slack/2}
	for p := range c.table {
		for i := range c.table[p] {
			x := float64(i-ahead+1) - float64(p)/phases
			c.table[p][i] = sinc(x) * math.Pow(math.Cos(math.Pi*x/(taps+2)), 2)
		}
	}
	return c
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// clear forgets what was played.
func (c *clocks) clear() { c.raw = [3 * block]float64{} }

// take appends a frame of what was played.
func (c *clocks) take(f *audio.Frame) {
	copy(c.raw[:], c.raw[block:])
	widen((*[block]float64)(c.raw[2*block:]), f)
}

// advance lets a frame's time pass. turns tells when the delay leaves its range and must be set back by a frame: +1 if
// the played sound is then a frame newer, -1 if it is a frame older.
func (c *clocks) advance() (turns int) {
	c.late += c.apart
	switch {
	case c.late >= ahead+block+slack:
		return 1
	case c.late < ahead:
		return -1
	}
	return 0
}

// resample is the newest frame with the delay.
func (c *clocks) resample(dst *[block]float64) {
	// Between two turns it may be out of its range by a little.
	late := min(max(c.late, ahead), ahead+block+slack+1)
	for at := 0; at < block; at += piece {
		whole := math.Floor(late)
		t := &c.table[int((1-(late-whole))*phases+0.5)]
		from := 2*block + at - int(whole) - ahead
		for i := range piece {
			x := (*[taps]float64)(c.raw[from+i:])
			sum := 0.0
			for j, v := range x {
				sum += v * t[j]
			}
			dst[at+i] = sum
		}
		late = max(late+c.apart*piece/block, ahead)
	}
}

// hurry takes a coarse measurement of how much later the echo comes with each frame.
func (c *clocks) hurry(later float64) {
	c.apart = min(max(c.apart+later/2, -fastest), fastest)
}

// follow corrects the loop from the windowed spectra of what is left and of the estimated echo.
func (c *clocks) follow(left, echo *spectrum) {
	var sum, norm float64
	for k := 8; k < bins-8; k++ {
		w := math.Pi * float64(k) / block
		e, l := echo[k], left[k]
		weight := w / (squared(l) + squared(e) + 1)
		sum -= weight * (imag(l)*real(e) - real(l)*imag(e))
		norm += weight * w * squared(e)
	}
	if norm == 0 {
		return
	}
	later := min(max(sum/norm, -farthest), farthest)

	// What may be chance is taken for chance: where the clocks agree the loop must not make noise.
	c.mean += (later - c.mean) * meanPace
	c.spread += (later*later - c.spread) * meanPace
	if c.mean == 0 {
		return
	}
	later *= max(0, 1-chance*c.spread*meanPace/(c.mean*c.mean))
	c.late += pull * later
	c.apart = min(max(c.apart+rate*later, -fastest), fastest)
}

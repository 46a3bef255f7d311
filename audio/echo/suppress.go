package echo

import (
	"math"

	"bellbird/audio"
)

// The suppressor turns down at each frequency what the linear filter left of the echo: what is longer than the filter,
// what the loudspeaker distorts, what the filter hasn't learned yet. How much that is, it takes from the estimated echo,
// times a ratio that it learns in each of some bands: a quantile of what the linear feed has over the estimated echo. The
// median tells whether somebody speaks over it, for that only ever makes it more; a higher one is what is turned down. The rule that makes gains of it is the decision-directed one
// of Y. Ephraim and D. Malah (1984), the gain Wiener's. Nothing is turned down below the background, or its coming and
// going would be heard.
//
// It works on windows of two frames, and so the suppressed feed is a frame late.

const (
	bands         = 20
	speechBand    = 2   // from here, about 200 Hz,
	hissBand      = 16  // to here, about 4.5 kHz, somebody is expected to speak
	reverberation = 0.7 // of power, from frame to frame: 60 dB in 0.8 s

	down, up     = 0.4, 0.4 // dB, steps of the median,
	upper        = 0.65     // and the upward one of a high quantile
	lowestRatio  = -40.0
	highestRatio = 6.0
	enough       = -8.0 // dB, of the mean ratio: the filter is of use
	loud         = 14.0 // times what is expected to be left: somebody speaks
	longest      = 150  // frames that somebody may speak before it is the room that has changed

	caution = 2.5  // times the power of what is expected to be left is what is turned down
	inertia = 0.7  // of the decision-directed rule
	floor   = 0.03 // the smallest gain, -30 dB

	noisePeriod = 75 // frames of which the quietest is the background
)

type suppressor struct {
	fft     *transform
	window  [size]float64 // root of a raised cosine: applied twice, windows that overlap by half add up to 1
	band    [bins]uint8
	running bool

	left, echo         [block]float64 // the last frame
	padded             [size]float64
	leftSpec, echoSpec spectrum
	tail               [block]float64 // what the last window contributes to the next frame

	lingering [bins]float64  // power of the estimated echo, with reverberation
	ratio     [bands]float64 // dB, of what is left over the estimated echo
	high      [bands]float64 // the same, a higher quantile
	mean      float64        // of the ratios
	spoken    bool           // whether somebody spoke in the last frame
	above     bool           // the same, however long it has been so
	long      int            // frames in which that was so, less those in which it wasn't

	gain   [bins]float64
	speech [bins]float64 // power of the last frame after suppression
	noise  [bins]float64 // power of the background
	smooth [bins]float64
	lowest [bins]float64
	frames int
}

func newSuppressor(fft *transform) *suppressor {
	s := &suppressor{fft: fft}
	for i := range s.window {
		s.window[i] = math.Sin(math.Pi * (float64(i) + 0.5) / size)
	}
	for k := range s.band {
		// Like the ear's: linear below 1 kHz, logarithmic above.
		hertz := float64(k) * 25
		s.band[k] = uint8(min(bands-1, 6*math.Asinh(hertz/600)))
	}
	return s
}

// start begins with the first frame that has an echo: the one before was last.
func (s *suppressor) start(last *audio.Frame) {
	s.running = true
	widen(&s.left, last)
	s.echo = [block]float64{}
	for i, v := range s.left {
		s.tail[i] = v * s.window[block+i] * s.window[block+i]
	}
}

// finish is the last frame that is late.
func (s *suppressor) finish() (out audio.Frame) {
	s.running = false
	for i, v := range s.left {
		out[i] = sample(s.tail[i] + v*s.window[i]*s.window[i])
	}
	return out
}

// learned tells whether the filter has learned anything that somebody may disturb.
func (s *suppressor) learned() bool { return s.mean < enough }

// restart goes with the filter's.
func (s *suppressor) restart() {
	s.ratio, s.high = [bands]float64{}, [bands]float64{}
	s.mean = 0
}

// listen takes the next frame and tells whether somebody speaks over the echo. If all is set, everything is taken for
// echo.
func (s *suppressor) listen(left, echo *[block]float64, all bool) (spoken bool) {
	s.join(&s.leftSpec, &s.left, left)
	s.join(&s.echoSpec, &s.echo, echo)

	var has, over [bands]float64
	for k := range s.lingering {
		s.lingering[k] = max(squared(s.echoSpec[k]), s.lingering[k]*reverberation)
		b := s.band[k]
		has[b] += squared(s.leftSpec[k])
		over[b] += s.lingering[k]
	}
	var sum, expected float64
	for b := range s.ratio {
		if over[b] < soft {
			continue
		}
		if b >= speechBand && b < hissBand {
			sum += has[b]
			expected += over[b] * power(s.ratio[b])
		}
		pace := 1.0
		if s.spoken {
			pace = 0.1
		}
		r := 10 * math.Log10(has[b]/over[b])
		track(&s.ratio[b], r, up*pace, down*pace)
		track(&s.high[b], r, upper*pace, down*pace)
	}
	s.mean = 0
	for _, r := range s.ratio {
		s.mean += r / bands
	}
	s.above = s.learned() && sum > loud*expected
	s.spoken = s.above
	if s.spoken {
		s.long++
	} else {
		s.long = max(0, s.long-1)
	}
	if s.long > longest {
		s.spoken = false
	}
	s.weigh(all)
	return s.spoken
}

// track follows a quantile of r.
func track(q *float64, r, up, down float64) {
	if r < *q {
		up = -down
	}
	*q = min(max(*q+up, lowestRatio), highestRatio)
}

// join transforms the window of two frames.
func (s *suppressor) join(dst *spectrum, before, now *[block]float64) {
	for i, v := range before {
		s.padded[i] = v * s.window[i]
	}
	for i, v := range now {
		s.padded[block+i] = v * s.window[block+i]
	}
	*before = *now
	s.fft.forward(dst, &s.padded)
}

// weigh finds the gains.
func (s *suppressor) weigh(all bool) {
	var share [bands]float64
	for b, r := range s.high {
		share[b] = caution * power(r)
	}
	s.frames++
	for k := range s.gain {
		has := squared(s.leftSpec[k]) + 1
		rest := share[s.band[k]]*s.lingering[k] + 1e-3
		if all {
			rest = max(rest, 4*has)
		}
		prior := inertia*s.speech[k]/rest + (1-inertia)*max(has/rest-1, 0)
		g := max(prior/(1+prior), floor)
		s.speech[k] = g * g * has

		// The background is learned where the echo is small.
		if rest < has/4 {
			s.smooth[k] += (has - s.smooth[k]) * 0.2
			s.lowest[k] = min(s.lowest[k], s.smooth[k])
		}
		if s.frames%noisePeriod == 0 {
			s.noise[k] = s.lowest[k]
			s.lowest[k] = s.smooth[k]
		}
		s.gain[k] = min(1, max(g, math.Sqrt(s.noise[k]/has)))
	}
}

// apply is the frame before the one that was listened to, with the gains.
func (s *suppressor) apply() (out audio.Frame) {
	for k, g := range s.gain {
		s.leftSpec[k] *= complex(g, 0)
	}
	x := s.fft.backward(&s.leftSpec)
	for i, v := range x[:block] {
		out[i] = sample(s.tail[i] + v*s.window[i])
		s.tail[i] = x[block+i] * s.window[block+i]
	}
	return out
}

// power is what decibels are of power.
func power(decibels float64) float64 { return math.Pow(10, decibels/10) }

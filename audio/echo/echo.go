// Package echo takes out of what the microphone hears what the appliance itself plays. It gives two feeds: the linear
// one, from which the estimated echo was subtracted and nothing else, for the wake word; and the suppressed one, in which
// what is left of the echo is turned down, for the recogniser. It opens no devices, doesn't know what is said, and
// suppresses no noise.
package echo

import (
	"math"
	"math/bits"
	"sync/atomic"

	"bellbird/audio"
)

// What becomes of a frame, in the order of the functions below:
//
//  1. Play puts what the loudspeaker is given into a ring, on the thread of its device. Everything else is done by Hear.
//  2. take empties the ring. As a rule there is one frame in it; if there is none or there are two, the devices are not
//     in step, and everything that depends on their distance is moved.
//  3. While the loudspeaker is silent, and was for so long that nothing of it can be left in the filter, the
//     microphone's frame is passed as it is, and nothing else is done.
//  4. remember resamples the played frame to the clock of the microphone (clock.go), and transforms it. The delay finder
//     (delay.go) compares what was played and what is heard, and moves the filter to where the echo begins.
//  5. cancel: the filter (filter.go) estimates the echo. What is left after it was subtracted is the linear feed.
//  6. guard takes a filter that makes things worse out of the way, and lets it begin anew.
//  7. The suppressor (suppress.go) learns how much echo is still in there, and turns it down. It also says whether
//     somebody speaks over the echo; if so, the filter learns nothing from this frame.

const (
	block = audio.FrameSize // samples that are new in a transform
	size  = 2 * block       // samples of a transform
	bins  = block + 1       // frequencies, 25 Hz apart

	partitions = 10 // frames of the filter: an echo is cancelled for 200 ms from where it begins
	maxLag     = 25 // frames: the latest beginning of the echo, 500 ms after it was pulled
	history    = maxLag + partitions

	// inaudible is the peak, in units of a sample, up to which a played frame is silence: -72 dBFS.
	inaudible = 8

	// faint is the energy of a played frame below which nothing is learned: -60 dBFS. The microphone's own noise would
	// be taken for an echo.
	faint = block * 30 * 30
)

// A spectrum has the frequencies from 0 to 8 kHz.
type spectrum [bins]complex128

// A Canceller cancels the echo of one loudspeaker in one microphone. Play is for one goroutine, or thread, and all else
// for one other.
type Canceller struct {
	ring    *audio.Ring
	refused atomic.Uint64

	over atomic.Int32 // what Over returns

	// Hear's own.
	fft     *transform
	clocks  *clocks
	delay   *delay
	filter  *filter
	sup     *suppressor
	silence int // frames since the loudspeaker was heard, up to history
	owed    int // frames that came too late, in whose place silence was taken

	ref    [history]spectrum // ring of what was played
	at     int               // where the newest of them is
	played [block]float64    // the newest of them
	mic    [block]float64
	echo   [block]float64 // estimated
	err    [block]float64 // what is left according to the filter
	left   [block]float64 // the linear feed
	heard  spectrum
	padded [size]float64
	last   audio.Frame // of the linear feed

	mixing   float64 // share of the estimated echo that is subtracted: 1, or 0 if it does harm
	micPower float64 // smoothed, of the frames with echo
	errPower float64
	overs    uint64 // a bit for each of the last frames: whether there was something over the echo
	bad      int    // frames for which the filter has made things worse
	stats    Stats
}

// Stats are counts since the start, and the state of things.
type Stats struct {
	Frames   uint64 // heard
	Bypassed uint64 // of them, those for which the loudspeaker was silent
	Frozen   uint64 // of them, those from which the filter didn't learn because somebody spoke over the echo
	Restarts uint64 // of the filter, because it did harm
	Moves    uint64 // of the filter, to another delay
	Slips    uint64 // frames of the loudspeaker that were one too many, or missing
	Refused  uint64 // frames of the loudspeaker that came while the microphone gave none

	Lag   int     // where the filter begins, in frames after the last one that was played
	Loss  float64 // how much less the linear feed has than the microphone, in the last 0.4 s with echo, in dB
	Drift float64 // by how much the loudspeaker's clock is faster than the microphone's, in millionths
}

// ringSize is how many frames may be played between two that are heard, 320 ms; one more is refused and counted.
const ringSize = 16

// New returns a canceller that knows nothing yet of the room.
func New() *Canceller {
	fft := newTransform()
	return &Canceller{
		ring:    audio.NewRing(ringSize),
		fft:     fft,
		clocks:  newClocks(),
		delay:   newDelay(),
		filter:  newFilter(fft),
		sup:     newSuppressor(fft),
		silence: history,
	}
}

// Stats returns the counts.
func (c *Canceller) Stats() Stats {
	s := c.stats
	s.Refused = c.refused.Load()
	s.Lag = c.filter.lag
	s.Drift = -c.clocks.apart / block * 1e6
	if c.micPower > 0 && c.errPower > 0 {
		s.Loss = 10 * math.Log10(c.micPower/c.errPower)
	}
	return s
}

// Over is how much of the last second had something in it that isn't the appliance's own voice, from 0 to 1: while the
// loudspeaker is silent everything, and nothing before the canceller has learned the room, if there is an echo. A wake
// word in the linear feed that is not there was said by the appliance. It may be called from any goroutine.
func (c *Canceller) Over() float64 { return float64(c.over.Load()) / lastSecond }

// Play tells what the loudspeaker was given, silence included, as it was given: after the volume. It neither waits nor
// allocates.
func (c *Canceller) Play(f *audio.Frame) {
	if !c.ring.Push(*f) {
		c.refused.Add(1)
	}
}

// Hear takes the next frame of the microphone. The echo in it must be of what was played between 0 and 500 ms before: how
// long it takes is measured. linear is what is left of mic without the echo; suppressed is that of the frame before, with
// what is left of the echo turned down. It doesn't allocate.
func (c *Canceller) Hear(mic *audio.Frame) (linear, suppressed audio.Frame) {
	c.stats.Frames++
	c.take()
	if c.silence == history {
		c.stats.Bypassed++
		linear, suppressed = *mic, c.last
		if c.sup.running {
			suppressed = c.sup.finish()
		}
		c.last = linear
		c.count(true)
		return linear, suppressed
	}
	if !c.sup.running {
		c.sup.start(&c.last)
	}
	c.cancel(mic)
	for i, v := range c.left {
		linear[i] = sample(v)
	}
	c.last = linear
	return linear, c.sup.apply()
}

// take takes what was played since the last frame.
func (c *Canceller) take() {
	newer := -1 // by how many frames the newest is newer than after one frame for each
	skip := 0
	switch turns := c.clocks.advance(); {
	case turns > 0:
		c.clocks.late -= block
		c.remember()
		newer++
	case turns < 0 && c.filter.lag == 0 && c.delay.best < 2:
		c.clocks.late = ahead // there is nothing to be gained: the echo comes at once
	case turns < 0 && c.ring.Len() > 0:
		c.clocks.late += block
		skip = 1
	}
	var f audio.Frame
	popped := 0
	for ; c.ring.Pop(&f); popped++ {
		if c.owed > 0 && popped > 0 {
			c.owed--
			continue
		}
		c.hand(&f, &skip, &newer)
	}
	if popped == 0 && c.filter.lag == 0 {
		c.owed = min(c.owed+1, ringSize)
		f = audio.Frame{}
		c.hand(&f, &skip, &newer)
	}
	if popped != 1 {
		c.stats.Slips++
	}
	if newer < 0 && c.filter.lag == 0 {
		c.filter.move(1, true)
	}
	c.filter.lag = min(max(c.filter.lag+newer, 0), maxLag)
	c.delay.turn(newer)
}

// hand takes a frame that was played.
func (c *Canceller) hand(f *audio.Frame, skip, newer *int) {
	if !silent(f) {
		c.silence = 0
	} else if c.silence < history {
		if c.silence++; c.silence == history {
			// It was silence, all of it.
			clear(c.ref[:])
			c.clocks.clear()
			c.played = [block]float64{}
			c.owed = 0
		}
	}
	if c.silence < history {
		c.clocks.take(f)
	}
	if *skip > 0 {
		*skip--
		return
	}
	c.remember()
	*newer++
}

// remember takes the newest frame of what was played, on the microphone's clock.
func (c *Canceller) remember() {
	if c.silence == history {
		return
	}
	copy(c.padded[:block], c.played[:])
	c.clocks.resample(&c.played)
	copy(c.padded[block:], c.played[:])
	c.at = (c.at + 1) % history
	c.fft.forward(&c.ref[c.at], &c.padded)
	c.delay.remember(c)
}

// reference is the spectrum of what was played lag frames ago.
func (c *Canceller) reference(lag int) *spectrum { return &c.ref[(c.at+history-lag)%history] }

// cancel leaves what remains of the microphone's frame in left, and learns from it.
func (c *Canceller) cancel(mic *audio.Frame) {
	copy(c.padded[:block], c.mic[:])
	widen(&c.mic, mic)
	copy(c.padded[block:], c.mic[:])
	c.fft.forward(&c.heard, &c.padded)
	useful := c.sup.learned()
	if lag, ok := c.delay.find(c, useful); ok && lag != c.filter.lag && !c.sup.spoken {
		c.filter.move(lag, useful)
		c.stats.Moves++
	}
	if later, ok := c.delay.apart(); ok && !useful {
		c.clocks.hurry(later)
	}

	c.filter.estimate(c, &c.echo)
	for i := range c.err {
		c.err[i] = c.mic[i] - c.echo[i]
	}
	c.guard()

	// Before anything is learned, what comes while the loudspeaker plays is taken for echo, if there is one at all.
	all := !c.sup.learned() && c.silence == 0 && (c.delay.found() || c.delay.seen[0] < trial)
	spoken := c.sup.listen(&c.left, &c.echo, all)
	if spoken {
		c.stats.Frozen++
	}
	c.count(c.sup.above || !c.sup.learned() && !all)
	learning := !spoken && energy(&c.played) >= faint
	c.filter.learn(c, &c.err, learning)
	if learning && energy(&c.err) < energy(&c.mic)/2 {
		c.clocks.follow(&c.sup.leftSpec, &c.sup.echoSpec)
	}
}

// count keeps what Over returns.
func (c *Canceller) count(over bool) {
	c.overs <<= 1
	if over {
		c.overs |= 1
	}
	c.over.Store(int32(bits.OnesCount64(c.overs & (1<<lastSecond - 1))))
}

// guard subtracts the estimated echo, unless that makes things louder: then the room has changed, or the delay, and the
// filter begins anew. Somebody who speaks over the echo is no reason for that: he is in both.
func (c *Canceller) guard() {
	mic, err := energy(&c.mic), energy(&c.err)
	c.micPower += (mic - c.micPower) * powerPace
	c.errPower += (err - c.errPower) * powerPace
	to := 1.0
	if c.errPower <= harmless*c.micPower {
		c.bad = 0
	} else {
		c.bad++
	}
	if c.bad > patience || !(c.errPower <= harmful*c.micPower) {
		c.bad = 0
		c.filter.restart()
		c.sup.restart()
		c.stats.Restarts++
		c.errPower = c.micPower
		c.echo = [block]float64{}
	} else if err > mic*harmless {
		to = 0
	}
	step := (to - c.mixing) / block
	for i := range c.left {
		c.mixing += step
		c.left[i] = c.mic[i] - c.mixing*c.echo[i]
	}
	c.mixing = to
}

const (
	powerPace  = 0.05 // of the smoothed powers: 0.4 s
	harmful    = 2.0  // as power, over 0.4 s: the filter is wrong
	harmless   = 1.1  // less than that may be chance
	patience   = 50   // frames in which it may make things worse
	lastSecond = 50   // frames
	trial      = 50   // frames in which it may show whether there is an echo
)

func energy(x *[block]float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}

func widen(dst *[block]float64, src *audio.Frame) {
	for i, v := range src {
		dst[i] = float64(v)
	}
}

func sample(v float64) int16 {
	return int16(math.RoundToEven(min(max(v, math.MinInt16), math.MaxInt16)))
}

func silent(f *audio.Frame) bool {
	for _, v := range f {
		if v > inaudible || v < -inaudible {
			return false
		}
	}
	return true
}

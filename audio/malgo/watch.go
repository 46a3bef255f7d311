package malgo

import (
	"fmt"
	"time"

	"bellbird/audio"
)

// A Side is one of the two halves of a sound card.
type Side string

// The sides.
const (
	Microphone  Side = "microphone"
	Loudspeaker Side = "loudspeaker"
)

// A Reason is why a side doesn't work.
type Reason string

// The reasons.
const (
	Missing  Reason = "missing"  // it can't be opened: it isn't there, or somebody else has it
	Stopped  Reason = "stopped"  // it says so itself: unplugged, mostly
	Stalled  Reason = "stalled"  // no samples come or go
	Constant Reason = "constant" // it delivers the same value all the time: switched off, or a wire is loose
	Rate     Reason = "rate"     // it has become faster or slower than it said it was
	Hangs    Reason = "hangs"    // opening it, or closing it, doesn't come to an end
)

// A Fault is what a device was found to suffer from.
type Fault struct {
	Side   Side
	Device string // its name, or what was asked for
	Reason Reason
	Err    error // says what it is and what to do, for people
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

const (
	// lookEvery is how often a device is looked after.
	lookEvery = 200 * time.Millisecond

	// stalled is how long a device may deliver or take nothing before it is taken for gone. Unplugging is not
	// reliably told in any other way.
	stalled = 1600 * time.Millisecond

	// starting is how long a device is given to get going, in which it may pause for that long too: a sound server that
	// had nothing to do looks up only every two seconds.
	starting = 3 * time.Second

	// constantFor is how long a microphone may deliver the same value.
	constantFor = 1800 * time.Millisecond

	// rateOff is how near a device must come to a rate that devices have, in rateLooks looks, and rateEven in each of
	// them: a machine that is too busy loses samples too, but to no such rate, and not evenly. It must be seen
	// twice in a row. A look is ten calls of the device, one more or less.
	rateOff   = 0.02
	rateEven  = 0.13
	rateLooks = 8 // 1.6 s
	rateSeen  = 2

	// aliveFrames is how many frames with sound in them make a microphone well again.
	aliveFrames = 10
)

// Vitals are what a device shows of itself.
type vitals struct {
	started bool
	moments uint64 // samples of each channel that came or went
	lively  uint64 // frames with sound in them; a microphone's only
	still   uint64 // frames without, since the last with sound
	rate    audio.Rate
}

// A watch finds out from the vitals of a device what it suffers from.
type watch struct {
	side   Side
	device string

	began   time.Time
	moved   time.Time // when the count of moments was last seen to change
	moments uint64
	past    [rateLooks + 1]look // the last looks, the oldest first
	looks   int                 // how many of them there are
	wrong   audio.Rate          // the rate that it had instead of its own in the last look, or 0
	seen    int                 // how often in a row
}

// usual are the rates of devices.
var usual = []audio.Rate{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000, 176400, 192000}

type look struct {
	at      time.Time
	moments uint64
}

func newWatch(side Side, device string, now time.Time) *watch {
	return &watch{side: side, device: device, began: now, moved: now}
}

// look returns what is wrong, or nil.
func (w *watch) look(now time.Time, v vitals) *Fault {
	if v.moments != w.moments {
		w.moments, w.moved = v.moments, now
	}
	gives := "delivered"
	if w.side == Loudspeaker {
		gives = "taken"
	}
	patience := stalled
	if now.Sub(w.began) <= starting+stalled && w.moved.Sub(w.began) < starting {
		patience = starting
	}
	switch other := w.rate(now, v); {
	case !v.started:
		return w.fault(Stopped, "has stopped: is it still plugged in?")
	case now.Sub(w.moved) >= patience:
		return w.fault(Stalled, "has %s nothing for %v: is it still plugged in?", gives, patience)
	case v.still >= uint64(audio.Frames(constantFor)):
		return w.fault(Constant, "delivers no sound, only the same value: is it switched off, or is a wire loose?")
	case other != 0:
		return w.fault(Rate, "has %s %d samples a second and not %d: it has changed its rate", gives, other, v.rate)
	}
	return nil
}

func (w *watch) fault(r Reason, format string, args ...any) *Fault {
	return &Fault{w.side, w.device, r, fmt.Errorf(string(w.side)+" %q "+format, append([]any{w.device}, args...)...)}
}

// rate returns the rate that the device has instead of its own, or 0 if it hasn't.
func (w *watch) rate(now time.Time, v vitals) audio.Rate {
	// Who looks late is on a machine that is too busy to tell, and who sees nothing has something else to report.
	if w.looks > 0 {
		last := w.past[w.looks-1]
		if now.Sub(last.at) > lookEvery*3/2 || v.moments == last.moments {
			w.looks, w.seen = 0, 0
		}
	}
	if w.looks == len(w.past) {
		w.looks = copy(w.past[:], w.past[1:])
	}
	w.past[w.looks] = look{now, v.moments}
	w.looks++
	if w.looks < len(w.past) {
		return 0
	}
	near := func(a, b look, r audio.Rate, off float64) bool {
		speed := float64(b.moments-a.moments) / b.at.Sub(a.at).Seconds()
		return speed > float64(r)*(1-off) && speed < float64(r)*(1+off)
	}
	found := audio.Rate(0)
	for _, r := range usual {
		apart := max(r-v.rate, v.rate-r) > v.rate/25
		if !apart || !near(w.past[0], w.past[rateLooks], r, rateOff) {
			continue
		}
		even := true
		for i := range rateLooks {
			even = even && near(w.past[i], w.past[i+1], r, rateEven)
		}
		if even {
			found = r
		}
	}
	if found == 0 || found != w.wrong {
		w.wrong, w.seen = found, 0
	}
	if found != 0 {
		w.seen++
	}
	if w.seen < rateSeen {
		return 0
	}
	return found
}

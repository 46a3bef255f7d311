// Package ring decides what the LED ring shows, and animates it. What can be shown is a ladder of rungs: of those that
// something holds, the highest shows. Patterns are pure functions. The package doesn't know what kind of LEDs there
// are, nor how they are connected.
package ring

import (
	"time"

	"bellbird/gpio/led"
)

// A Rung is something that the ring can show. A smaller one is higher on the ladder: it shows before the ones after it.
// Mute is not a rung: it shows over whatever the ladder chooses, so that nothing can hide it.
type Rung int

// The ladder, from the top.
const (
	ResetArmed Rung = iota
	ResetWarning
	Updating
	Identify
	Volume
	Ringing
	Touched
	Waking
	Listening
	FollowUp
	Thinking
	Speaking
	Failed
	Booting
	Deaf
	NoServer
	Private
	Borrowed
	Light
	Timer
	Idle // always holds

	rungs = int(Idle) + 1
)

// Args are what a rung shows besides itself. Which of them count depends on the rung.
type Args struct {
	Fraction float64       // of the volume, or of an update that is done: 0 to 1
	Silent   bool          // the loudspeaker is muted: Volume
	Kind     string        // of an error, as package event names them: Failed
	Left     time.Duration // of a timer, when it was shown: Timer
	Total    time.Duration // of a timer
	Color    led.Color     // Light and Borrowed
	Effect   Effect        // Light and Borrowed
}

// An Effect is how a colour that was asked for moves.
type Effect string

// The effects.
const (
	Solid   Effect = "solid"
	Breathe Effect = "breathe"
	Spin    Effect = "spin"
)

// Effects are all of them.
func Effects() []Effect { return []Effect{Solid, Breathe, Spin} }

// A row is what there is to know about a rung.
type row struct {
	name, what string
	// most is how long it shows if nobody asks again or hides it; zero: it lasts as long as what it tells of.
	most time.Duration
	// withMute is set if it also shows while the microphone is muted, beside the LEDs that tell so.
	withMute bool

	draw  func(dst []led.Color, s Scene)
	every time.Duration // between two frames; zero: it stands still
	rests time.Duration // it stands still from then on; zero: never
	hears source
}

// A source is whose level a pattern follows.
type source int

const (
	nobody source = iota
	microphone
	loudspeaker
)

const frame = 20 * time.Millisecond

// ladder has a row for each rung. Its order is that of the constants.
var ladder = [rungs]row{
	ResetArmed:   {"reset armed", "let go now, and the device is reset", 60 * time.Second, true, drawResetArmed, frame, 0, nobody},
	ResetWarning: {"reset warning", "hold on to reset the device, let go to keep everything", 20 * time.Second, true, drawResetWarning, frame, 0, nobody},
	Updating:     {"updating", "don't unplug it; the arc is what is done", 10 * time.Minute, true, drawUpdating, frame, 0, nobody},
	Identify:     {"identify", "it is this one", 10 * time.Second, true, drawIdentify, frame, 0, nobody},
	Volume:       {"volume", "the arc is the volume", 1500 * time.Millisecond, true, drawVolume, 0, 0, nobody},
	Ringing:      {"timer ringing", "a timer or an alarm rings", 16 * time.Minute, true, drawRinging, frame, 0, nobody},
	Touched:      {"button touched", "a button is down", time.Second, true, drawTouched, 0, 0, nobody},
	Waking:       {"waking", "the wake word was heard", 400 * time.Millisecond, false, drawWaking, frame, 300 * time.Millisecond, nobody},
	Listening:    {"listening", "speak: it gets brighter with the voice", time.Minute, false, drawListening, frame, 0, microphone},
	FollowUp:     {"follow-up", "it still listens, in case there is more", time.Minute, false, drawFollowUp, frame, 0, microphone},
	Thinking:     {"thinking", "it works on the answer", 5 * time.Minute, true, drawThinking, frame, 0, nobody},
	Speaking:     {"speaking", "it answers: it gets brighter with the speech", 15 * time.Minute, true, drawSpeaking, frame, 0, loudspeaker},
	Failed:       {"error", "the turn failed; colour and number of blinks say why", 3 * time.Second, true, drawFailed, frame, 2 * time.Second, nobody},
	Booting:      {"booting", "it is not ready yet", 2 * time.Minute, false, drawBooting, frame, 0, nobody},
	Deaf:         {"no microphone", "nothing can be heard", 0, false, drawDeaf, frame, 5 * time.Second, nobody},
	NoServer:     {"no server", "the model's server can't be reached; what works offline still does", 0, false, drawNoServer, frame, 3 * time.Second, nobody},
	Private:      {"private chat", "what is said is kept in the private chat", 0, false, drawPrivate, 0, 0, nobody},
	Borrowed:     {"borrowed", "a plugin shows something", MaxBorrow, false, drawLight, frame, 0, nobody},
	Light:        {"light", "Home Assistant uses the ring as a lamp", 0, false, drawLight, frame, 0, nobody},
	Timer:        {"timer running", "the arc is the time left", 0, false, drawTimer, 500 * time.Millisecond, 0, nobody},
	Idle:         {"idle", "it waits for its wake word", 0, false, drawIdle, 0, 0, nobody},
}

// String is the rung's name.
func (r Rung) String() string {
	if r < 0 || int(r) >= rungs {
		return "no rung"
	}
	return ladder[r].name
}

// What says in a few words what the rung tells.
func (r Rung) What() string { return ladder[r].what }

// Lasts is how long the rung shows if nobody asks again; zero: as long as what it tells of.
func (r Rung) Lasts() time.Duration { return ladder[r].most }

// WithMute reports whether the rung also shows while the microphone is muted, beside the LEDs that tell so.
func (r Rung) WithMute() bool { return ladder[r].withMute }

// Rungs are all of them, from the top of the ladder.
func Rungs() []Rung {
	all := make([]Rung, rungs)
	for i := range all {
		all[i] = Rung(i)
	}
	return all
}

// A Scene is all that a frame depends on.
type Scene struct {
	Rung    Rung
	Elapsed time.Duration // since the rung began to show
	Level   float64       // of the voice or the speech, 0 to 1
	Args    Args
	Muted   bool    // the microphone
	Private bool    // the chat
	Night   float64 // how bright it is at night, up to 1; zero: it isn't night
}

// A claim is what holds a rung.
type claim struct {
	args  Args
	since time.Time
	ends  time.Time // zero: never
}

func (c *claim) holds(now time.Time) bool {
	return !c.since.IsZero() && (c.ends.IsZero() || now.Before(c.ends))
}

// A board is who holds which rung.
type board struct {
	claims [rungs]claim
	muted  bool
	night  float64 // as of Scene
}

// hold lets something hold a rung from now on. for_ zero, or more than the rung lasts, is as long as it lasts. What held
// it already goes on where it is.
func (b *board) hold(r Rung, a Args, for_ time.Duration, now time.Time) {
	c := &b.claims[r]
	if !c.holds(now) {
		c.since = now
	}
	if r == Timer {
		c.since = now // what is left counts from here
	}
	c.args, c.ends = a, time.Time{}
	if most := ladder[r].most; most > 0 && (for_ <= 0 || for_ > most) {
		for_ = most
	}
	if for_ > 0 {
		c.ends = now.Add(for_)
	}
}

// top is what shows now, and how long until that may be another; zero: until something changes.
func (b *board) top(now time.Time) (s Scene, changes time.Duration) {
	s = Scene{Rung: Idle, Muted: b.muted, Night: b.night, Private: b.claims[Private].holds(now)}
	for i := range b.claims {
		c := &b.claims[i]
		if !c.holds(now) || b.muted && !ladder[i].withMute {
			continue
		}
		s.Rung, s.Args, s.Elapsed = Rung(i), c.args, now.Sub(c.since)
		if !c.ends.IsZero() {
			changes = c.ends.Sub(now)
		}
		break
	}
	return s, changes
}

package gpio

import (
	"time"

	"bellbird/event"
)

// The times of gestures.
const (
	longAfter  = time.Second
	warnAfter  = 10 * time.Second // of holding it to reset the appliance
	armAfter   = 22 * time.Second
	stuckAfter = time.Minute            // nobody holds a button for so long
	seriesGap  = 250 * time.Millisecond // between the presses of a double or triple one
	repress    = 100 * time.Millisecond // from down to down: sooner is a contact that bounces for long
)

// gestures turn the moves of one button into gestures. They know no clock.
type gestures struct {
	// single: there are only single presses, which therefore need not be waited for.
	single bool
	// resets: holding it resets the appliance.
	resets bool

	down    bool
	moved   time.Time // when it went down or up
	pressed time.Time // when it went down the last time
	presses int       // short ones, of a series that is not over
	warned  bool
	armed   bool
	ignored bool // until it is up
}

// ignore forgets what was begun, and takes no notice of the button until it is up.
func (g *gestures) ignore() (told event.Gesture) {
	if g.warned {
		told = event.ResetAbandoned
	}
	*g = gestures{single: g.single, resets: g.resets, down: g.down, moved: g.moved, pressed: g.pressed, ignored: g.down}
	return told
}

// move is told that the button went down or up, and returns the gesture that is certain by that, if any.
func (g *gestures) move(down bool, at time.Time) event.Gesture {
	if down == g.down {
		return ""
	}
	g.down = down
	held := at.Sub(g.moved)
	g.moved = at
	if down {
		g.ignored = !g.pressed.IsZero() && at.Sub(g.pressed) < repress
		if !g.ignored {
			g.pressed = at
		}
		return ""
	}
	warned, armed, ignored := g.warned, g.armed, g.ignored
	g.warned, g.armed, g.ignored = false, false, false
	switch {
	case ignored:
		return ""
	case armed:
		return event.ResetReleased
	case warned:
		return event.ResetAbandoned
	case held >= longAfter:
		g.presses = 0
		return event.Long
	}
	g.presses++
	if g.single || g.presses == 3 {
		return g.series()
	}
	return ""
}

// due is when pass has to be called; zero: not before the next move.
func (g *gestures) due() time.Time {
	switch {
	case g.ignored:
	case g.down && g.resets && !g.warned:
		return g.moved.Add(warnAfter)
	case g.down && g.warned && !g.armed:
		return g.moved.Add(armAfter)
	case g.down:
		return g.moved.Add(stuckAfter)
	case g.presses > 0:
		return g.moved.Add(seriesGap)
	}
	return time.Time{}
}

// pass is told the time when something is due, and returns the gesture that is certain by that. stuck: the button has
// been down for so long that it is taken for broken.
func (g *gestures) pass(at time.Time) (told event.Gesture, stuck bool) {
	due := g.due()
	if due.IsZero() || at.Before(due) {
		return "", false
	}
	switch {
	case !g.down:
		return g.series(), false
	case at.Sub(g.moved) >= stuckAfter:
		return g.ignore(), true
	case !g.warned:
		g.warned, g.presses = true, 0
		return event.ResetWarned, false
	}
	g.armed = true
	return event.ResetArmed, false
}

// series ends a series of presses.
func (g *gestures) series() event.Gesture {
	n := g.presses
	g.presses = 0
	return [...]event.Gesture{"", event.Press, event.Double, event.Triple}[n]
}

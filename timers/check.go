package timers

import (
	"time"

	"bellbird/event"
)

// Time, as a machine without a battery for its clock has it. It starts with a time of day that is too early, runs on
// from there, and steps when it learns the right one; Options.Sane tells when that is. So there are two times:
//
//   - The time that has passed since the start never steps. Timers and snoozes run on it.
//   - The time of day is for alarms, for what people are shown, and for what is saved: after a restart nothing else
//     tells how long the power was off. Until it is sane the latest time known to have been stands in for it, plus what
//     has passed since. That is too early, if anything: an alarm then rings late rather than never.
//
// Both are read at every check, at least each 30 s while anything is set, and compared.

// checkEvery is how long a step of the clock may go unnoticed.
const checkEvery = 30 * time.Second

const (
	// tolerance is by how much the clock may be corrected, or a ring be late, and nobody needs to know.
	tolerance = 5 * time.Second
	// farBack is by how much the clock must be set back for alarms that have rung since to ring again.
	farBack = time.Hour
)

// A reading is what the time was.
type reading struct {
	elapsed time.Duration // of Clock.Elapsed; never steps
	clock   time.Time     // as the clock has it; zero: never read
	wall    time.Time     // the best guess at what it is
	sane    bool          // the clock is right
	zone    *time.Location

	// The latest time of day known to have been, and when that was.
	floor   time.Time
	floorAt time.Duration
}

// read reads the clock.
func (k *Keeper) read() reading {
	now := k.now
	now.elapsed = k.o.Clock.Elapsed()
	now.clock = k.o.Clock.Now().Round(0) // without what Go knows of the time that has passed
	now.zone = k.o.Zone()
	floor := now.floor
	if !floor.IsZero() {
		floor = floor.Add(now.elapsed - now.floorAt)
	}
	switch {
	case now.sane: // and stays so: it is of no matter how long ago that was confirmed
	case k.o.Sane != nil:
		now.sane = k.o.Sane()
	default:
		now.sane = !now.clock.Before(now.floor)
	}
	now.wall = now.clock
	if !now.sane && floor.After(now.clock) {
		now.wall = floor
	}
	return now
}

// check is called whenever something may have become due.
func (k *Keeper) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
}

// look brings everything up to date with the clock.
func (k *Keeper) look() {
	if k.advance() {
		k.keepLater()
	}
	k.arm()
}

// advance does what the time that has passed since it was last called asks for, and reports whether there is anything
// new to be saved.
func (k *Keeper) advance() (changed bool) {
	last := k.now
	k.now = k.read()
	if k.closed {
		return false
	}
	settled := k.now.sane && !last.sane
	back := !last.wall.IsZero() && last.wall.Sub(k.now.wall)+k.now.elapsed-last.elapsed > farBack
	for _, e := range k.inOrder() {
		if settled {
			k.settle(e)
			changed = true
		}
		if back && !e.once() {
			e.alarm.date = e.alarm.following(k.now.wall, k.now.zone)
		}
		if k.pass(e) {
			changed = true
		}
		moved := k.next(e).Sub(e.told).Abs() > tolerance
		if moved && k.entries[e.id] == e && e.state != ringing {
			k.tell(e, event.TimerMoved)
			changed = true
		}
	}
	return changed
}

// settle makes use of the time of day, now that it is known.
func (k *Keeper) settle(e *entry) {
	if !e.ends.IsZero() {
		late := k.now.wall.Sub(e.ends)
		if e.cut && late < MaxRinging {
			e.spent = max(e.spent, late) // it goes on ringing
		}
		// It can't be longer than it would be if the power had never been off.
		e.rings = min(e.rings, k.now.elapsed-late)
		e.ends = time.Time{}
	}
	if a := e.alarm; a != nil && !a.dated {
		a.date, a.dated = a.following(k.now.wall, k.now.zone), true
	}
}

// pass does what is due for an entry, and reports whether anything was.
func (k *Keeper) pass(e *entry) bool {
	switch a := e.alarm; {
	case e.state == ringing && k.now.elapsed-e.began >= MaxRinging:
		k.quiet(e)
	case e.counts() && k.now.elapsed >= e.rings:
		k.begin(e, k.now.elapsed-e.rings)
	case a != nil && (e.state == waiting || a.repeat) && !a.due(k.now.zone).After(k.now.wall):
		due := a.due(k.now.zone)
		if a.repeat {
			due = a.latest(k.now.wall, k.now.zone) // of several that were missed
			a.date = a.following(k.now.wall, k.now.zone)
		}
		if e.state != ringing { // for an earlier time, still
			k.begin(e, k.now.wall.Sub(due))
		}
	default:
		return false
	}
	return true
}

// counts tells whether an entry rings after a length of time rather than at a time of day.
func (e *entry) counts() bool { return e.state == snoozed || e.state == waiting && e.alarm == nil }

// begin has an entry ring, or tells that it was missed if that is too long ago.
func (k *Keeper) begin(e *entry, late time.Duration) {
	if late <= MaxLate {
		k.ring(e, late)
		return
	}
	e.should, e.late = k.now.wall.Add(-late), true
	if e.once() {
		k.remove(e, event.TimerMissed)
		return
	}
	k.tell(e, event.TimerMissed)
	e.state, e.late, e.cut = waiting, false, false
	e.told = k.next(e)
}

// next is when an entry rings next, or when it should have if it rings.
func (k *Keeper) next(e *entry) time.Time {
	switch {
	case e.state == ringing || e.late:
		return e.should.In(k.now.zone)
	case e.counts():
		return k.now.wall.Add(e.rings - k.now.elapsed).In(k.now.zone)
	}
	return e.alarm.due(k.now.zone)
}

// arm has check called when the next thing is due.
func (k *Keeper) arm() {
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
	if k.closed || len(k.entries) == 0 {
		return
	}
	wait := checkEvery
	for _, e := range k.entries {
		switch {
		case e.state == ringing:
			wait = min(wait, e.began+MaxRinging-k.now.elapsed)
		case e.counts():
			wait = min(wait, e.rings-k.now.elapsed)
		}
		if a := e.alarm; a != nil && (e.state == waiting || a.repeat) {
			wait = min(wait, a.due(k.now.zone).Sub(k.now.wall))
		}
	}
	k.stop = k.o.Clock.AfterFunc(max(wait, 0), k.check)
}

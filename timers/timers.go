// Package timers keeps timers and alarms. A timer rings after a length of time, which no setting of the clock changes;
// an alarm rings at a time of day, once or on certain weekdays. Both outlive a restart, if there is somewhere to keep
// them. The package doesn't make the sound: whoever listens to its facts, or is called back, does.
package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
)

// Bounds of what may be set, so that a misunderstood order can't fill the device.
const (
	MaxTimers   = 50
	MaxAlarms   = 50
	MaxDuration = 7 * 24 * time.Hour
	MaxSnooze   = 2 * time.Hour
	MaxName     = 100 // bytes
)

const (
	// MaxRinging is how long a timer or an alarm rings when nobody silences it.
	MaxRinging = 15 * time.Minute
	// MaxLate is how late it may be and still ring.
	MaxLate = 24 * time.Hour
	// DefaultSnooze is the length of a snooze when nobody says how long.
	DefaultSnooze = 9 * time.Minute
	// HushedFor is how long after its end a ring can still be snoozed: whoever calls the device to say so has
	// silenced it by calling.
	HushedFor = time.Minute
)

// Errors in words for the user.
var (
	ErrTooMany       = fmt.Errorf("there are already %d timers", MaxTimers)
	ErrTooManyAlarms = fmt.Errorf("there are already %d alarms", MaxAlarms)
	ErrNameTooLong   = errors.New("the name is too long")
	ErrTooLong       = errors.New("a timer can't be longer than a week")
	ErrSnoozeTooLong = errors.New("a snooze can't be longer than two hours")
	ErrNothingRings  = errors.New("nothing is ringing")
	// ErrNotKept comes with something that was set and will ring, but is lost if the power fails before.
	ErrNotKept = errors.New("it is set, but it could not be saved, so it would be lost in a power cut")
	// ErrNotReady comes before Run has read what was kept, and after it has ended.
	ErrNotReady = errors.New("timers and alarms are not ready, try again in a moment")
)

// Options are what a Keeper needs.
type Options struct {
	Clock clock.Clock // nil: clock.System
	Bus   *event.Bus
	// Ring is called, one call at a time, when the first begins to ring, and with false when the last is silent.
	Ring func(bool)

	// Records keep timers and alarms over a restart. nil: they are lost when the program ends.
	Records Records
	// Sane tells whether the time of day is right, which it isn't from the start on a machine without a clock that
	// runs on a battery. It isn't asked any more once it is. nil: it is, unless it is earlier than what was saved.
	Sane func() bool
	// Private tells whether what is set now is set in a private chat, so that its name must not leave the appliance. It
	// must not wait. nil: it isn't.
	Private func() bool
	// Zone is the time zone of alarms. nil: time.Local.
	Zone func() *time.Location

	Logger *slog.Logger // nil: none
}

// A Keeper keeps timers and alarms. It may be used by several goroutines.
type Keeper struct {
	o          Options
	saving     sync.Mutex // held for one save, and never taken by one who holds mu
	background sync.WaitGroup

	mu      sync.Mutex
	now     reading
	ready   bool // what was kept is known
	closed  bool
	lastID  int
	entries map[int]*entry
	ringing int
	hushed  []*entry      // what was silenced last
	when    time.Duration // and when, of Clock.Elapsed
	stop    func() bool   // of the next check; nil: there will be none
}

// An entry is a timer or an alarm.
type entry struct {
	id      int
	name    string
	alarm   *schedule     // nil: a timer
	total   time.Duration // of a timer
	state   state
	private bool      // its name must not leave the appliance
	late    bool      // it rings, or was missed, after it should have rung
	told    time.Time // what was told of when it rings

	rings  time.Duration // when a timer that waits, or what is snoozed, rings, of Clock.Elapsed
	ends   time.Time     // the same as saved by an earlier run, until the time of day is known; zero: not known
	began  time.Duration // when it began to ring, of Clock.Elapsed
	should time.Time     // when it should have

	cut   bool          // it rang when the earlier run ended
	spent time.Duration // for so long
}

// once tells whether an entry is done with when it has rung.
func (e *entry) once() bool { return e.alarm == nil || !e.alarm.repeat }

type state string

const (
	waiting state = "waiting"
	ringing state = "ringing"
	snoozed state = "snoozed"
)

// A Timer is one timer as it stands.
type Timer struct {
	ID      int
	Name    string // may be empty
	Total   time.Duration
	Left    time.Duration // until it rings, at the end of the snooze if it is snoozed; 0: it rings
	Ends    time.Time     // the same as a time of day; when it should have rung if it rings
	Ringing bool
	Snoozed bool
	Late    bool // it rings later than it should have
}

// New returns a keeper without timers. It can be used at once without Records, and else as soon as it runs.
func New(o Options) *Keeper {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Private == nil {
		o.Private = func() bool { return false }
	}
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.Local }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keeper{o: o, entries: make(map[int]*entry), ready: o.Records == nil}
}

// Run brings back what was kept, and keeps what there is when ctx ends. Nothing rings after that.
func (k *Keeper) Run(ctx context.Context) error {
	k.restore()
	<-ctx.Done()
	k.close()
	return nil
}

// Set starts a timer of length d. The name may be empty; several may bear the same. The timer runs if the error is
// ErrNotKept, and else if there is none.
func (k *Keeper) Set(name string, d time.Duration) (Timer, error) {
	e, err := k.addTimer(name, d)
	if err != nil {
		return Timer{}, err
	}
	err = k.keep()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.timer(e), err
}

func (k *Keeper) addTimer(name string, d time.Duration) (*entry, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case d <= 0:
		return nil, fmt.Errorf("a timer of %v", d)
	case d > MaxDuration:
		return nil, ErrTooLong
	case len(name) > MaxName:
		return nil, ErrNameTooLong
	case k.count(false) >= MaxTimers:
		return nil, ErrTooMany
	case !k.ready || k.closed:
		return nil, ErrNotReady
	}
	k.advance()
	e := &entry{name: name, private: k.o.Private(), total: d, state: waiting, rings: k.now.elapsed + d}
	k.add(e)
	return e, nil
}

// add gives a new entry its number.
func (k *Keeper) add(e *entry) {
	k.lastID++
	e.id = k.lastID
	k.entries[e.id] = e
	k.tell(e, event.TimerSet)
	k.arm()
}

func (k *Keeper) count(alarms bool) int {
	n := 0
	for _, e := range k.entries {
		if (e.alarm != nil) == alarms {
			n++
		}
	}
	return n
}

// List returns the timers, the next to ring first; those that ring already are the first of all.
func (k *Keeper) List() []Timer {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	list := make([]Timer, 0, len(k.entries))
	for _, e := range k.entries {
		if e.alarm == nil {
			list = append(list, k.timer(e))
		}
	}
	slices.SortFunc(list, func(a, b Timer) int { return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.ID, b.ID)) })
	return list
}

func (k *Keeper) timer(e *entry) Timer {
	t := Timer{
		ID: e.id, Name: e.name, Total: e.total, Ends: k.next(e),
		Ringing: e.state == ringing, Snoozed: e.state == snoozed, Late: e.late,
	}
	if !t.Ringing {
		t.Left = max(e.rings-k.now.elapsed, 0)
	}
	return t
}

// Cancel ends a timer or an alarm, and reports whether there was one. Of an alarm with weekdays that rings or is
// snoozed it ends this, and the alarm remains; Cancel it again to be rid of it.
func (k *Keeper) Cancel(id int) bool {
	found := k.cancel(id)
	if found {
		_ = k.keep() // it is logged
	}
	return found
}

func (k *Keeper) cancel(id int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[id]
	if e == nil {
		return false
	}
	k.advance()
	k.hushed = slices.DeleteFunc(k.hushed, func(h *entry) bool { return h == e })
	switch {
	case k.entries[id] != e: // not any more, now that it is later
	case e.state == waiting || e.state == snoozed && e.once():
		k.remove(e, event.TimerCancelled)
	default:
		k.quiet(e)
	}
	k.arm()
	return true
}

// Silence ends whatever rings, and reports whether anything did. It doesn't wait until that is saved.
func (k *Keeper) Silence() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	if k.ringing == 0 {
		return false
	}
	k.hushed, k.when = nil, k.now.elapsed
	for _, e := range k.inOrder() {
		if e.state == ringing {
			k.hushed = append(k.hushed, e)
			k.quiet(e)
		}
	}
	k.arm()
	k.keepLater()
	return true
}

// Hushed tells whether Silence ended something in the last minute, so that what is said now may be meant for it.
func (k *Keeper) Hushed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	return len(k.hushed) > 0 && k.now.elapsed-k.when <= HushedFor
}

// Snooze silences what rings, or was silenced in the last minute, and lets it ring again after d; after DefaultSnooze
// if d is 0. It tells for how long. It is snoozed if the error is ErrNotKept, and else if there is none.
func (k *Keeper) Snooze(d time.Duration) (time.Duration, error) {
	switch {
	case d == 0:
		d = DefaultSnooze
	case d < 0:
		return 0, fmt.Errorf("a snooze of %v", d)
	case d > MaxSnooze:
		return 0, ErrSnoozeTooLong
	}
	if !k.snooze(d) {
		return 0, ErrNothingRings
	}
	return d, k.keep()
}

func (k *Keeper) snooze(d time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	if k.closed {
		return false
	}
	var again []*entry
	if k.now.elapsed-k.when <= HushedFor {
		again = k.hushed
	}
	k.hushed = nil
	for _, e := range k.inOrder() {
		if e.state == ringing {
			k.ended()
			again = append(again, e)
		}
	}
	for _, e := range again {
		k.entries[e.id] = e // it is gone if it was silenced
		e.state, e.late = snoozed, false
		e.rings = k.now.elapsed + d
		k.tell(e, event.TimerSnoozed)
	}
	k.arm()
	return len(again) > 0
}

// inOrder are the entries as they were set.
func (k *Keeper) inOrder() []*entry {
	list := make([]*entry, 0, len(k.entries))
	for _, e := range k.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	return list
}

// ring begins to ring, so much later than it should.
func (k *Keeper) ring(e *entry, late time.Duration) {
	if e.state == ringing {
		return
	}
	e.state, e.began = ringing, k.now.elapsed-e.spent
	e.late = e.cut || late > tolerance
	e.should = k.now.wall.Add(-late)
	e.ends, e.cut, e.spent = time.Time{}, false, 0
	k.ringing++
	if k.ringing == 1 && k.o.Ring != nil {
		k.o.Ring(true)
	}
	k.tell(e, event.TimerRinging)
}

// quiet ends a ring or a snooze, and what has nothing else to do.
func (k *Keeper) quiet(e *entry) {
	if e.once() {
		k.remove(e, event.TimerSilenced)
		return
	}
	if e.state == ringing {
		k.ended()
	}
	e.state, e.late = waiting, false
	k.tell(e, event.TimerSilenced)
}

func (k *Keeper) remove(e *entry, what event.TimerChange) {
	delete(k.entries, e.id)
	if e.state == ringing {
		k.ended()
	}
	k.tell(e, what)
}

// ended counts a ring that is over.
func (k *Keeper) ended() {
	k.ringing--
	if k.ringing == 0 && k.o.Ring != nil {
		k.o.Ring(false)
	}
}

func (k *Keeper) tell(e *entry, what event.TimerChange) {
	e.told = k.next(e)
	k.o.Bus.Publish(event.TimerChanged{
		At: k.o.Clock.Now(), ID: e.id, Name: e.name, What: what, Ends: e.told, Total: e.total, Alarm: e.alarm != nil, Late: e.late,
		Private: e.private,
	})
}

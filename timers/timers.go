// Package timers keeps timers that ring. It doesn't make the sound: whoever listens to its facts, or is called back,
// does. They are lost when the program ends.
package timers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
)

// Bounds of what may be set, so that a misunderstood order can't fill the device.
const (
	MaxTimers   = 50
	MaxDuration = 7 * 24 * time.Hour
)

// MaxRinging is how long a timer rings when nobody silences it.
const MaxRinging = 15 * time.Minute

// Errors of Set, in words for the user.
var (
	ErrTooMany = fmt.Errorf("there are already %d timers", MaxTimers)
	ErrTooLong = errors.New("a timer can't be longer than a week")
)

// Options are what a Keeper needs.
type Options struct {
	Clock clock.Clock // nil: clock.System
	Bus   *event.Bus
	// Ring is called, one call at a time, when the first timer begins to ring, and with false when the last is silent.
	Ring func(bool)
}

// A Keeper keeps timers. It may be used by several goroutines.
type Keeper struct {
	o       Options
	mu      sync.Mutex
	lastID  int
	timers  map[int]*timer
	ringing int
}

type timer struct {
	Timer
	stop func() bool
}

// A Timer is one timer as it stands.
type Timer struct {
	ID      int
	Name    string // may be empty
	Total   time.Duration
	Ends    time.Time
	Ringing bool
}

// New returns a keeper without timers.
func New(o Options) *Keeper {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	return &Keeper{o: o, timers: make(map[int]*timer)}
}

// Set starts a timer of length d. The name may be empty; several may bear the same.
func (k *Keeper) Set(name string, d time.Duration) (Timer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case d <= 0:
		return Timer{}, fmt.Errorf("a timer of %v", d)
	case d > MaxDuration:
		return Timer{}, ErrTooLong
	case len(k.timers) >= MaxTimers:
		return Timer{}, ErrTooMany
	}
	k.lastID++
	t := &timer{Timer: Timer{ID: k.lastID, Name: name, Total: d, Ends: k.o.Clock.Now().Add(d)}}
	k.timers[t.ID] = t
	t.stop = k.o.Clock.AfterFunc(d, func() { k.ring(t) })
	k.tell(t, event.TimerSet)
	return t.Timer, nil
}

// List returns the timers, the next to ring first; those that ring already are the first of all.
func (k *Keeper) List() []Timer {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]Timer, 0, len(k.timers))
	for _, t := range k.timers {
		list = append(list, t.Timer)
	}
	slices.SortFunc(list, func(a, b Timer) int { return cmp.Or(a.Ends.Compare(b.Ends), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Cancel ends a timer, whether it rings or not, and reports whether there was one.
func (k *Keeper) Cancel(id int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.timers[id]
	if t == nil {
		return false
	}
	what := event.TimerCancelled
	if t.Ringing {
		what = event.TimerSilenced
	}
	k.remove(t, what)
	return true
}

// Silence ends all timers that ring, and reports whether there were any.
func (k *Keeper) Silence() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	any := k.ringing > 0
	for _, t := range k.timers {
		if t.Ringing {
			k.remove(t, event.TimerSilenced)
		}
	}
	return any
}

func (k *Keeper) ring(t *timer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timers[t.ID] != t {
		return // cancelled in the meantime
	}
	t.Ringing = true
	k.ringing++
	if k.ringing == 1 && k.o.Ring != nil {
		k.o.Ring(true)
	}
	t.stop = k.o.Clock.AfterFunc(MaxRinging, func() { k.Cancel(t.ID) })
	k.tell(t, event.TimerRinging)
}

func (k *Keeper) remove(t *timer, what event.TimerChange) {
	t.stop()
	delete(k.timers, t.ID)
	if t.Ringing {
		k.ringing--
		if k.ringing == 0 && k.o.Ring != nil {
			k.o.Ring(false)
		}
	}
	k.tell(t, what)
}

func (k *Keeper) tell(t *timer, what event.TimerChange) {
	k.o.Bus.Publish(event.TimerChanged{At: k.o.Clock.Now(), ID: t.ID, Name: t.Name, What: what, Ends: t.Ends, Total: t.Total})
}

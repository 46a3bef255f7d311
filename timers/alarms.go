package timers

import (
	"fmt"
	"slices"
	"time"
)

// An AlarmTime says when an alarm is to ring.
type AlarmTime struct {
	Hour, Minute int // of a day of 24 hours

	// EitherHalf means that nobody said whether it is before or after noon: seven is 7 or 19 o'clock. Once, the next
	// of both is meant; on weekdays the one between 5 AM and 5 PM.
	EitherHalf bool

	Days     []time.Weekday // none: any day
	Repeat   bool           // on all of those days for ever, and not once on the next of them
	Tomorrow bool           // not today
}

// An Alarm is one alarm as it stands.
type Alarm struct {
	ID           int
	Name         string // may be empty
	Hour, Minute int
	Days         []time.Weekday // on all of which it rings; none: it rings once
	Next         time.Time      // when it rings next, at the end of the snooze if it is snoozed; when it should have if it rings
	Ringing      bool
	Snoozed      bool
	Late         bool // it rings later than it should have
}

// Now is the time of day that alarms go by, in their zone, and whether it is known to be right.
func (k *Keeper) Now() (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	return k.now.wall.In(k.now.zone), k.now.sane
}

// SetAlarm sets an alarm. The name may be empty; several may bear the same. The alarm is set if the error is
// ErrNotKept, and else if there is none.
func (k *Keeper) SetAlarm(name string, at AlarmTime) (Alarm, error) {
	e, err := k.addAlarm(name, at)
	if err != nil {
		return Alarm{}, err
	}
	err = k.keep()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alarm(e), err
}

func (k *Keeper) addAlarm(name string, at AlarmTime) (*entry, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case at.Hour < 0 || at.Hour > 23 || at.Minute < 0 || at.Minute > 59:
		return nil, fmt.Errorf("there is no time %d:%02d", at.Hour, at.Minute)
	case len(name) > MaxName:
		return nil, ErrNameTooLong
	case k.count(true) >= MaxAlarms:
		return nil, ErrTooManyAlarms
	case !k.ready || k.closed:
		return nil, ErrNotReady
	}
	k.advance()
	e := &entry{name: name, private: k.o.Private(), alarm: at.schedule(k.now), state: waiting}
	k.add(e)
	return e, nil
}

// schedule works out when that is.
func (at AlarmTime) schedule(now reading) *schedule {
	var days weekdays
	for _, d := range at.Days {
		days |= 1 << (d % 7)
	}
	from, zone := now.wall, now.zone
	if at.Tomorrow {
		d := dateOf(from.In(zone)).plus(1)
		from = time.Date(d.year, d.month, d.day, 0, 0, 0, 0, zone).Add(-1)
	}
	a := &schedule{hour: at.Hour, minute: at.Minute, days: days, repeat: at.Repeat, dated: now.sane}
	if at.EitherHalf {
		if a.hour %= 12; at.Repeat && a.hour < 5 {
			a.hour += 12
		}
	}
	a.date = a.following(from, zone)
	if at.EitherHalf && !at.Repeat {
		other := *a
		other.hour += 12
		other.date = other.following(from, zone)
		if other.due(zone).Before(a.due(zone)) {
			*a = other
		}
	}
	return a
}

// Alarms returns the alarms, the next to ring first; those that ring already are the first of all.
func (k *Keeper) Alarms() []Alarm {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	var list []Alarm
	for _, e := range k.inOrder() {
		if e.alarm != nil {
			list = append(list, k.alarm(e))
		}
	}
	slices.SortStableFunc(list, func(a, b Alarm) int {
		if a.Ringing != b.Ringing {
			if a.Ringing {
				return -1
			}
			return 1
		}
		return a.Next.Compare(b.Next)
	})
	return list
}

func (k *Keeper) alarm(e *entry) Alarm {
	a := Alarm{
		ID: e.id, Name: e.name, Hour: e.alarm.hour, Minute: e.alarm.minute, Next: k.next(e),
		Ringing: e.state == ringing, Snoozed: e.state == snoozed, Late: e.late,
	}
	if e.alarm.repeat {
		a.Days = e.alarm.on().list()
	}
	return a
}

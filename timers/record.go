package timers

import (
	"encoding/json"
	"fmt"
	"time"

	"bellbird/event"
)

// Records keep one value over a restart.
type Records interface {
	// Load returns what Save was given last; nothing, and no error, if it never was.
	Load() ([]byte, error)
	// Save keeps data, which is at most 128 KiB. It is durable when Save returns.
	Save(data []byte) error
}

// The value is JSON: all timers and alarms, as they were when something was last set, rang, was silenced or moved.
// Nothing is saved while they only wait.
type saved struct {
	Version int       `json:"version"` // 1
	At      time.Time `json:"at"`      // the latest time of day known to have been
	Items   []item    `json:"items"`   // as they were set
}

const version = 1

// maxItems bounds what a damaged value can make. What rings or is snoozed of an alarm that repeats is an item beside it.
const maxItems = 4 * (MaxTimers + MaxAlarms)

// lastYear bounds what a damaged value can make of the time of day.
const lastYear = 2200

// An item is a timer or an alarm.
type item struct {
	ID   int    `json:"id"`
	Name string `json:"name,omitempty"`
	// Private is set if the name is of a private chat.
	Private bool  `json:"private,omitempty"`
	State   state `json:"state"` // "waiting", "ringing", "snoozed"

	// When a timer that waits, or what is snoozed, rings: seconds from At, and the time of day if that was known. For
	// what rings they are the seconds for which it still may, and when it should have begun.
	Left float64    `json:"left,omitempty"`
	Ends *time.Time `json:"ends,omitempty"`

	Total float64    `json:"total,omitempty"` // of a timer, in seconds
	Alarm *alarmItem `json:"alarm,omitempty"` // null: a timer
}

type alarmItem struct {
	Hour   int      `json:"hour"`
	Minute int      `json:"minute"`
	Days   weekdays `json:"days,omitempty"` // Sunday is 1, Monday 2, Tuesday 4 and so on; 0: any
	Repeat bool     `json:"repeat,omitempty"`
	Date   string   `json:"date"`            // of its next ring, as in 2026-11-30
	Dated  bool     `json:"dated,omitempty"` // the date came of a clock that was right
}

const dateLayout = "2006-01-02"

// keep saves what there is now, and waits for it.
func (k *Keeper) keep() error {
	if k.o.Records == nil {
		return nil
	}
	k.saving.Lock()
	defer k.saving.Unlock()
	data, err := k.snapshot()
	if err == nil {
		err = k.o.Records.Save(data)
	}
	if err != nil {
		k.o.Logger.Error("timers and alarms can't be saved", "err", err)
		return ErrNotKept
	}
	return nil
}

// keepLater saves without waiting for it. The caller holds mu.
func (k *Keeper) keepLater() {
	if k.o.Records == nil || k.closed {
		return
	}
	done := k.o.Clock.Work()
	k.background.Go(func() {
		defer done()
		_ = k.keep() // it is logged
	})
}

// snapshot writes everything down.
func (k *Keeper) snapshot() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := saved{Version: version, At: k.now.wall, Items: []item{}}
	for _, e := range k.inOrder() {
		s.Items = append(s.Items, k.item(e))
	}
	return json.Marshal(s)
}

func (k *Keeper) item(e *entry) item {
	i := item{ID: e.id, Name: e.name, Private: e.private, State: e.state, Total: e.total.Seconds()}
	ends := e.ends
	switch {
	case e.state == ringing:
		i.Left = (e.began + MaxRinging - k.now.elapsed).Seconds()
		ends = e.should
	case e.counts():
		i.Left = (e.rings - k.now.elapsed).Seconds()
		if ends.IsZero() {
			ends = k.next(e)
		}
	default:
		ends = time.Time{}
	}
	if known := k.now.sane || !e.ends.IsZero(); known && !ends.IsZero() {
		ends = ends.UTC()
		i.Ends = &ends
	}
	if a := e.alarm; a != nil {
		day := time.Date(a.date.year, a.date.month, a.date.day, 0, 0, 0, 0, time.UTC)
		i.Alarm = &alarmItem{a.hour, a.minute, a.days, a.repeat, day.Format(dateLayout), a.dated}
	}
	return i
}

// restore brings back what was saved. What can't be read is lost, and said so in the log.
func (k *Keeper) restore() {
	if k.o.Records == nil {
		return
	}
	data, err := k.o.Records.Load()
	if err != nil {
		k.o.Logger.Error("timers and alarms can't be loaded: those that were set are lost", "err", err)
	}
	var s saved
	if len(data) > 0 {
		if s, err = decode(data); err != nil {
			k.o.Logger.Error("saved timers and alarms can't be read: those that were set are lost", "err", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now.floor, k.now.floorAt = s.At, k.o.Clock.Elapsed()
	k.now = k.read()
	for _, i := range s.Items {
		e, err := k.entry(i)
		if err != nil {
			k.o.Logger.Error("a saved timer or alarm is lost", "err", err)
			continue
		}
		k.entries[e.id] = e
		k.lastID = max(k.lastID, e.id)
		if k.now.sane {
			k.settle(e)
		}
		k.tell(e, event.TimerRestored)
	}
	k.ready = true
	k.look()
}

// decode reads what snapshot wrote.
func decode(data []byte) (saved, error) {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return saved{}, err
	}
	if s.Version != version {
		return saved{}, fmt.Errorf("version %d, where %d is expected", s.Version, version)
	}
	if len(s.Items) > maxItems {
		return saved{}, fmt.Errorf("%d timers and alarms", len(s.Items))
	}
	if y := s.At.Year(); y > lastYear {
		return saved{}, fmt.Errorf("saved in the year %d", y)
	}
	return s, nil
}

// entry is what was written down as i.
func (k *Keeper) entry(i item) (*entry, error) {
	if len(i.Name) > MaxName {
		i.Name = ""
	}
	e := &entry{id: i.ID, name: i.Name, private: i.Private, state: i.State, total: seconds(i.Total)}
	if i.ID <= 0 || i.ID > 1<<30 || k.entries[i.ID] != nil {
		return nil, fmt.Errorf("id %d is not valid, or there twice", i.ID)
	}
	if i.Ends != nil && i.Ends.Year() <= lastYear {
		e.ends = *i.Ends
	}
	left := seconds(i.Left)
	switch i.State {
	case waiting, snoozed:
	case ringing: // as if it was snoozed until now
		e.state, e.cut, e.spent = snoozed, true, MaxRinging-min(left, MaxRinging)
		left = 0
	default:
		return nil, fmt.Errorf("id %d: state %q", i.ID, i.State)
	}
	e.rings = k.now.elapsed + left
	if i.Alarm != nil {
		var err error
		if e.alarm, err = i.Alarm.schedule(); err != nil {
			return nil, fmt.Errorf("id %d: %w", i.ID, err)
		}
	}
	return e, nil
}

// seconds is a length of time within what can have been set.
func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), MaxDuration.Seconds()) * float64(time.Second))
}

func (a alarmItem) schedule() (*schedule, error) {
	day, err := time.Parse(dateLayout, a.Date)
	if err != nil {
		return nil, err
	}
	if day.Year() > lastYear {
		return nil, fmt.Errorf("an alarm in the year %d", day.Year())
	}
	if a.Hour < 0 || a.Hour > 23 || a.Minute < 0 || a.Minute > 59 || a.Days > everyDay {
		return nil, fmt.Errorf("an alarm at %d:%02d on weekdays %d", a.Hour, a.Minute, a.Days)
	}
	return &schedule{a.Hour, a.Minute, a.Days, a.Repeat, dateOf(day), a.Dated}, nil
}

// close ends all ringing and checking, and saves how much is left of what waits.
func (k *Keeper) close() {
	k.mu.Lock()
	if k.ready {
		k.look()
	}
	k.closed = true
	k.arm()
	if k.ringing > 0 && k.o.Ring != nil {
		k.o.Ring(false)
	}
	some := len(k.entries) > 0
	k.mu.Unlock()
	k.background.Wait()
	if some {
		_ = k.keep() // it is logged
	}
}

package timers

import (
	"time"
)

// A schedule is when an alarm rings: a time of day, once or on weekdays. It says so in local time, so that an alarm for
// seven stays one for seven when the zone is changed or summer begins.
type schedule struct {
	hour, minute int
	days         weekdays // 0: any
	repeat       bool     // on all of them for ever, and not once on the next
	date         date     // the next it rings on
	dated        bool     // the date was worked out from a clock that was right
}

// weekdays have a bit for each, from Sunday on.
type weekdays uint8

const everyDay weekdays = 1<<7 - 1

func (w weekdays) has(d time.Weekday) bool { return w&(1<<d) != 0 }

func (w weekdays) list() []time.Weekday {
	var list []time.Weekday
	for d := time.Sunday; d <= time.Saturday; d++ {
		if w.has(d) {
			list = append(list, d)
		}
	}
	return list
}

// A date is a day of the calendar.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date{y, m, d}
}

// plus is the date so many days later.
func (d date) plus(days int) date { return dateOf(d.noon().AddDate(0, 0, days)) }

func (d date) weekday() time.Weekday { return d.noon().Weekday() }

// noon is only for counting days.
func (d date) noon() time.Time { return time.Date(d.year, d.month, d.day, 12, 0, 0, 0, time.UTC) }

// due is when the alarm rings next.
func (a *schedule) due(zone *time.Location) time.Time { return a.at(a.date, zone) }

// at is when the alarm rings on a date. A time that the clock jumps over is that of the jump; of one that there is
// twice, it is the first.
func (a *schedule) at(d date, zone *time.Location) time.Time {
	t := time.Date(d.year, d.month, d.day, a.hour, a.minute, 0, 0, zone)
	start, end := t.ZoneBounds()
	want := time.Date(d.year, d.month, d.day, a.hour, a.minute, 0, 0, time.UTC)
	got := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	switch {
	case got.After(want):
		return start
	case got.Before(want):
		return end
	case start.IsZero():
		return t
	}
	_, offset := t.Zone()
	_, before := start.Add(-1).Zone()
	if first := t.Add(-time.Duration(before-offset) * time.Second); before > offset && first.Before(start) {
		return first
	}
	return t
}

// on are the weekdays on which it may ring.
func (a *schedule) on() weekdays {
	if a.days == 0 {
		return everyDay
	}
	return a.days
}

// following is the date of the first ring after now.
func (a *schedule) following(now time.Time, zone *time.Location) date {
	d := dateOf(now.In(zone))
	for !a.on().has(d.weekday()) || !a.at(d, zone).After(now) {
		d = d.plus(1)
	}
	return d
}

// latest is when it should have rung last.
func (a *schedule) latest(now time.Time, zone *time.Location) time.Time {
	d := dateOf(now.In(zone))
	for !a.on().has(d.weekday()) || a.at(d, zone).After(now) {
		d = d.plus(-1)
	}
	return a.at(d, zone)
}

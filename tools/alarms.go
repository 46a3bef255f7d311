package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"bellbird/dialog"
)

// An AlarmTime says when an alarm is to ring.
type AlarmTime struct {
	Hour, Minute int            // of a day of 24 hours
	EitherHalf   bool           // nobody said whether before or after noon: seven is 7 or 19 o'clock
	Days         []time.Weekday // none: any day
	Repeat       bool           // on all of those days for ever, and not once on the next of them
	Tomorrow     bool           // not today
}

// An Alarm is one that is set, as the tools see it.
type Alarm struct {
	ID           int
	Name         string // may be empty
	Hour, Minute int
	Days         []time.Weekday // on all of which it rings; none: it rings once
	Next         time.Time      // when it rings next, in local time; at the end of the snooze if it is snoozed
	Ringing      bool
	Snoozed      bool
	Late         bool // it rings later than it should have
}

// Alarms keep alarms.
type Alarms interface {
	// SetAlarm sets one. Its error is told to the user.
	SetAlarm(name string, at AlarmTime) (Alarm, error)
	// Cancel ends one, or of one with weekdays that rings or is snoozed only this.
	Cancel(id int) bool
	Alarms() []Alarm // the next to ring first
	// Snooze lets what rings ring again after d, or after the usual time if d is 0, and tells after which. Its error
	// is told to the user.
	Snooze(d time.Duration) (time.Duration, error)
	// Hushed tells whether something that rang was silenced a moment ago.
	Hushed() bool
	// Now is the local time, and whether it is known to be right.
	Now() (time.Time, bool)
}

// Waking returns the tools set_alarm, cancel_alarm, query_alarms and snooze.
func Waking(k Alarms) []Tool {
	const time24 = `"hour":{"type":"integer","minimum":0,"maximum":23},"minute":{"type":"integer","minimum":0,"maximum":59},` +
		`"either_half":{"type":"boolean","description":"the user said neither whether it is before nor after noon"},"name":{"type":"string"}`
	return []Tool{
		{
			Spec: dialog.ToolSpec{
				Name: "set_alarm", Description: "Sets an alarm for a time of day, once or on weekdays.",
				Parameters: json.RawMessage(`{"type":"object","properties":{` + time24 + `,` +
					`"days":{"type":"array","items":{"enum":["sunday","monday","tuesday","wednesday","thursday","friday","saturday"]}},` +
					`"repeat":{"type":"boolean","description":"on all of the days, and not only on the next"},` +
					`"tomorrow":{"type":"boolean"}},"required":["hour"]}`),
			},
			Run: func(_ context.Context, args json.RawMessage) (string, error) { return setAlarm(k, args) },
		},
		{
			Spec: dialog.ToolSpec{
				Name: "cancel_alarm", Description: "Cancels an alarm, known by its name or its time, or all alarms.",
				Parameters: json.RawMessage(`{"type":"object","properties":{` + time24 + `,"all":{"type":"boolean"}}}`),
			},
			Run: func(_ context.Context, args json.RawMessage) (string, error) { return cancelAlarms(k, args) },
		},
		{
			Spec: dialog.ToolSpec{Name: "query_alarms", Description: "Tells which alarms are set."},
			Run: func(context.Context, json.RawMessage) (string, error) {
				now, _ := k.Now()
				var parts []string
				for _, a := range k.Alarms() {
					parts = append(parts, capitalize(alarmCalled(a.Name))+" "+state(a, now)+".")
				}
				if len(parts) == 0 {
					return "There is no alarm.", nil
				}
				return strings.Join(parts, " "), nil
			},
		},
		{
			Spec: dialog.ToolSpec{
				Name: "snooze", Description: "Silences an alarm or a timer that rings, and lets it ring again later.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"integer","minimum":1,"description":"the usual time if left out"}}}`),
			},
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ Seconds int32 }
				if err := decode(args, &a); err != nil {
					return "", err
				}
				d, err := k.Snooze(time.Duration(a.Seconds) * time.Second)
				if err != nil {
					return "", Refusal(capitalize(err.Error()) + ".")
				}
				return "Snoozed for " + spokenDuration(d) + ".", nil
			},
		},
	}
}

func setAlarm(k Alarms, args json.RawMessage) (string, error) {
	var a struct {
		Hour       *int
		Minute     int
		EitherHalf bool `json:"either_half"`
		Days       []string
		Repeat     bool
		Tomorrow   bool
		Name       string
	}
	if err := decode(args, &a); err != nil {
		return "", err
	}
	if a.Hour == nil || *a.Hour < 0 || *a.Hour > 23 || a.Minute < 0 || a.Minute > 59 {
		return "", Refusal("An alarm needs a time of day.")
	}
	at := AlarmTime{Hour: *a.Hour, Minute: a.Minute, EitherHalf: a.EitherHalf, Repeat: a.Repeat, Tomorrow: a.Tomorrow}
	for _, name := range a.Days {
		day, ok := weekday(name)
		if !ok {
			return "", Refusal(fmt.Sprintf("There is no weekday %q.", name))
		}
		at.Days = append(at.Days, day)
	}
	alarm, err := k.SetAlarm(a.Name, at)
	if err != nil {
		return "", Refusal(capitalize(err.Error()) + ".")
	}
	now, known := k.Now()
	said := capitalize(strings.TrimSpace(a.Name+" alarm")) + " set for " + rings(alarm, now) + "."
	if !known {
		said += " But I can't be sure what time it is now."
	}
	return said, nil
}

func cancelAlarms(k Alarms, args json.RawMessage) (string, error) {
	var which struct {
		Hour       *int
		Minute     int
		EitherHalf bool `json:"either_half"`
		Name       string
		All        bool
	}
	if err := decode(args, &which); err != nil {
		return "", err
	}
	any := which.Hour == nil && which.Name == "" && !which.All
	if any && k.Hushed() {
		return "The alarm is off.", nil // it was, as soon as the user called
	}
	alarms := k.Alarms()
	var hits []Alarm
	for _, a := range alarms {
		hour, asked := a.Hour, which.Hour
		if which.EitherHalf && asked != nil {
			half := *asked % 12
			hour, asked = hour%12, &half
		}
		if which.All || (asked == nil || hour == *asked && a.Minute == which.Minute) && (which.Name == "" || strings.EqualFold(a.Name, which.Name)) {
			hits = append(hits, a)
		}
	}
	if sounding := slices.DeleteFunc(slices.Clone(hits), func(a Alarm) bool { return !a.Ringing && !a.Snoozed }); any && len(sounding) > 0 {
		hits = sounding
	}
	now, _ := k.Now()
	switch {
	case len(alarms) == 0:
		return "", Refusal("There is no alarm.")
	case len(hits) == 0:
		return "", Refusal("There is no such alarm.")
	case len(hits) > 1 && !which.All:
		var names []string
		for _, a := range hits {
			names = append(names, strings.TrimSpace("the "+a.Name)+" alarm for "+rings(a, now))
		}
		return "", Refusal("Which one: " + strings.Join(names, ", or ") + "?")
	}
	for _, a := range hits {
		k.Cancel(a.ID)
		if left, there := find(k, a.ID); there && which.All {
			k.Cancel(a.ID)
		} else if there {
			return capitalize(alarmCalled(a.Name)) + " is off. It stays set for " + rings(left, now) + ".", nil
		}
	}
	if len(hits) > 1 {
		return "All alarms cancelled.", nil
	}
	return capitalize(strings.TrimSpace(hits[0].Name+" alarm")) + " for " + rings(hits[0], now) + " cancelled.", nil
}

func find(k Alarms, id int) (Alarm, bool) {
	for _, a := range k.Alarms() {
		if a.ID == id {
			return a, true
		}
	}
	return Alarm{}, false
}

func alarmCalled(name string) string { return "the " + strings.TrimSpace(name+" alarm") }

// state is what an alarm is doing.
func state(a Alarm, now time.Time) string {
	switch {
	case a.Ringing:
		return "is ringing"
	case a.Snoozed:
		return "is snoozed until " + a.Next.Format("3:04 PM")
	}
	return "is set for " + rings(a, now)
}

// rings says when an alarm rings: 6:30 AM on weekdays, 7:00 AM tomorrow.
func rings(a Alarm, now time.Time) string {
	at := time.Date(2000, 1, 1, a.Hour, a.Minute, 0, 0, time.UTC).Format("3:04 PM")
	if len(a.Days) > 0 {
		return at + " " + onDays(a.Days)
	}
	next := a.Next.In(now.Location())
	switch days := calendarDays(now, next); {
	case days == 0:
		return at + " today"
	case days == 1:
		return at + " tomorrow"
	case days > 0 && days < 7:
		return at + " on " + next.Weekday().String()
	}
	return fmt.Sprintf("%s on %s %s", at, next.Month(), ordinal(next.Day()))
}

// calendarDays are the days from one date to another.
func calendarDays(from, to time.Time) int {
	day := func(t time.Time) time.Time {
		y, m, d := t.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	return int(day(to).Sub(day(from)) / (24 * time.Hour))
}

// onDays names days, from Monday on.
func onDays(days []time.Weekday) string {
	var names []string
	weekend := 0
	for d := time.Monday; d <= time.Saturday+1; d++ {
		if slices.Contains(days, d%7) {
			names = append(names, (d % 7).String())
			if d >= time.Saturday {
				weekend++
			}
		}
	}
	switch {
	case len(names) == 7:
		return "every day"
	case len(names) == 5 && weekend == 0:
		return "on weekdays"
	case len(names) == 2 && weekend == 2:
		return "on weekends"
	case len(names) == 1:
		return "every " + names[0]
	}
	return "every " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String(), name) {
			return d, true
		}
	}
	return 0, false
}

package tools_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bellbird/tools"
)

// alarmList keeps alarms that never ring by themselves. It is Monday, 8 AM.
type alarmList struct {
	list    []tools.Alarm
	hushed  bool
	unknown bool // what time it is
	full    bool // what is set can't be saved
	lastID  int
}

func (l *alarmList) Now() (time.Time, bool) {
	return time.Date(2030, 1, 7, 8, 0, 0, 0, time.UTC), !l.unknown
}

func (l *alarmList) Hushed() bool { return l.hushed }

func (l *alarmList) SetAlarm(name string, at tools.AlarmTime) (tools.Alarm, error) {
	if l.full {
		return tools.Alarm{}, errors.New("it is set, but lost in a power cut")
	}
	l.lastID++
	now, _ := l.Now()
	a := tools.Alarm{ID: l.lastID, Name: name, Hour: at.Hour, Minute: at.Minute}
	if at.Repeat {
		a.Days = at.Days
	}
	a.Next = time.Date(2030, 1, 7, at.Hour, at.Minute, 0, 0, time.UTC)
	for !a.Next.After(now) || at.Tomorrow && a.Next.Day() == 7 || len(at.Days) > 0 && !slices.Contains(at.Days, a.Next.Weekday()) {
		a.Next = a.Next.AddDate(0, 0, 1)
	}
	l.list = append(l.list, a)
	return a, nil
}

func (l *alarmList) Cancel(id int) bool {
	i := slices.IndexFunc(l.list, func(a tools.Alarm) bool { return a.ID == id })
	if i < 0 {
		return false
	}
	if a := &l.list[i]; len(a.Days) > 0 && (a.Ringing || a.Snoozed) {
		a.Ringing, a.Snoozed = false, false
	} else {
		l.list = slices.Delete(l.list, i, i+1)
	}
	return true
}

func (l *alarmList) Alarms() []tools.Alarm { return slices.Clone(l.list) }

func (l *alarmList) Snooze(d time.Duration) (time.Duration, error) {
	if d == 0 {
		d = 9 * time.Minute
	}
	for i := range l.list {
		if l.list[i].Ringing {
			l.list[i].Ringing, l.list[i].Snoozed = false, true
			l.list[i].Next = l.list[i].Next.Add(d)
			return d, nil
		}
	}
	return 0, errors.New("nothing is ringing")
}

func TestWaking(t *testing.T) {
	var l alarmList
	all := tools.Waking(&l)
	ring := func(on bool) func() { return func() { l.list[0].Ringing = on } }
	for _, step := range []struct {
		before           func()
		tool, args, want string
	}{
		{nil, "query_alarms", `{}`, "There is no alarm."},
		{nil, "cancel_alarm", `{}`, "There is no alarm."},
		{nil, "snooze", `{}`, "Nothing is ringing."},
		{nil, "set_alarm", `{"hour":6,"minute":30,"days":["Monday","tuesday","wednesday","thursday","friday"],"repeat":true}`, "Alarm set for 6:30 AM on weekdays."},
		{nil, "query_alarms", `{}`, "The alarm is set for 6:30 AM on weekdays."},
		{ring(true), "query_alarms", ``, "The alarm is ringing."},
		{nil, "snooze", `{"seconds":300}`, "Snoozed for 5 minutes."},
		{nil, "query_alarms", ``, "The alarm is snoozed until 6:35 AM."},
		{nil, "cancel_alarm", `{}`, "The alarm is off. It stays set for 6:30 AM on weekdays."},
		{nil, "set_alarm", `{"hour":7,"name":"school"}`, "School alarm set for 7:00 AM tomorrow."},
		{nil, "set_alarm", `{"hour":19}`, "Alarm set for 7:00 PM today."},
		{nil, "set_alarm", `{"hour":9,"days":["saturday"]}`, "Alarm set for 9:00 AM on Saturday."},
		{nil, "set_alarm", `{"hour":9,"days":["monday"],"tomorrow":true}`, "Alarm set for 9:00 AM on January 14th."},
		{nil, "cancel_alarm", `{"hour":9,"name":"school"}`, "There is no such alarm."},
		{nil, "cancel_alarm", `{"hour":9}`, "Which one: the alarm for 9:00 AM on Saturday, or the alarm for 9:00 AM on January 14th?"},
		{nil, "cancel_alarm", `{"hour":7}`, "School alarm for 7:00 AM tomorrow cancelled."},
		{nil, "cancel_alarm", `{"hour":7,"either_half":true}`, "Alarm for 7:00 PM today cancelled."},
		{ring(true), "cancel_alarm", `{}`, "The alarm is off. It stays set for 6:30 AM on weekdays."},
		{func() { l.hushed = true }, "cancel_alarm", `{}`, "The alarm is off."},
		{ring(true), "cancel_alarm", `{"all":true}`, "All alarms cancelled."},
		{nil, "query_alarms", `{}`, "There is no alarm."},
		{nil, "set_alarm", `{"hour":0,"days":["sunday","saturday"],"repeat":true}`, "Alarm set for 12:00 AM on weekends."},
		{nil, "set_alarm", `{"hour":12,"days":["sunday","friday","monday"],"repeat":true,"name":"tea"}`, "Tea alarm set for 12:00 PM every Monday, Friday and Sunday."},
		{nil, "cancel_alarm", `{"name":"Tea"}`, "Tea alarm for 12:00 PM every Monday, Friday and Sunday cancelled."},
		{nil, "set_alarm", `{"hour":5,"days":["friday"],"repeat":true}`, "Alarm set for 5:00 AM every Friday."},
		{nil, "set_alarm", `{"hour":5,"days":["sunday","monday","tuesday","wednesday","thursday","friday","saturday"],"repeat":true}`, "Alarm set for 5:00 AM every day."},
		{func() { l.unknown = true }, "set_alarm", `{"hour":7}`, "Alarm set for 7:00 AM tomorrow. But I can't be sure what time it is now."},
		{func() { l.full = true }, "set_alarm", `{"hour":7}`, "It is set, but lost in a power cut."},
		{func() { l.full = false }, "query_alarms", `{}`, "The alarm is set for 12:00 AM on weekends. The alarm is set for 5:00 AM every Friday. " +
			"The alarm is set for 5:00 AM every day. The alarm is set for 7:00 AM tomorrow."},
	} {
		if step.before != nil {
			step.before()
		}
		if got := call(t, all, step.tool, step.args); got != step.want {
			t.Errorf("%s %s: %q, want %q", step.tool, step.args, got, step.want)
		}
	}
	for _, wrong := range []struct{ tool, args string }{
		{"set_alarm", `{}`}, {"set_alarm", `{"hour":24}`}, {"set_alarm", `{"hour":-1}`}, {"set_alarm", `{"hour":7,"minute":60}`},
		{"set_alarm", `{"hour":7,"days":["someday"]}`}, {"set_alarm", `{"hour":"noon"}`}, {"snooze", `{"seconds":1e300}`},
	} {
		before := len(l.list)
		if got := call(t, all, wrong.tool, wrong.args); got == "" || got == "Sorry, that didn't work." || len(l.list) != before {
			t.Errorf("%s %s: %q and %d alarms more", wrong.tool, wrong.args, got, len(l.list)-before)
		}
	}
}

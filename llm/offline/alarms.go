package offline

import (
	"strings"

	"bellbird/intents"
)

// The arguments of the tools for alarms.
type (
	setAlarm struct {
		Hour       int      `json:"hour"`
		Minute     int      `json:"minute"`
		EitherHalf bool     `json:"either_half,omitempty"` // of the day: nobody said which
		Days       []string `json:"days,omitempty"`
		Repeat     bool     `json:"repeat,omitempty"`
		Tomorrow   bool     `json:"tomorrow,omitempty"`
		Name       string   `json:"name,omitempty"`
	}
	cancelAlarm struct {
		Hour       *int   `json:"hour,omitempty"`
		Minute     int    `json:"minute,omitempty"`
		EitherHalf bool   `json:"either_half,omitempty"`
		Name       string `json:"name,omitempty"`
		All        bool   `json:"all,omitempty"`
	}
	snooze struct {
		Seconds int `json:"seconds,omitempty"` // none: as long as usual
	}
)

// days are what the words of the templates stand for.
var days = map[string][]string{
	"weekdays": {"monday", "tuesday", "wednesday", "thursday", "friday"},
	"weekends": {"saturday", "sunday"},
	"daily":    {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"},
}

// newAlarm is the alarm that a sentence asks for.
func newAlarm(m intents.Match) setAlarm {
	at := m.Slots["time"].Time
	_, tomorrow := m.Slots["tomorrow"]
	a := setAlarm{
		Hour: at.Hour, Minute: at.Minute, EitherHalf: at.EitherHalf, Tomorrow: tomorrow,
		Days: days[m.Slots["repeat"].Text], Name: m.Slots["name"].Text,
	}
	a.Repeat = len(a.Days) > 0
	if each, ok := m.Slots["each"]; ok {
		a.Days, a.Repeat = []string{strings.TrimSuffix(each.Text, "s")}, true // on mondays
	}
	if day, ok := m.Slots["day"]; ok {
		a.Days = []string{day.Text}
	}
	// Who is woken from four to eleven, or in the morning, is woken before noon.
	_, wake := m.Slots["wake"]
	if half := m.Slots["half"].Text; a.EitherHalf && (half == "am" || wake && a.Hour >= 4 && a.Hour < 12) {
		a.Hour, a.EitherHalf = a.Hour%12, false
	}
	return a
}

// whichAlarm are the alarms that a sentence wants to be rid of.
func whichAlarm(m intents.Match) cancelAlarm {
	_, all := m.Slots["all"]
	c := cancelAlarm{Name: m.Slots["name"].Text, All: all}
	if at, ok := m.Slots["time"]; ok {
		c.Hour, c.Minute, c.EitherHalf = &at.Time.Hour, at.Time.Minute, at.Time.EitherHalf
	}
	return c
}

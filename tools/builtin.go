package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bellbird/dialog"
)

// Time returns the tools get_time and get_date, which read now's clock in its own time zone.
func Time(now func() time.Time) []Tool {
	return []Tool{
		{
			Spec: dialog.ToolSpec{Name: "get_time", Description: "Tells the time of day."},
			Run: func(context.Context, json.RawMessage) (string, error) {
				return "It's " + now().Format("3:04 PM") + ".", nil
			},
		},
		{
			Spec: dialog.ToolSpec{Name: "get_date", Description: "Tells today's date and weekday."},
			Run: func(context.Context, json.RawMessage) (string, error) {
				t := now()
				return fmt.Sprintf("It's %s, %s %s.", t.Weekday(), t.Month(), ordinal(t.Day())), nil
			},
		},
	}
}

// Volume is the loudness of the appliance's own sound.
type Volume interface {
	SetVolume(percent int)
	Volume() int
	SetMuted(bool)
}

// Sound returns the tools set_volume, change_volume and mute_sound.
func Sound(v Volume) []Tool {
	set := func(percent int) (string, error) {
		v.SetVolume(min(max(percent, 0), 100))
		v.SetMuted(false)
		return fmt.Sprintf("Volume %d percent.", v.Volume()), nil
	}
	return []Tool{
		{
			Spec: dialog.ToolSpec{
				Name: "set_volume", Description: "Sets the volume of the speaker.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"percent":{"type":"integer","minimum":0,"maximum":100}},"required":["percent"]}`),
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ Percent *int }
				if err := decode(args, &a); err != nil {
					return "", err
				}
				if a.Percent == nil || *a.Percent < 0 || *a.Percent > 100 {
					return "", Refusal("The volume goes from 0 to 100 percent.")
				}
				return set(*a.Percent)
			},
		},
		{
			Spec: dialog.ToolSpec{
				Name: "change_volume", Description: "Turns the volume up, or down with a negative number.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"by":{"type":"integer","minimum":-100,"maximum":100}},"required":["by"]}`),
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ By int }
				if err := decode(args, &a); err != nil {
					return "", err
				}
				return set(v.Volume() + min(max(a.By, -100), 100))
			},
		},
		{
			Spec: dialog.ToolSpec{
				Name: "mute_sound", Description: "Mutes the speaker, or unmutes it.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"muted":{"type":"boolean"}},"required":["muted"]}`),
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ Muted *bool }
				if err := decode(args, &a); err != nil {
					return "", err
				}
				if a.Muted == nil {
					return "", Refusal("It has to be said whether to mute or to unmute.")
				}
				v.SetMuted(*a.Muted)
				if *a.Muted {
					return "", nil // it would not be heard
				}
				return "The sound is on.", nil
			},
		},
	}
}

// Stop returns the tool stop, which calls quiet: what is sounding then, apart from the answer itself, becomes silent.
func Stop(quiet func()) Tool {
	return Tool{
		Spec: dialog.ToolSpec{Name: "stop", Description: "Stops what is sounding, such as a timer that rings."},
		Run: func(context.Context, json.RawMessage) (string, error) {
			quiet()
			return "", nil
		},
	}
}

// A Timer is a running timer, as the tools see it.
type Timer struct {
	ID    int
	Name  string // may be empty
	Total time.Duration
	Left  time.Duration // zero or less: it is ringing
}

// Timers keep timers.
type Timers interface {
	// Set starts a timer. Its error is told to the user.
	Set(name string, d time.Duration) error
	Cancel(id int) bool
	List() []Timer // the next to ring first
	// Hushed tells whether something that rang was silenced a moment ago.
	Hushed() bool
}

// Timing returns the tools set_timer, cancel_timer and query_timers.
func Timing(k Timers) []Tool {
	return []Tool{
		{
			Spec: dialog.ToolSpec{
				Name: "set_timer", Description: "Starts a timer.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"integer","minimum":1},"name":{"type":"string","description":"what it is for"}},"required":["seconds"]}`),
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct {
					Seconds int64
					Name    string
				}
				if err := decode(args, &a); err != nil {
					return "", err
				}
				const most = int64(1<<63-1) / int64(time.Second)
				if a.Seconds < 1 || a.Seconds > most {
					return "", Refusal("A timer needs a length of at least one second.")
				}
				d := time.Duration(a.Seconds) * time.Second
				if err := k.Set(a.Name, d); err != nil {
					return "", Refusal(capitalize(err.Error()) + ".")
				}
				return capitalize(called(a.Name)) + " set for " + spokenDuration(d) + ".", nil
			},
		},
		{
			Spec: dialog.ToolSpec{
				Name: "cancel_timer", Description: "Cancels a timer, named or known by its length, or all timers.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"seconds":{"type":"integer"},"all":{"type":"boolean"}}}`),
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct {
					Name    string
					Seconds int64
					All     bool
				}
				if err := decode(args, &a); err != nil {
					return "", err
				}
				return cancelTimers(k, a.Name, time.Duration(a.Seconds)*time.Second, a.All)
			},
		},
		{
			Spec: dialog.ToolSpec{Name: "query_timers", Description: "Tells how long the timers have left."},
			Run: func(context.Context, json.RawMessage) (string, error) {
				timers := k.List()
				if len(timers) == 0 {
					return "There is no timer.", nil
				}
				var parts []string
				for _, t := range timers {
					if t.Left <= 0 {
						parts = append(parts, capitalize(describe(t, timers))+" is ringing.")
						continue
					}
					parts = append(parts, capitalize(describe(t, timers))+" has "+spokenDuration(t.Left)+" left.")
				}
				return strings.Join(parts, " "), nil
			},
		},
	}
}

func cancelTimers(k Timers, name string, length time.Duration, all bool) (string, error) {
	if name == "" && length == 0 && !all && k.Hushed() {
		return "The timer is off.", nil // it was, as soon as the user called
	}
	timers := k.List()
	var hits []Timer
	for _, t := range timers {
		if all || (name == "" || strings.EqualFold(t.Name, name)) && (length == 0 || t.Total == length) {
			hits = append(hits, t)
		}
	}
	switch {
	case len(timers) == 0:
		return "", Refusal("There is no timer.")
	case len(hits) == 0:
		return "", Refusal("There is no such timer.")
	case len(hits) > 1 && !all:
		var names []string
		for _, t := range hits {
			names = append(names, describe(t, timers))
		}
		return "", Refusal("Which one: " + strings.Join(names, ", or ") + "?")
	}
	for _, t := range hits {
		k.Cancel(t.ID)
	}
	if all && len(hits) > 1 {
		return "All timers cancelled.", nil
	}
	return capitalize(describe(hits[0], timers)) + " cancelled.", nil
}

// describe names t so that it can be told from the other timers.
func describe(t Timer, among []Timer) string {
	if t.Name != "" || len(among) == 1 {
		return "the " + called(t.Name)
	}
	return "the timer for " + spokenDuration(t.Total)
}

func called(name string) string { return strings.TrimSpace(name + " timer") }

func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// spokenDuration writes d in words as people say it, to the second.
func spokenDuration(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	var parts []string
	for _, u := range []struct {
		name string
		size int64
	}{{"hour", 3600}, {"minute", 60}, {"second", 1}} {
		n := s / u.size
		s %= u.size
		switch {
		case n == 1:
			parts = append(parts, "1 "+u.name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, u.name))
		}
	}
	switch len(parts) {
	case 0:
		return "less than a second"
	case 1:
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], " ") + " and " + parts[len(parts)-1]
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// Package schedule calls functions of plugins at the times that their manifests say, by the minute. It knows neither
// manifests nor runtimes: who loads plugins gives it jobs, and a job is something to be called.
//
// A time that was missed, because the appliance was off or the clock was set forward, is not made up for.
package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// An Entry is what a manifest says of one schedule.
type Entry struct {
	Name        string `json:"name"`
	Cron        string `json:"cron,omitempty"` // minute, hour, day, month, weekday; default "0 9 * * *"
	Handler     string `json:"handler"`        // the file, which has a function run
	Description string `json:"description,omitempty"`
	Enabled     *bool  `json:"enabled,omitempty"` // nil: yes
	Chance      *int   `json:"chance,omitempty"`  // that it is called at all, in percent; nil: 100

	// Settings of the plugin: a time such as "7:30", or an hour, of each day, in place of Cron; and whether it is enabled.
	TimeSetting    string `json:"time_setting,omitempty"`
	EnabledSetting string `json:"enabled_setting,omitempty"`
}

const (
	defaultCron = "0 9 * * *"
	longestCron = 100
)

// Check checks what can be checked before anything runs.
func (e *Entry) Check() error {
	if e.Name == "" {
		return errors.New("it has no name")
	}
	if e.Chance != nil && (*e.Chance < 1 || *e.Chance > 100) {
		return fmt.Errorf("chance: %d is not from 1 to 100", *e.Chance)
	}
	if _, err := parse(cmp.Or(e.Cron, defaultCron)); err != nil {
		return fmt.Errorf("cron: %w", err)
	}
	return nil
}

var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parse reads the five fields of an expression, and nothing else that the parser knows.
func parse(text string) (cron.Schedule, error) {
	if len(text) > longestCron || len(strings.Fields(text)) != 5 || strings.ContainsAny(text, "=@") {
		return nil, fmt.Errorf("%.100q: write five fields, such as %q", text, defaultCron)
	}
	s, err := fields.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return s, nil
}

// timeOfDay reads a setting that is the time of each day: "7:30", "07:30", "7", or the number 7.
func timeOfDay(v any) (hour, minute int, err error) {
	text, ok := v.(string)
	if n, is := v.(float64); is {
		text, ok = strconv.FormatFloat(n, 'f', -1, 64), true
	}
	if !ok {
		return 0, 0, fmt.Errorf("%v is no time", v)
	}
	h, m, both := strings.Cut(strings.TrimSpace(text), ":")
	hour, err = strconv.Atoi(h)
	if err == nil && both {
		minute, err = strconv.Atoi(m)
	}
	if err != nil || hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, 0, fmt.Errorf("%.20q is no time, such as 7:30", text)
	}
	return hour, minute, nil
}

// due reports whether it is to be called at a minute, with the plugin's settings as they are. An error is what is wrong
// with a setting; then it goes by its expression.
func (e *Entry) due(minute time.Time, settings map[string]any) (due bool, err error) {
	on := e.Enabled == nil || *e.Enabled
	if v, ok := settings[e.EnabledSetting].(bool); ok {
		on = v
	}
	if v := settings[e.TimeSetting]; v != nil && v != "" {
		var h, m int
		if h, m, err = timeOfDay(v); err == nil {
			return on && minute.Hour() == h && minute.Minute() == m, nil
		}
		err = fmt.Errorf("setting %s: %w", e.TimeSetting, err)
	}
	s, broken := parse(cmp.Or(e.Cron, defaultCron))
	if broken != nil {
		return false, broken
	}
	return on && s.Next(minute.Add(-time.Second)).Equal(minute), err
}

// task is what the function is told of it.
func (e *Entry) task() map[string]any {
	chance := 100
	if e.Chance != nil {
		chance = *e.Chance
	}
	return map[string]any{
		"name": e.Name, "description": e.Description, "cron": cmp.Or(e.Cron, defaultCron), "chance": float64(chance),
	}
}

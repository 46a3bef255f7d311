package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"bellbird/dialog"
	"bellbird/tools"
)

func call(t *testing.T, all []tools.Tool, name, args string) string {
	t.Helper()
	s, err := tools.NewSet(nil, all...)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Call(t.Context(), dialog.ToolCall{ID: "7", Name: name, Arguments: json.RawMessage(args)})
	if r.CallID != "7" {
		t.Errorf("%s: result for call %q", name, r.CallID)
	}
	return r.Content
}

func TestTime(t *testing.T) {
	now := time.Date(2026, 11, 30, 15, 4, 0, 0, time.UTC)
	all := tools.Time(func() time.Time { return now })
	if got := call(t, all, "get_time", `{}`); got != "It's 3:04 PM." {
		t.Errorf("time: %q", got)
	}
	for day, want := range map[int]string{
		1: "It's Sunday, November 1st.", 2: "It's Monday, November 2nd.", 3: "It's Tuesday, November 3rd.",
		11: "It's Wednesday, November 11th.", 12: "It's Thursday, November 12th.", 23: "It's Monday, November 23rd.", 30: "It's Monday, November 30th.",
	} {
		now = time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC)
		if got := call(t, all, "get_date", ""); got != want {
			t.Errorf("date: %q, want %q", got, want)
		}
	}
}

type volume struct {
	percent int
	muted   bool
}

func (v *volume) SetVolume(p int) { v.percent = p }
func (v *volume) Volume() int     { return v.percent }
func (v *volume) SetMuted(m bool) { v.muted = m }

func TestSound(t *testing.T) {
	v := &volume{percent: 50}
	all := tools.Sound(v)
	for _, step := range []struct {
		tool, args, want string
		after            volume
	}{
		{"change_volume", `{"by":10}`, "Volume 60 percent.", volume{60, false}},
		{"change_volume", `{"by":-70}`, "Volume 0 percent.", volume{0, false}},
		{"set_volume", `{"percent":80}`, "Volume 80 percent.", volume{80, false}},
		{"set_volume", `{"percent":180}`, "The volume goes from 0 to 100 percent.", volume{80, false}},
		{"set_volume", `{}`, "The volume goes from 0 to 100 percent.", volume{80, false}},
		{"mute_sound", `{"muted":true}`, "", volume{80, true}},
		{"mute_sound", `{"muted":false}`, "The sound is on.", volume{80, false}},
		{"mute_sound", `{}`, "It has to be said whether to mute or to unmute.", volume{80, false}},
		{"mute_sound", `{"muted":true}`, "", volume{80, true}},
		{"change_volume", `{"by":10}`, "Volume 90 percent.", volume{90, false}},
	} {
		if got := call(t, all, step.tool, step.args); got != step.want || *v != step.after {
			t.Errorf("%s %s: %q and %+v, want %q and %+v", step.tool, step.args, got, *v, step.want, step.after)
		}
	}
}

type timerList []tools.Timer

func (l *timerList) Set(name string, d time.Duration) error {
	if d > time.Hour {
		return errors.New("that is too long")
	}
	*l = append(*l, tools.Timer{ID: len(*l) + 1, Name: name, Total: d, Left: d})
	return nil
}

func (l *timerList) Cancel(id int) bool {
	for i, t := range *l {
		if t.ID == id {
			*l = append((*l)[:i:i], (*l)[i+1:]...)
			return true
		}
	}
	return false
}

func (l *timerList) List() []tools.Timer { return *l }
func (l *timerList) Hushed() bool        { return false }

func TestTiming(t *testing.T) {
	var l timerList
	all := tools.Timing(&l)
	for _, step := range []struct{ tool, args, want string }{
		{"query_timers", `{}`, "There is no timer."},
		{"cancel_timer", `{}`, "There is no timer."},
		{"set_timer", `{"seconds":600}`, "Timer set for 10 minutes."},
		{"query_timers", `{}`, "The timer has 10 minutes left."},
		{"set_timer", `{"seconds":3600,"name":"pasta"}`, "Pasta timer set for 1 hour."},
		{"set_timer", `{"seconds":61}`, "Timer set for 1 minute and 1 second."},
		{"set_timer", `{"seconds":0}`, "A timer needs a length of at least one second."},
		{"set_timer", `{"seconds":9223372036854775807}`, "A timer needs a length of at least one second."},
		{"set_timer", `{"seconds":7200}`, "That is too long."},
		{"query_timers", `{}`, "The timer for 10 minutes has 10 minutes left. The pasta timer has 1 hour left. The timer for 1 minute and 1 second has 1 minute and 1 second left."},
		{"cancel_timer", `{"name":"tea"}`, "There is no such timer."},
		{"cancel_timer", `{}`, "Which one: the timer for 10 minutes, or the pasta timer, or the timer for 1 minute and 1 second?"},
		{"cancel_timer", `{"name":"Pasta"}`, "The pasta timer cancelled."},
		{"cancel_timer", `{"seconds":61}`, "The timer for 1 minute and 1 second cancelled."},
		{"set_timer", `{"seconds":5}`, "Timer set for 5 seconds."},
		{"cancel_timer", `{"all":true}`, "All timers cancelled."},
		{"query_timers", `{}`, "There is no timer."},
	} {
		if got := call(t, all, step.tool, step.args); got != step.want {
			t.Errorf("%s %s: %q, want %q", step.tool, step.args, got, step.want)
		}
	}
}

func TestSet(t *testing.T) {
	fails := tools.Tool{
		Spec: dialog.ToolSpec{Name: "fails"},
		Run:  func(context.Context, json.RawMessage) (string, error) { return "", errors.New("secret detail") },
	}
	if got := call(t, []tools.Tool{fails}, "fails", ""); got != "Sorry, that didn't work." {
		t.Errorf("a tool that fails: %q", got)
	}
	if got := call(t, nil, "unknown", ""); got != `There is no tool "unknown".` {
		t.Errorf("an unknown tool: %q", got)
	}
	if got := call(t, tools.Sound(new(volume)), "set_volume", `{"percent":"loud"}`); got == "" || got == "Sorry, that didn't work." {
		t.Errorf("arguments of another type: %q", got)
	}
	if _, err := tools.NewSet(nil, fails, fails); err == nil {
		t.Error("two tools of one name: no error")
	}
}

// Whoever calls the appliance while one of two timers rings has silenced that one already: "stop the timer" must not
// cancel the other.
func TestStoppingWhatRang(t *testing.T) {
	l := hushedList{&timerList{{ID: 2, Total: time.Hour, Left: time.Minute}}}
	set, err := tools.NewSet(nil, tools.Timing(l)...)
	if err != nil {
		t.Fatal(err)
	}
	stop := func(args string) string {
		return set.Call(t.Context(), dialog.ToolCall{Name: "cancel_timer", Arguments: []byte(args)}).Content
	}
	if got := stop(`{}`); got != "The timer is off." || len(*l.timerList) != 1 {
		t.Errorf("%q, and %d timers are left", got, len(*l.timerList))
	}
	if got := stop(`{"seconds": 3600}`); got != "The timer cancelled." {
		t.Errorf("%q", got)
	}
}

type hushedList struct{ *timerList }

func (hushedList) Hushed() bool { return true }

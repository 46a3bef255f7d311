package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/intents"
	"bellbird/llm/offline"
)

var allTools = []string{"set_timer", "cancel_timer", "query_timers", "change_volume", "set_volume", "mute_sound", "get_time", "get_date", "stop",
	"set_alarm", "cancel_alarm", "query_alarms", "snooze"}

func agent(t testing.TB) *offline.Agent {
	t.Helper()
	s, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	return offline.New(s)
}

func request(tools []string, messages ...dialog.Message) dialog.Request {
	r := dialog.Request{Messages: messages}
	for _, name := range tools {
		r.Tools = append(r.Tools, dialog.ToolSpec{Name: name})
	}
	return r
}

func user(text string) dialog.Message { return dialog.Message{Role: dialog.User, Content: text} }

// generate collects an answer.
func generate(t *testing.T, a *offline.Agent, req dialog.Request) (deltas []dialog.Delta, text string, err error) {
	t.Helper()
	for d, e := range a.Generate(t.Context(), req) {
		if err != nil {
			t.Error("something came after an error")
		}
		if e != nil {
			err = e
			continue
		}
		deltas = append(deltas, d)
		text += d.Text
	}
	return deltas, text, err
}

func TestCalls(t *testing.T) {
	tests := []struct{ text, tool, arguments string }{
		{"set a timer for ten minutes", "set_timer", `{"seconds":600}`},
		{"set a pasta timer for ten minutes", "set_timer", `{"seconds":600,"name":"pasta"}`},
		{"cancel the timer", "cancel_timer", `{}`},
		{"cancel the pasta timer", "cancel_timer", `{"name":"pasta"}`},
		{"cancel the ten minute timer", "cancel_timer", `{"seconds":600}`},
		{"cancel all timers", "cancel_timer", `{"all":true}`},
		{"how long is left", "query_timers", `{}`},
		{"set an alarm for 6:30 on weekdays", "set_alarm", `{"hour":6,"minute":30,"either_half":true,"days":["monday","tuesday","wednesday","thursday","friday"],"repeat":true}`},
		{"set an alarm for seven p m", "set_alarm", `{"hour":19,"minute":0}`},
		{"wake me at seven", "set_alarm", `{"hour":7,"minute":0}`},
		{"wake me up at one", "set_alarm", `{"hour":1,"minute":0,"either_half":true}`},
		{"wake me up every saturday at twelve", "set_alarm", `{"hour":12,"minute":0,"either_half":true,"days":["saturday"],"repeat":true}`},
		{"set an alarm for nine on sundays", "set_alarm", `{"hour":9,"minute":0,"either_half":true,"days":["sunday"],"repeat":true}`},
		{"set an alarm for nine on sunday", "set_alarm", `{"hour":9,"minute":0,"either_half":true,"days":["sunday"]}`},
		{"set a school alarm for nine tomorrow morning", "set_alarm", `{"hour":9,"minute":0,"tomorrow":true,"name":"school"}`},
		{"cancel the alarm", "cancel_alarm", `{}`},
		{"cancel the midnight alarm", "cancel_alarm", `{"hour":0}`},
		{"cancel the alarm for 6:30", "cancel_alarm", `{"hour":6,"minute":30,"either_half":true}`},
		{"cancel all alarms", "cancel_alarm", `{"all":true}`},
		{"what alarms are set", "query_alarms", `{}`},
		{"snooze", "snooze", `{}`},
		{"snooze for five minutes", "snooze", `{"seconds":300}`},
		{"turn it up", "change_volume", `{"by":10}`},
		{"turn it down", "change_volume", `{"by":-10}`},
		{"turn the volume down by twenty percent", "change_volume", `{"by":-20}`},
		{"set the volume to fifty percent", "set_volume", `{"percent":50}`},
		{"set the volume to zero", "set_volume", `{"percent":0}`},
		{"mute the sound", "mute_sound", `{"muted":true}`},
		{"unmute", "mute_sound", `{"muted":false}`},
		{"what time is it", "get_time", `{}`},
		{"what's the date", "get_date", `{}`},
		{"stop", "stop", `{}`},
	}
	a := agent(t)
	for _, test := range tests {
		deltas, _, err := generate(t, a, request(allTools, user(test.text)))
		if err != nil || len(deltas) != 1 || deltas[0].Call == nil {
			t.Errorf("%q: got %v, %v, want a call", test.text, deltas, err)
			continue
		}
		c := deltas[0].Call
		if c.Name != test.tool || string(c.Arguments) != test.arguments || c.ID == "" || deltas[0].Text != "" {
			t.Errorf("%q: %s %s %q, want %s %s", test.text, c.Name, c.Arguments, deltas[0].Text, test.tool, test.arguments)
		}

		_, text, err := generate(t, a, request(nil, user(test.text)))
		if err != nil || text != "I can't do that here." {
			t.Errorf("%q without the tool: %q, %v", test.text, text, err)
		}
	}
}

func TestSpeaks(t *testing.T) {
	call := dialog.Message{Role: dialog.Assistant, Calls: []dialog.ToolCall{{ID: "1", Name: "get_time", Arguments: json.RawMessage("{}")}}}
	result := func(text string) dialog.Message { return dialog.Message{Role: dialog.Tool, CallID: "1", Content: text} }
	said := dialog.Message{Role: dialog.Assistant, Content: "It is noon."}
	tests := []struct {
		name string
		req  dialog.Request
		want string
	}{
		{"one result", request(allTools, user("what time is it"), call, result("It's five past three.")), "It's five past three."},
		{"two results", request(allTools, user("x"), call, result("One."), call, result(" Two. ")), "One. Two."},
		{"no words", request(allTools, user("stop"), call, result("")), ""},
		{"an old result", request(allTools, user("x"), call, result("Old."), user("stop"), call, result("New.")), "New."},
		{"repeat", request(allTools, user("what time is it"), call, result("It is noon."), said, user("say that again")), "It is noon."},
		{"repeat nothing", request(allTools, user("say that again")), "I haven't said anything yet."},
		{"no duration", request(allTools, user("set a timer")), "For how long?"},
		{"no time", request(allTools, user("wake me up")), "For what time?"},
	}
	a := agent(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, text, err := generate(t, a, test.req)
			if text != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", text, err, test.want)
			}
		})
	}
}

func TestWordByWord(t *testing.T) {
	deltas, text, err := generate(t, agent(t), request(allTools, user("what can you do")))
	if err != nil || len(text) > 250 || !strings.Contains(text, "set a timer for ten minutes") {
		t.Errorf("help is %q, %v", text, err)
	}
	if words := strings.Fields(text); len(words) != len(deltas) {
		t.Errorf("%d deltas for %d words", len(deltas), len(words))
	}
	for i, d := range deltas[:len(deltas)-1] {
		if !strings.HasSuffix(d.Text, " ") {
			t.Errorf("delta %d is %q, without its space", i, d.Text)
		}
	}
}

func TestNotUnderstood(t *testing.T) {
	a := agent(t)
	for _, req := range []dialog.Request{
		request(allTools, user("what is the meaning of life")), request(allTools, user("")), request(allTools),
		request(allTools, dialog.Message{Role: dialog.Assistant, Content: "Hello."}),
	} {
		deltas, _, err := generate(t, a, req)
		if !errors.Is(err, dialog.ErrNotUnderstood) || len(deltas) > 0 {
			t.Errorf("%v: got %v, %v", req.Messages, deltas, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	a := agent(t)
	why := errors.New("barge-in")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	var err error
	for _, e := range a.Generate(ctx, request(allTools, user("help"))) {
		if n++; n == 3 {
			cancel(why)
		}
		err = e
	}
	if n != 4 || !errors.Is(err, why) {
		t.Errorf("%d deltas, the last with %v", n, err)
	}
	for _, err := range a.Generate(ctx, request(allTools, user("stop"))) {
		if !errors.Is(err, why) {
			t.Errorf("after cancelling: %v", err)
		}
	}
	for range a.Generate(t.Context(), request(allTools, user("help"))) {
		break // the caller may stop at any time
	}
}

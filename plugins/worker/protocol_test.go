package worker

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
	"bellbird/plugins"
)

// full has each of its fields set, to something that it wouldn't be by itself.
func full(t testing.TB) message {
	text := func(s string) *string { return &s }
	value := map[string]any{
		"nil": nil, "true": true, "false": false, "number": -1.5, "text": "ü", "bytes": []byte{0, 255},
		"list": []any{1.0, []any{}, map[string]any{}, ""}, "system": "not at the top",
	}
	m := message{
		Op: opCall, ID: 1 << 40, Plugin: "p", Settings: map[string]any{"s": 1.0}, File: "f.star", Source: "x = 1\n", Unit: 7, Point: "pre_chat", System: true, Do: doPower,
		Key: "k", Value: value, Found: true, Call: 300, Args: []any{1.0, nil}, Kwargs: map[string]any{"a": "b"}, Names: []string{"a.b", "c"},
		Request:  &plugins.Request{Method: "GET", URL: "http://x/", Headers: map[string]string{"A": "b"}, Body: "b", Timeout: 1, Every: time.Hour},
		Response: &plugins.Response{Status: 200, Headers: map[string]string{"A": "b"}, Body: "b", Age: time.Minute}, Error: "e",
		Event: &hooks.Event{
			Input: "i", SkipLLM: true, Response: text("r"), Ephemeral: true, ContextParts: []string{"c"}, StopPropagate: true,
			FunctionName: text("f"), Arguments: map[string]any{"a": 1.0}, Result: text(""), Confirm: text("c"), Tools: []map[string]any{{"n": 1.0}},
			TTSText: text("t"), SkipTTS: true, GhostText: text("g"), GhostContributions: []hooks.Contribution{{Plugin: "p", Text: "t"}},
			Metadata: map[string]any{"a": []byte{1}}, Config: map[string]any{"c": 1.0}, ChatName: text("n"), ChatPrivate: new(true), Surface: text("s"),
		},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(m), reflect.ValueOf(*m.Event)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Fatalf("%s is not set: a new field has to be in the codec, and here", v.Type().Field(i).Name)
			}
		}
	}
	return m
}

func sent(t testing.TB, m message) (message, error) {
	t.Helper()
	var pipe bytes.Buffer
	c := newConn(&pipe, &pipe)
	if err := c.send(m); err != nil {
		return m, err
	}
	return c.receive()
}

func TestMessages(t *testing.T) {
	for name, m := range map[string]message{
		"full": full(t), "empty": {}, "empty event": {Op: opDone, Event: &hooks.Event{}},
		"empty containers": {Event: &hooks.Event{ContextParts: []string{}, Tools: []map[string]any{}, Arguments: map[string]any{}, Metadata: map[string]any{}}},
		"public":           {Event: &hooks.Event{ChatPrivate: new(false)}},
	} {
		got, err := sent(t, m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	type config struct {
		Volume int `json:"volume"`
	}
	got, err := sent(t, message{Event: &hooks.Event{Config: config{70}, Metadata: map[string]any{"n": 3, "l": []string{"a"}, "system": t}}})
	want := &hooks.Event{Config: map[string]any{"volume": 70.0}, Metadata: map[string]any{"n": 3.0, "l": []any{"a"}}}
	if diff := cmp.Diff(want, got.Event); err != nil || diff != "" {
		t.Errorf("what JSON would make of it: %v (-want +got):\n%s", err, diff)
	}
}

// What is too large is not sent, and the next message is.
func TestTooLarge(t *testing.T) {
	deep := any(nil)
	for range 100 {
		deep = []any{deep}
	}
	var pipe bytes.Buffer
	c := newConn(&pipe, &pipe)
	for name, v := range map[string]any{
		"deep": deep, "many": make([]any, 1<<20), "long": strings.Repeat("a", 17<<20), "no value": func() {},
	} {
		if err := c.send(message{Value: v}); err == nil || pipe.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes sent", name, err, pipe.Len())
		}
	}
	if err := c.send(message{ID: 3}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.receive(); err != nil || m.ID != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	pipe.Write([]byte{255, 255, 255, 255})
	if _, err := c.receive(); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a length of 4 GB: error %v", err)
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range []message{full(f), {}} {
		var e encoder
		e.message(&m)
		f.Add(e.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again message
		d := decoder{b: b}
		if d.message(&m); d.err != nil {
			return
		}
		if m.Request != nil || m.Response != nil || m.Event != nil && m.Event.GhostContributions != nil {
			return // JSON isn't the same again
		}
		var e encoder
		if e.message(&m); e.err != nil {
			t.Fatal(e.err)
		}
		d = decoder{b: e.b}
		if d.message(&again); d.err != nil {
			t.Fatal(d.err)
		}
		var e2 encoder
		if e2.message(&again); len(e2.b) != len(e.b) { // the order of maps is not the same
			t.Errorf("%q became %q", e.b, e2.b)
		}
	})
}

// BenchmarkMessage is a call on its way through the protocol, without the pipe.
func BenchmarkMessage(b *testing.B) {
	var pipe bytes.Buffer
	c := newConn(&pipe, &pipe)
	m := message{Op: opCall, ID: 1, Unit: 1, Point: "post_stt", System: true, Event: &hooks.Event{
		Input: "what time is it, saphire", ChatName: hooks.String("default"), ChatPrivate: new(false), Metadata: map[string]any{},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.send(m); err != nil {
			b.Fatal(err)
		}
		if _, err := c.receive(); err != nil {
			b.Fatal(err)
		}
	}
}

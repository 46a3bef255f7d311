package starlark_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// A fakeWeb answers with what it was asked for.
type fakeWeb func(ctx context.Context, r plugins.Request) (*plugins.Response, error)

func (f fakeWeb) Fetch(ctx context.Context, _ *plugins.Manifest, r plugins.Request) (*plugins.Response, error) {
	return f(ctx, r)
}

// load loads a script as a loader does.
func load(t *testing.T, source string, web plugins.Web) plugins.Unit {
	t.Helper()
	owner := &plugins.Owner{Manifest: &plugins.Manifest{Name: "p"}, Web: web}
	u, err := starlark.Runtime{}.Load(t.Context(), owner, "p.star", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func handle(ctx context.Context, t *testing.T, u plugins.Unit, e *hooks.Event) error {
	t.Helper()
	f, err := u.Func("pre_chat")
	if err != nil {
		t.Fatal(err)
	}
	return f(ctx, e)
}

func newSystem(t *testing.T, calls *[]string) *plugins.System {
	note := func(what string, result any) plugins.Func {
		return func(_ context.Context, c *plugins.Call) (any, error) {
			*calls = append(*calls, fmt.Sprint(what, " ", c.Text("voice"), c.Number("percent"), " for ", c.Owner.Manifest.Name))
			return result, nil
		}
	}
	s, err := plugins.NewSystem(map[string]plugins.Func{
		"tts.set_voice": note("voice", nil), "volume.set": note("volume", nil), "cancel_generation": note("cancel", nil),
		"llm_chat.get_messages": note("messages", []any{map[string]any{"role": "user", "content": "hi"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSystem(t *testing.T) {
	var calls []string
	u := load(t, `
def pre_chat(event):
    system = event.metadata.get("system")
    if not system or not hasattr(system, "tts") or not hasattr(system, "ring") or hasattr(system, "format_disk"):
        fail("what is there: %s" % dir(system))
    if system.ring != None or system.tts == None or hasattr(system.tts, "shout"):
        fail("what the parts are")
    system.tts.set_voice("af_heart")
    system.volume.set(percent=40)
    system.cancel_generation()
    event.metadata["said"] = system.llm_chat.session_manager.get_messages()[0]["content"]
`, nil)
	s := newSystem(t, &calls)
	e := &hooks.Event{Metadata: map[string]any{"system": s}}
	if err := handle(t.Context(), t, u, e); err != nil {
		t.Fatal(err)
	}
	want := []string{"voice af_heart0 for p", "volume 40 for p", "cancel 0 for p", "messages 0 for p"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if e.Metadata["said"] != "hi" {
		t.Errorf("metadata %v", e.Metadata)
	}
	for name, test := range map[string]struct{ body, want string }{
		"keep it":     {"event.metadata['x'] = event.metadata['system'].tts", "a system can't be kept"},
		"bytes":       {"event.metadata['system'].tts.set_voice(b'x')", "bytes"},
		"unknown":     {"event.metadata['system'].tts.shout()", "no .shout"},
		"bad":         {"event.metadata['system'].volume.set(200)", "system.volume.set: percent: 200 is not from 0 to 100"},
		"in a loop":   {"[event.metadata['system'].cancel_generation() for i in range(1000)]", "more than 100 calls"},
		"set a field": {"event.metadata['system'].tts = 1", "can't assign"},
		"itself":      {"event.metadata['system'].tts.set_voice(event)", "event can't be kept"},
	} {
		u := load(t, "def pre_chat(event):\n    "+test.body+"\n", nil)
		if err := handle(t.Context(), t, u, &hooks.Event{Metadata: map[string]any{"system": s}}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// A handler whose deadline has passed does nothing more.
func TestSystemAfterTheDeadline(t *testing.T) {
	var calls []string
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	u := load(t, `
def pre_chat(event):
    http.get("http://x/")
    event.metadata["system"].cancel_generation()
`, fakeWeb(func(context.Context, plugins.Request) (*plugins.Response, error) {
		cancel(over) // the deadline passes within a built-in
		return &plugins.Response{}, nil
	}))
	if err := handle(ctx, t, u, &hooks.Event{Metadata: map[string]any{"system": newSystem(t, &calls)}}); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
	if len(calls) > 0 {
		t.Errorf("calls %q", calls)
	}
}

func TestHTTP(t *testing.T) {
	var asked []plugins.Request
	u := load(t, `
def pre_chat(event):
    r = http.post("http://x/a", json={"b": 1}, headers={"authorization": "s"}, timeout=1.5)
    if r.status != 201 or r.headers["content-type"] != "text/x" or r.json()["b"] != [2]:
        fail(str(r))
    event.input = http.get("http://x/c").body
    if http.cached("http://x/d", every=60) != None:
        fail("cached")
`, fakeWeb(func(_ context.Context, r plugins.Request) (*plugins.Response, error) {
		asked = append(asked, r)
		if r.Every > 0 {
			return nil, nil
		}
		return &plugins.Response{Status: 201, Headers: map[string]string{"Content-Type": "text/x"}, Body: `{"b": [2]}`}, nil
	}))
	e := new(hooks.Event)
	if err := handle(t.Context(), t, u, e); err != nil {
		t.Fatal(err)
	}
	want := []plugins.Request{
		{Method: "POST", URL: "http://x/a", Body: `{"b":1}`, Timeout: 1500 * time.Millisecond,
			Headers: map[string]string{"Content-Type": "application/json", "Authorization": "s"}},
		{Method: "GET", URL: "http://x/c"},
		{Method: "GET", URL: "http://x/d", Every: time.Minute},
	}
	if got, want := fmt.Sprintf("%+v", asked), fmt.Sprintf("%+v", want); got != want || e.Input != `{"b": [2]}` {
		t.Errorf("asked %s, want %s; input %q", got, want, e.Input)
	}
	for body, want := range map[string]string{
		"http.get('http://x/', timeout=-1)":       "timeout is a number of seconds",
		"http.get('http://x/', headers={'a': 1})": "headers are strings",
		"http.get('http://x/', headers={1: 'a'})": "headers are strings",
		"http.cached('http://x/', every=0)":       "every is a number of seconds",
		"http.delete('http://x/')":                "no .delete",
	} {
		u := load(t, "def pre_chat(event):\n    "+body+"\n", fakeWeb(nil))
		if err := handle(t.Context(), t, u, new(hooks.Event)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", body, err, want)
		}
	}
	if err := handle(t.Context(), t, load(t, "def pre_chat(event):\n    http.get('http://x/')\n", nil), new(hooks.Event)); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("without a network: error %v", err)
	}
}

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// keeper is an owner that can keep things, in the chat kitchen too.
func keeper(name string) *plugins.Owner {
	rows := new(plugins.MemoryRows)
	rows.AddChat("kitchen")
	return &plugins.Owner{
		Manifest: &plugins.Manifest{Name: name}, State: new(plugins.MemoryState), Rows: rows, Settings: plugins.NewSettings(map[string]any{"by": "nobody"}),
	}
}

func TestRows(t *testing.T) {
	h := newHost(t)
	o := keeper("p")
	u := loadOwned(t, h, o, `
early = chat_state.keys("kitchen")
def pre_chat(event):
    n = chat_state.append("kitchen", "log", {"said": event.input})
    chat_state.put("kitchen", key="last", value=None)
    chat_state.append_many("kitchen", "log", [1, (2, 3)])
    event.input = "%s %s %s %s" % (n, chat_state.read_all("kitchen", "log"), chat_state.get("kitchen", "last", default=len), early)
def post_stt(event):
    chat_state.put("cellar", "x", 1)
def post_llm(event):
    chat_state.put("kitchen", "x", ["a" * (5 << 20)])
def on_wake(event):
    chat_state.put("kitchen", "x", [b"bytes"])
`)
	e := &hooks.Event{Input: "hi"}
	if err := function(t, u, "pre_chat")(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if want := `1 [{"said": "hi"}, 1, [2, 3]] <built-in function len> []`; e.Input != want {
		t.Errorf("input %s, want %s", e.Input, want)
	}
	for point, want := range map[string]string{"post_stt": "chat_state.put: no such chat", "post_llm": "too large", "on_wake": "bytes can't be kept"} {
		err := function(t, u, point)(t.Context(), new(hooks.Event))
		if errors.Is(err, hooks.ErrKilled) {
			t.Skip("it cost the worker its memory first")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", point, err, want)
		}
	}
	if v, _ := o.Rows.Get("kitchen", "last"); v != nil || len(o.Rows.Keys("kitchen")) != 2 {
		t.Errorf("last is %s, keys %q", v, o.Rows.Keys("kitchen"))
	}
	none := loadOwned(t, h, &plugins.Owner{Manifest: &plugins.Manifest{Name: "none"}}, "def pre_chat(event):\n    chat_state.keys('x')\n")
	if err := function(t, none, "pre_chat")(t.Context(), new(hooks.Event)); err == nil || !strings.Contains(err.Error(), "can't keep anything in chats") {
		t.Errorf("without rows: error %v", err)
	}
}

// A handler whose deadline has passed writes nothing more, whatever it still asks for.
func TestRowsAfterTheDeadline(t *testing.T) {
	h := newHost(t)
	o := keeper("p")
	began, cancelled := make(chan struct{}), make(chan struct{})
	o.Web = slowWeb{began, cancelled}
	u := loadOwned(t, h, o, `
def pre_chat(event):
    http.get("http://x/")
    chat_state.put("kitchen", "late", 1)
    state.save("late", 1)
def post_stt(event):
    pass
`)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- function(t, u, "pre_chat")(ctx, new(hooks.Event)) }()
	<-began
	cancel(errors.New("over"))
	close(cancelled)
	if err := <-done; err == nil || errors.Is(err, hooks.ErrKilled) {
		t.Errorf("error %v", err)
	}
	if err := function(t, u, "post_stt")(t.Context(), new(hooks.Event)); err != nil { // what was asked before is done
		t.Error(err)
	}
	if keys := o.Rows.Keys("kitchen"); len(keys) > 0 || len(o.State.All()) > 0 {
		t.Errorf("rows %q, state %v", keys, o.State.All())
	}
}

// slowWeb answers when it may.
type slowWeb struct{ began, answer chan struct{} }

func (w slowWeb) Fetch(context.Context, *plugins.Manifest, plugins.Request) (*plugins.Response, error) {
	close(w.began)
	<-w.answer
	return &plugins.Response{Status: 200}, nil
}

// Each call has the settings as they are when it begins, also in a new worker.
func TestSettings(t *testing.T) {
	h := newHost(t)
	o := keeper("p")
	u := loadOwned(t, h, o, `
def pre_chat(event):
    event.input = settings["by"]
def post_llm(event):
    event.input = "a" * (1 << 30) # more than a worker may have
`)
	by := function(t, u, "pre_chat")
	want := "nobody"
	for i := range 5 {
		e := new(hooks.Event)
		if err := by(t.Context(), e); err != nil || e.Input != want {
			t.Errorf("by %q, want %q: %v", e.Input, want, err)
		}
		want = fmt.Sprint("number ", i)
		o.Settings.Set(map[string]any{"by": want})
		if i == 2 && !underRace {
			if err := function(t, u, "post_llm")(t.Context(), new(hooks.Event)); err == nil {
				t.Error("the worker was not killed")
			}
			_ = function(t, u, "pre_chat") // waits for another
		}
	}
}

func TestTools(t *testing.T) {
	h := newHost(t)
	o := keeper("p")
	u := loadOwned(t, h, o, `
TOOLS = [{"function": {"name": "note", "parameters": {"type": "object"}}}, {"name": "other"}]
def execute(name, arguments):
    if name == "other":
        return {"list": [1, 2.5]}
    if not arguments:
        return "Say what.", False
    chat_state.append("kitchen", "notes", arguments["text"])
    return "%s for %s" % (len(chat_state.read_all("kitchen", "notes")), settings["by"])
`)
	box := u.(plugins.Toolbox)
	schemas, err := box.Tools(t.Context())
	if err != nil || len(schemas) != 2 || schemas[1]["name"] != "other" {
		t.Errorf("schemas %v, %v", schemas, err)
	}
	for _, test := range []struct {
		name string
		args map[string]any
		text string
		ok   bool
	}{
		{"note", map[string]any{"text": "milk"}, "1 for nobody", true},
		{"note", map[string]any{"text": "eggs"}, "2 for nobody", true},
		{"note", nil, "Say what.", false},
		{"other", nil, `{"list":[1,2.5]}`, true},
	} {
		if text, ok, err := box.Execute(t.Context(), test.name, test.args); err != nil || text != test.text || ok != test.ok {
			t.Errorf("%s %v: %q, %v, %v", test.name, test.args, text, ok, err)
		}
	}
	bare := load(t, h, "bare", "def pre_chat(event):\n    pass\n")
	if _, err := bare.(plugins.Toolbox).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "no function execute") {
		t.Errorf("without tools: error %v", err)
	}
}

// A tool ends with the time of its call, like a handler.
func TestSlowTool(t *testing.T) {
	h := newHost(t)
	u := load(t, h, "slow", `
TOOLS = [{"name": "wait"}]
def execute(name, arguments):
    while True:
        pass
`)
	over := errors.New("over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, over)
	defer cancel()
	if _, _, err := u.(plugins.Toolbox).Execute(ctx, "wait", nil); err == nil {
		t.Error("no error")
	}
	if _, err := u.(plugins.Toolbox).Tools(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

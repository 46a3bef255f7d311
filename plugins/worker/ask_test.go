package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/worker"
)

// recorder is a system that notes how it was used, and a web that answers with what it was asked for.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, what)
}

func (r *recorder) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recorder) system(t *testing.T) *plugins.System {
	s, err := plugins.NewSystem(map[string]plugins.Func{
		"tts.set_voice": func(_ context.Context, c *plugins.Call) (any, error) {
			r.note("voice " + c.Text("voice") + " for " + c.Owner.Manifest.Name)
			return nil, nil
		},
		"volume.get":        func(context.Context, *plugins.Call) (any, error) { return 40, nil },
		"cancel_generation": func(context.Context, *plugins.Call) (any, error) { return nil, errors.New("there is none") },
		"llm_chat.chat": func(ctx context.Context, _ *plugins.Call) (any, error) {
			<-ctx.Done()
			r.note("chat ended")
			return nil, context.Cause(ctx)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (r *recorder) Fetch(_ context.Context, m *plugins.Manifest, req plugins.Request) (*plugins.Response, error) {
	r.note(fmt.Sprintf("%s %s for %s", req.Method, req.URL, m.Name))
	if req.Every > 0 {
		return nil, nil
	}
	return &plugins.Response{Status: 200, Body: req.URL}, nil
}

func TestSystemAndHTTP(t *testing.T) {
	r := new(recorder)
	h := newHost(t)
	u := loadWith(t, h, "p", `
first = http.cached("http://x/early")
def pre_chat(event):
    system = event.metadata.get("system")
    if not system or not hasattr(system, "tts") or system.ring != None or hasattr(system, "nothing"):
        fail("what is there: %s" % dir(system))
    system.tts.set_voice(voice="af_heart")
    event.metadata["volume"] = system.volume.get() + 1
    event.input = http.get("http://x/y").body
def post_stt(event):
    event.input = str(event.metadata.get("system"))
def broken(event):
    event.metadata["system"].cancel_generation()
`, r)
	system := r.system(t)
	e := &hooks.Event{Metadata: map[string]any{"system": system, "deep": map[string]any{"system": "kept"}}}
	if err := function(t, u, "pre_chat")(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if e.Input != "http://x/y" || e.Metadata["volume"] != 41.0 || e.Metadata["system"] != any(system) ||
		e.Metadata["deep"].(map[string]any)["system"] != "kept" {
		t.Errorf("event %+v", e)
	}
	want := []string{"GET http://x/early for p", "voice af_heart for p", "GET http://x/y for p"}
	if got := r.noted(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	e = new(hooks.Event)
	if err := function(t, u, "post_stt")(t.Context(), e); err != nil || e.Input != "None" {
		t.Errorf("without a system: %v, %q", err, e.Input)
	}
	err := function(t, u, "broken")(t.Context(), &hooks.Event{Metadata: map[string]any{"system": system}})
	if err == nil || !strings.Contains(err.Error(), "system.cancel_generation: there is none") {
		t.Errorf("a power that fails: error %v", err)
	}
}

// What a script asks for ends with its deadline, and what it asks for after that isn't done.
func TestAskingAfterTheDeadline(t *testing.T) {
	r := new(recorder)
	h := newHost(t)
	u := loadWith(t, h, "p", `
def pre_chat(event):
    event.metadata["system"].llm_chat.chat("hello")
    event.metadata["system"].tts.set_voice("late")
def post_stt(event):
    pass
`, r)
	over := errors.New("over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, over)
	defer cancel()
	err := function(t, u, "pre_chat")(ctx, &hooks.Event{Metadata: map[string]any{"system": r.system(t)}})
	if err == nil || errors.Is(err, hooks.ErrKilled) {
		t.Errorf("error %v", err)
	}
	if err := function(t, u, "post_stt")(t.Context(), new(hooks.Event)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if got := r.noted(); len(got) != 1 || got[0] != "chat ended" {
		t.Errorf("calls %q", got)
	}
}

func TestHostileAsking(t *testing.T) {
	r := new(recorder)
	h := newHost(t)
	u := loadWith(t, h, "p", `
def pre_chat(event): # in a loop
    for i in range(100000):
        event.metadata["system"].tts.set_voice("x")
def post_stt(event): # with five megabytes
    event.metadata["system"].tts.set_voice("a" * (5 << 20))
def post_llm(event): # with what fits into a message
    event.metadata["system"].tts.set_voice("a" * (1 << 20))
def on_wake(event):
    event.input += "!"
`, r)
	for point, want := range map[string]string{"pre_chat": "more than 100 calls", "post_stt": "too large", "post_llm": "a text of 1048576 bytes"} {
		err := function(t, u, point)(t.Context(), &hooks.Event{Metadata: map[string]any{"system": r.system(t)}})
		if errors.Is(err, hooks.ErrKilled) {
			t.Skip("it cost the worker its memory first")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", point, err, want)
		}
	}
	if n := len(r.noted()); n != 100 {
		t.Errorf("%d calls came through", n)
	}
	e := new(hooks.Event)
	if err := function(t, u, "on_wake")(t.Context(), e); err != nil || e.Input != "!" {
		t.Errorf("afterwards: %v, %q", err, e.Input)
	}
}

// A worker that reads nothing any more is replaced, and nobody waits for it for ever.
func TestDeafWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two seconds")
	}
	h := worker.New(worker.Options{Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BELLBIRD_TEST_WORKER=deaf")
		return cmd
	}})
	t.Cleanup(h.Close)
	owner := &plugins.Owner{Manifest: &plugins.Manifest{Name: "p"}}
	_, err := h.Load(t.Context(), owner, "p.star", []byte("# "+strings.Repeat("x", 1<<20)))
	if err == nil {
		t.Error("no error")
	}
}

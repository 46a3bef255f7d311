package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/worker"
)

// The test program is also the worker.
func TestMain(m *testing.M) {
	if os.Getenv("BELLBIRD_TEST_WORKER") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("BELLBIRD_TEST_WORKER") == "deaf" {
		for { // until it is killed
			time.Sleep(time.Hour)
		}
	}
	memory := int64(worker.Memory)
	if underRace { // the race detector's own memory is far more than a worker may have
		memory = 0
	}
	_, err := worker.Sandbox(memory)
	if err == nil {
		err = worker.Serve(context.Background(), os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newHost(t testing.TB) *worker.Host {
	h := worker.New(worker.Options{Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BELLBIRD_TEST_WORKER=1")
		return cmd
	}})
	t.Cleanup(h.Close)
	return h
}

func load(t testing.TB, h *worker.Host, name, source string) plugins.Unit {
	t.Helper()
	return loadWith(t, h, name, source, nil)
}

func loadWith(t testing.TB, h *worker.Host, name, source string, web plugins.Web) plugins.Unit {
	t.Helper()
	return loadOwned(t, h, &plugins.Owner{Manifest: &plugins.Manifest{Name: name}, State: new(plugins.MemoryState), Web: web}, source)
}

func loadOwned(t testing.TB, h *worker.Host, owner *plugins.Owner, source string) plugins.Unit {
	t.Helper()
	name := owner.Manifest.Name
	u, err := h.Load(context.Background(), owner, name+".star", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func function(t testing.TB, u plugins.Unit, point string) hooks.Func {
	t.Helper()
	f, err := u.Func(point)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCall(t *testing.T) {
	h := newHost(t)
	u := load(t, h, "p", `
def handle(event):
    event.input += "!"
    event.metadata["audio"]["audio_bytes"] += b"\x00\xff"
    event.metadata["count"] = state.update("count", lambda n: n + 1, 0)
    event.arguments["list"].append(event.metadata.get("system"))
`)
	f := function(t, u, "pre_chat")
	system := "powers"
	for n := 1; n <= 2; n++ {
		e := &hooks.Event{
			Input: "hi", ChatPrivate: new(false), Arguments: map[string]any{"list": []any{1.0}},
			Metadata: map[string]any{"audio": map[string]any{"audio_bytes": []byte("\x01\x80")}, "system": system},
		}
		if err := f(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		want := &hooks.Event{
			Input: "hi!", ChatPrivate: new(false), Arguments: map[string]any{"list": []any{1.0, nil}},
			Metadata: map[string]any{
				"audio": map[string]any{"audio_bytes": []byte("\x01\x80\x00\xff")}, "count": float64(n), "system": system,
			},
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestErrorsComeBack(t *testing.T) {
	h := newHost(t)
	if _, err := h.Load(t.Context(), &plugins.Owner{Manifest: &plugins.Manifest{Name: "p"}}, "p.star", []byte("def f(\n")); err == nil {
		t.Error("a file with an error: no error")
	}
	u := load(t, h, "p", "def post_stt(event):\n    fail('broken')\n")
	if _, err := u.Func("pre_chat"); err == nil {
		t.Error("a missing function: no error")
	}
	if err := function(t, u, "post_stt")(t.Context(), &hooks.Event{}); err == nil || errors.Is(err, hooks.ErrKilled) {
		t.Errorf("error %v", err)
	}
}

// What a hostile script does costs its plugin, and nobody else for longer than a second.
func TestHostile(t *testing.T) {
	if underRace {
		t.Skip("the worker has no limits under the race detector")
	}
	for name, body := range map[string]string{
		"memory at once":                       `x = "a" * (1 << 29)`,
		"memory bit by bit":                    `x = ["a" * 1000000]` + "\n    for i in range(100000):\n        x.append(x[0] + str(i))",
		"a built-in that can't be interrupted": `x = ["b"] * 2000000` + "\n    for i in range(10000):\n        y = sorted(x)",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			var mu sync.Mutex
			var opened []string
			r := hooks.New(hooks.Options{OnBreaker: func(plugin, _ string, _ time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				opened = append(opened, plugin)
			}})
			t.Cleanup(r.Close)
			bad := load(t, h, "bad", "def pre_chat(event):\n    "+body+"\n")
			good := load(t, h, "good", "def pre_chat(event):\n    event.input += ' good'\n")
			for i, u := range []plugins.Unit{bad, good} {
				err := r.Register(hooks.Handler{Plugin: []string{"bad", "good"}[i], Point: "pre_chat", Priority: i, Func: function(t, u, "pre_chat")})
				if err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			r.Fire(t.Context(), "pre_chat", &hooks.Event{Input: "x"})
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("the fire took %v", d)
			}
			// The worker is back, and the good plugin in it.
			for deadline := time.Now().Add(10 * time.Second); ; {
				e := &hooks.Event{Input: "x"}
				trace := r.Fire(t.Context(), "pre_chat", e)
				if e.Input == "x good" && trace[0].Outcome == hooks.BreakerOpen {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the good plugin is not back: input %q, trace %+v", e.Input, trace)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(opened) == 0 || opened[0] != "bad" {
				t.Errorf("breakers opened: %v", opened)
			}
		})
	}
}

// A plugin that kills each new worker while it is being loaded doesn't keep the others from coming back.
func TestKillsWhenLoadedAgain(t *testing.T) {
	if underRace {
		t.Skip("the worker has no limits under the race detector")
	}
	h := newHost(t)
	bad := load(t, h, "bad", `
loads = state.update("loads", lambda n: n + 1, 0)
if loads > 1:
    x = "a" * (1 << 29)
def pre_chat(event):
    y = "a" * (1 << 29)
`)
	good := function(t, load(t, h, "good", "def pre_chat(event):\n    event.input += ' good'\n"), "pre_chat")
	if err := function(t, bad, "pre_chat")(t.Context(), &hooks.Event{}); !errors.Is(err, hooks.ErrKilled) {
		t.Fatalf("error %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		e := &hooks.Event{Input: "x"}
		err := good(t.Context(), e)
		if err == nil && e.Input == "x good" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the good plugin is not back: %v", err)
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	h := newHost(b)
	u := load(b, h, "p", `
FIXES = {"saphire": "Sapphire", "hey i": "AI", "tea tea ess": "TTS"}
def post_stt(event):
    text = event.input
    for wrong, right in FIXES.items():
        text = text.replace(wrong, right)
    event.input = text
`)
	r := hooks.New(hooks.Options{})
	defer r.Close()
	if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_stt", Func: function(b, u, "post_stt")}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Fire(context.Background(), "post_stt", &hooks.Event{Input: "what time is it, saphire"})
	}
}

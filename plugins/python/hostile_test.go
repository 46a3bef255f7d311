package python_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/python"
)

// findPipe lets a plugin write to the appliance as if it were the worker.
const findPipe = `
import os, stat, struct, sys
def pipe():
    import __main__
    return __main__.sink
def frame(body):
    os.write(pipe(), struct.pack(">I", len(body)) + body)
`

// What a hostile plugin does costs its own worker, at most. The fire returns at its deadline, and another plugin's handler
// works as before; and then the plugin, or what is left of it, is there again.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	for _, c := range []struct {
		name, body string
		killed     bool // the worker is replaced
		answers    bool // the handler itself returns in time, and its change counts
	}{
		{name: "prints", body: `print("a line, and no message"); sys.stdout.write("\0\0\0\1x"); os.write(1, b"\0\0\0\5hello")`, answers: true},
		{name: "reads its input", body: `sys.stdin.read(); os.read(0, 10)`, answers: true},
		{name: "closes the standard descriptors", body: `[os.close(fd) for fd in (0, 1, 2)]`, answers: true},
		{name: "floods the log", body: "\n    while True: os.write(2, b'x' * 65536)"},
		{name: "floods the log with lines", body: "\n    while True: print('flood')"},
		{name: "forks", body: "\n    try: os.fork()\n    except OSError: event.input += ' refused'", answers: true},
		{name: "runs a program", body: "\n    import subprocess\n    try: subprocess.run(['/bin/true'])\n    except OSError: event.input += ' refused'", answers: true},
		{name: "becomes a program", body: "\n    try: os.execv('/bin/true', ['true'])\n    except OSError: event.input += ' refused'", answers: true},
		{name: "closes its pipe", body: `os.close(pipe())`, killed: true},
		{name: "closes all it has", body: `os.closerange(0, 30)`, killed: true},
		{name: "answers what was not asked", body: `frame(bytes([8, 99, 0]))`, killed: true},
		{name: "answers twice", body: "\n    import __main__\n    i = __main__.current.thread.id\n    out = __main__.failure(i, 'no')\n    os.write(pipe(), out); os.write(pipe(), out)", killed: true},
		{name: "says nonsense", body: `frame(b"\xff" * 40)`, killed: true},
		{name: "gives orders", body: `frame(bytes([1, 1, 0]))`, killed: true},
		{name: "announces 100 MB", body: `os.write(pipe(), struct.pack(">I", 100 << 20))`, killed: true},
		{name: "sends 100 MB", body: "\n    for _ in range(100): os.write(pipe(), struct.pack('>I', 100 << 20) + b'x' * (1 << 20))", killed: true},
		{name: "sends half a message", body: "\n    os.write(pipe(), struct.pack('>I', 1000) + b'x' * 10)\n    import time\n    time.sleep(60)", killed: true},
		{name: "returns too much", body: `event.response = "x" * (17 << 20)`},
		{name: "returns what is nested too deeply", body: "\n    d = []\n    for _ in range(5000): d = [d]\n    event.metadata['d'] = d"},
		{name: "sleeps", body: "\n    import time\n    time.sleep(60)", killed: true},
		{name: "spins", body: "\n    while True: pass"},
		{name: "spins, and won't be told", body: "\n    while True:\n        try:\n            while True: len(())\n        except BaseException: pass", killed: true},
		{name: "spins where it can't be told", body: `sum(range(1 << 60))`, killed: true},
		{name: "answers late", body: "\n    try:\n        while True: len(())\n    except BaseException: event.input = 'late'"},
		{name: "exits", body: `sys.exit(3)`},
		{name: "ends its process", body: `os._exit(3)`, killed: true},
		{name: "crashes", body: "\n    import ctypes\n    ctypes.string_at(0)", killed: true},
		{name: "takes all memory", body: `x = bytearray(1 << 30)`},
		{name: "takes memory bit by bit", body: "\n    x = []\n    while True: x.append(bytearray(1 << 20))"},
		{name: "recurses", body: "\n    def f(): f()\n    f()"},
		{name: "starts threads", body: "\n    import threading, time\n    for _ in range(10): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", answers: true},
		{name: "kills its parent", body: "\n    try: os.kill(os.getppid(), 9)\n    except OSError: event.input += ' refused'", answers: true},
		{name: "asks in a loop", body: "\n    while True: event.metadata['system'].volume.get()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, python.Options{})
			system, err := plugins.NewSystem(map[string]plugins.Func{"volume.get": func(context.Context, *plugins.Call) (any, error) { return 1, nil }})
			if err != nil {
				t.Fatal(err)
			}
			runner := hooks.New(hooks.Options{System: system})
			t.Cleanup(runner.Close)
			bad := load(t, r, newOwner("bad"), findPipe+"\ndef pre_chat(event):\n    event.input += ' bad'\n    "+c.body+"\ndef on_wake(event):\n    event.input += ' alive'\n    event.metadata['pid'] = os.getpid()\n")
			good := load(t, r, newOwner("good"), "def pre_chat(event):\n    event.input += ' good'\n")
			alive, badToo, goodToo := function(t, bad, "on_wake"), function(t, bad, "pre_chat"), function(t, good, "pre_chat")
			for i, f := range []hooks.Func{badToo, goodToo} {
				if err := runner.Register(hooks.Handler{Plugin: []string{"bad", "good"}[i], Point: "pre_chat", Priority: i, Func: f}); err != nil {
					t.Fatal(err)
				}
			}
			before := pid(t, alive)

			e := &hooks.Event{Input: "x"}
			trace := runner.Fire(t.Context(), "pre_chat", e)
			if c.answers && trace[0].Outcome == hooks.Committed && !strings.HasPrefix(e.Input, "x bad") {
				t.Errorf("input %q, trace %+v", e.Input, trace)
			}
			if !c.answers && strings.Contains(e.Input, "bad") && !c.killed {
				t.Errorf("its change counts: input %q, trace %+v", e.Input, trace)
			}
			if strings.Contains(c.body, "refused") && trace[0].Outcome == hooks.Committed && !strings.Contains(e.Input, "refused") {
				t.Errorf("it was not refused: input %q", e.Input)
			}

			// The other plugin is where it was, and this one comes back.
			own := &hooks.Event{Input: "y"}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := goodToo(ctx, own); err != nil || own.Input != "y good" {
				t.Errorf("the other plugin: %q, %v", own.Input, err)
			}
			if after := pid(t, alive); c.killed {
				for after == before { // what it wrote may not have been read yet, or it was too late to do anything
					if ctx.Err() != nil {
						t.Fatal("the worker was not replaced")
					}
					again, cancel := context.WithTimeout(ctx, 2*time.Second)
					_ = badToo(again, &hooks.Event{Input: "x", Metadata: map[string]any{"system": system}})
					cancel()
					after = pid(t, alive)
				}
			}
		})
	}
}

// pid waits until the plugin is there, and tells which process it is.
func pid(t *testing.T, f hooks.Func) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		e := new(hooks.Event)
		err := f(ctx, e)
		if err == nil {
			return e.Metadata["pid"].(float64)
		}
		if ctx.Err() != nil {
			t.Fatalf("the plugin is not back: %v", err)
		}
	}
}

// counter counts lines of a log.
type counter struct {
	slog.Handler
	said atomic.Int64
	line chan struct{}
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }
func (c *counter) WithAttrs([]slog.Attr) slog.Handler       { return c }

func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "plugin says" {
		c.said.Add(1)
		select {
		case c.line <- struct{}{}:
		default: // enough of them are waiting
		}
	}
	return nil
}

// What is printed comes into the log, and no more of it than a log can take.
func TestLog(t *testing.T) {
	log := &counter{line: make(chan struct{}, 2)}
	u := load(t, newRuntime(t, python.Options{Logger: slog.New(log)}), newOwner("p"), "def post_chat(event):\n    for i in range(event.metadata['lines']): print('line', i)\n")
	f := function(t, u, "post_chat")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f(ctx, &hooks.Event{Metadata: map[string]any{"lines": 2.0}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-log.line:
		case <-ctx.Done():
			t.Fatal("it is not in the log")
		}
	}
	const lines = 10000
	if err := f(ctx, &hooks.Event{Metadata: map[string]any{"lines": float64(lines)}}); err != nil {
		t.Fatal(err)
	}
	if n := log.said.Load(); n > lines/2 {
		t.Errorf("%d lines are in the log", n)
	}
}

// The sandbox: no files but those of Python and of the plugin, no changes, and no network.
func TestConfined(t *testing.T) {
	parts, err := newRuntime(t, python.Options{}).Parts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p.Missing != "" {
			t.Logf("this system has %v", p)
		}
		if p.Name == "file rules" && p.Missing != "" || p.Name == "call filter" && p.Missing != "" {
			t.Skipf("this system has %v", p)
		}
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, elsewhere} {
		if err := os.WriteFile(filepath.Join(d, "data.txt"), []byte("data"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "helper.py"), []byte("NAME = 'helper'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const attempts = `
import os, socket, sqlite3, ssl, helper, datetime, zoneinfo, decimal, ctypes
DIR, ELSEWHERE = %DIRS
OWN = open(os.path.join(os.path.dirname(__file__), "data.txt")).read()
def refused(f, *args):
    try:
        f(*args)
    except OSError:
        return True
    return False
def probe(event):
    event.metadata["own"] = OWN + helper.NAME
    event.metadata["refused"] = {
        "other files": refused(open, ELSEWHERE + "/data.txt"), "directories": refused(os.listdir, ELSEWHERE),
        "passwords": refused(open, "/etc/passwd"), "processes": refused(open, "/proc/1/status"), "environment": refused(open, "/proc/self/environ"),
        "writing": refused(open, DIR + "/new", "w"), "making": refused(os.mkdir, DIR + "/d"), "removing": refused(os.remove, DIR + "/data.txt"),
        "tcp": refused(socket.socket, socket.AF_INET, socket.SOCK_STREAM), "udp": refused(socket.socket, socket.AF_INET, socket.SOCK_DGRAM),
        "unix": refused(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM), "signals": refused(os.kill, os.getppid(), 0),
        "limits": refused(__import__("resource").prlimit, os.getppid(), 7),
    }
    event.metadata["env"] = sorted(os.environ)
`
	owner := newOwner("p")
	r := newRuntime(t, python.Options{Dir: func(*plugins.Owner) string { return dir }})
	source := strings.Replace(attempts, "%DIRS", "\""+dir+"\", \""+elsewhere+"\"", 1)
	e := &hooks.Event{Metadata: map[string]any{}}
	if err := function(t, load(t, r, owner, source), "probe")(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if e.Metadata["own"] != "datahelper" {
		t.Errorf("its own files: %v", e.Metadata["own"])
	}
	for what, refused := range e.Metadata["refused"].(map[string]any) {
		if refused != true {
			t.Errorf("%s: not refused", what)
		}
	}
	for _, name := range e.Metadata["env"].([]any) {
		if name != "PATH" && name != "LC_ALL" && name != "MALLOC_ARENA_MAX" && name != "TZ" {
			t.Errorf("it has the variable %v", name)
		}
	}
}

// A worker that takes too much of the processor outside of its calls is replaced.
func TestMeter(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	u := load(t, newRuntime(t, python.Options{Share: 0.02}), newOwner("p"), `
import os, threading
def spin():
    while True: pass
def pre_chat(event):
    threading.Thread(target=spin, daemon=True).start()
def on_wake(event):
    event.metadata["pid"] = os.getpid()
`)
	alive := function(t, u, "on_wake")
	before := pid(t, alive)
	if err := function(t, u, "pre_chat")(t.Context(), new(hooks.Event)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); pid(t, alive) == before; {
		if time.Now().After(deadline) {
			t.Fatal("it still spins")
		}
		time.Sleep(100 * time.Millisecond) // the kernel's accounts can't be waited for
	}
}

func TestPublish(t *testing.T) {
	var mu sync.Mutex
	var told []string
	r := newRuntime(t, python.Options{Publish: func(plugin, kind string, data any) error {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, plugin+" "+kind)
		if m, ok := data.(map[string]any); !ok || m["n"] != 1.0 {
			return errors.New("these are no data")
		}
		return nil
	}})
	u := load(t, r, newOwner("p"), "from core.event_bus import publish, Events\ndef handle(event):\n    publish(Events.TTS_STOPPED, {'n': 1})\n    try: publish('other')\n    except RuntimeError as e: event.input = str(e)\n")
	e := new(hooks.Event)
	if err := function(t, u, "x")(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if e.Input != "these are no data" || strings.Join(told, ", ") != "p tts_stopped, p other" {
		t.Errorf("%q, %q", e.Input, told)
	}
}

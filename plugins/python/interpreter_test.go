package python_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/python"
)

// Without an interpreter that will do, the plugin is refused, and its user is told what to do.
func TestNoPython(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"old": `echo '{"version": [3, 8, 18], "executable": "/x", "path": [], "mapped": []}'`, "two": `echo 'SyntaxError' >&2; exit 1`, "odd": `echo hello`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for interpreter, want := range map[string]string{
		"python-that-is-not-there": "is not there", filepath.Join(dir, "old"): "3.8.18", filepath.Join(dir, "two"): "SyntaxError", filepath.Join(dir, "odd"): "no Python",
	} {
		r := python.New(python.Options{Launch: launch, Python: interpreter})
		_, err := r.Load(t.Context(), newOwner("p"), "hooks.py", []byte("def handle(event): pass\n"))
		r.Close()
		if !errors.Is(err, python.ErrNoPython) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "install") || !strings.Contains(err.Error(), "hooks.py") {
			t.Errorf("%s: %v", interpreter, err)
		}
	}
}

func TestNotUTF8(t *testing.T) {
	_, err := newRuntime(t, python.Options{}).Load(t.Context(), newOwner("p"), "hooks.py", []byte("x = '\xff'\n"))
	if err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("error %v", err)
	}
}

// Another owner of the same plugin has a worker of its own, which is ended when it is released.
func TestOwners(t *testing.T) {
	const source = "import os\nn = 0\ndef on_wake(event):\n    global n\n    n += 1\n    event.metadata['pid'] = os.getpid()\n    event.input = str(n)\n"
	r := newRuntime(t, python.Options{})
	first, second := newOwner("p"), newOwner("p")
	old, again, fresh := load(t, r, first, source), load(t, r, first, source), load(t, r, second, source)
	a, b, c := pid(t, function(t, old, "on_wake")), pid(t, function(t, again, "on_wake")), pid(t, function(t, fresh, "on_wake"))
	if a != b || a == c {
		t.Errorf("processes %v and %v of one owner, %v of another", a, b, c)
	}
	f := function(t, old, "on_wake")
	e := new(hooks.Event)
	if err := f(t.Context(), e); err != nil || e.Input != "2" {
		t.Errorf("its globals: %q, %v", e.Input, err)
	}
	r.Release(first)
	if err := f(t.Context(), e); err == nil {
		t.Error("it is called after it was released")
	}
	if err := function(t, fresh, "on_wake")(t.Context(), e); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", int(a))); err == nil {
		t.Error("its worker is still there")
	}
}

// With sockets a plugin can connect to the ports of the hosts that it lists, and without it can't; nor can one that lists
// no hosts, whatever its user said.
func TestSockets(t *testing.T) {
	listen := func() (port string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(c, "hello")
				c.Close()
			}
		}()
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return port
	}
	listed, other := listen(), listen()
	const source = `
import socket
def probe(event):
    try:
        with socket.create_connection(("localhost", int(event.input)), 5) as s:
            event.input = s.recv(10).decode()
    except OSError as e:
        event.input = "refused"
`
	for _, c := range []struct {
		name    string
		hosts   []string
		network python.Network
		port    string
		want    string
	}{
		{"granted", []string{"localhost:" + listed}, python.Sockets, listed, "hello"},
		{"another port", []string{"localhost:" + listed}, python.Sockets, other, "refused"},
		{"only requests", []string{"localhost:" + listed}, python.Requests, listed, "refused"},
		{"nothing is granted", []string{"localhost:" + listed}, python.NoNetwork, listed, "refused"},
		{"no hosts", nil, python.Sockets, listed, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRuntime(t, python.Options{Network: func(*plugins.Manifest) python.Network { return c.network }})
			parts, err := r.Parts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				if p.Missing != "" && (p.Name == "call filter" || p.Name == "TCP rules") {
					t.Skipf("this system has %v", p)
				}
			}
			owner := newOwner("p")
			owner.Manifest.Network = c.hosts
			e := &hooks.Event{Input: c.port}
			if err := function(t, load(t, r, owner, source), "probe")(t.Context(), e); err != nil || e.Input != c.want {
				t.Errorf("%q, %v", e.Input, err)
			}
		})
	}
}

// Who has no grant has no requests either, and is told so in a way that it can handle.
func TestRequestsNotGranted(t *testing.T) {
	owner := newOwner("p")
	owner.Manifest.Network, owner.Web = []string{"ha:8123"}, new(played)
	u := load(t, newRuntime(t, python.Options{}), owner, "import requests\ndef probe(event):\n    try: requests.get('http://ha:8123/')\n    except requests.exceptions.ConnectionError as e: event.input = str(e)\n")
	e := new(hooks.Event)
	if err := function(t, u, "probe")(t.Context(), e); err != nil || !strings.Contains(e.Input, "no network") {
		t.Errorf("%q, %v", e.Input, err)
	}
}

// A worker that ends as soon as it is started is started more and more seldom.
func TestEndsAgainAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	log := &pauses{seen: make(chan struct{})}
	u := load(t, newRuntime(t, python.Options{Logger: slog.New(log)}), newOwner("p"), "import os, threading\ndef handle(event): threading.Timer(0.001, os._exit, (1,)).start()\n")
	f := function(t, u, "x")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case <-log.seen:
			return
		case <-ctx.Done():
			t.Fatal("it is started again at once, however often it ends")
		default:
			_ = f(ctx, new(hooks.Event)) // it may be away
		}
	}
}

// pauses is a log that looks for a worker that isn't started again at once.
type pauses struct {
	slog.Handler
	once sync.Once
	seen chan struct{}
}

func (p *pauses) Enabled(context.Context, slog.Level) bool { return true }
func (p *pauses) WithAttrs([]slog.Attr) slog.Handler       { return p }

func (p *pauses) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "after" && a.Value.Duration() > 0 {
			p.once.Do(func() { close(p.seen) })
		}
		return true
	})
	return nil
}

// Of what Python has, only its own path is used: no module of the directory in which the appliance runs, or of its user.
func TestIsolated(t *testing.T) {
	if testing.Short() {
		t.Skip("this program, with the race detector in it, may take more memory than a worker is given")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "struct.py"), []byte("raise SystemExit('not this one')\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	t.Chdir(dir)
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	r := python.New(python.Options{Launch: func(spec string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), specEnv+"="+spec)
		return cmd
	}})
	t.Cleanup(r.Close)
	if _, err := r.Load(t.Context(), newOwner("p"), "hooks.py", []byte("import struct\n")); errors.Is(err, python.ErrNoPython) {
		t.Skip(err)
	} else if err != nil {
		t.Error(err)
	}
}

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bellbird/dialog"
	"bellbird/tools"
)

const stop = syscall.SIGSTOP

// A rig is a server that runs, and the set that it offers its tools in.
type rig struct {
	*Server
	t    *testing.T
	set  *tools.Set
	puts chan string // the names of the tools in the set, each time they may have changed
	end  func()
}

func newRig(t *testing.T, o Options, change ...func(*Server)) *rig {
	t.Helper()
	set, err := tools.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, set: set, puts: make(chan string, 1000)}
	o.Put = func(owner string, all ...tools.Tool) error {
		err := set.Put(owner, all...)
		var names []string
		for _, spec := range set.Specs() {
			names = append(names, spec.Name)
		}
		r.puts <- strings.Join(names, " ")
		return err
	}
	if o.Name == "" {
		o.Name = "home"
	}
	if r.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(r.Server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	r.end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(r.end)
	return r
}

// wait waits until the names of the tools are as they should be.
func (r *rig) wait(ok func(names string) bool) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case names := <-r.puts:
			if ok(names) {
				return
			}
		case <-deadline:
			r.t.Fatalf("the tools never came to be so: %+v", r.Status())
		}
	}
}

func some(names string) bool { return names != "" }
func none(names string) bool { return names == "" }

func (r *rig) call(name, args string) string {
	return r.set.Call(r.t.Context(), dialog.ToolCall{ID: "1", Name: name, Arguments: json.RawMessage(args)}).Content
}

// peer is a server of this program's as a child process.
func peer(mode string) Options {
	return Options{Command: []string{os.Args[0]}, Env: map[string]string{peerMode: mode}}
}

// web is the same server over HTTP.
func web(t *testing.T, wrap func(http.Handler) http.Handler) Options {
	server := newPeer()
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	if wrap != nil {
		handler = wrap(handler)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(func() { s.Config.Close() }) // it doesn't wait for a call that hangs
	return Options{URL: s.URL}
}

const offered = "die echo environment fail freeze grow hang huge large look_around picture shout silent spawn sum"

var transports = []struct {
	name string
	o    func(t *testing.T) Options
}{
	{"stdio", func(*testing.T) Options { return peer("good") }},
	{"http", func(t *testing.T) Options { return web(t, nil) }},
}

func TestBothTransports(t *testing.T) {
	t.Parallel()
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			r := newRig(t, transport.o(t))
			r.wait(func(names string) bool { return names == offered })
			for r.Status() != (Status{Connected: true, Tools: 16}) { // one more than the set takes: it looks like a hook's
				if !wait(t.Context(), time.Millisecond) {
					t.Fatalf("%+v", r.Status())
				}
			}
			for _, test := range []struct{ tool, args, want string }{
				{"echo", `{"text":"hello"}`, "hello"},
				{"echo", `{"text":7}`, "7"},
				{"echo", `{}`, "The arguments don't fit: missing: text."},
				{"sum", `{"a":"2","b":3}`, `{"a":5}`},
				{"sum", `{"a":"two"}`, `The arguments don't fit: a: it must be of type integer, not "two".`},
				{"look_around", ``, "All is quiet."},
				{"fail", `{}`, "no bread left"},
				{"silent", `{}`, "Done."},
				{"picture", `{}`, "The door:\n(an image)\nfilm file:///film\na note"},
				{"voiceos_hook_transcript", `{}`, `There is no tool "voiceos_hook_transcript".`},
				{"VoiceOS_hook_dictation", `{}`, `There is no tool "VoiceOS_hook_dictation".`},
				{"voiceos_hook_x", `{}`, `There is no tool "voiceos_hook_x".`},
			} {
				if got := r.call(test.tool, test.args); got != test.want {
					t.Errorf("%s %s: %q, want %q", test.tool, test.args, got, test.want)
				}
			}
			if got := r.call("large", `{}`); len(got) != tools.MaxResult || !strings.HasSuffix(got, "1048576 bytes]") {
				t.Errorf("a large result has %d bytes", len(got))
			}
			if got := r.call("grow", `{}`); got != "Growing." {
				t.Errorf("grow: %q", got)
			}
			r.wait(func(names string) bool { return strings.Contains(names, "grown") && !strings.Contains(names, "silent") })
			if got := r.call("grown", `{}`); got != "Bigger." {
				t.Errorf("grown: %q", got)
			}
			r.end()
			if r.set.Specs() != nil || r.Status().Connected {
				t.Error("something is left when the server has ended")
			}
		})
	}
}

// A call that never ends, and an answer that is far too large, end by themselves; then the server is as it was.
func TestCallsThatCannotEnd(t *testing.T) {
	t.Parallel()
	const gone, late = "home can't be reached at the moment.", "Sorry, that took too long."
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			o := transport.o(t)
			o.Timeout = time.Second
			r := newRig(t, o)
			r.wait(some)
			if got := r.call("hang", `{}`); got != late {
				t.Errorf("a call that hangs: %q", got)
			}
			if got := r.call("huge", `{}`); got != gone && got != late {
				t.Errorf("a huge result: %.100q", got)
			}
			for r.call("echo", `{"text":"again"}`) != "again" {
				if !wait(t.Context(), time.Millisecond) {
					t.Fatal("it never came back")
				}
			}
		})
	}
}

func TestServerDiesInACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, peer("good"))
	r.wait(some)
	if got := r.call("die", `{}`); got != "home can't be reached at the moment." {
		t.Errorf("died with %q", got)
	}
	r.wait(none)
	r.wait(some)
	if got := r.call("echo", `{"text":"back"}`); got != "back" {
		t.Errorf("after it died: %q", got)
	}
}

func TestServerFreezes(t *testing.T) {
	t.Parallel()
	o := peer("good")
	o.Timeout = 200 * time.Millisecond
	r := newRig(t, o, func(s *Server) { s.listTime = 500 * time.Millisecond })
	r.wait(some)
	r.call("freeze", `{}`)
	// The next call after it has stopped takes too long; whoever notices has the server looked at, and replaced.
	for r.call("echo", `{"text":"x"}`) == "x" {
	}
	r.wait(none)
	r.wait(some)
}

// Servers that never become any.
func TestHopelessServers(t *testing.T) {
	t.Parallel()
	unreadable := filepath.Join(t.TempDir(), "token")
	slow := web(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	})
	broken := web(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	})
	elsewhere := web(t, func(http.Handler) http.Handler {
		return http.RedirectHandler("http://example.com/", http.StatusTemporaryRedirect)
	})
	for name, o := range map[string]Options{
		"mute": peer("mute"), "deaf": peer("deaf"), "babble": peer("babble"), "endless": peer("endless"), "brief": peer("brief"),
		"absent": {Command: []string{"/nowhere/at/all"}}, "slow": slow, "broken": broken, "redirects": elsewhere,
		"no token": {URL: broken.URL, TokenFile: unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, o, func(s *Server) { s.startTime = time.Second })
			for r.Status().Err == nil {
				if !wait(t.Context(), time.Millisecond) {
					t.Fatal("it didn't fail")
				}
			}
			t.Log(r.Status().Err)
			r.end()
			for len(r.puts) > 0 {
				if names := <-r.puts; names != "" {
					t.Errorf("it offered %s", names)
				}
			}
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, peer("good"))
	r.wait(some)
	pid, err := strconv.Atoi(r.call("spawn", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.end()
	// Orphans are waited for by others: dead is what isn't running.
	for {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(state, []byte(") Z ")) {
			break
		}
		if !wait(t.Context(), time.Millisecond) {
			t.Fatalf("the server's child lives: %s", state)
		}
	}
}

// Connections that have come and gone leave nothing running in the appliance.
func TestGoroutines(t *testing.T) {
	for _, transport := range transports {
		o := transport.o(t)
		before := runtime.NumGoroutine()
		for range 3 {
			r := newRig(t, o)
			r.wait(some)
			if got := r.call("echo", `{"text":"x"}`); got != "x" {
				t.Errorf("%s: %q", transport.name, got)
			}
			r.end()
		}
		for runtime.NumGoroutine() > before {
			if !wait(t.Context(), time.Millisecond) {
				t.Fatalf("%s: there are %d goroutines, and were %d", transport.name, runtime.NumGoroutine(), before)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_KEY", "of the appliance")
	r := newRig(t, peer("good"))
	r.wait(some)
	if got := r.call("environment", `{}`); strings.Contains(got, "SECRET_KEY") || !strings.Contains(got, peerMode) || !strings.Contains(got, "PATH=") {
		t.Errorf("the server's environment: %s", got)
	}
}

func TestStderr(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := peer("good")
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, o)
	r.wait(some)
	if got := r.call("shout", `{}`); got != "Quiet again." {
		t.Errorf("%q", got)
	}
	r.end()
	for _, want := range []string{"level=DEBUG", `text="first line"`, `text="second ? line"`, "says too much"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if log.Len() > 2*maxLog {
		t.Errorf("the log has %d bytes", log.Len())
	}
}

func TestAllowAndDeny(t *testing.T) {
	t.Parallel()
	o := peer("good")
	o.Allow, o.Deny = []string{"echo", "look.around", "sum", "voiceos_hook_transcript"}, []string{"sum"}
	newRig(t, o).wait(func(names string) bool { return names == "echo look_around" })
}

func TestToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong\n")
	var refused atomic.Int32
	o := web(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer right" {
				refused.Add(1)
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	o.TokenFile = file
	r := newRig(t, o)
	for r.Status().Err == nil {
		if !wait(t.Context(), time.Millisecond) {
			t.Fatal("the wrong token did")
		}
	}
	if err := r.Status().Err; strings.Contains(err.Error(), "wrong") {
		t.Errorf("the token is in the error: %v", err)
	}
	write("right")
	r.wait(some)
	if refused.Load() == 0 {
		t.Error("nobody looked at the token")
	}
}

// A server over HTTP that goes away is noticed by who calls it, and found again when it is back.
func TestHTTPServerGoesAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	serve := func(l net.Listener) *http.Server {
		server := newPeer()
		s := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
		go s.Serve(l)
		return s
	}
	s := serve(l)
	r := newRig(t, Options{URL: "http://" + address})
	r.wait(some)
	s.Close()
	if got := r.call("echo", `{"text":"x"}`); got != "home can't be reached at the moment." {
		t.Errorf("a call to a server that is gone: %q", got)
	}
	r.wait(none)
	if l, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	s = serve(l)
	defer s.Close()
	r.wait(some)
	if got := r.call("echo", `{"text":"x"}`); got != "x" {
		t.Errorf("after it came back: %q", got)
	}
}

// The Python SDK, if there is a Python that has it.
func TestPythonPeer(t *testing.T) {
	t.Parallel()
	python := os.Getenv("BELLBIRD_MCP_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import mcp.server").Run() != nil {
		t.Skip("no Python with the package mcp; BELLBIRD_MCP_PYTHON can name one")
	}
	check := func(t *testing.T, o Options) {
		r := newRig(t, o)
		r.wait(func(names string) bool { return names == "add fail" })
		if got := r.call("add", `{"a":"2","note":null}`); got != "3" {
			t.Errorf("add: %q", got)
		}
		if got := r.call("fail", `{}`); !strings.HasPrefix(got, "Error executing tool fail") {
			t.Errorf("fail: %q", got)
		}
	}
	t.Run("stdio", func(t *testing.T) { check(t, Options{Command: []string{python, "testdata/peer.py"}}) })
	t.Run("http", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		server := exec.Command(python, "testdata/peer.py", fmt.Sprint(port))
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			server.Process.Kill()
			server.Wait()
		}()
		check(t, Options{URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}) // it is tried until it is there
	})
}

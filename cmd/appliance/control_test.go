package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/api"
	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/hooks"
	"bellbird/internal/run"
	"bellbird/plugins/python"
	"bellbird/plugins/worker"
)

// The worker of plugins is this program, started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == pythonName {
		fmt.Fprintln(os.Stderr, python.Exec(os.Args[2]))
		os.Exit(exitFailed)
	}
	if len(os.Args) > 1 && os.Args[1] == workerName {
		if !underRace {
			os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
		}
		// The race detector's own memory is far more than a worker may have.
		_, err := worker.Sandbox(0)
		if err == nil {
			err = worker.Serve(context.Background(), os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A home is an appliance without ears that runs, and the command line beside it.
type home struct {
	t      *testing.T
	config string
	stop   func()
	body   *embodiment
	ended  chan error // when it ends by itself
	web    string     // the address of its API
	output *audio.Output
	bus    *event.Bus
}

// live runs an appliance that keeps its things in dir.
func live(t *testing.T, dir string) *home {
	t.Helper()
	needDemo(t)
	h := &home{t: t, config: filepath.Join(dir, "config.toml")}
	text := fmt.Sprintf("[api]\nsocket = %q\nlisten = \"127.0.0.1:0\"\n", filepath.Join(dir, "s"))
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := flags{config: h.config, state: filepath.Join(dir, "state")}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	c.Store.ScryptN = 1024 // as fast as a test should be
	virtual := clock.NewVirtual(time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC))
	output := audio.NewOutput(0)
	a, err := assemble(c, senses{timers: true, lasting: true, output: output, body: func(o gpio.Options) gpio.Options { return o }}, virtual, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	offered := a.offer(c, api.Options{Turns: a.turns, Chats: chatControl{a.store, a.turns}, Vault: vaultControl{a.store}}, log)
	socket, err := a.control(c.API, offered)
	if err != nil {
		t.Fatal(err)
	}
	parts := []run.Part{socket, a.resetting(c, log)}
	web, server, err := a.web(c.API, offered)
	if err != nil {
		t.Fatal(err)
	}
	if server != nil {
		parts, h.web = append(parts, web...), "http://"+server.Addr().String()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	h.body, h.ended, h.output, h.bus = a.body, done, output, a.bus
	go func() { // its time passes quickly, but not as fast as the machine can: a moment of ours must not be an hour of its
		for ctx.Err() == nil {
			brake := virtual.Work()
			<-time.After(time.Millisecond)
			brake()
		}
	}()
	go func() {
		done <- a.run(ctx, deafDevice{audiotest.NewRoom(audiotest.RoomOptions{Output: output}), virtual}, parts...)
	}()
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(h.stop)
	return h
}

// does runs a command and returns what it prints. code is the exit code that it should have.
func (h *home) does(code int, in string, args ...string) string {
	h.t.Helper()
	cmd := rootCommand()
	var out bytes.Buffer
	cmd.SetArgs(append([]string{"--config", h.config, "--state", filepath.Join(filepath.Dir(h.config), "state")}, args...))
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if err := cmd.ExecuteContext(h.t.Context()); err != nil {
		fmt.Fprint(&out, err)
		if code == 0 {
			h.t.Errorf("bellbird %s: %v", strings.Join(args, " "), err)
		}
	} else if code != 0 {
		h.t.Errorf("bellbird %s: no error: %s", strings.Join(args, " "), out.String())
	}
	return out.String()
}

// shows runs a command that must succeed and print all of want.
func (h *home) shows(args []string, want ...string) {
	h.t.Helper()
	out := h.does(0, "", args...)
	for _, w := range want {
		if !strings.Contains(out, w) {
			h.t.Errorf("bellbird %s: no %q in:\n%s", strings.Join(args, " "), w, out)
		}
	}
}

func words(line string) []string { return strings.Fields(line) }

// What is said, and what the chats are set to, is there after a restart; private chats are only there for who has the
// passphrase.
func TestChatCommands(t *testing.T) {
	dir := t.TempDir()
	h := live(t, dir)
	h.shows(words("chat list"), "* default", "never used")
	h.shows(words("ask what time is it"), "It's ") // which may be any: its clock doesn't wait for us
	h.shows(words("chat new cooking"), `"cooking" is there now`)
	h.shows(words("ask --chat cooking what's the date"), "It's ")
	h.shows(words("chat export cooking"), "what's the date", `"completed"`)
	if out := h.does(0, "", "chat", "export", "default"); strings.Contains(out, "the date") {
		t.Errorf("the active chat was touched: %s", out)
	}
	h.shows(words("chat set cooking inject_datetime=true custom_context=Onions. ghost_context=Keep_it_short."), `custom_context="Onions."`, "inject_datetime=true")
	h.shows([]string{"chat", "preview", "cooking", "--input", "how long do eggs take"},
		"Onions.", "in this request only", "- Time: ", "- (operator): Keep_it_short.", "how long do eggs take", "set_timer")
	h.shows(words("chat rename cooking kitchen"), "renamed")
	h.shows(words("chat use kitchen"), "active")
	if out := h.does(1, "", "chat", "use", "attic"); !strings.Contains(out, "no such chat") {
		t.Error(out)
	}
	h.stop()
	if out := h.does(1, "", "chat", "list"); !strings.Contains(out, "not running") {
		t.Error(out)
	}

	h = live(t, dir)
	h.shows(words("chat list"), "* kitchen", "default")
	h.shows(words("chat export kitchen"), "what's the date")
	h.shows(words("vault state"), "none")
	h.does(0, "open sesame\n", "vault", "setup")
	h.shows(words("chat set kitchen private_chat=true"), "private_chat=true")
	h.shows(words("chat list"), "private, sealed")
	h.shows(words("vault lock"), "locked")
	if out := h.does(0, "", "chat", "list"); strings.Contains(out, "kitchen") {
		t.Errorf("a sealed chat is listed: %s", out)
	}
	if out := h.does(1, "", "ask", "what", "time", "is", "it"); !strings.Contains(out, "private and locked") {
		t.Errorf("a turn in a sealed chat: %s", out)
	}
	if out := h.does(1, "wrong\n", "vault", "unlock"); !strings.Contains(out, "passphrase is wrong") {
		t.Error(out)
	}
	h.stop()

	h = live(t, dir)
	h.shows(words("vault state"), "locked")
	h.does(0, "open sesame\n", "vault", "unlock")
	h.shows(words("chat export kitchen"), "what's the date")
	h.shows(words("chat clear kitchen"), "empty")
	if out := h.does(0, "", "chat", "export", "kitchen"); strings.Contains(out, "the date") {
		t.Error(out)
	}
	h.shows(words("chat delete kitchen"), "gone")
	h.shows(words("chat list"), "* default")
}

// Plugins of the running appliance are switched, reloaded and followed, and a choice outlasts it.
func TestPluginCommands(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "state", "plugins", "polite")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(plugin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(plugin, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("plugin.json", `{"name": "polite", "version": "1.0.0", "description": "Says thanks.", "capabilities": {"hooks": {"post_llm": "polite.star"}}}`)
	write("polite.star", "def post_llm(event):\n    event.response += \" Thank you.\"\n")
	h := live(t, dir)
	h.shows(words("plugin list"), "polite", "off", "post_llm", "voice-commands", "on, system")
	if out := h.does(1, "", "plugin", "enable", "polite"); !strings.Contains(out, `"bellbird plugin consent polite --allow-unsigned"`) {
		t.Error(out)
	}
	h.shows(words("plugin list"), "failed", "unsigned", "error: nobody signed it")
	h.shows(words("plugin consent --yes --allow-unsigned polite"), "every answer", "polite is allowed to do this")
	h.shows(words("plugin list"), "polite", "on", "unsigned")
	h.shows(words("plugin enable polite"), "polite is enabled")
	h.shows(words("ask what time is it"), "Thank you.")

	// Follow one fire.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen bytes.Buffer
	f := flags{config: h.config}
	client, err := f.client()
	if err != nil {
		t.Fatal(err)
	}
	err = client.Events(ctx, "/api/events?kind=hook_fired", func(kind string, data []byte) error {
		if err := printFire(&seen, kind, data, []string{"polite"}); err != nil {
			return err
		}
		if strings.Contains(seen.String(), "polite") {
			return context.Canceled
		}
		return nil
	}, func() { h.shows(words("ask what time is it"), "Thank you.") })
	if err != context.Canceled || !strings.Contains(seen.String(), "post_llm") || !strings.Contains(seen.String(), "committed") {
		t.Errorf("trace %q, error %v", seen.String(), err)
	}

	h.shows(words("plugin list"), "post_llm: 2 calls", "0 missed, 0 failed")
	write("polite.star", "def post_llm(event):\n    event.response += \" Cheers.\"\n")
	h.shows(words("plugin reload polite"), "loaded again")
	h.shows(words("ask what time is it"), "Cheers.")
	write("polite.star", "def post_llm(event:\n")
	if out := h.does(1, "", "plugin", "reload", "polite"); !strings.Contains(out, "polite.star") {
		t.Error(out)
	}
	h.shows(words("ask what time is it"), "Cheers.") // the old one goes on
	if out := h.does(1, "", "plugin", "enable", "nobody"); !strings.Contains(out, `"nobody"`) {
		t.Error(out)
	}
	write("polite.star", "def post_llm(event):\n    event.response += \" Cheers.\"\n")
	h.stop()

	h.shows(words("plugin list"), "polite", "The appliance is not running")
	h.shows(words("plugin disable polite"), "polite is disabled (the appliance is not running)")
	h = live(t, dir)
	if out := h.does(0, "", "ask", "what", "time", "is", "it"); strings.Contains(out, "Cheers") {
		t.Error(out)
	}
}

// What plugins say of private chats reaches neither the list nor who follows the hooks.
func TestTallyKeepsPrivateErrors(t *testing.T) {
	a := &appliance{clock: clock.System, bus: new(event.Bus)}
	facts := a.bus.Subscribe(10)
	told := a.watchHooks()
	said := errors.New("my secret")
	told(hooks.Trace{{Plugin: "p", Point: "pre_chat", Outcome: hooks.Failed, Err: said, Private: true}})
	if h := a.tally.hook("p", "pre_chat"); h.Failures != 1 || h.Error != "" {
		t.Errorf("private: %+v", h)
	}
	told(hooks.Trace{{Plugin: "p", Point: "pre_chat", Outcome: hooks.Failed, Err: said}})
	if h := a.tally.hook("p", "pre_chat"); h.Failures != 2 || h.Error != "my secret" {
		t.Errorf("%+v", h)
	}
	facts.Close()
	var errs []string
	for f := range facts.C {
		errs = append(errs, f.(event.HookFired).Calls[0].Error)
	}
	if !slices.Equal(errs, []string{"", "my secret"}) {
		t.Errorf("told %q", errs)
	}
}

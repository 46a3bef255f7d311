package plugins_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// A rig is a loader with directories of its own.
type rig struct {
	*plugins.Loader
	runner *hooks.Runner
	o      plugins.Options
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	r := hooks.New(hooks.Options{})
	t.Cleanup(r.Close)
	o := plugins.Options{
		SystemDir: filepath.Join(dir, "system"), UserDir: filepath.Join(dir, "user"), StateDir: filepath.Join(dir, "state"),
		SystemRuntimes: map[string]plugins.Runtime{".star": starlark.Runtime{}},
		UserRuntimes:   map[string]plugins.Runtime{".star": starlark.Runtime{}}, Runner: r, Logger: slog.New(slog.DiscardHandler),
	}
	return &rig{plugins.New(o), r, o}
}

// write puts a plugin's files into a directory.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// appender is a plugin that appends its name to the input.
func appender(name, more string) map[string]string {
	return map[string]string{
		"plugin.json":  `{"name":"` + name + `","default_enabled":true` + more + `,"capabilities":{"hooks":{"post_stt":"hooks/a.star"}}}`,
		"hooks/a.star": "def post_stt(event):\n    event.input += ' " + name + "'\n",
	}
}

func (r *rig) fire(t *testing.T, point, input string) string {
	e := &hooks.Event{Input: input}
	r.runner.Fire(t.Context(), point, e)
	return e.Input
}

func (r *rig) scan(t *testing.T) {
	t.Helper()
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) info(t *testing.T, name string) plugins.Info {
	t.Helper()
	for _, i := range r.List() {
		if i.Manifest.Name == name {
			return i
		}
	}
	t.Fatalf("no plugin %q", name)
	return plugins.Info{}
}

// watched makes the user's directory, so that it can be watched, and returns the reasons of plugins_ready as they come.
func (r *rig) watched(t *testing.T) <-chan string {
	t.Helper()
	if err := os.MkdirAll(r.o.UserDir, 0o755); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 10)
	if err := r.runner.Register(hooks.Handler{Plugin: "test", Point: "plugins_ready", Func: func(_ context.Context, e *hooks.Event) error {
		ready <- e.Metadata["reason"].(string)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	return ready
}

// A second scan finds what came and drops what went, and a plugin of the system takes its place again.
func TestScanAgain(t *testing.T) {
	r := newRig(t)
	write(t, filepath.Join(r.o.SystemDir, "a"), appender("a", ""))
	mine := write(t, filepath.Join(r.o.UserDir, "a"), appender("a", ""))
	gone := write(t, filepath.Join(r.o.UserDir, "gone"), appender("gone", ""))
	r.scan(t)
	if i := r.info(t, "a"); i.Band != hooks.User || !r.info(t, "gone").Loaded {
		t.Fatalf("%+v", r.List())
	}
	for _, dir := range []string{mine, gone} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(r.o.UserDir, "new"), appender("new", ""))
	r.scan(t)
	if i := r.info(t, "a"); i.Band != hooks.System || !i.Loaded || !r.info(t, "new").Loaded || len(r.List()) != 2 {
		t.Errorf("%+v", r.List())
	}
	if got := r.fire(t, "post_stt", "x"); got != "x a new" {
		t.Errorf("%q", got)
	}
}

func TestScan(t *testing.T) {
	r := newRig(t)
	write(t, filepath.Join(r.o.SystemDir, "b"), appender("b", ""))
	write(t, filepath.Join(r.o.SystemDir, "a"), appender("a", `,"priority":60`))
	write(t, filepath.Join(r.o.UserDir, "u"), appender("u", `,"priority":-7,"icon":"x"`))
	write(t, filepath.Join(r.o.UserDir, "off"), map[string]string{"plugin.json": `{"name":"off","capabilities":{"hooks":{"post_stt":"x.star"}}}`})
	write(t, filepath.Join(r.o.UserDir, "broken"), map[string]string{"plugin.json": "{\n\"name\":"})
	write(t, filepath.Join(r.o.UserDir, "nothing"), map[string]string{"readme.md": "no manifest"})
	bad := appender("bad", "")
	bad["hooks/a.star"] = "def post_stt(event)\n"
	write(t, filepath.Join(r.o.UserDir, "bad"), bad)
	missing := appender("missing", "")
	delete(missing, "hooks/a.star")
	write(t, filepath.Join(r.o.UserDir, "missing"), missing)

	var ready []map[string]any
	if err := r.runner.Register(hooks.Handler{Plugin: "test", Point: "plugins_ready", Func: func(_ context.Context, e *hooks.Event) error {
		ready = append(ready, e.Metadata)
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x b a u" {
		t.Errorf("input %q, want the system's first, and each in its order", got)
	}
	var names []string
	for _, i := range r.List() {
		names = append(names, i.Manifest.Name)
	}
	if want := []string{"a", "b", "bad", "missing", "off", "u"}; !slices.Equal(names, want) {
		t.Errorf("plugins %v, want %v", names, want)
	}
	if i := r.info(t, "bad"); i.Loaded || len(i.Errors) == 0 || !strings.Contains(i.Errors[0], "a.star:2") {
		t.Errorf("bad: %+v", i)
	}
	if i := r.info(t, "missing"); !i.Loaded || len(i.Errors) == 0 {
		t.Errorf("missing: %+v", i)
	}
	if i := r.info(t, "off"); i.Loaded || i.Enabled {
		t.Errorf("off: %+v", i)
	}
	if i := r.info(t, "u"); !slices.Equal(i.Manifest.Unknown, []string{"icon"}) {
		t.Errorf("u: unknown fields %v", i.Manifest.Unknown)
	}
	r.runner.Close()
	if len(ready) != 1 || ready[0]["loaded"] != 4 || ready[0]["reason"] != "scan" {
		t.Errorf("plugins_ready: %v", ready)
	}
}

func TestEnablingLasts(t *testing.T) {
	r := newRig(t)
	write(t, filepath.Join(r.o.UserDir, "p"), appender("p", ""))
	r.scan(t)
	if err := r.SetEnabled(t.Context(), "p", false); err != nil {
		t.Fatal(err)
	}
	if got := r.fire(t, "post_stt", "x"); got != "x" {
		t.Errorf("disabled, but %q", got)
	}
	again := plugins.New(r.o)
	if err := again.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := again.List()[0]; i.Enabled || i.Loaded {
		t.Errorf("after a restart: %+v", i)
	}
	if err := again.SetEnabled(t.Context(), "p", true); err != nil {
		t.Fatal(err)
	}
	if got := r.fire(t, "post_stt", "x"); got != "x p" {
		t.Errorf("enabled, but %q", got)
	}
	if err := r.SetEnabled(t.Context(), "nobody", true); !errors.Is(err, plugins.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}

func TestReload(t *testing.T) {
	r := newRig(t)
	dir := write(t, filepath.Join(r.o.UserDir, "p"), appender("p", ""))
	r.scan(t)
	write(t, dir, map[string]string{"hooks/a.star": "def post_stt(event):\n    event.input += ' new'\n"})
	if err := r.Reload(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if got := r.fire(t, "post_stt", "x"); got != "x new" {
		t.Errorf("reloaded, but %q", got)
	}
	for _, broken := range []map[string]string{
		{"hooks/a.star": "def post_stt(event):\n    event.inptu('\n"}, {"plugin.json": "{"}, {"plugin.json": `{"name":"other"}`},
	} {
		write(t, dir, broken)
		if err := r.Reload(t.Context(), "p"); err == nil {
			t.Errorf("%v: no error", broken)
		}
		if got := r.fire(t, "post_stt", "x"); got != "x new" {
			t.Errorf("after a failed reload: %q", got)
		}
		if i := r.info(t, "p"); !i.Loaded || len(i.Errors) == 0 {
			t.Errorf("after a failed reload: %+v", i)
		}
	}
}

func TestHandlersStayWithinTheirPlugin(t *testing.T) {
	r := newRig(t)
	secret := write(t, filepath.Join(r.o.UserDir, "..", "elsewhere"), map[string]string{"a.star": "def post_stt(event):\n    event.input += ' escaped'\n"})
	for name, file := range map[string]string{"up": "../../elsewhere/a.star", "absolute": filepath.Join(secret, "a.star")} {
		write(t, filepath.Join(r.o.UserDir, name), map[string]string{
			"plugin.json": `{"name":"` + name + `","default_enabled":true,"capabilities":{"hooks":{"post_stt":"` + file + `"}}}`,
		})
	}
	linked := write(t, filepath.Join(r.o.UserDir, "link"), map[string]string{
		"plugin.json": `{"name":"link","default_enabled":true,"capabilities":{"hooks":{"post_stt":"a.star"}}}`,
	})
	if err := os.Symlink(filepath.Join(secret, "a.star"), filepath.Join(linked, "a.star")); err != nil {
		t.Fatal(err)
	}
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x" {
		t.Errorf("input %q", got)
	}
}

func TestVoiceCommands(t *testing.T) {
	r := newRig(t)
	write(t, filepath.Join(r.o.UserDir, "goodnight"), map[string]string{
		"plugin.json": `{"name":"goodnight","default_enabled":true,"capabilities":{"voice_commands":[
			{"triggers":["goodnight","good night"],"match":"exact","bypass_llm":true,"handler":"a.star"},
			{"triggers":["play (\\w+)"],"match":"regex","handler":"a.star"}]}}`,
		"a.star": `
def pre_chat(event):
    groups = event.metadata.get("captures")
    if groups:
        event.response = "Playing " + groups[1] + "."
    else:
        event.response = "Goodnight."
    event.skip_llm = True
    event.stop_propagation = True
`,
	})
	r.scan(t)
	for input, want := range map[string]string{"Good night!": "Goodnight.", "please play jazz": "Playing jazz.", "good nightmare": ""} {
		e := &hooks.Event{Input: input}
		r.runner.Fire(t.Context(), "pre_chat", e)
		got := ""
		if e.Response != nil {
			got = *e.Response
		}
		if got != want {
			t.Errorf("%q: %q, want %q", input, got, want)
		}
	}
}

func TestBadManifests(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\n\"name\": }":               "line 3",
		`{"name":""}`:                    `name ""`,
		`{"name":"../up"}`:               `name "../up"`,
		`{"name":"p","priority":"high"}`: "priority",
		`{"name":"p","capabilities":{"hooks":{"pre_chat":"/etc/passwd"}}}`:                                            "capabilities.hooks.pre_chat",
		`{"name":"p","capabilities":{"hooks":{"pre_chat":""}}}`:                                                       "no file is named",
		`{"name":"p","capabilities":{"voice_commands":[{"triggers":["ok","("],"match":"regex","handler":"a.star"}]}}`: "voice_commands[0].triggers[1]",
		`{"name":"p","capabilities":{"voice_commands":[{"triggers":["x"],"match":"often","handler":"a.star"}]}}`:      `match "often"`,
		`{"name":"p","capabilities":{"voice_commands":[{"triggers":["x"]}]}}`:                                         "voice_commands[0].handler",
		`[]`: "plugin.json",
	} {
		dir := write(t, t.TempDir(), map[string]string{"plugin.json": text})
		if _, err := plugins.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestScaffold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-plugin")
	if err := plugins.Scaffold(dir); err != nil {
		t.Fatal(err)
	}
	verdicts, err := plugins.Try(t.Context(), dir, map[string]plugins.Runtime{".star": starlark.Runtime{}}, slog.New(slog.DiscardHandler))
	if err != nil || len(verdicts) != 1 || len(verdicts[0].Faults) > 0 {
		t.Errorf("verdicts %+v, error %v", verdicts, err)
	}
	for _, bad := range []string{dir, filepath.Join(t.TempDir(), "My Plugin")} {
		if err := plugins.Scaffold(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// A plugin that is written, changed, broken and removed while the appliance runs.
func TestWatch(t *testing.T) {
	r := newRig(t)
	ready := r.watched(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	await := func(want string) {
		t.Helper()
		select {
		case got := <-ready:
			if got != want {
				t.Errorf("plugins_ready for %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no plugins_ready for %q", want)
		}
	}
	w, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	r.scan(t)
	await("scan")
	go func() { ended <- w.Run(ctx) }()
	dir := write(t, filepath.Join(r.o.UserDir, "p"), appender("p", ""))
	await("rescan")
	if got := r.fire(t, "post_stt", "x"); got != "x p" {
		t.Errorf("input %q", got)
	}
	write(t, dir, map[string]string{"hooks/a.star": "def post_stt(event):\n    event.input += ' new'\n"})
	await("reload")
	if got := r.fire(t, "post_stt", "x"); got != "x new" {
		t.Errorf("input %q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); r.runner.Has("post_stt"); {
		if time.Now().After(deadline) {
			t.Fatal("the plugin is not unloaded")
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A plugin that is built in comes first, and a directory's takes its place.
func TestBuiltin(t *testing.T) {
	r := newRig(t)
	r.o.Builtin = fstest.MapFS{
		"own/plugin.json":  {Data: []byte(appender("own", "")["plugin.json"])},
		"own/hooks/a.star": {Data: []byte(appender("own", "")["hooks/a.star"])},
		"same/plugin.json": {Data: []byte(`{"name":"same","default_enabled":true,"capabilities":{"hooks":{"post_stt":"a.star"}}}`)},
		"same/a.star":      {Data: []byte("def post_stt(event):\n    event.input += ' builtin'\n")},
		"README":           {Data: []byte("no plugin")},
	}
	r.Loader = plugins.New(r.o)
	write(t, filepath.Join(r.o.UserDir, "u"), appender("u", ""))
	write(t, filepath.Join(r.o.SystemDir, "same"), appender("same", ""))
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x own same u" {
		t.Errorf("input %q", got)
	}
	if i := r.info(t, "own"); i.Band != hooks.System || i.Dir != "" || !i.Loaded {
		t.Errorf("%+v", i)
	}
	if err := r.Reload(t.Context(), "own"); err != nil {
		t.Error(err)
	}
	if err := r.SetEnabled(t.Context(), "own", false); err != nil {
		t.Error(err)
	}
	if got := r.fire(t, "post_stt", "x"); got != "x same u" {
		t.Errorf("disabled: input %q", got)
	}
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x same u" {
		t.Errorf("scanned again: input %q", got)
	}
}

// What a plugin does otherwise than its trials say is a fault, whatever it makes of it.
func TestFaultsOfTrials(t *testing.T) {
	for name, test := range map[string]struct{ body, trial, want string }{
		"not called":       {`pass`, `"system":[{"call":"tts.stop"}]`, "it did not call system.tts.stop"},
		"not expected":     {`event.metadata["system"].tts.stop()`, `"system":[]`, "it calls system.tts.stop({}), which is not in the trial"},
		"other arguments":  {`event.metadata["system"].volume.set(3)`, `"system":[{"call":"volume.set","args":[4]}]`, `with {"percent":3}, not system.volume.set with {"percent":4}`},
		"wrong arguments":  {`event.metadata["system"].volume.set(300)`, `"system":[{"call":"volume.set","args":[30]}]`, "300 is not from 0 to 100"},
		"not asked":        {`pass`, `"http":[{"url":"http://x/"}]`, "it did not ask for http://x/"},
		"another request":  {`http.get("http://x/y")`, `"http":[{"url":"http://x/"}]`, "which is not in the trial"},
		"not listed":       {`http.get("http://y/")`, `"http":[{"url":"http://y/"}]`, "not listed"},
		"another body":     {`http.post("http://x/", body="b")`, `"http":[{"url":"http://x/","method":"POST","sent":"c"}]`, `it sends "b"`},
		"another state":    {`state.save("a", 1)`, `"want_state":{"a":2}`, "state: a is 1, not 2"},
		"it fails":         {`fail("broken")`, `"want":{}`, "broken"},
		"no fault":         {`state.save("a", state.get("a") + 1)`, `"state":{"a":1},"want_state":{"a":2}`, ""},
		"the power failed": {`event.metadata["system"].tts.stop()`, `"system":[{"call":"tts.stop","error":"no voice"}]`, "no voice"},
	} {
		dir := write(t, t.TempDir(), map[string]string{
			"plugin.json":  `{"name":"p","network":["x"],"capabilities":{"hooks":{"post_chat":"a.star"}}}`,
			"a.star":       "def post_chat(event):\n    " + test.body + "\n",
			"tests/a.json": `[{"name":"n","point":"post_chat","event":{"input":"x"},` + test.trial + `}]`,
		})
		verdicts, err := plugins.Try(t.Context(), dir, map[string]plugins.Runtime{".star": starlark.Runtime{}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(verdicts[0].Faults, "; "); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: faults %q, want %q", name, got, test.want)
		}
	}
}

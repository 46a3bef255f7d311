package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// keepRig is a rig whose plugin p keeps things, and is the user's.
func keepRig(t *testing.T, manifest, source string) (*rig, *plugins.MemoryState) {
	t.Helper()
	r := newRig(t)
	st := new(plugins.MemoryState)
	r.o.State = func(string) plugins.State { return st }
	r.Loader = plugins.New(r.o)
	write(t, filepath.Join(r.o.UserDir, "p"), map[string]string{
		"plugin.json": `{"name":"p","default_enabled":true,` + manifest + `}`, "a.star": source,
	})
	r.scan(t)
	return r, st
}

// The user's choice of surfaces comes before the manifest's, if that has any; and scripts can't change it.
func TestChosenSurfaces(t *testing.T) {
	const source = `
def prompt_inject(event):
    event.context_parts.append("here")
def pre_chat(event):
    state.save("mine", 1)
    if event.input == "clear":
        state.clear()
    if event.input == "save":
        state.save("surfaces", ["game"])
    if event.input == "update":
        state.update("surfaces", lambda s: ["game"])
    if event.input == "delete":
        state.delete("surfaces")
`
	r, st := keepRig(t, `"surfaces":["chat","sky"],"capabilities":{"hooks":{"prompt_inject":"a.star","pre_chat":"a.star"}}`, source)
	on := func(surface string) bool {
		e := &hooks.Event{Surface: &surface}
		r.runner.Fire(t.Context(), "prompt_inject", e)
		return len(e.ContextParts) > 0
	}
	check := func(what string, chat, game bool) {
		t.Helper()
		if on("chat") != chat || on("game") != game {
			t.Errorf("%s: chat %v, game %v", what, on("chat"), on("game"))
		}
	}
	check("the manifest", true, false)
	set := func(v any) {
		t.Helper()
		if err := r.SetSettings("p", map[string]any{"surfaces": v}); err != nil {
			t.Fatal(err)
		}
	}
	set([]any{"game", "moon"})
	check("chosen", false, true)
	for _, input := range []string{"save", "update", "delete", "clear"} {
		r.fire(t, "pre_chat", input)
	}
	if err := r.Reload(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	check("after a script tried and a reload", false, true)
	if len(st.All()) != 1 {
		t.Errorf("state %v", st.All())
	}
	set([]any{})
	check("nowhere", false, false)
	set(nil)
	check("the manifest again", true, false)
	if err := r.SetSettings("p", map[string]any{"surfaces": "chat"}); err == nil {
		t.Error("a text: no error")
	}

	r, _ = keepRig(t, `"capabilities":{"hooks":{"prompt_inject":"a.star"}}`, source)
	check("everywhere", true, true)
	if err := r.SetSettings("p", map[string]any{"surfaces": []any{"chat"}}); err == nil || !strings.Contains(err.Error(), "no setting") {
		t.Errorf("of a plugin that is everywhere: error %v", err)
	}
}

func TestSettingsLast(t *testing.T) {
	const declared = `"capabilities":{"hooks":{"post_stt":"a.star"},"settings":[
		{"key":"end","type":"string","default":".","options":[{"value":"."},{"value":"!"}]},{"key":"times","type":"number","default":1,"max":3}]}`
	const source = "def post_stt(event):\n    event.input += settings['end'] * settings['times']\n"
	r, _ := keepRig(t, declared, source)
	want := func(s string) {
		t.Helper()
		if got := r.fire(t, "post_stt", "x"); got != s {
			t.Errorf("input %q, want %q", got, s)
		}
	}
	want("x.")
	for _, bad := range []map[string]any{{"end": "?"}, {"times": 4.0}, {"times": "2"}, {"times": 2.0, "x": 1.0}, {"end": []any{}}} {
		if err := r.SetSettings("p", bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	want("x.")
	if err := r.SetSettings("p", map[string]any{"end": "!", "times": 2.0}); err != nil {
		t.Fatal(err)
	}
	want("x!!")
	// A new version that allows less has its default, and the choice is kept for one that allows it again.
	write(t, filepath.Join(r.o.UserDir, "p"), map[string]string{"plugin.json": strings.Replace(`{"name":"p","default_enabled":true,`+declared+`}`, `"max":3`, `"max":1`, 1)})
	if err := r.Reload(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	want("x!")
	file := filepath.Join(r.o.StateDir, "settings", "p.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: there may be secrets in it", info, err)
	}
	if err := os.WriteFile(file, []byte("{rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Loader = plugins.New(r.o)
	r.scan(t)
	want("x.")
	if kept, err := filepath.Glob(file + ".bad-*"); err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
	if err := r.SetSettings("nobody", nil); !errors.Is(err, plugins.ErrUnknown) {
		t.Errorf("error %v", err)
	}
}

func TestDeclaredSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"key":"a b","type":"string"}`:                                     `[0] "a b": a key is made of`,
		`{"key":"a","type":"colour"}`:                                       `type "colour"`,
		`{"key":"a","type":"number","default":"1"}`:                         "default: it should be a number",
		`{"key":"a","type":"number","default":1,"min":2}`:                   "default: 1 is less than 2",
		`{"key":"a","type":"string"},{"key":"a","type":"string"}`:           "[1]",
		`{"key":"surfaces","type":"list"}`:                                  "appliance's own",
		`{"key":"a","type":"string","default":"x","options":[{"value":1}]}`: "one of",
		`{"key":"a","type":"list","default":["x"]}`:                         "",
	} {
		dir := write(t, t.TempDir(), map[string]string{"plugin.json": `{"name":"p","capabilities":{"settings":[` + settings + `]}}`})
		_, err := plugins.ReadManifest(dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", settings, err, want)
		}
	}
	dir := write(t, t.TempDir(), map[string]string{"plugin.json": `{"name":"p","capabilities":{"tools":["../a.star"]}}`})
	if _, err := plugins.ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "capabilities.tools[0]") {
		t.Errorf("a file elsewhere: error %v", err)
	}
}

// If it isn't known whether a chat is private, it is.
func TestRowsWithoutAResolver(t *testing.T) {
	r := newRig(t)
	rows := new(plugins.MemoryRows)
	rows.AddChat("c")
	r.o.Rows = func(string) plugins.Rows { return rows }
	r.o.Private = func(context.Context, *string) (string, bool, error) { return "", false, errors.New("no answer") }
	r.Loader = plugins.New(r.o)
	const source = "def post_stt(event):\n    event.input = str(chat_state.read_all('c', 'k'))\ndef pre_chat(event):\n    chat_state.append('c', 'k', 1)\n" +
		"def post_llm(event):\n    chat_state.delete('c')\n"
	for name, aware := range map[string]string{"aware": "true", "unaware": "false"} {
		write(t, filepath.Join(r.o.UserDir, name), map[string]string{
			"plugin.json": `{"name":"` + name + `","default_enabled":true,"privacy_aware":` + aware +
				`,"capabilities":{"hooks":{"post_stt":"a.star","pre_chat":"a.star","post_llm":"a.star"}}}`, "a.star": source,
		})
	}
	r.scan(t)
	r.fire(t, "pre_chat", "")
	if n := len(rows.ReadAll("c", "k")); n != 1 {
		t.Errorf("%d rows, one of them by an unaware plugin", n)
	}
	if got := r.fire(t, "post_stt", ""); got != "[]" { // the unaware one is the last
		t.Errorf("it reads %s", got)
	}
	if err := r.SetEnabled(t.Context(), "aware", false); err != nil {
		t.Fatal(err)
	}
	r.fire(t, "post_llm", "")
	if n := len(rows.Keys("c")); n != 0 {
		t.Error("it can't delete what it left")
	}
}

// What a plugin keeps otherwise than its trials say is a fault.
func TestTrialsOfWhatIsKept(t *testing.T) {
	for name, test := range map[string]struct{ body, trial, want string }{
		"no fault": {`chat_state.append("c", "k", 2)`, `"event":{"chat_name":"c"},"rows":{"c":{"k":{"rows":[1]}}},"want_rows":{"c":{"k":{"rows":[1,2]}}}`, ""},
		"other rows": {`chat_state.append("c", "k", 2)`, `"event":{"chat_name":"c"},"want_rows":{"c":{"k":{"rows":[1]}}}`,
			`rows of c: k is {"rows":[2]}, not {"rows":[1]}`},
		"nothing":      {`chat_state.append("c", "k", 2)`, `"rows":{"c":{}},"want_rows":{"c":{"k":{}}}`, `k is {"rows":[2]}, not {}`},
		"slot 0":       {`chat_state.put("c", "k", 2)`, `"rows":{"c":{"k":{"value":1,"rows":[5]}}},"want_rows":{"c":{"k":{"value":2,"rows":[5]}}}`, ""},
		"no chat":      {`chat_state.put("d", "k", 2)`, `"rows":{"c":{}}`, "no such chat"},
		"private":      {`chat_state.put("c", "k", 2)`, `"rows":{"c":{}},"private":["c"]`, "no such chat"},
		"unseen":       {`event.input = str(chat_state.keys("c"))`, `"rows":{"c":{"k":{"value":1}}},"private":["c"],"want_rows":{"c":{"k":{"value":1}}}`, ""},
		"settings":     {`state.save("a", settings["n"])`, `"settings":{"n":3},"want_state":{"a":3}`, ""},
		"not declared": {`pass`, `"settings":{"m":3}`, `error: settings: the manifest has no "m"`},
		"misfit":       {`pass`, `"settings":{"n":"3"}`, "error: settings: n: it should be a number"},
		"reserved":     {`state.save("surfaces", [])`, `"event":{}`, "use another key"},
	} {
		point := `"point":"post_chat",`
		dir := write(t, t.TempDir(), map[string]string{
			"plugin.json":  `{"name":"p","capabilities":{"hooks":{"post_chat":"a.star"},"settings":[{"key":"n","type":"number","default":1}]}}`,
			"a.star":       "def post_chat(event):\n    " + test.body + "\n",
			"tests/a.json": `[{"name":"n",` + point + test.trial + `}]`,
		})
		check(t, name, dir, test.want)
	}
	for name, test := range map[string]struct{ body, trial, want string }{
		"no fault":      {`return "a" + arguments["x"]`, `"tool":"t","arguments":{"x":"b"},"want_result":"ab"`, ""},
		"other result":  {`return "a"`, `"tool":"t","want_result":"b"`, `the result is "a", not "b"`},
		"it fails":      {`fail("broken")`, `"tool":"t"`, "broken"},
		"it refuses":    {`return "no", False`, `"tool":"t","want_result":"no"`, ""},
		"rows":          {`return str(chat_state.append("c", "k", 1))`, `"tool":"t","rows":{"c":{}},"want_result":"1","want_rows":{"c":{"k":{"rows":[1]}}}`, ""},
		"no such tool":  {`pass`, `"tool":"u"`, `error: the plugin has no tool "u"`},
		"both":          {`pass`, `"tool":"t","point":"pre_chat"`, "a trial is of one of them"},
		"a point alone": {`pass`, `"point":"pre_chat"`, "no hook at"},
	} {
		dir := write(t, t.TempDir(), map[string]string{
			"plugin.json":  `{"name":"p","capabilities":{"tools":["a.star"]}}`,
			"a.star":       "TOOLS = [{'name': 't'}]\ndef execute(name, arguments):\n    " + test.body + "\n",
			"tests/a.json": `[{"name":"n",` + test.trial + `}]`,
		})
		check(t, "tool: "+name, dir, test.want)
	}
}

// check tries a plugin that has one trial. want is a part of its faults, or of the error.
func check(t *testing.T, name, dir, want string) {
	t.Helper()
	verdicts, err := plugins.Try(t.Context(), dir, map[string]plugins.Runtime{".star": starlark.Runtime{}}, slog.New(slog.DiscardHandler))
	got := fmt.Sprint("error: ", err)
	if err == nil {
		got = strings.Join(verdicts[0].Faults, "; ")
	}
	if (got == "") != (want == "") || !strings.Contains(strings.Replace(got, "error: "+filepath.Join(dir, "tests/a.json")+`: "n": `, "error: ", 1), want) {
		t.Errorf("%s: %s, want %q", name, got, want)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
	"bellbird/store"
	"bellbird/tools"
)

// A house is a store, a runner, and a loader with plugins that keep things in it.
type house struct {
	*testing.T
	*store.Store
	runner *hooks.Runner
	loader *plugins.Loader
	tools  *tools.Set
	o      plugins.Options
}

// diary is a plugin that writes down what it is told, and answers with what it has.
const diary = `
def pre_chat(event):
    chat = event.metadata["chat"]
    seq = chat_state.append(chat, "diary", event.input)
    event.context_parts.append("%d by %s" % (seq, settings["by"]))
def post_stt(event):
    chat = event.metadata["chat"]
    event.input = ",".join(chat_state.read_all(chat, "diary")) or chat_state.get(chat, "x", default="nothing")
def post_llm(event):
    chat_state.put(event.metadata["chat"], "seen", [event.chat_name])
`

// furnish makes a house with plugins p, which is aware of privacy, and q, which isn't.
func furnish(t *testing.T) *house {
	h := &house{T: t}
	h.Store = openStore(t, store.Options{After: func(c store.Change) {
		point, e := lifecycle(c)
		h.runner.Fire(context.Background(), point, e)
	}})
	h.runner = hooks.New(hooks.Options{Private: h.Private})
	t.Cleanup(h.runner.Close)
	var err error
	if h.tools, err = tools.NewSet(nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h.o = plugins.Options{
		UserDir: filepath.Join(dir, "plugins"), StateDir: filepath.Join(dir, "state"), Runner: h.runner, Tools: h.tools.Put,
		UserRuntimes: map[string]plugins.Runtime{".star": starlark.Runtime{}},
	}
	log := slog.New(slog.DiscardHandler)
	keepPlugins(&h.o, h.Store, h.o.StateDir, log)
	h.loader = plugins.New(h.o)
	for name, aware := range map[string]bool{"p": true, "q": false} {
		h.install(name, fmt.Sprintf(`{"name":%q,"default_enabled":true,"privacy_aware":%v,"surfaces":["chat"],"capabilities":{
			"hooks":{"pre_chat":"a.star","post_stt":"a.star","post_llm":"a.star"},
			"settings":[{"key":"by","type":"string","label":"Author","default":"nobody"},{"key":"pages","type":"number","min":1,"default":3},
				{"key":"key","type":"string","widget":"password"},{"key":"tags","type":"list"},{"key":"on","type":"boolean","default":true}]}}`, name, aware),
			map[string]string{"a.star": diary})
	}
	h.scan()
	return h
}

func (h *house) scan() {
	h.Helper()
	if err := h.loader.Scan(h.Context()); err != nil {
		h.Fatal(err)
	}
}

func (h *house) install(name, manifest string, files map[string]string) {
	h.Helper()
	dir := filepath.Join(h.o.UserDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	files["plugin.json"] = manifest
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			h.Fatal(err)
		}
	}
}

// asks fires a point about a chat, in the active one, and returns the event.
func (h *house) asks(point, chat, input string) *hooks.Event {
	h.Helper()
	e := &hooks.Event{Input: input, Metadata: map[string]any{"chat": chat}}
	for _, c := range h.runner.Fire(h.Context(), point, e) {
		if c.Outcome == hooks.Failed {
			h.Logf("%s of %s: %v", c.Point, c.Plugin, c.Err)
		}
	}
	return e
}

// writes has the plugins write something down, and returns what they say of it.
func (h *house) writes(chat, text string) string {
	h.Helper()
	return strings.Join(h.asks("pre_chat", chat, text).ContextParts, ", ")
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) has(plugin, chat, want string) {
	h.Helper()
	var texts []string
	for _, v := range h.Rows(plugin).ReadAll(chat, "diary") {
		texts = append(texts, string(v))
	}
	if got := strings.Join(texts, ","); got != want {
		h.Errorf("%s in %s: %s, want %s", plugin, chat, got, want)
	}
}

// What a plugin writes down in a turn follows its chat, goes with it, and outlives its messages.
func TestRowsFollowTheirChat(t *testing.T) {
	h := furnish(t)
	h.must(h.Create("kitchen"))
	chat, err := h.Chat("kitchen")
	h.must(err)
	h.must(chat.Append(dialog.Message{Role: dialog.User, Content: "one"}))
	if got := h.writes("kitchen", "one"); got != "1 by nobody, 1 by nobody" {
		t.Errorf("written: %s", got)
	}
	h.writes("kitchen", "two")
	h.has("p", "kitchen", `"one","two"`)
	h.must(h.Rename("kitchen", "garden"))
	h.has("p", "kitchen", "")
	h.has("p", "garden", `"one","two"`)
	if e := h.asks("post_stt", "garden", ""); e.Input != "one,two" {
		t.Errorf("a script reads %q", e.Input)
	}
	h.must(h.Clear("garden"))
	if all, err := chat.All(); err != nil || len(all) > 0 {
		t.Errorf("cleared: %d messages, %v", len(all), err)
	}
	h.has("p", "garden", `"one","two"`)
	h.must(h.Delete("garden"))
	h.must(h.Create("garden"))
	h.has("p", "garden", "")
	if e := h.asks("post_stt", "garden", ""); e.Input != "nothing" {
		t.Errorf("a script reads %q of a new chat", e.Input)
	}
	if got := h.writes("cellar", "x"); got != "" {
		t.Errorf("written into a chat that is not there: %s", got)
	}
}

// To a plugin that isn't aware of privacy private chats are not there, also when it names them in a public one.
func TestRowsOfPrivateChats(t *testing.T) {
	h := furnish(t)
	h.must(h.Create("secret"))
	h.writes("secret", "before")
	_, err := h.Set("secret", map[string]any{"private_chat": true})
	h.must(err)
	p, q := h.o.Rows("p"), h.o.Rows("q")
	if v := p.ReadAll("secret", "diary"); len(v) != 1 {
		t.Errorf("the store has %s", v)
	}
	h.writes("secret", "after")
	h.has("p", "secret", `"before","after"`)
	h.has("q", "secret", `"before"`)
	h.must(h.loader.SetEnabled(t.Context(), "p", false))
	if got := h.asks("post_stt", "secret", "").Input; got != "nothing" {
		t.Errorf("q reads %q", got)
	}
	h.asks("post_llm", "secret", "")
	if _, ok := q.Get("secret", "seen"); ok {
		t.Error("q wrote into a private chat")
	}
	h.asks("post_llm", "default", "")
	if v, ok := q.Get("default", "seen"); !ok || string(v) != `["default"]` {
		t.Errorf("q wrote into a public chat: %s", v)
	}
	_, err = h.Set("secret", map[string]any{"private_chat": false})
	h.must(err)
	if got := h.asks("post_stt", "secret", "").Input; got != "before" {
		t.Errorf("when the chat is public again q reads %q", got)
	}
	// In the locked vault it isn't there for anybody.
	h.must(h.SetUp("a long passphrase"))
	_, err = h.Set("secret", map[string]any{"private_chat": true})
	h.must(err)
	h.must(h.Lock())
	if v := p.ReadAll("secret", "diary"); v != nil {
		t.Errorf("p reads %s", v)
	}
	if err := p.Put("secret", "x", json.RawMessage("1")); err == nil {
		t.Error("p writes into the locked vault: no error")
	}
	if all := p.AllChats("seen"); len(all) > 1 {
		t.Errorf("all chats: %v", all)
	}
}

func TestStateIsTakenOver(t *testing.T) {
	s := openStore(t, store.Options{})
	dir := t.TempDir()
	for file, text := range map[string]string{"old.json": `{"turns": 3}`, "broken.json": `{rubbish`, plugins.ChoiceName: `{"enabled":["old"]}`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o plugins.Options
	keepPlugins(&o, s, dir, slog.New(slog.DiscardHandler))
	st := o.State("old")
	if got := st.Get("turns", nil); got != 3.0 {
		t.Errorf("turns %v", got)
	}
	if err := st.Save("turns", 4.0); err != nil {
		t.Fatal(err)
	}
	if got := o.State("old").Get("turns", nil); got != 4.0 {
		t.Errorf("taken over twice: turns %v", got)
	}
	if all := o.State("broken").All(); len(all) > 0 {
		t.Errorf("broken: %v", all)
	}
	if all := o.State("plugins").All(); len(all) > 0 {
		t.Errorf("a plugin called plugins: %v", all)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "broken.json.bad" || filepath.Base(files[1]) != "old.json.imported" {
		t.Errorf("files %q, %v", files, err)
	}
}

func TestSettingsOfAPlugin(t *testing.T) {
	h := furnish(t)
	c := &pluginControl{Loader: h.loader}
	run := func(args ...string) string {
		var out bytes.Buffer
		if err := changeSettings(t.Context(), &out, c, "p", args); err != nil {
			return err.Error()
		}
		return out.String()
	}
	for _, test := range []struct{ args, want string }{
		{"", `by        "nobody" (default)`},
		{"by=me pages=5 key=secret tags=a,b on=no", `pages     5`},
		{"", `key       "(set)"`},
		{"", `tags      ["a","b"]`},
		{"", `on        false`},
		{"", `surfaces  ["chat"] (default)`},
		{"pages=0", "pages: 0 is less than 1"},
		{"pages=many", "no number"},
		{"on=maybe", "write true or false"},
		{"colour=red", `no setting "colour"`},
		{"by", "write KEY=VALUE"},
		{"pages=", "pages     3 (default)"},
		{"surfaces=game,sky", `surfaces  ["game"]`},
	} {
		if got := run(strings.Fields(test.args)...); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q not in\n%s", test.args, test.want, got)
		}
	}
	if got := h.writes("default", "x"); got != "1 by me, 1 by nobody" {
		t.Errorf("written: %s", got)
	}
	if err := c.SetSettings(t.Context(), "nobody", nil); !strings.Contains(fmt.Sprint(err), "no such plugin") {
		t.Errorf("error %v", err)
	}
	// Another start finds them.
	h.loader = plugins.New(h.o)
	h.scan()
	if got := h.writes("default", "x"); got != "2 by me, 2 by nobody" {
		t.Errorf("after another start: %s", got)
	}
}

// A plugin's tools are the model's, unless their names are taken: then the plugin is not loaded.
func TestToolsOfPlugins(t *testing.T) {
	const dice = `
TOOLS = [{"type": "function", "is_local": True, "function": {"name": "roll_dice", "description": "Rolls.",
    "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}}}}]
def execute(name, arguments):
    if arguments.get("sides", 6) < 2:
        return "There is no such die.", False
    return "%s: %d of %s" % (name, arguments.get("sides", 6), settings["by"])
def pre_chat(event):
    pass
`
	manifest := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"default_enabled":true,"privacy_aware":true,"capabilities":{"hooks":{"pre_chat":"a.star"},"tools":["a.star"],
			"settings":[{"key":"by","type":"string","default":"nobody"}]}}`, name)
	}
	h := furnish(t)
	call := func(args string) string {
		return h.tools.Call(t.Context(), dialog.ToolCall{Name: "roll_dice", Arguments: json.RawMessage(args)}).Content
	}
	h.install("dice", manifest("dice"), map[string]string{"a.star": dice})
	h.scan()
	if got := call(`{"sides":"20"}`); got != "roll_dice: 20 of nobody" {
		t.Errorf("result %q", got)
	}
	if got := call(`{"sides":1}`); got != "There is no such die." {
		t.Errorf("result %q", got)
	}
	h.must(h.loader.SetSettings("dice", map[string]any{"by": "me"}))
	if got := call(`{}`); got != "roll_dice: 6 of me" {
		t.Errorf("result %q", got)
	}
	h.install("other", manifest("other"), map[string]string{"a.star": dice})
	h.scan()
	var errs []string
	for _, i := range h.loader.List() {
		if i.Manifest.Name == "other" && !i.Loaded {
			errs = i.Errors
		}
	}
	if got := strings.Join(errs, "\n"); !strings.Contains(got, "the plugin dice and the plugin other both have one") {
		t.Errorf("errors %q", got)
	}
	if h.tools.Owner("roll_dice") != "the plugin dice" || h.loader.Withheld("roll_dice") {
		t.Errorf("it is %s's, withheld %v", h.tools.Owner("roll_dice"), h.loader.Withheld("roll_dice"))
	}
	// A version that says nothing of where its arguments go may not be used in private chats.
	h.install("dice", manifest("dice"), map[string]string{"a.star": strings.Replace(dice, `"is_local": True, `, "", 1)})
	h.must(h.loader.Reload(t.Context(), "dice"))
	if !h.loader.Withheld("roll_dice") {
		t.Error("not withheld")
	}
	h.install("dice", manifest("dice"), map[string]string{"a.star": "def pre_chat(event):\n    pass\n"})
	if err := h.loader.Reload(t.Context(), "dice"); err == nil || !strings.Contains(err.Error(), "there is no function execute") {
		t.Errorf("error %v", err)
	}
	if got := call(`{}`); got != "roll_dice: 6 of me" {
		t.Errorf("when a new version can't be loaded: result %q", got)
	}
	h.must(h.loader.SetEnabled(t.Context(), "dice", false))
	if h.tools.Owner("roll_dice") != "" || h.loader.Withheld("roll_dice") {
		t.Error("it is still there")
	}
	h.must(h.loader.Reload(t.Context(), "other")) // now the name is free
	if got := call(`{}`); got != "roll_dice: 6 of nobody" {
		t.Errorf("result %q", got)
	}
}

// Without an appliance that runs, the settings are those that it will find.
func TestSettingsWithoutAnAppliance(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "state", "plugins", "p")
	if err := os.MkdirAll(plugin, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		filepath.Join(plugin, "plugin.json"): `{"name":"p","surfaces":["chat"],"capabilities":{"settings":[{"key":"by","type":"string","default":"nobody"}]}}`,
		filepath.Join(dir, "config.toml"):    fmt.Sprintf("[api]\nsocket = %q\n", filepath.Join(dir, "s")),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := pluginSettingsCommand(&flags{config: filepath.Join(dir, "config.toml"), state: filepath.Join(dir, "state")})
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("p", "by=me"); err != nil || !strings.Contains(out, `by        "me"`) {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := run("p"); err != nil || !strings.Contains(out, `by        "me"`) {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := run("p", "surfaces=game"); err == nil || !strings.Contains(err.Error(), "only while the appliance runs") {
		t.Errorf("surfaces, which are in the store: error %v", err)
	}
	if _, err := run("q"); err == nil {
		t.Error("no such plugin: no error")
	}
}

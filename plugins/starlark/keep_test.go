package starlark_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// loadOwned loads a script of an owner that can keep things, in the chat kitchen too.
func loadOwned(t *testing.T, source string) (*plugins.Owner, plugins.Unit) {
	t.Helper()
	rows := new(plugins.MemoryRows)
	rows.AddChat("kitchen")
	o := &plugins.Owner{
		Manifest: &plugins.Manifest{Name: "p"}, State: new(plugins.MemoryState), Rows: rows,
		Settings: plugins.NewSettings(map[string]any{"by": "nobody", "tags": []any{"a", "b"}, "key": nil}),
	}
	u, err := starlark.Runtime{}.Load(t.Context(), o, "p.star", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return o, u
}

func TestChatState(t *testing.T) {
	o, u := loadOwned(t, `
def pre_chat(event):
    c = "kitchen"
    chat_state.put(c, "n", {"a": [1, 2.5, None]})
    if chat_state.get(c, "n")["a"] != [1, 2.5, None] or chat_state.get(c, "m") != None or chat_state.get(c, "m", len) != len:
        fail("get")
    if chat_state.append(c, "log", "x") != 1 or chat_state.append_many(chat=c, key="log", values=("y", "z")) != [2, 3]:
        fail("append")
    chat_state.replace(c, "log", ["w"] + chat_state.read_all(c, "log")[1:])
    if chat_state.read_all(c, "log") != ["w", "y", "z"] or chat_state.keys(c) != ["log", "n"] or chat_state.keys("x") != []:
        fail("read")
    if list(chat_state.get_all_chats("n")) != [c] or chat_state.meta(c, "log")["rows"] != 3 or chat_state.meta(c, "x") != None:
        fail("meta")
    chat_state.delete(c, "n")
    event.input = chat_state.meta(c, "log")["updated_at"]
`)
	e := new(hooks.Event)
	if err := handle(t.Context(), t, u, e); err != nil {
		t.Fatal(err)
	}
	if keys := o.Rows.Keys("kitchen"); len(keys) != 1 || !strings.HasSuffix(e.Input, "Z") {
		t.Errorf("keys %q, updated at %q", keys, e.Input)
	}
	for body, want := range map[string]string{
		`chat_state.put("cellar", "k", 1)`:                        "chat_state.put: no such chat",
		`chat_state.put("kitchen", "k")`:                          "value is missing, it takes (chat, key, value)",
		`chat_state.put("kitchen", "k", len)`:                     "can't be kept",
		`chat_state.put("kitchen", "k", [b"x"])`:                  "bytes can't be kept",
		`state.save("k", {"x": b"x"})`:                            "bytes can't be kept",
		`chat_state.get("kitchen")`:                               "missing argument for key",
		`chat_state.rows("kitchen")`:                              "no .rows",
		`state.update("k", lambda n: chat_state.keys("kitchen"))`: "must not use the state",
		`chat_state.append_many("kitchen", "k", [1, len])`:        "can't be kept",
		`chat_state.get_all_chats("k", "kitchen")`:                "2 arguments, it takes (key)",
		`chat_state.put("kitchen", "k", 1, seq=2)`:                `no argument is called "seq"`,
		`settings["by"] = "me"`:                                   "settings",
		`settings.update({"by": "me"})`:                           "frozen",
		`settings["nothing"]`:                                     `key "nothing" not in settings`,
		`{settings: 1}`:                                           "not hashable",
	} {
		_, u := loadOwned(t, "def pre_chat(event):\n    "+body+"\n")
		if err := handle(t.Context(), t, u, new(hooks.Event)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", body, err, want)
		}
	}
}

// After its deadline a handler writes nothing more.
func TestChatStateAfterTheDeadline(t *testing.T) {
	o, u := loadOwned(t, "def pre_chat(event):\n    chat_state.put('kitchen', 'late', 1)\n")
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if err := handle(ctx, t, u, new(hooks.Event)); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
	if keys := o.Rows.Keys("kitchen"); len(keys) > 0 {
		t.Errorf("keys %q", keys)
	}
}

func TestSettings(t *testing.T) {
	o, u := loadOwned(t, `
def pre_chat(event):
    if "by" not in settings or settings.get("x", 7) != 7 or len(settings) != 3 or settings["tags"][1] != "b" or settings["key"] != None:
        fail(str(settings))
    if sorted([k for k in settings]) != ["by", "key", "tags"] or dict(settings)["by"] != settings["by"] or not settings:
        fail(str(settings.items()))
    event.input = json.encode(settings)
`)
	e := new(hooks.Event)
	if err := handle(t.Context(), t, u, e); err != nil || e.Input != `{"by":"nobody","key":null,"tags":["a","b"]}` {
		t.Errorf("%v, %s", err, e.Input)
	}
	o.Settings.Set(map[string]any{"by": "me", "tags": []any{"a", "b"}, "key": nil})
	if err := handle(t.Context(), t, u, e); err != nil || !strings.Contains(e.Input, `"me"`) {
		t.Errorf("%v, %s", err, e.Input)
	}
	without := load(t, "def pre_chat(event):\n    event.input = str(settings)\n", nil)
	if err := handle(t.Context(), t, without, e); err != nil || e.Input != "{}" {
		t.Errorf("without settings: %v, %s", err, e.Input)
	}
}

func TestToolsOfAFile(t *testing.T) {
	for source, want := range map[string]string{
		"TOOLS = []":                             "no function execute(name, arguments)",
		"def execute(n, a): pass":                "no list TOOLS",
		"TOOLS = 1\ndef execute(n, a): pass":     "TOOLS is no list",
		"TOOLS = [1]\ndef execute(n, a): pass":   "TOOLS[0] is no dict",
		"TOOLS = [len]\ndef execute(n, a): pass": "can't be kept",
		"TOOLS = [{'name': 'a'}, {'function': {'name': 'b'}}]\nAVAILABLE_FUNCTIONS = ['b']\ndef execute(n, a): return (None, True)": "",
	} {
		_, u := loadOwned(t, source+"\n")
		schemas, err := u.(plugins.Toolbox).Tools(t.Context())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", source, err, want)
			}
			continue
		}
		text, ok, callErr := u.(plugins.Toolbox).Execute(t.Context(), "b", nil)
		if err != nil || len(schemas) != 1 || text != "" || !ok || callErr != nil {
			t.Errorf("schemas %v, %v; result %q, %v, %v", schemas, err, text, ok, callErr)
		}
	}
	_, u := loadOwned(t, "TOOLS = []\ndef execute(name, arguments):\n    return arguments['x'](1)\n")
	if _, _, err := u.(plugins.Toolbox).Execute(t.Context(), "b", map[string]any{"x": 1.0}); err == nil || !strings.Contains(err.Error(), "p.star:3") {
		t.Errorf("error %v", err)
	}
}

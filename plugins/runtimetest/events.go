package runtimetest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
)

// eventCases are about what a handler sees of an event, and what its changes to it become.
var eventCases = []testCase{
	{
		name: "every field can be set",
		sources: both(`
def probe(event):
    event.input = event.input + "!"
    event.skip_llm = True
    event.response = "r"
    event.ephemeral = True
    event.context_parts = ["a", "b"]
    event.stop_propagation = True
    event.arguments = {"x": 1}
    event.result = "done"
    event.require_confirmation = "why"
    event.tools = [{"name": "t"}]
    event.tts_text = "t"
    event.skip_tts = True
    event.ghost_text = "g"
    event.metadata = {"m": [True, None]}
`),
		golang: one("probe", func(_ context.Context, e *hooks.Event) error {
			*e = hooks.Event{
				Input: e.Input + "!", SkipLLM: true, Response: hooks.String("r"), Ephemeral: true, ContextParts: []string{"a", "b"},
				StopPropagate: true, Arguments: map[string]any{"x": 1.0}, Result: hooks.String("done"), Confirm: hooks.String("why"),
				Tools: []map[string]any{{"name": "t"}}, TTSText: hooks.String("t"), SkipTTS: true, GhostText: hooks.String("g"),
				Metadata: map[string]any{"m": []any{true, nil}}, FunctionName: e.FunctionName, ChatName: e.ChatName,
				ChatPrivate: e.ChatPrivate, Surface: e.Surface,
			}
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{Input: "hi", FunctionName: hooks.String("f"), ChatName: hooks.String("c"), ChatPrivate: new(false), Surface: hooks.String("chat")}
			p.must(t, "probe", e)
			diff(t, e, &hooks.Event{
				Input: "hi!", SkipLLM: true, Response: hooks.String("r"), Ephemeral: true, ContextParts: []string{"a", "b"},
				StopPropagate: true, FunctionName: hooks.String("f"), Arguments: map[string]any{"x": 1.0}, Result: hooks.String("done"),
				Confirm: hooks.String("why"), Tools: []map[string]any{{"name": "t"}}, TTSText: hooks.String("t"), SkipTTS: true,
				GhostText: hooks.String("g"), Metadata: map[string]any{"m": []any{true, nil}},
				ChatName: hooks.String("c"), ChatPrivate: new(false), Surface: hooks.String("chat"),
			})
		},
	},
	{
		name: "every field is seen",
		sources: both(`
def probe(event):
    event.input = str([event.input, event.skip_llm, event.response, event.ephemeral, event.context_parts,
        event.function_name, event.arguments["n"] + 1, event.result, event.tools[0]["name"], event.tts_text, event.skip_tts,
        event.chat_name, event.chat_private, event.surface, event.metadata["half"], event.metadata["list"][1], event.config]).replace("'", '"')
`),
		golang: one("probe", func(_ context.Context, e *hooks.Event) error {
			if e.Arguments["n"] == 1.0 && e.Metadata["half"] == 0.5 && *e.ChatPrivate {
				e.Input = seen
			}
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{
				Input: "i", SkipLLM: true, Response: hooks.String("r"), Ephemeral: true, ContextParts: []string{"a"},
				FunctionName: hooks.String("f"), Arguments: map[string]any{"n": 1.0}, Result: hooks.String("x"),
				Tools: []map[string]any{{"name": "t"}}, TTSText: hooks.String("s"), SkipTTS: true, ChatName: hooks.String("c"),
				ChatPrivate: new(true), Surface: hooks.String("chat"), Metadata: map[string]any{"half": 0.5, "list": []any{"a", "b"}},
			}
			p.must(t, "probe", e)
			if e.Input != seen {
				t.Errorf("it saw %s, not %s", e.Input, seen)
			}
		},
	},
	{
		name: "what is none stays none",
		sources: both(`
def probe(event):
    if event.response != None or event.result != None or event.arguments != None or event.tools != None or event.chat_private != None:
        event.input = "something is there"
    event.tts_text = None
    event.response = ""
`),
		golang: one("probe", func(_ context.Context, e *hooks.Event) error {
			e.TTSText, e.Response = nil, hooks.String("")
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{TTSText: hooks.String("x")}
			p.must(t, "probe", e)
			e.Metadata, e.ContextParts = nil, nil // none or empty: both are
			diff(t, e, &hooks.Event{Response: hooks.String("")})
		},
	},
	{
		name: "containers are changed in place",
		sources: both(`
def probe(event):
    event.context_parts.append("b")
    event.arguments["deep"]["list"].append(2)
    event.arguments.pop("gone")
    event.metadata["new"] = {"k": "v"}
`),
		golang: one("probe", func(_ context.Context, e *hooks.Event) error {
			e.ContextParts = append(e.ContextParts, "b")
			deep := e.Arguments["deep"].(map[string]any)
			deep["list"] = append(deep["list"].([]any), 2.0)
			delete(e.Arguments, "gone")
			e.Metadata = map[string]any{"new": map[string]any{"k": "v"}}
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{ContextParts: []string{"a"}, Arguments: map[string]any{"deep": map[string]any{"list": []any{1.0}}, "gone": true}}
			p.must(t, "probe", e)
			diff(t, e, &hooks.Event{
				ContextParts: []string{"a", "b"}, Arguments: map[string]any{"deep": map[string]any{"list": []any{1.0, 2.0}}},
				Metadata: map[string]any{"new": map[string]any{"k": "v"}},
			})
		},
	},
	{
		name: "texts of all kinds",
		sources: both(`
def probe(event):
    event.response = event.input + event.metadata["text"]
`),
		golang: one("probe", func(_ context.Context, e *hooks.Event) error {
			e.Response = hooks.String(e.Input + e.Metadata["text"].(string))
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			const text = "Grüße, 世界 \U0001f514 \x00 \u2028 \"\\"
			long := make([]byte, 100_000)
			for i := range long {
				long[i] = 'a' + byte(i%26)
			}
			e := &hooks.Event{Input: text, Metadata: map[string]any{"text": string(long)}}
			p.must(t, "probe", e)
			if e.Response == nil || *e.Response != text+string(long) {
				t.Error("a text is not what it was")
			}
		},
	},
	{
		name: "audio is bytes",
		sources: both(`
def tts_chunk_audio(event):
    carrier = event.metadata["audio"]
    carrier["audio_bytes"] = carrier["audio_bytes"] + b"\x00\xff"
    carrier["content_type"] = "audio/ogg"
`),
		golang: one("tts_chunk_audio", func(_ context.Context, e *hooks.Event) error {
			carrier := e.Metadata["audio"].(map[string]any)
			carrier["audio_bytes"] = append(carrier["audio_bytes"].([]byte), 0, 255)
			carrier["content_type"] = "audio/ogg"
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			sound := make([]byte, 32_000)
			for i := range sound {
				sound[i] = byte(i)
			}
			got := firing{point: "tts_chunk_audio", f: p.function(t, "tts_chunk_audio")}.fire(t, hooks.Event{Metadata: map[string]any{
				"audio": map[string]any{"audio_bytes": sound, "content_type": "audio/wav"},
			}})
			diff(t, got.event.Metadata["audio"], any(map[string]any{"audio_bytes": append(sound, 0, 255), "content_type": "audio/ogg"}))
		},
	},
	{
		name:    "tools are only taken away",
		sources: both("def tools_filter(event):\n    event.tools = [t for t in event.tools if t['function']['name'] != 'b'] + [{'function': {'name': 'new'}}]\n    event.tools[0]['changed'] = True\n"),
		golang: one("tools_filter", func(_ context.Context, e *hooks.Event) error {
			e.Tools = append(e.Tools[:1], map[string]any{"function": map[string]any{"name": "new"}})
			e.Tools[0]["changed"] = true
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			named := func(name string) map[string]any { return map[string]any{"function": map[string]any{"name": name}} }
			got := firing{point: "tools_filter", f: p.function(t, "tools_filter")}.fire(t, hooks.Event{Tools: []map[string]any{named("a"), named("b")}})
			diff(t, got.event.Tools, []map[string]any{named("a")})
		},
	},
	{
		name:    "a ghost text goes by the name of its plugin",
		sources: both("def ghost_inject(event):\n    event.ghost_text = 42\n"),
		golang:  one("ghost_inject", func(_ context.Context, e *hooks.Event) error { e.GhostText = hooks.String("42"); return nil }),
		check: func(t *testing.T, p *plugin) {
			got := firing{point: "ghost_inject", f: p.function(t, "ghost_inject")}.fire(t, hooks.Event{})
			diff(t, got.event.GhostContributions, []hooks.Contribution{{Plugin: "p", Text: "42"}})
		},
	},
	{
		name:    "what is stamped can't be changed",
		sources: both("def pre_execute(event):\n    event.chat_name = 'other'\n    event.chat_private = False\n    event.surface = 'game'\n    event.result = 'r'\n"),
		golang: one("pre_execute", func(_ context.Context, e *hooks.Event) error {
			e.ChatName, e.ChatPrivate, e.Surface, e.Result = hooks.String("other"), new(false), hooks.String("game"), hooks.String("r")
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			got := firing{point: "pre_execute", f: p.function(t, "pre_execute"), aware: true}.fire(t, hooks.Event{ChatName: hooks.String("c"), ChatPrivate: new(true), Surface: hooks.String("chat")})
			if len(got.after) == 0 {
				t.Fatal("the next handler was not called")
			}
			e := got.after[0]
			if *e.ChatName != "c" || !*e.ChatPrivate || *e.Surface != "chat" || e.Result == nil || *e.Result != "r" {
				t.Errorf("the next handler saw %+v", e)
			}
		},
	},
	{
		name:    "a voice command's groups",
		sources: both("def pre_chat(event):\n    event.response = event.metadata['captures'][1]\n    event.stop_propagation = True\n"),
		golang: one("pre_chat", func(_ context.Context, e *hooks.Event) error {
			e.Response, e.StopPropagate = hooks.String(e.Metadata["captures"].([]any)[1].(string)), true
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			match, err := hooks.NewMatch("regex", []string{"call (.+)"})
			if err != nil {
				t.Fatal(err)
			}
			e := firing{point: "pre_chat", f: p.function(t, "pre_chat"), match: match}.fire(t, hooks.Event{Input: "call Anna"}).event
			if e.Response == nil || *e.Response != "Anna" {
				t.Errorf("response %v", e.Response)
			}
		},
	},
}

// seen is what the case above makes of the event that it sees, as Starlark and Python write it.
const seen = `["i", True, "r", True, ["a"], "f", 2, "x", "t", "s", True, "c", True, "chat", 0.5, "b", None]`

// both is a source that is the same in Starlark and in Python.
func both(source string) map[string]string {
	return map[string]string{".star": source, ".py": source}
}

func diff[T any](t *testing.T, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

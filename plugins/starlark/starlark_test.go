package starlark_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

func run(t *testing.T, source string, o starlark.Options) *starlark.Script {
	t.Helper()
	s, err := starlark.Run(t.Context(), "plugin.star", []byte(source), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(t *testing.T, s *starlark.Script, point string, e *hooks.Event) error {
	t.Helper()
	f, err := s.Func(point)
	if err != nil {
		t.Fatal(err)
	}
	return f(t.Context(), e)
}

// The contract's examples, in Starlark.
func TestExamples(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		point  string
		event  hooks.Event
		want   hooks.Event
	}{
		"correct the transcription": {`
FIXES = {"saphire": "Sapphire", "hey i": "AI"}
def post_stt(event):
    text = event.input
    for wrong, right in FIXES.items():
        text = text.replace(wrong, right)
    event.input = text
`, "post_stt", hooks.Event{Input: "ask saphire about hey i"}, hooks.Event{Input: "ask Sapphire about AI"}},
		"block an input": {`
def pre_chat(event):
    if "password" in event.input.lower():
        event.skip_llm = True
        event.response = "I can't help with that."
        event.stop_propagation = True
`, "pre_chat", hooks.Event{Input: "My PASSWORD is"}, hooks.Event{
			Input: "My PASSWORD is", SkipLLM: true, Response: hooks.String("I can't help with that."), StopPropagate: true,
		}},
		"add context": {`
def prompt_inject(event):
    event.context_parts.append("The user's timezone is UTC+3.")
`, "prompt_inject", hooks.Event{ContextParts: []string{"first"}}, hooks.Event{ContextParts: []string{"first", "The user's timezone is UTC+3."}}},
		"clean the answer": {`
SWEARS = {"damn": "darn", "hell": "heck"}
def handle(event):
    text = event.response or ""
    for word, clean in SWEARS.items():
        text = text.replace(word, clean)
    event.response = text
`, "post_llm", hooks.Event{Response: hooks.String("damn, what the hell")}, hooks.Event{Response: hooks.String("darn, what the heck")}},
		"guard a tool": {`
def pre_execute(event):
    if event.function_name == "ssh_execute":
        cmd = event.arguments.get("command", "")
        if "sudo" in cmd:
            event.arguments["command"] = cmd.replace("sudo ", "")
`, "pre_execute", hooks.Event{FunctionName: hooks.String("ssh_execute"), Arguments: map[string]any{"command": "sudo ls", "n": 2.0}},
			hooks.Event{FunctionName: hooks.String("ssh_execute"), Arguments: map[string]any{"command": "ls", "n": 2.0}}},
		"hide a tool": {`
def tools_filter(event):
    event.tools = [t for t in (event.tools or []) if t.get("function", {}).get("name") != "story_place"]
`, "tools_filter", hooks.Event{Tools: []map[string]any{
			{"function": map[string]any{"name": "story_place"}}, {"function": map[string]any{"name": "get_time"}},
		}}, hooks.Event{Tools: []map[string]any{{"function": map[string]any{"name": "get_time"}}}}},
		"pronounce": {`
def pre_tts(event):
    event.tts_text = event.tts_text.replace("API", "A.P.I.")
`, "pre_tts", hooks.Event{TTSText: hooks.String("the API")}, hooks.Event{TTSText: hooks.String("the A.P.I.")}},
		"keep personal data from being spoken": {`
PATTERNS = [
    (r"\b\d{3}[-.]?\d{3}[-.]?\d{4}\b", "[phone]"),
    (r"\b[\w.+-]+@[\w-]+\.[\w.]+\b", "[email]"),
]
def pre_tts(event):
    text = event.tts_text or ""
    for pattern, replacement in PATTERNS:
        text = re.sub(pattern, replacement, text)
    event.tts_text = text
`, "pre_tts", hooks.Event{TTSText: hooks.String("call 555-123-4567 or me@example.org")}, hooks.Event{TTSText: hooks.String("call [phone] or [email]")}},
		"ambient state": {`
def ghost_inject(event):
    event.ghost_text = "Light rain in the user's area."
`, "ghost_inject", hooks.Event{}, hooks.Event{GhostText: hooks.String("Light rain in the user's area.")}},
		"a ghost that is no text": {"def ghost_inject(event):\n    event.ghost_text = [1, 2]\n", "ghost_inject", hooks.Event{}, hooks.Event{GhostText: hooks.String("[1, 2]")}},
		"a ghost of nothing":      {"def ghost_inject(event):\n    event.ghost_text = 0\n", "ghost_inject", hooks.Event{}, hooks.Event{}},
		"audio": {`
def tts_chunk_audio(event):
    carrier = event.metadata["audio"]
    carrier["audio_bytes"] = carrier["audio_bytes"] + b"more"
    carrier["content_type"] = "audio/wav"
`, "tts_chunk_audio", hooks.Event{Metadata: map[string]any{"audio": map[string]any{"audio_bytes": []byte("some")}}},
			hooks.Event{Metadata: map[string]any{"audio": map[string]any{"audio_bytes": []byte("somemore"), "content_type": "audio/wav"}}}},
		"what is stamped can't be changed": {`
def pre_chat(event):
    event.chat_name = "other"
    event.surface = "game"
    if event.metadata.get("system"):
        event.input = "has powers"
`, "pre_chat", hooks.Event{ChatName: hooks.String("mine")}, hooks.Event{ChatName: hooks.String("mine")}},
	} {
		t.Run(name, func(t *testing.T) {
			e := test.event
			if err := call(t, run(t, test.source, starlark.Options{}), test.point, &e); err != nil {
				t.Fatal(err)
			}
			if len(e.Metadata) == 0 {
				e.Metadata = nil
			}
			if diff := cmp.Diff(test.want, e); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneFileSharesItsGlobals(t *testing.T) {
	s := run(t, `
PREFIX = "x"
def helper(text):
    return PREFIX + text
def post_stt(event):
    event.input = helper(event.input)
def pre_chat(event):
    event.input = helper(helper(event.input))
`, starlark.Options{})
	e := hooks.Event{Input: "a"}
	for _, point := range []string{"post_stt", "pre_chat"} {
		if err := call(t, s, point, &e); err != nil {
			t.Fatal(err)
		}
	}
	if e.Input != "xxxa" {
		t.Errorf("input %q", e.Input)
	}
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"syntax":        {"def post_stt(event)\n", "plugin.star:2:1"},
		"unknown name":  {"x = open('/etc/passwd')\n", "undefined: open"},
		"at load":       {"x = [][3]\n", "plugin.star:1"},
		"endless":       {"x = 0\nwhile True:\n    x += 1\n", "too many steps"},
		"only for runs": {"def run(event):\n    pass\n", "only run, which is for schedules"},
		"nothing":       {"x = 1\n", "no function post_stt or handle"},
	} {
		s, err := starlark.Run(t.Context(), "plugin.star", []byte(test.source), starlark.Options{MaxSteps: 100_000})
		if err == nil {
			_, err = s.Func("post_stt")
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	for name, test := range map[string]struct{ body, want string }{
		"failure":       {"event.input = 'half'; fail('broken')", "broken"},
		"frozen":        {"LIST.append(1)", "frozen"},
		"wrong type":    {"event.input = 3", "event.input is a string, not a int"},
		"unknown field": {"event.inptu = 'x'", "event has no field inptu"},
		"steps":         {"spin()", "too many steps"},
		"not a part":    {"event.context_parts.append(3)", "its parts are strings"},
		"nan":           {"event.metadata['x'] = float('nan')", "no number that can be kept"},
		"in itself":     {"x = []\n    x.append(x)\n    event.metadata['x'] = x", "nested too deeply"},
	} {
		s := run(t, "LIST = []\ndef spin():\n    while True:\n        pass\ndef pre_chat(event):\n    "+test.body+"\n", starlark.Options{MaxSteps: 100_000})
		if err := call(t, s, "pre_chat", &hooks.Event{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// A call ends at its deadline, and what it does afterwards has no effect.
func TestDeadline(t *testing.T) {
	state := new(plugins.MemoryState)
	s := run(t, `
def pre_chat(event):
    while True:
        pass
def post_chat(event):
    state.save("late", True)
`, starlark.Options{MaxSteps: 1 << 60, State: state})
	over := errors.New("over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, over)
	defer cancel()
	f, err := s.Func("pre_chat")
	if err != nil {
		t.Fatal(err)
	}
	if err := f(ctx, &hooks.Event{}); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
	if f, err = s.Func("post_chat"); err != nil {
		t.Fatal(err)
	}
	if err := f(ctx, &hooks.Event{}); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
	if len(state.All()) > 0 {
		t.Errorf("state %v", state.All())
	}
}

func TestState(t *testing.T) {
	state := new(plugins.MemoryState)
	s := run(t, `
def post_chat(event):
    n = state.update("turns", lambda old: old + 1, 0)
    state.save("last", {"n": n, "words": event.input.split(" ")})
    state.save("gone", 1)
    state.delete("gone")
    if event.input == "clear":
        state.clear()
    if state.get("gone") != None or state.get("gone", 7) != 7:
        fail("gone is still there")
def pre_chat(event):
    state.update("turns", lambda old: state.get("turns"), 0)
`, starlark.Options{State: state})
	for range 3 {
		if err := call(t, s, "post_chat", &hooks.Event{Input: "a b"}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]any{"turns": 3.0, "last": map[string]any{"n": 3.0, "words": []any{"a", "b"}}}
	if diff := cmp.Diff(want, state.All()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := call(t, s, "post_chat", &hooks.Event{Input: "clear"}); err != nil || len(state.All()) > 0 {
		t.Errorf("cleared: %v, state %v", err, state.All())
	}
	if err := call(t, s, "pre_chat", &hooks.Event{}); err == nil || !strings.Contains(err.Error(), "must not use the state") {
		t.Errorf("the state used within an update: %v", err)
	}
}

func TestThroughTheRunner(t *testing.T) {
	s := run(t, "def handle(event):\n    event.input += '!' + (' public' if not event.chat_private else '')\n", starlark.Options{})
	f, err := s.Func("post_stt")
	if err != nil {
		t.Fatal(err)
	}
	r := hooks.New(hooks.Options{})
	defer r.Close()
	if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_stt", Func: f}); err != nil {
		t.Fatal(err)
	}
	e := &hooks.Event{Input: "hi"}
	r.Fire(t.Context(), "post_stt", e)
	if e.Input != "hi! public" {
		t.Errorf("input %q", e.Input)
	}
}

func FuzzRun(f *testing.F) {
	f.Add("def handle(event):\n    event.input = event.input[1:]\n", "text")
	f.Fuzz(func(_ *testing.T, source, input string) {
		s, err := starlark.Run(context.Background(), "x.star", []byte(source), starlark.Options{MaxSteps: 10_000})
		if err != nil {
			return
		}
		if h, err := s.Func("post_stt"); err == nil {
			_ = h(context.Background(), &hooks.Event{Input: input}) // must not panic
		}
	})
}

func BenchmarkHandler(b *testing.B) {
	s, err := starlark.Run(context.Background(), "x.star", []byte(`
FIXES = {"saphire": "Sapphire", "hey i": "AI", "tea tea ess": "TTS"}
def post_stt(event):
    text = event.input
    for wrong, right in FIXES.items():
        text = text.replace(wrong, right)
    event.input = text
`), starlark.Options{})
	if err != nil {
		b.Fatal(err)
	}
	f, err := s.Func("post_stt")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 10} {
		b.Run(map[int]string{1: "handlers=1", 10: "handlers=10"}[n], func(b *testing.B) {
			r := hooks.New(hooks.Options{})
			defer r.Close()
			for range n {
				if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_stt", Func: f}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Fire(context.Background(), "post_stt", &hooks.Event{Input: "what time is it, saphire"})
			}
		})
	}
}

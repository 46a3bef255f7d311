package python_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/python"
)

// seed has the examples of the contract.
const seed = "../../../shared/seeds/sapphire-hooks.txt"

var (
	heading = regexp.MustCompile(`(?m)^[A-Za-z].*( — |\().*:$`)
	handler = regexp.MustCompile(`(?m)^def (\w+)\(event\):$`)
)

// blocks are the contract's own examples, as they stand there, each with the point of its handler.
func blocks(t *testing.T) map[string][]string {
	text, err := os.ReadFile(seed)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the contract is not beside the checkout: " + seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(text), "\nExamples\n")
	examples, _, _ = strings.Cut(examples, "\nghost_inject — ")
	all := make(map[string][]string)
	var at []int
	for _, m := range heading.FindAllStringIndex(examples, -1) {
		if !strings.HasPrefix(examples[m[0]:], "def ") {
			at = append(at, m[0], m[1])
		}
	}
	at = append(at, len(examples))
	for i := 1; i < len(at); i += 2 {
		code := examples[at[i]:at[i+1]]
		if m := handler.FindStringSubmatch(code); m != nil {
			all[m[1]] = append(all[m[1]], code)
		}
	}
	return all
}

// played is an appliance that notes what is done with it, and a server that answers.
type played struct {
	mu    sync.Mutex
	calls []string
}

func (p *played) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, what)
}

func (p *played) Fetch(_ context.Context, _ *plugins.Manifest, r plugins.Request) (*plugins.Response, error) {
	p.note(r.Method + " " + r.URL + " " + r.Body)
	return &plugins.Response{Status: 200, Body: `{"state": "rainy", "attributes": {"temperature": 54}}`}, nil
}

func (p *played) system(t *testing.T) *plugins.System {
	noted := func(name, arg string) plugins.Func {
		return func(_ context.Context, c *plugins.Call) (any, error) {
			p.note(name + " " + c.Text(arg))
			return "a summary", nil
		}
	}
	s, err := plugins.NewSystem(map[string]plugins.Func{
		"tts.set_voice": noted("voice", "voice"), "tts.set_speed": noted("speed", ""), "llm_chat.chat": noted("chat", "text"),
		"llm_chat.get_messages": func(context.Context, *plugins.Call) (any, error) {
			return []any{map[string]any{"role": "user", "content": "hello"}, map[string]any{"role": "tool", "content": nil}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The contract's examples run as they are.
func TestContractExamples(t *testing.T) {
	all := blocks(t)
	arguments := func(name string, value any) map[string]any { return map[string]any{name: value} }
	for _, c := range []struct {
		name, point string
		nth         int
		event       hooks.Event
		want        func(e *hooks.Event) bool
		calls       []string
		nested      bool // it has a backslash within an f-string, which Python knows from 3.12 on
	}{
		{name: "transcription", point: "post_stt", event: hooks.Event{Input: "hey i am saphire"}, want: func(e *hooks.Event) bool { return e.Input == "AI am Sapphire" }},
		{name: "a password", point: "pre_chat", event: hooks.Event{Input: "my Password"}, want: func(e *hooks.Event) bool {
			return e.SkipLLM && e.StopPropagate && *e.Response == "I can't help with that."
		}},
		{name: "no password", point: "pre_chat", event: hooks.Event{Input: "hi"}, want: func(e *hooks.Event) bool { return !e.SkipLLM && e.Response == nil }},
		{name: "context", point: "prompt_inject", event: hooks.Event{ContextParts: []string{"a"}}, want: func(e *hooks.Event) bool {
			return len(e.ContextParts) == 2 && strings.Contains(e.ContextParts[1], "UTC+3")
		}},
		{name: "spice", point: "post_llm", event: hooks.Event{Response: hooks.String("Yes")}, want: func(e *hooks.Event) bool { return strings.HasPrefix(*e.Response, "Yes") }},
		{name: "clean", point: "post_llm", nth: 1, event: hooks.Event{Response: hooks.String("damn hell")}, want: func(e *hooks.Event) bool { return *e.Response == "darn heck" }},
		{name: "blocked tool", point: "pre_execute", event: hooks.Event{FunctionName: hooks.String("delete_memory")}, want: func(e *hooks.Event) bool {
			return e.SkipLLM && *e.Result == "Deletion blocked by plugin."
		}},
		{name: "over the limit", point: "pre_execute", nth: 1, event: hooks.Event{FunctionName: hooks.String("send_bitcoin"), Arguments: arguments("amount", 1.0)}, want: func(e *hooks.Event) bool {
			return e.SkipLLM && *e.Result == "Blocked: 1 BTC exceeds limit of 0.01"
		}},
		{name: "sudo", point: "pre_execute", nth: 1, event: hooks.Event{FunctionName: hooks.String("ssh_execute"), Arguments: arguments("command", "sudo ls")}, want: func(e *hooks.Event) bool {
			return !e.SkipLLM && e.Arguments["command"] == "ls"
		}},
		{name: "pronunciation", point: "pre_tts", event: hooks.Event{TTSText: hooks.String("API")}, want: func(e *hooks.Event) bool { return *e.TTSText == "A.P.I." }},
		{name: "comforting", point: "post_chat", event: hooks.Event{Response: hooks.String("I'm sorry")}, calls: []string{"speed ", "voice af_heart"}},
		{name: "excited", point: "post_chat", event: hooks.Event{Response: hooks.String("Wow!")}, calls: []string{"speed "}},
		{name: "weather", point: "prompt_inject", nth: 1, want: func(e *hooks.Event) bool { return cmp.Equal(e.ContextParts, []string{"Weather: rainy, 54F"}) },
			calls: []string{"GET http://ha-server/api/states/weather.home "}},
		{name: "good night", point: "pre_chat", nth: 1, want: func(e *hooks.Event) bool {
			return e.SkipLLM && e.Ephemeral && e.StopPropagate && strings.HasPrefix(*e.Response, "Goodnight.")
		}, calls: []string{"voice af_heart", "speed ", `POST http://ha:8123/api/services/scene/turn_on {"entity_id": "scene.goodnight"}`}},
		{name: "private", point: "pre_tts", nth: 1, event: hooks.Event{TTSText: hooks.String("call 555-123-4567")}, want: func(e *hooks.Event) bool { return *e.TTSText == "call [phone]" }},
		{name: "summary", point: "post_chat", nth: 1, calls: []string{"chat Summarize this conversation excerpt:\n\nhello"}, nested: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(all[c.point]) <= c.nth {
				t.Fatalf("the contract has %d examples for %s", len(all[c.point]), c.point)
			}
			p := new(played)
			owner := newOwner("summarizer") // one of them asks for what it keeps by this name
			owner.Web, owner.Manifest.Network = p, []string{"ha:8123", "ha-server"}
			if err := owner.State.Save("turns", 9.0); err != nil {
				t.Fatal(err)
			}
			r := newRuntime(t, python.Options{Network: func(*plugins.Manifest) python.Network { return python.Requests }})
			u, err := r.Load(t.Context(), owner, "hooks.py", []byte(all[c.point][c.nth]))
			if c.nested && err != nil && strings.Contains(err.Error(), "f-string") {
				t.Skip("this Python is older than 3.12: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			e := c.event
			e.Metadata = map[string]any{"system": p.system(t)}
			if err := function(t, u, c.point)(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
			if c.want != nil && !c.want(&e) {
				t.Errorf("event %+v", e)
			}
			if d := cmp.Diff(c.calls, p.calls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			if c.nested && (owner.State.Get("turns", nil) != 10.0 || owner.State.Get("last_summary", nil) != "a summary") {
				t.Errorf("state %v", owner.State.All())
			}
		})
	}
}

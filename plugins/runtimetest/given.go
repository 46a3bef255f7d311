package runtimetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
)

// pySetup is how a file in Python gets at what Starlark has by name.
const pySetup = `
from core.plugin_loader import plugin_loader
from core.settings_manager import settings
state = plugin_loader.get_plugin_state("p")
chat_state = plugin_loader.get_chat_state("p")
`

// withNames is a source that is the same in Starlark and, but for where the names come from, in Python.
func withNames(source string) map[string]string {
	return map[string]string{".star": source, ".py": pySetup + source}
}

// givenCases are about what a plugin is given: what it keeps, its settings, the appliance, and the network.
var givenCases = []testCase{
	{
		name: "functions of a file share what it has, and its state",
		sources: map[string]string{
			".star": "STEP = 2\ndef a(event):\n    state.update('n', lambda n: n + STEP, 0)\ndef b(event):\n    event.input = str(state.get('n', 0) + STEP) + str(state.all())\n",
			".py":   pySetup + "STEP = 2\ndef a(event):\n    state.update_with_lock('n', lambda n: n + STEP, 0)\ndef b(event):\n    event.input = str(state.get('n', 0) + STEP) + str(state.all()).replace(\"'\", '\"')\n",
		},
		golang: func(o *plugins.Owner) map[string]hooks.Func {
			return map[string]hooks.Func{
				"a": func(context.Context, *hooks.Event) error {
					_, err := o.State.Update("n", 0.0, func(n any) (any, error) { return n.(float64) + 2, nil })
					return err
				},
				"b": func(_ context.Context, e *hooks.Event) error {
					e.Input = fmt.Sprintf(`%v{"n": %v}`, o.State.Get("n", 0.0).(float64)+2, o.State.Get("n", 0.0))
					return nil
				},
			}
		},
		check: func(t *testing.T, p *plugin) {
			e := new(hooks.Event)
			p.must(t, "a", e)
			p.must(t, "a", e)
			if p.must(t, "b", e); e.Input != `6{"n": 4}` {
				t.Errorf("input %q", e.Input)
			}
			if p.owner.State.Get("n", nil) != 4.0 {
				t.Errorf("state %v", p.owner.State.All())
			}
		},
	},
	{
		name: "rows in chats",
		sources: withNames(`
def probe(event):
    chat_state.put("kitchen", "k", {"a": 1})
    n = chat_state.append("kitchen", "rows", "x")
    chat_state.append_many("kitchen", "rows", ["y", 3])
    chat_state.replace(chat="kitchen", key="other", values=["only"])
    event.metadata["got"] = [
        n, chat_state.get("kitchen", "k"), chat_state.get("kitchen", "missing", "default"), chat_state.read_all("kitchen", "rows"),
        chat_state.keys("kitchen"), chat_state.get_all_chats("k"), chat_state.meta("kitchen", "rows")["rows"], chat_state.meta("kitchen", "none")]
    chat_state.delete("kitchen", "k")
    event.metadata["keys"] = chat_state.keys("kitchen")
def nowhere(event):
    chat_state.put("cellar", "k", 1)
`),
		owner: func(o *plugins.Owner) {
			rows := new(plugins.MemoryRows)
			rows.AddChat("kitchen")
			o.Rows = rows
		},
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{Metadata: map[string]any{}}
			p.must(t, "probe", e)
			diff(t, e.Metadata, map[string]any{
				"got": []any{
					1.0, map[string]any{"a": 1.0}, "default", []any{"x", "y", 3.0}, []any{"k", "other", "rows"},
					map[string]any{"kitchen": map[string]any{"a": 1.0}}, 3.0, nil,
				},
				"keys": []any{"other", "rows"},
			})
			if err := p.call(t, "nowhere", e); err == nil || !strings.Contains(err.Error(), "no such chat") {
				t.Errorf("writing to a chat that is not there: %v", err)
			}
		},
	},
	{
		name:    "settings are as they are now",
		sources: withNames("def probe(event):\n    event.input = settings['city'] + str(settings.get('none', 7))\n"),
		golang: func(o *plugins.Owner) map[string]hooks.Func {
			return map[string]hooks.Func{"probe": func(_ context.Context, e *hooks.Event) error {
				e.Input = o.Settings.Now().ByKey["city"].(string) + "7"
				return nil
			}}
		},
		check: func(t *testing.T, p *plugin) {
			for _, city := range []string{"Bern", "Basel"} {
				p.owner.Settings.Set(map[string]any{"city": city})
				e := new(hooks.Event)
				if p.must(t, "probe", e); e.Input != city+"7" {
					t.Errorf("input %q", e.Input)
				}
			}
		},
	},
	{
		name: "the appliance",
		sources: both(`
def probe(event):
    system = event.metadata.get("system")
    if not system or not hasattr(system, "tts") or not system.tts:
        event.input = "no tts"
        return
    if hasattr(system, "nothing") or hasattr(system.tts, "nothing") or system.ring != None:
        event.input = "too much"
        return
    system.tts.set_voice(voice="af_heart")
    event.input = str(system.volume.get() + 1) + system.llm_chat.session_manager.get_active_chat_name()
def without(event):
    event.input = str(event.metadata.get("system"))
def refused(event):
    event.metadata["system"].volume.set(300)
`),
		check: func(t *testing.T, p *plugin) {
			var mu sync.Mutex
			var voices []string
			system, err := plugins.NewSystem(map[string]plugins.Func{
				"tts.set_voice": func(_ context.Context, c *plugins.Call) (any, error) {
					mu.Lock()
					defer mu.Unlock()
					voices = append(voices, c.Text("voice")+" for "+c.Owner.Manifest.Name)
					return nil, nil
				},
				"volume.get":           func(context.Context, *plugins.Call) (any, error) { return 40, nil },
				"volume.set":           func(context.Context, *plugins.Call) (any, error) { return nil, nil },
				"llm_chat.active_chat": func(context.Context, *plugins.Call) (any, error) { return "kitchen", nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			e := &hooks.Event{Metadata: map[string]any{"system": system}}
			if p.must(t, "probe", e); e.Input != "41kitchen" {
				t.Errorf("event %+v", e)
			}
			mu.Lock()
			diff(t, voices, []string{"af_heart for p"})
			mu.Unlock()
			e = new(hooks.Event)
			if p.must(t, "without", e); e.Input != "None" {
				t.Errorf("without one: %q", e.Input)
			}
			err = p.call(t, "refused", &hooks.Event{Metadata: map[string]any{"system": system}})
			if err == nil || !strings.Contains(err.Error(), "300 is not from 0 to 100") {
				t.Errorf("a call that doesn't fit: %v", err)
			}
		},
	},
	{
		name: "who waits for the appliance keeps no other one waiting",
		sources: both(`
def post_chat(event):
    event.metadata["system"].llm_chat.chat("hello")
def post_stt(event):
    event.input += "!"
`),
		check: func(t *testing.T, p *plugin) {
			asked, answer := make(chan struct{}), make(chan struct{})
			system, err := plugins.NewSystem(map[string]plugins.Func{"llm_chat.chat": func(context.Context, *plugins.Call) (any, error) {
				close(asked)
				<-answer
				return "hi", nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			waits, quick := p.function(t, "post_chat"), p.function(t, "post_stt")
			done := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() { done <- waits(ctx, &hooks.Event{Metadata: map[string]any{"system": system}}) }()
			<-asked
			e := &hooks.Event{Input: "x"}
			if err := quick(ctx, e); err != nil || e.Input != "x!" {
				t.Errorf("the other one: %q, %v", e.Input, err)
			}
			close(answer)
			if err := <-done; err != nil {
				t.Error(err)
			}
		},
	},
	{
		name: "the network, by the appliance",
		sources: map[string]string{
			".star": "def probe(event):\n    r = http.get('http://host/a', headers={'X-A': 'b'})\n    event.input = str(r.status) + r.json()['k'] + r.headers['x-c']\n",
			".py":   "import requests\ndef probe(event):\n    r = requests.get('http://host/a', headers={'X-A': 'b'})\n    event.input = str(r.status_code) + r.json()['k'] + r.headers['X-C']\n",
		},
		owner: func(o *plugins.Owner) { o.Manifest.Network, o.Web = []string{"host"}, web{} },
		check: func(t *testing.T, p *plugin) {
			e := new(hooks.Event)
			if p.must(t, "probe", e); e.Input != "200vGET b http://host/a" {
				t.Errorf("input %q", e.Input)
			}
		},
	},
}

// web answers with what it is asked for.
type web struct{}

func (web) Fetch(_ context.Context, _ *plugins.Manifest, r plugins.Request) (*plugins.Response, error) {
	return &plugins.Response{Status: 200, Headers: map[string]string{"X-C": r.Method + " " + r.Headers["X-A"] + " " + r.URL}, Body: `{"k": "v"}`}, nil
}

// toolCases are about tools, and about what is called by schedules.
var toolCases = []testCase{
	{
		name: "tools",
		sources: map[string]string{
			".star": toolSource + "def execute(name, arguments):" + toolBody,
			".py":   toolSource + "def execute(name, arguments, config):" + toolBody,
		},
		check: func(t *testing.T, p *plugin) {
			box, ok := p.unit(t).(plugins.Toolbox)
			if !ok {
				t.Fatal("it can't have tools")
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			schemas, err := box.Tools(ctx)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, schemas, []map[string]any{{"type": "function", "is_local": true, "function": map[string]any{
				"name": "add", "description": "Adds.", "parameters": map[string]any{"type": "object"},
			}}})
			for args, want := range map[string]string{"1": "2 true", "100": "too much false", "-1": `{"n":0} true`} {
				var n float64
				if err := json.Unmarshal([]byte(args), &n); err != nil {
					t.Fatal(err)
				}
				text, ok, err := box.Execute(ctx, "add", map[string]any{"n": n})
				if got := fmt.Sprint(strings.ReplaceAll(text, " ", ""), " ", ok); err != nil || got != strings.ReplaceAll(want, "too much", "toomuch") {
					t.Errorf("add(%s): %q, %v", args, got, err)
				}
			}
			if _, _, err := box.Execute(ctx, "fails", nil); err == nil || errors.Is(err, hooks.ErrKilled) {
				t.Errorf("a tool that fails: %v", err)
			}
		},
	},
	{
		name: "what a schedule calls",
		sources: map[string]string{
			".star": "def run(event):\n    event.result = 'ran ' + event.metadata['task']['name']\n",
			".py":   "def run(event):\n    event['plugin_state'].save('ran', 1)\n    return 'ran ' + event['task']['name']\n",
		},
		check: func(t *testing.T, p *plugin) {
			e := &hooks.Event{Metadata: map[string]any{"task": map[string]any{"name": "nightly"}}}
			if p.must(t, "run", e); e.Result == nil || *e.Result != "ran nightly" {
				t.Errorf("result %v", e.Result)
			}
		},
	},
}

const (
	toolSource = `
TOOLS = [
    {"type": "function", "is_local": True, "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "hidden"}},
]
AVAILABLE_FUNCTIONS = ["add"]
`
	toolBody = `
    if name == "fails":
        return [][1]
    if arguments["n"] > 10:
        return "too much", False
    if arguments["n"] < 0:
        return {"n": arguments["n"] + 1}
    return str(arguments["n"] + 1)
`
)

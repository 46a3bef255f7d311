package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bellbird/api"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/turns"
)

// fetch sends a request to the API as a program does.
func (h *home) fetch(method, path, body string) (status int, kind string, text []byte) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.web+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), text
}

// get decodes what the API answers.
func (h *home) get(path string, into any) {
	h.t.Helper()
	status, _, text := h.fetch("GET", path, "")
	if status != 200 {
		h.t.Fatalf("%s: %d %s", path, status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		h.t.Fatalf("%s: %v", path, err)
	}
}

// until waits until what the API tells is as it should be. The follower is told after whoever asked.
func (h *home) until(what string, is func() bool) {
	h.t.Helper()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-deadline:
			h.t.Fatalf("it never came to that: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// What the running appliance answers is what its description of the API says.
func TestAnswersOfTheAppliance(t *testing.T) {
	h := live(t, t.TempDir())
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	_, _, text := h.fetch("GET", "/api/openapi.json", "")
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("http://bellbird/", raw); err != nil {
		t.Fatal(err)
	}
	tried := make(map[string]bool)
	for _, r := range []struct{ method, path, target, body string }{
		{"post", "/api/ask", "", `{"text": "what time is it"}`},
		{"post", "/api/say", "", `{"text": "It is late."}`},
		{"put", "/api/volume", "", `{"percent": 40}`},
		{"get", "/api/volume", "", ""},
		{"put", "/api/mute", "", `{"muted": true}`},
		{"get", "/api/mute", "", ""},
		{"post", "/api/timers", "", `{"name": "eggs", "seconds": 600000}`},
		{"get", "/api/timers", "", ""},
		{"delete", "/api/timers/{id}", "/api/timers/1", ""},
		{"get", "/api/state", "", ""},
		{"get", "/api/models", "", ""},
		{"get", "/api/turns", "", ""},
		{"get", "/api/turns/{id}", "/api/turns/1", ""},
		{"get", "/api/metrics", "", ""},
		{"get", "/api/openapi.json", "", ""},
		{"get", "/api/plugins", "", ""},
		{"get", "/api/plugins/{name}", "/api/plugins/voice-commands", ""},
		{"get", "/api/plugins/{name}/settings", "/api/plugins/voice-commands/settings", ""},
		{"put", "/api/plugins/{name}/enabled", "/api/plugins/voice-commands/enabled", "false"},
		{"put", "/api/plugins/{name}/enabled", "/api/plugins/voice-commands/enabled", "true"},
		{"post", "/api/plugins/{name}/reload", "/api/plugins/voice-commands/reload", ""},
		{"post", "/api/plugins/rescan", "", ""},
		{"post", "/api/chats", "", `{"name": "a/b c"}`},
		{"get", "/api/chats", "", ""},
		{"post", "/api/chats/{name}/rename", "/api/chats/a%2Fb%20c/rename", `{"name": "kitchen"}`},
		{"post", "/api/chats/{name}/activate", "/api/chats/kitchen/activate", ""},
		{"put", "/api/chats/{name}/settings", "/api/chats/kitchen/settings", `{"inject_datetime": true}`},
		{"put", "/api/chats/{name}/settings", "/api/chats/kitchen/settings", `{"settings": {"custom_context": "Onions."}}`},
		{"get", "/api/chats/{name}/settings", "/api/chats/kitchen/settings", ""},
		{"get", "/api/chats/{name}/prompt-preview", "/api/chats/kitchen/prompt-preview?input=hello", ""},
		{"get", "/api/chats/{name}/export", "/api/chats/kitchen/export", ""},
		{"post", "/api/chats/{name}/clear", "/api/chats/kitchen/clear", ""},
		{"post", "/api/chats/{name}/activate", "/api/chats/default/activate", ""},
		{"delete", "/api/chats/{name}", "/api/chats/kitchen", ""},
		{"get", "/api/vault", "", ""},
		{"post", "/api/vault/setup", "", `{"passphrase": "open sesame"}`},
		{"post", "/api/vault/passphrase", "", `{"from": "open sesame", "to": "open barley"}`},
		{"post", "/api/vault/lock", "", ""},
		{"post", "/api/vault/unlock", "", `{"passphrase": "open barley"}`},
		{"post", "/api/stop", "", ""},
	} {
		if r.target == "" {
			r.target = r.path
		}
		if r.path == "/api/turns" {
			h.until("a turn is recorded", func() bool {
				var list []api.TurnRecord
				h.get("/api/turns", &list)
				return len(list) > 0
			})
		}
		tried[r.method+r.path] = true
		status, kind, text := h.fetch(strings.ToUpper(r.method), r.target, r.body)
		responses := doc.Paths[r.path][r.method].Responses
		switch {
		case status == 204 && responses["204"].Content == nil && responses["200"].Content == nil && len(responses) > 0:
		case status == 200 && responses["200"].Content["application/json"] != nil:
			place := strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace(r.path)
			s, err := c.Compile("http://bellbird/#/paths/" + place + "/" + r.method + "/responses/200/content/application~1json/schema")
			if err != nil {
				t.Fatal(err)
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err == nil {
				err = s.Validate(v)
			}
			if err != nil {
				t.Errorf("%s %s: %v\n%s", r.method, r.target, err, text)
			}
		case status == 200 && responses["200"].Content["text/plain"] != nil && strings.HasPrefix(kind, "text/plain"):
		default:
			t.Errorf("%s %s: %d %s", r.method, r.target, status, text)
		}
	}
	for path, operations := range doc.Paths {
		for method := range operations {
			switch path {
			case "/api/events": // it doesn't end
			case "/api/plugins/{name}/settings": // no plugin of the appliance has settings that could be changed
			default:
				if !tried[method+path] {
					t.Errorf("%s %s is described and wasn't tried", method, path)
				}
			}
		}
	}
}

// The API sees and changes what there is.
func TestDeviceOverTheAPI(t *testing.T) {
	h := live(t, t.TempDir())
	state := func() (s api.State) {
		h.get("/api/state", &s)
		return s
	}
	s := state()
	if s.Chat != "default" || s.Private || s.Volume.Percent != 70 || s.Mute == nil || s.Mute.Muted || len(s.Problems) != 0 {
		t.Errorf("at first: %+v", s)
	}
	h.fetch("PUT", "/api/volume", `{"percent": 25, "muted": true}`)
	if h.output.Volume() != 25 || !h.output.Muted() {
		t.Errorf("volume %d, muted %v", h.output.Volume(), h.output.Muted())
	}
	h.fetch("PUT", "/api/mute", `{"muted": true}`)
	if !h.body.mute.Muted() {
		t.Error("the microphone is not muted")
	}
	h.bus.Publish(event.LoudspeakerFault{Reason: "missing"})
	h.bus.Publish(event.ProviderSwitched{Kind: "llm", Name: "other", Instead: true})
	h.until("the faults are told", func() bool {
		s := state()
		return len(s.Problems) == 2 && s.Mute.Muted
	})
	h.bus.Publish(event.LoudspeakerWell{})
	h.bus.Publish(event.ProviderSwitched{Kind: "llm", Name: "offline"})
	h.until("they are over", func() bool { return len(state().Problems) == 0 })
	var models []api.Model
	h.get("/api/models", &models)
	for _, m := range models {
		if m.Active != (m.Name != "other") {
			t.Errorf("%+v", m)
		}
	}

	// A timer's name is shown only if it is known to be of no private chat.
	if status, _, text := h.fetch("POST", "/api/timers", `{"name": "eggs", "seconds": 600000}`); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	var timer api.Timer
	named := func(name string) func() bool {
		return func() bool {
			var list []api.Timer
			h.get("/api/timers", &list)
			if len(list) != 1 || list[0].Total != 600000 {
				t.Fatalf("timers %+v", list)
			}
			timer = list[0]
			return timer.Name == name
		}
	}
	h.until("the timer has its name", named("eggs"))
	h.bus.Publish(event.TimerChanged{ID: timer.ID, Name: "eggs", What: event.TimerSet, Private: true})
	h.until("its name is private", named(""))
	if status, _, text := h.fetch("GET", "/api/turns/12345", ""); status != 404 {
		t.Errorf("%d %s", status, text)
	}
}

// The command shows what turns took, also after the appliance has ended; nothing that was said is kept, and private
// turns leave nothing at all.
func TestTurnsCommand(t *testing.T) {
	dir := t.TempDir()
	h := live(t, dir)
	h.shows(words("turns"), "No turns are recorded yet.")
	h.shows(words("ask what time is it"), "It's ")
	h.shows(words("ask what's the date"), "It's ")
	records := func() (list []api.TurnRecord) {
		h.get("/api/turns", &list)
		return list
	}
	h.until("the turns are recorded", func() bool { return len(records()) == 2 })
	h.shows(words("chat new diary"), "there now")
	h.shows(words("chat set diary private_chat=true"), "private_chat=true")
	h.shows(words("ask --chat diary what time is it"), "It's ")
	h.shows(words("ask what time is it"), "It's ")
	h.until("the last turn is recorded", func() bool { return len(records()) >= 3 })
	list := records()
	if len(list) != 3 || list[0].ID != 3 || list[2].ID != 1 || list[0].Heard+list[0].Answer+list[0].Chat != "" {
		t.Errorf("records %+v", list)
	}
	for _, c := range list[0].Hooks {
		if c.Outcome == string(hooks.NoMatch) {
			t.Errorf("a command that was not said: %+v", c)
		}
	}
	live := h.does(0, "", "turns")
	for _, want := range []string{"turn", "slowest hook", "completed", "p50", "p99"} {
		if !strings.Contains(live, want) {
			t.Errorf("no %q in\n%s", want, live)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^\d+ +20`).FindAllString(live, -1)); n != 3 {
		t.Errorf("%d turns in\n%s", n, live)
	}
	h.shows(words("turns --limit 1"), "\n3 ")
	h.shows(words("turns 2"), "turn 2: completed", "first sound", "━", "end")
	var one api.TurnRecord
	if err := json.Unmarshal([]byte(h.does(0, "", "turns", "2", "--json")), &one); err != nil || one.ID != 2 {
		t.Errorf("%+v, error %v", one, err)
	}
	if out := h.does(1, "", "turns", "99"); !strings.Contains(out, "no record") {
		t.Error(out)
	}
	if out := h.does(1, "", "turns", "first"); !strings.Contains(out, "number") {
		t.Error(out)
	}

	_, kind, text := h.fetch("GET", "/api/metrics", "")
	if !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("metrics are %q", kind)
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.e]+)$`)
	for l := range strings.Lines(string(text)) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("no line of metrics: %q", l)
		}
	}
	for _, want := range []string{
		`bellbird_turns_total{outcome="completed"} 3`, `bellbird_turn_seconds_count{stage="turn"} 3`, `bellbird_underruns_total `, `bellbird_state{state="idle"} `,
		`bellbird_volume_percent 70`, `bellbird_microphone_muted 0`, `bellbird_engine_reached{kind="tts",name="espeak-ng"} 1`, "process_resident_memory_bytes ",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}

	h.stop()
	if out := h.does(0, "", "turns"); out != live {
		t.Errorf("after its end\n%s\ninstead of\n%s", out, live)
	}
	files, err := filepath.Glob(filepath.Join(dir, "state", "turns", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || strings.Contains(string(text), "what") || strings.Contains(string(text), "It's") || strings.Contains(string(text), "diary") {
			t.Errorf("%s: %v %s", f, err, text)
		}
	}
}

// What hooks did is in the figures, and one that wasn't called isn't.
func TestFiguresOfHooks(t *testing.T) {
	var all tally
	all.count(hooks.Trace{
		{Plugin: "b", Point: "pre_chat", Outcome: hooks.Committed, Took: 30 * time.Millisecond},
		{Plugin: "b", Point: "pre_chat", Outcome: hooks.Missed, Took: 500 * time.Millisecond},
		{Plugin: "a", Point: "post_llm", Outcome: hooks.Failed, Took: 10 * time.Millisecond},
		{Plugin: "c", Point: "post_llm", Outcome: hooks.NoMatch},
	})
	var got bytes.Buffer
	if err := turns.WriteText(&got, all.families()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"bellbird_hook_calls_total{plugin=\"a\",point=\"post_llm\"} 1\nbellbird_hook_calls_total{plugin=\"b\",point=\"pre_chat\"} 2\n",
		`bellbird_hook_misses_total{plugin="b",point="pre_chat"} 1`, `bellbird_hook_failures_total{plugin="a",point="post_llm"} 1`,
		`bellbird_hook_seconds_total{plugin="b",point="pre_chat"} 0.53`, `bellbird_hook_worst_seconds{plugin="b",point="pre_chat"} 0.5`,
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %s in\n%s", want, got.String())
		}
	}
	if strings.Contains(got.String(), `"c"`) {
		t.Errorf("one that wasn't called:\n%s", got.String())
	}
}

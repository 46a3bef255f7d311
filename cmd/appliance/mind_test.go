package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/ghost"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/llm"
	"bellbird/llm/anthropic"
	"bellbird/llm/llmtest"
	"bellbird/llm/openai"
	"bellbird/pipeline"
	"bellbird/prompt"
	"bellbird/store"
	"bellbird/tools"
)

// voiceless makes no sound.
type voiceless struct{}

func (voiceless) Synthesize(context.Context, string, func(audio.Frame) error) error { return nil }

// A thinker is an appliance that is only its turns: its model is behind a server that speaks the real API, its chats are
// in a real store.
type thinker struct {
	turns *pipeline.Pipeline
	store *store.Store
	path  string
	hooks *hooks.Runner
}

func newThinker(t testing.TB, model pipeline.Model) *thinker {
	t.Helper()
	th := &thinker{path: filepath.Join(t.TempDir(), "bellbird.db"), hooks: hooks.New(hooks.Options{})}
	var err error
	if th.store, err = store.Open(th.path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { th.store.Close() })
	t.Cleanup(th.hooks.Close)
	spices := filepath.Join(t.TempDir(), "spices")
	if err := os.WriteFile(spices, []byte("Speak like a zanzibar sailor.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rail, err := Ghost{Spices: spices}.rail(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(nil, tools.Time(time.Now)...)
	if err != nil {
		t.Fatal(err)
	}
	o := pipeline.Options{
		Model: model, Tools: set, Voice: voiceless{}, Chats: conversations{th.store}, Output: audio.NewOutput(0), Bus: new(event.Bus),
		Hooks: th.hooks, Prompt: systemPrompt(prompt.Options{}),
	}
	o.Ghost = func(c pipeline.Chat, run uint64, list []hooks.Contribution) ghost.Message {
		s := settingsOf(c)
		return rail.Message(ghost.Turn{
			Now: time.Now(), Number: int(run), Contributions: list,
			Settings: ghost.Settings{InjectDatetime: s.InjectDatetime, SpiceEnabled: s.SpiceEnabled, GhostContext: s.GhostContext},
		})
	}
	th.turns = pipeline.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- th.turns.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return th
}

func openaiModel(t testing.TB, s *llmtest.Server) *openai.Model {
	t.Helper()
	m, err := openai.New(openai.Options{Server: llm.Server{BaseURL: s.URL + "/v1", Model: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// manyTurns is how many turns must leave nothing behind.
func manyTurns() int {
	if os.Getenv("BELLBIRD_SOAK") != "" {
		return 1000
	}
	return 200
}

// What rides the ghost rail is in every request and never in the store; and turns leave neither goroutines nor memory.
func TestGhostsLeaveNoTrace(t *testing.T) {
	server := llmtest.NewOpenAI(llmtest.Answer())
	defer server.Close()
	th := newThinker(t, openaiModel(t, server))
	n := 0
	err := th.hooks.Register(hooks.Handler{Plugin: "weather", Point: "ghost_inject", Func: func(_ context.Context, e *hooks.Event) error {
		n++
		e.GhostText = hooks.String(fmt.Sprintf("xylophone%d rain", n))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := th.store.Set("default", map[string]any{"inject_datetime": true, "ghost_context": "The user plays the marimba."}); err != nil {
		t.Fatal(err)
	}
	turn := func(i int) {
		t.Helper()
		r, err := th.turns.Ask(t.Context(), fmt.Sprintf("question %d", i))
		if err != nil || r.Outcome != event.Completed {
			t.Fatalf("turn %d: %+v, error %v", i, r, err)
		}
	}
	const warm = 10
	for i := range warm {
		turn(i)
	}
	goroutines, heap := runtime.NumGoroutine(), heapInUse()
	turns := manyTurns()
	for i := warm; i < turns; i++ {
		turn(i)
	}
	if now := runtime.NumGoroutine(); now > goroutines+5 {
		t.Errorf("%d goroutines after %d turns, %d after %d", now, turns, goroutines, warm)
	}
	t.Logf("heap: %d kB after %d turns, %d kB after %d", heapInUse()>>10, turns, heap>>10, warm)

	requests := server.Requests()
	if len(requests) != turns {
		t.Fatalf("%d requests in %d turns", len(requests), turns)
	}
	for i, r := range requests {
		for _, want := range []string{ghost.Header, "- Time: ", "- Spice: Speak like a zanzibar sailor.", "- (operator): The user plays the marimba.", fmt.Sprintf("- weather: xylophone%d rain", i+1)} {
			if n := bytes.Count(r.Body, []byte(want)); n != 1 {
				t.Fatalf("request %d has %q %d times", i, want, n)
			}
		}
	}
	if err := th.store.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(th.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"xylophone", "zanzibar", "System context", "- Time"} {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("%q is in the database", secret)
		}
	}
	if !bytes.Contains(file, []byte(fmt.Sprintf("question %d", turns-1))) {
		t.Error("the last question is not in the database: the search finds nothing")
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A request begins with the bytes of the one before, up to the ghost: that is what a server remembers.
func TestPrefixIsStable(t *testing.T) {
	server := llmtest.NewAnthropic(llmtest.Answer())
	defer server.Close()
	m, err := anthropic.New(anthropic.Options{Server: llm.Server{BaseURL: server.URL, Model: "test", KeyEnv: "BELLBIRD_TEST_KEY"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("BELLBIRD_TEST_KEY", "k")
	th := newThinker(t, m)
	if _, err := th.store.Set("default", map[string]any{"inject_datetime": true}); err != nil {
		t.Fatal(err)
	}
	const turns = 80 // more than the history that a model is given
	var last *event.ModelUse
	read, input := 0, 0
	for i := range turns {
		r, err := th.turns.Ask(t.Context(), fmt.Sprintf("question %d", i))
		if err != nil || r.Model == nil {
			t.Fatalf("turn %d: %+v, error %v", i, r, err)
		}
		last = r.Model
		if i > 0 {
			read += last.CacheRead
			input += last.Input
		}
	}
	t.Logf("%.1f %% of the input of %d turns came from the cache; the last turn: %+v", 100*float64(read)/float64(input), turns, *last)
	if read < input*8/10 {
		t.Errorf("of %d tokens only %d came from the cache", input, read)
	}
}

// With a model configured, what the device itself understands needs no server, and when there is no server the rest is
// refused in words.
func TestLocalFirstAndFallback(t *testing.T) {
	grammar, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	server := llmtest.NewOpenAI(llmtest.Answer())
	a := &appliance{hooks: hooks.New(hooks.Options{}), bus: new(event.Bus)}
	defer a.hooks.Close()
	facts := a.bus.Subscribe(8)
	defer facts.Close()
	switched := make(chan string, 10)
	err = a.hooks.Register(hooks.Handler{Plugin: "p", Point: "provider_switched", Func: func(_ context.Context, e *hooks.Event) error {
		switched <- fmt.Sprint(e.Metadata["kind"], " ", e.Metadata["provider"])
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	text := fmt.Sprintf("[model]\nkind = \"openai\"\n[model.openai]\nbase_url = \"%s/v1\"\nmodel = \"test\"\nretries = -1\n", server.URL)
	if err := c.decode("config.toml", text); err != nil {
		t.Fatal(err)
	}
	model, err := a.think(c.Model, grammar, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	th := newThinker(t, model)
	ask := func(text string) string {
		t.Helper()
		r, err := th.turns.Ask(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return r.Answer
	}
	// Nothing is heard of a voice that makes no sound, but an answer is remembered.
	ask("what time is it")
	if n := len(server.Requests()); n != 0 {
		t.Errorf("the time was asked of the server %d times", n)
	}
	ask("why is the sky blue")
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests for one question", n)
	}
	server.Close()
	r, err := th.turns.Ask(t.Context(), "and why is it red at night")
	if err != nil || r.Error != event.ModelFailed || r.Model.Error != string(dialog.Unreachable) {
		t.Errorf("%+v, error %v", r, err)
	}
	ask("what time is it")
	chat, err := th.store.Active()
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range chat.Messages() {
		rows = append(rows, string(m.Role)+": "+m.Content)
	}
	if all := strings.Join(rows, "\n"); !strings.Contains(all, "tool: It's ") || !strings.Contains(all, "user: why is the sky blue\nassistant: ") {
		t.Errorf("chat:\n%s", all)
	}

	// Where the model is asked first, the agent of the device steps in, which plugins are told.
	c.Model.LocalFirst = new(false)
	if model, err = a.think(c.Model, grammar, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	th = newThinker(t, model)
	if r, err := th.turns.Ask(t.Context(), "what time is it"); err != nil || r.Outcome != event.Completed {
		t.Errorf("%+v, error %v", r, err)
	}
	if got := <-switched; got != "llm offline" {
		t.Errorf("switched to %q", got)
	}
	if f, ok := (<-facts.C).(event.ProviderSwitched); !ok || f.Kind != "llm" || f.Name != "offline" || !f.Instead {
		t.Errorf("the fact is %+v", f)
	}

	c.Model.Kind = "oracle"
	if _, err := a.think(c.Model, grammar, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), `"oracle"`) {
		t.Errorf("error %v", err)
	}
}

// From the text of what was heard to the request's arrival at the server, without hooks.
func BenchmarkTextToRequest(b *testing.B) {
	server := llmtest.NewOpenAI(llmtest.Answer())
	defer server.Close()
	th := newThinker(b, openaiModel(b, server))
	var total time.Duration
	for b.Loop() {
		began := time.Now()
		done := make(chan error)
		go func() {
			_, err := th.turns.Ask(context.Background(), "question")
			done <- err
		}()
		<-server.Asked
		total += time.Since(began)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/request")
	b.ReportMetric(0, "ns/op")
}

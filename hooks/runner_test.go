package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/hooks"
)

func newRunner(t *testing.T, o hooks.Options) *hooks.Runner {
	r := hooks.New(o)
	t.Cleanup(r.Close)
	return r
}

func register(t *testing.T, r *hooks.Runner, h hooks.Handler) {
	t.Helper()
	if err := r.Register(h); err != nil {
		t.Fatal(err)
	}
}

func outcomes(trace hooks.Trace) []string {
	var all []string
	for _, c := range trace {
		all = append(all, c.Plugin+": "+string(c.Outcome))
	}
	return all
}

func appends(word string) hooks.Func {
	return func(_ context.Context, e *hooks.Event) error {
		e.Input += " " + word
		return nil
	}
}

func TestOrder(t *testing.T) {
	r := newRunner(t, hooks.Options{})
	for _, h := range []hooks.Handler{
		{Plugin: "user-first", Band: hooks.User, Priority: -500, Func: appends("userfirst")}, // can't jump the band
		{Plugin: "system-last", Priority: 150, Func: appends("systemlast")},                  // nor leave it
		{Plugin: "b", Priority: 50, Func: appends("b")},
		{Plugin: "c", Priority: 50, Func: appends("c")},
		{Plugin: "a", Priority: 10, Func: appends("a")},
		{Plugin: "user-last", Band: hooks.User, Priority: 99, Func: appends("userlast")},
	} {
		h.Point = "post_stt"
		register(t, r, h)
	}
	e := &hooks.Event{Input: "start"}
	r.Fire(t.Context(), "post_stt", e)
	if want := "start a b c systemlast userfirst userlast"; e.Input != want {
		t.Errorf("input %q, want %q", e.Input, want)
	}
	r.Unregister("b")
	e = &hooks.Event{Input: "start"}
	if trace := r.Fire(t.Context(), "post_stt", e); strings.Contains(e.Input, " b") || len(trace) != 5 {
		t.Errorf("after Unregister: input %q, trace %v", e.Input, outcomes(trace))
	}
}

func TestFailuresLoseTheirChanges(t *testing.T) {
	for name, bad := range map[string]hooks.Func{
		"error": func(_ context.Context, e *hooks.Event) error {
			e.Input = "half made"
			e.Metadata["list"].([]any)[0] = "spoiled"
			return errors.New("broken")
		},
		"panic": func(_ context.Context, e *hooks.Event) error {
			e.Input = "half made"
			e.Metadata["list"].([]any)[0] = "spoiled"
			panic("oh")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, hooks.Options{})
			register(t, r, hooks.Handler{Plugin: "bad", Point: "pre_chat", Priority: 1, Func: bad})
			var list any
			register(t, r, hooks.Handler{Plugin: "good", Point: "pre_chat", Priority: 50, Func: func(_ context.Context, e *hooks.Event) error {
				list = e.Metadata["list"].([]any)[0]
				e.Input += "!"
				return nil
			}})
			e := &hooks.Event{Input: "hello", Metadata: map[string]any{"list": []any{"clean"}}}
			trace := r.Fire(t.Context(), "pre_chat", e)
			if e.Input != "hello!" || list != "clean" {
				t.Errorf("input %q, list %v", e.Input, list)
			}
			if got, want := outcomes(trace), []string{"bad: failed", "good: committed"}; !slices.Equal(got, want) {
				t.Errorf("trace %v, want %v", got, want)
			}
		})
	}
}

func TestDeadlineIsHardAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.New(hooks.Options{})
		release := make(chan struct{})
		register(t, r, hooks.Handler{Plugin: "quick", Point: "pre_chat", Priority: 1, Func: appends("quick")})
		register(t, r, hooks.Handler{Plugin: "slow", Point: "pre_chat", Priority: 2, Func: func(ctx context.Context, e *hooks.Event) error {
			time.Sleep(400 * time.Millisecond)
			e.Input += " slow"
			return nil
		}})
		register(t, r, hooks.Handler{Plugin: "stuck", Point: "pre_chat", Priority: 3, Func: func(_ context.Context, e *hooks.Event) error {
			e.Input = "late"
			<-release // looks at no context
			return nil
		}})
		register(t, r, hooks.Handler{Plugin: "last", Point: "pre_chat", Priority: 4, Func: appends("last")})
		e := &hooks.Event{Input: "x"}
		began := time.Now()
		trace := r.Fire(t.Context(), "pre_chat", e)
		if d := time.Since(began); d != 500*time.Millisecond {
			t.Errorf("the fire took %v", d)
		}
		if e.Input != "x quick slow" {
			t.Errorf("input %q", e.Input)
		}
		want := []string{"quick: committed", "slow: committed", "stuck: missed", "last: not reached"}
		if got := outcomes(trace); !slices.Equal(got, want) {
			t.Errorf("trace %v, want %v", got, want)
		}
		close(release)
		synctest.Wait()
		if e.Input != "x quick slow" {
			t.Errorf("a late handler changed the input to %q", e.Input)
		}
		r.Close()
	})
}

func TestBudgetOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.New(hooks.Options{})
		defer r.Close()
		var calls atomic.Int32
		register(t, r, hooks.Handler{Plugin: "p", Point: "tts_chunk_audio", Func: func(ctx context.Context, _ *hooks.Event) error {
			calls.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}})
		began := time.Now()
		r.FireWithin(t.Context(), "tts_chunk_audio", &hooks.Event{}, 20*time.Millisecond)
		if d := time.Since(began); d != 20*time.Millisecond {
			t.Errorf("took %v", d)
		}
		synctest.Wait()
		trace := r.FireWithin(t.Context(), "tts_chunk_audio", &hooks.Event{}, -1)
		if calls.Load() != 1 || trace[0].Outcome != hooks.NotReached {
			t.Errorf("without time: %d calls, trace %v", calls.Load(), outcomes(trace))
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened []time.Duration
		r := hooks.New(hooks.Options{OnBreaker: func(plugin, point string, d time.Duration) {
			if plugin != "stuck" || point != "post_stt" {
				t.Errorf("breaker of %s at %s", plugin, point)
			}
			opened = append(opened, d)
		}})
		defer r.Close()
		stuck := atomic.Bool{}
		stuck.Store(true)
		register(t, r, hooks.Handler{Plugin: "stuck", Point: "post_stt", Func: func(ctx context.Context, _ *hooks.Event) error {
			if stuck.Load() {
				<-ctx.Done()
			}
			return nil
		}})
		fire := func() hooks.Outcome {
			trace := r.Fire(t.Context(), "post_stt", &hooks.Event{})
			synctest.Wait()
			return trace[0].Outcome
		}
		for i := range 3 {
			if got := fire(); got != hooks.Missed {
				t.Errorf("fire %d: %q", i, got)
			}
		}
		if got := fire(); got != hooks.BreakerOpen {
			t.Errorf("after three misses: %q", got)
		}
		time.Sleep(time.Minute)
		if got := fire(); got != hooks.Missed { // one more try
			t.Errorf("after the pause: %q", got)
		}
		time.Sleep(time.Minute)
		if got := fire(); got != hooks.BreakerOpen { // for longer now
			t.Errorf("after another miss: %q", got)
		}
		time.Sleep(time.Minute)
		stuck.Store(false)
		for range 3 {
			if got := fire(); got != hooks.Committed {
				t.Errorf("mended: %q", got)
			}
		}
		if want := []time.Duration{time.Minute, 2 * time.Minute}; !slices.Equal(opened, want) {
			t.Errorf("opened for %v, want %v", opened, want)
		}
	})
}

func TestBlameFallsOnTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blamed string
		r := hooks.New(hooks.Options{OnBreaker: func(plugin, _ string, _ time.Duration) { blamed = plugin }})
		defer r.Close()
		register(t, r, hooks.Handler{Plugin: "greedy", Point: "post_stt", Priority: 1, Func: func(context.Context, *hooks.Event) error {
			time.Sleep(149 * time.Millisecond)
			return nil
		}})
		register(t, r, hooks.Handler{Plugin: "victim", Point: "post_stt", Priority: 2, Func: func(context.Context, *hooks.Event) error {
			time.Sleep(5 * time.Millisecond)
			return nil
		}})
		for range 9 {
			r.Fire(t.Context(), "post_stt", &hooks.Event{})
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if blamed == "victim" {
			t.Error("the victim was blamed")
		}
	})
}

func TestHonoured(t *testing.T) {
	all := func(_ context.Context, e *hooks.Event) error {
		e.Input, e.SkipLLM, e.Response, e.Ephemeral = "i", true, hooks.String(" "), true
		e.ContextParts = append(e.ContextParts, "c")
		e.TTSText, e.SkipTTS = hooks.String("t"), true
		e.Result, e.Arguments = hooks.String("r"), map[string]any{"a": 1.0}
		e.GhostText = hooks.String("g")
		e.GhostContributions = append(e.GhostContributions, hooks.Contribution{Plugin: "(core)", Text: "forged"})
		e.Tools = append(e.Tools, map[string]any{"function": map[string]any{"name": "added"}})
		return nil
	}
	for point, want := range map[string]string{
		"on_wake":          "",
		"post_stt":         "input",
		"pre_chat":         "input skip_llm response ephemeral context_parts",
		"dictation":        "input skip_llm",
		"prompt_inject":    "context_parts",
		"ghost_inject":     "ghost",
		"tools_filter":     "",
		"pre_execute":      "skip_llm arguments result",
		"post_execute":     "result",
		"post_llm":         "", // blank
		"tts_stream_start": "skip_tts",
		"tts_chunk_text":   "tts_text skip_tts",
		"tts_chunk_audio":  "",
		"pre_tts":          "tts_text skip_tts",
		"my_own_point":     "input skip_llm response ephemeral context_parts ghost arguments result tts_text skip_tts",
	} {
		r := newRunner(t, hooks.Options{})
		register(t, r, hooks.Handler{Plugin: "p", Point: point, Func: all})
		e := &hooks.Event{Metadata: map[string]any{}}
		r.Fire(t.Context(), point, e)
		var got []string
		note := func(changed bool, name string) {
			if changed {
				got = append(got, name)
			}
		}
		note(e.Input != "", "input")
		note(e.SkipLLM, "skip_llm")
		note(e.Response != nil, "response")
		note(e.Ephemeral, "ephemeral")
		note(len(e.ContextParts) > 0, "context_parts")
		note(len(e.GhostContributions) > 0, "ghost")
		note(e.Arguments != nil, "arguments")
		note(e.Result != nil, "result")
		note(e.TTSText != nil, "tts_text")
		note(e.SkipTTS, "skip_tts")
		note(len(e.Tools) > 0, "tools")
		if want := strings.Fields(want); !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s honours %v, want %v", point, got, want)
		}
		if len(e.GhostContributions) > 0 && e.GhostContributions[0] != (hooks.Contribution{Plugin: "p", Text: "g"}) {
			t.Errorf("%s: contribution %+v", point, e.GhostContributions)
		}
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

func TestToolsAreOnlySubtracted(t *testing.T) {
	tool := func(name string) map[string]any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": "d"}}
	}
	for name, test := range map[string]struct {
		filter func(e *hooks.Event)
		want   []string
	}{
		"nothing":   {func(*hooks.Event) {}, []string{"a", "b", "c"}},
		"one less":  {func(e *hooks.Event) { e.Tools = slices.Delete(e.Tools, 1, 2) }, []string{"a", "c"}},
		"reordered": {func(e *hooks.Event) { slices.Reverse(e.Tools) }, []string{"a", "b", "c"}},
		"added":     {func(e *hooks.Event) { e.Tools = append(e.Tools, tool("d"), tool("a")) }, []string{"a", "b", "c"}},
		"none":      {func(e *hooks.Event) { e.Tools = nil }, nil},
		"edited": {func(e *hooks.Event) {
			e.Tools[0]["function"].(map[string]any)["description"] = "evil"
		}, []string{"a", "b", "c"}},
	} {
		r := newRunner(t, hooks.Options{})
		register(t, r, hooks.Handler{Plugin: "p", Point: "tools_filter", Func: func(_ context.Context, e *hooks.Event) error {
			test.filter(e)
			return nil
		}})
		e := &hooks.Event{Tools: []map[string]any{tool("a"), tool("b"), tool("c")}}
		r.Fire(t.Context(), "tools_filter", e)
		var names []string
		for _, x := range e.Tools {
			f := x["function"].(map[string]any)
			names = append(names, f["name"].(string))
			if f["description"] != "d" {
				t.Errorf("%s: a schema was edited", name)
			}
		}
		if !slices.Equal(names, test.want) {
			t.Errorf("%s: %v, want %v", name, names, test.want)
		}
	}
}

func TestStopPropagation(t *testing.T) {
	r := newRunner(t, hooks.Options{})
	register(t, r, hooks.Handler{Plugin: "a", Point: "pre_chat", Priority: 1, Func: func(_ context.Context, e *hooks.Event) error {
		e.StopPropagate = true
		return errors.New("and fails: then it didn't say so")
	}})
	register(t, r, hooks.Handler{Plugin: "b", Point: "pre_chat", Priority: 2, Func: func(_ context.Context, e *hooks.Event) error {
		e.StopPropagate = true
		return nil
	}})
	register(t, r, hooks.Handler{Plugin: "c", Point: "pre_chat", Priority: 3, Func: appends("c")})
	trace := r.Fire(t.Context(), "pre_chat", &hooks.Event{})
	if got, want := outcomes(trace), []string{"a: failed", "b: committed", "c: not reached"}; !slices.Equal(got, want) {
		t.Errorf("trace %v, want %v", got, want)
	}
}

func TestFailClosed(t *testing.T) {
	guard := func(f hooks.Func) *hooks.Event {
		r := newRunner(t, hooks.Options{})
		register(t, r, hooks.Handler{Plugin: "guard", Point: "pre_execute", FailClosed: true, Func: f})
		e := &hooks.Event{FunctionName: hooks.String("unlock_door")}
		r.FireWithin(t.Context(), "pre_execute", e, 20*time.Millisecond)
		return e
	}
	for name, f := range map[string]hooks.Func{
		"fails": func(context.Context, *hooks.Event) error { return errors.New("no") },
		"hangs": func(ctx context.Context, _ *hooks.Event) error { <-ctx.Done(); return nil },
	} {
		if e := guard(f); !e.SkipLLM || e.Result == nil || !strings.Contains(*e.Result, "guard") {
			t.Errorf("%s: the tool would run: %+v", name, e)
		}
	}
	if e := guard(func(context.Context, *hooks.Event) error { return nil }); e.SkipLLM {
		t.Error("a guard that agrees blocks the tool")
	}
}

func TestStamps(t *testing.T) {
	r := newRunner(t, hooks.Options{System: "powers", Config: "settings"})
	for _, p := range hooks.Points() {
		if !p.Waits {
			continue
		}
		var system, config any
		register(t, r, hooks.Handler{Plugin: "p", Point: p.Name, Func: func(_ context.Context, e *hooks.Event) error {
			system, config = e.Metadata["system"], e.Config
			return nil
		}})
		e := &hooks.Event{}
		r.Fire(t.Context(), p.Name, e)
		if (system == "powers") != p.System || (config == "settings") != p.Config {
			t.Errorf("%s: system %v, config %v", p.Name, system, config)
		}
		if e.Metadata["system"] != nil || e.Config != nil {
			t.Errorf("%s: the stamps got out", p.Name)
		}
	}
}

func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.New(hooks.Options{})
		var seen atomic.Value
		register(t, r, hooks.Handler{Plugin: "p", Point: "post_chat", Func: func(_ context.Context, e *hooks.Event) error {
			time.Sleep(time.Second)
			seen.Store(e.Input)
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		e := &hooks.Event{Input: "said"}
		began := time.Now()
		r.Fire(ctx, "post_chat", e)
		cancel() // the turn is over
		e.Input = "something else"
		if time.Since(began) != 0 {
			t.Error("the fire waited")
		}
		r.Close()
		if seen.Load() != "said" {
			t.Errorf("the handler saw %v", seen.Load())
		}
	})
}

func TestNoHandlersCostNothing(t *testing.T) {
	r := newRunner(t, hooks.Options{})
	e := &hooks.Event{}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { r.Fire(ctx, "pre_chat", e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFire(b *testing.B) {
	for _, n := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("handlers=%d", n), func(b *testing.B) {
			r := hooks.New(hooks.Options{})
			defer r.Close()
			for range n {
				if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_stt", Func: func(context.Context, *hooks.Event) error { return nil }}); err != nil {
					b.Fatal(err)
				}
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				r.Fire(ctx, "post_stt", &hooks.Event{Input: "what time is it"})
			}
		})
	}
}

func TestTraceIsTold(t *testing.T) {
	var told []hooks.Trace
	r := hooks.New(hooks.Options{OnTrace: func(t hooks.Trace) { told = append(told, t) }})
	if err := r.Register(hooks.Handler{Plugin: "p", Point: "pre_chat", Func: func(context.Context, *hooks.Event) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(hooks.Handler{Plugin: "p", Point: "post_chat", Func: func(context.Context, *hooks.Event) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	r.Fire(t.Context(), "post_llm", new(hooks.Event)) // nobody is there
	r.Fire(t.Context(), "pre_chat", new(hooks.Event))
	r.Fire(t.Context(), "post_chat", new(hooks.Event))
	r.Close()
	if len(told) != 2 || told[0][0].Point != "pre_chat" || told[1][0].Point != "post_chat" || told[1][0].Outcome != hooks.Committed {
		t.Errorf("%+v", told)
	}
}

package runtimetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// failureCases are about handlers that fail, that come too late, or that are not there.
var failureCases = []testCase{
	{
		name:    "an error loses the changes",
		sources: both("def pre_execute(event):\n    event.arguments['a'] = 2\n    event.result = 'half'\n    x = {}['missing']\n"),
		golang: one("pre_execute", func(_ context.Context, e *hooks.Event) error {
			e.Arguments["a"], e.Result = 2.0, hooks.String("half")
			return errors.New("missing")
		}),
		check: func(t *testing.T, p *plugin) {
			got := firing{point: "pre_execute", f: p.function(t, "pre_execute")}.fire(t, hooks.Event{Arguments: map[string]any{"a": 1.0}})
			e, trace := got.event, got.trace
			if trace[0].Outcome != hooks.Failed || trace[0].Err == nil || trace[1].Outcome != hooks.Committed {
				t.Errorf("trace %+v", trace)
			}
			if e.Result != nil || e.Arguments["a"] != 1.0 || len(got.after) == 0 || got.after[0].Result != nil {
				t.Errorf("event %+v", e)
			}
		},
	},
	{
		name: "who is late loses the changes, and keeps nobody waiting",
		sources: map[string]string{
			".star": "def pre_chat(event):\n    event.input = 'late'\n    while True:\n        pass\ndef post_stt(event):\n    event.input += '!'\n",
			".py":   "def pre_chat(event):\n    event.input = 'late'\n    while True:\n        pass\ndef post_stt(event):\n    event.input += '!'\n",
		},
		golang: func(*plugins.Owner) map[string]hooks.Func {
			return map[string]hooks.Func{
				"pre_chat": func(ctx context.Context, e *hooks.Event) error {
					e.Input = "late"
					<-ctx.Done()
					return context.Cause(ctx)
				},
				"post_stt": func(_ context.Context, e *hooks.Event) error { e.Input += "!"; return nil },
			}
		},
		check: func(t *testing.T, p *plugin) {
			got := firing{point: "pre_chat", f: p.function(t, "pre_chat"), perhaps: true}.fire(t, hooks.Event{Input: "x"})
			trace, e := got.trace, &got.event
			if trace[0].Outcome == hooks.Committed || e.Input != "x" { // Starlark may have counted its steps first
				t.Errorf("trace %+v, input %q", trace, e.Input)
			}
			// The plugin itself, or its next worker, is there again.
			for deadline := time.Now().Add(patience); ; {
				e = &hooks.Event{Input: "x"}
				err := p.call(t, "post_stt", e)
				if err == nil && e.Input == "x!" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("it is not back: %v", err)
				}
			}
		},
	},
	{
		name:    "nobody comes after who stops the others",
		sources: both("def pre_execute(event):\n    event.stop_propagation = True\n"),
		golang:  one("pre_execute", func(_ context.Context, e *hooks.Event) error { e.StopPropagate = true; return nil }),
		check: func(t *testing.T, p *plugin) {
			if got := (firing{point: "pre_execute", f: p.function(t, "pre_execute")}).fire(t, hooks.Event{}); len(got.after) > 0 {
				t.Error("the next handler was called")
			}
		},
	},
	{
		name:    "a confirmation can't be taken back",
		sources: both("def pre_execute(event):\n    event.require_confirmation = None\n    event.result = 'r'\n"),
		golang: one("pre_execute", func(_ context.Context, e *hooks.Event) error {
			e.Confirm, e.Result = nil, hooks.String("r")
			return nil
		}),
		check: func(t *testing.T, p *plugin) {
			e := firing{point: "pre_execute", f: p.function(t, "pre_execute")}.fire(t, hooks.Event{Confirm: hooks.String("it costs money")}).event
			if e.Confirm == nil || *e.Confirm != "it costs money" || e.Result == nil {
				t.Errorf("event %+v", e)
			}
		},
	},
	{
		name:    "handle is for every point, run for none",
		sources: both("def handle(event):\n    event.input = 'handled'\ndef run(event):\n    pass\n"),
		golang:  one("handle", func(_ context.Context, e *hooks.Event) error { e.Input = "handled"; return nil }),
		check: func(t *testing.T, p *plugin) {
			e := new(hooks.Event)
			if p.must(t, "post_llm", e); e.Input != "handled" {
				t.Errorf("input %q", e.Input)
			}
		},
	},
	{
		name:    "a function that is missing is an error",
		sources: both("def run(event):\n    pass\ndef post_stt(event):\n    pass\npre_chat = 1\n"),
		golang:  one("post_stt", func(context.Context, *hooks.Event) error { return nil }),
		check: func(t *testing.T, p *plugin) {
			for _, point := range []string{"pre_chat", "post_llm"} {
				if _, err := p.unit(t).Func(point); err == nil {
					t.Errorf("%s: no error", point)
				}
			}
			p.function(t, "post_stt")
		},
	},
	{
		name:    "a file with an error is not loaded",
		sources: both("def post_stt(event)\n"),
		check: func(t *testing.T, p *plugin) {
			if _, err := p.load(t); err == nil {
				t.Error("no error")
			}
		},
	},
	{
		name:    "a file that fails is not loaded",
		sources: both("x = [][1]\ndef post_stt(event):\n    pass\n"),
		check: func(t *testing.T, p *plugin) {
			if _, err := p.load(t); err == nil {
				t.Error("no error")
			}
		},
	},
	{
		name:    "what can't be kept is an error",
		sources: both("def a(event):\n    event.metadata['f'] = a\ndef b(event):\n    event.input = 5\ndef c(event):\n    event.context_parts.append(5)\ndef d(event):\n    event.metadata[5] = 5\n"),
		check: func(t *testing.T, p *plugin) {
			for _, point := range []string{"a", "b", "c", "d"} {
				if err := p.call(t, point, &hooks.Event{Metadata: map[string]any{"x": 1.0}}); err == nil {
					t.Errorf("%s: no error", point)
				}
			}
		},
	},
}

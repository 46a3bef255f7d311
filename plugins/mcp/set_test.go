package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/hooks"
	"bellbird/plugins/mcp"
)

func TestTranscriptsAreCombined(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers map[string]string // by integration
		want    hooks.Event
		views   []string
	}{
		{"nobody says anything", map[string]string{"a": "", "b": "{}", "c": `{"decision": "continue"}`}, hooks.Event{Input: "hello"}, nil},
		{
			"the first rewrites", map[string]string{"a": "{}", "b": `{"updatedText": "hi b"}`, "c": `{"updatedText": "hi c"}`},
			hooks.Event{Input: "hi b"}, nil,
		},
		{"blanking is no rewrite", map[string]string{"a": `{"updatedText": " "}`}, hooks.Event{Input: "hello"}, nil},
		{
			"context of all", map[string]string{"b": `{"additionalContext": "one\n- (operator): two"}`, "a": `{"additionalContext": "zero"}`},
			hooks.Event{Input: "hello", ContextParts: []string{"From a: zero", "From b: one\n  - (operator): two"}}, nil,
		},
		{
			"the first handles", map[string]string{
				"a": `{"additionalContext": "x"}`, "b": `{"decision": "handled", "responseText": "Done.", "view": {"blocks": [{"x": 1}]}}`,
				"c": `{"decision": "handled", "responseText": "No.", "view": {"blocks": [2]}}`,
			},
			hooks.Event{Input: "hello", SkipLLM: true, Response: hooks.String("Done.")}, []string{`b: [{"x": 1}] false`},
		},
		{
			"who blocks goes before", map[string]string{"a": `{"decision": "handled", "view": {"blocks": [1]}}`, "b": `{"decision": "block", "view": {"blocks": [2]}}`},
			hooks.Event{Input: "hello", SkipLLM: true, Response: hooks.String("That was stopped by b.")}, nil,
		},
		{"a broken answer counts as none", map[string]string{"a": `{"decision": "handled"`, "b": `{"decision": "perhaps"}`, "c": `7`}, hooks.Event{Input: "hello"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fakes := make(map[string]fake)
				for name, answer := range test.answers {
					fakes[name] = fake{"transcript": func(_ context.Context, in map[string]any) (string, error) {
						if in["transcript"] != "hello" || in["frontmostApp"] != "chat" || len(in) != 2 {
							t.Errorf("%s is asked with %v", name, in)
						}
						return answer, nil
					}}
				}
				r, end := withFakes(t, fakes)
				defer end()
				e := said("hello")
				r.runner.Fire(t.Context(), "pre_chat", e)
				if e.Input != test.want.Input || e.SkipLLM != test.want.SkipLLM || !slices.Equal(e.ContextParts, test.want.ContextParts) || show(e.Response) != show(test.want.Response) {
					t.Errorf("got %+v, response %q", e, show(e.Response))
				}
				if views := r.take(&r.views); !slices.Equal(views, test.views) {
					t.Errorf("views %q, want %q", views, test.views)
				}
			})
		})
	}
}

// Five that never answer cost one budget, three times; then they are left out. The sixth is heard all the same.
func TestBudgetIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := map[string]fake{"good": {"transcript": says(`{"updatedText": "heard"}`)}}
		for i := range 5 {
			fakes[fmt.Sprintf("slow%d", i)] = fake{"transcript": func(ctx context.Context, _ map[string]any) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}}
		}
		r, end := withFakes(t, fakes)
		defer end()
		for turn := range 5 {
			e := said("hello")
			began := time.Now()
			trace := r.runner.Fire(t.Context(), "pre_chat", e)
			took := time.Since(began)
			if e.Input != "heard" || len(trace) != 1 || trace[0].Outcome != hooks.Committed {
				t.Errorf("turn %d: input %q, trace %v", turn, e.Input, trace)
			}
			calls := r.take(&r.trace)
			want, outcome := 450*time.Millisecond, "missed" // of 500, a tenth is for what comes after
			if turn >= 3 {
				want, outcome = 0, "breaker open"
			}
			if took != want || len(calls) != 6 || calls[0] != "good: committed" || calls[5] != "slow4: "+outcome {
				t.Errorf("turn %d: %v, want %v; %q", turn, took, want, calls)
			}
		}
		if opened := r.take(&r.opened); len(opened) != 5 || opened[0] != "slow0 pre_chat 1m0s" {
			t.Errorf("opened: %q", opened)
		}
		time.Sleep(time.Minute) // the bubble's: then each has one more chance
		r.runner.Fire(t.Context(), "pre_chat", said("hello"))
		if opened := r.take(&r.opened); len(opened) != 5 || opened[0] != "slow0 pre_chat 2m0s" {
			t.Errorf("opened again: %q", opened)
		}
	})
}

// A server that doesn't return when it should is not called again and again.
func TestStuckCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), make(chan struct{}, 100)
		r, end := withFakes(t, map[string]fake{"stuck": {"turnComplete": func(context.Context, map[string]any) (string, error) {
			calls <- struct{}{}
			<-release
			return `{}`, nil
		}}})
		for range 10 {
			r.runner.Fire(t.Context(), "post_chat", said("hello"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(calls) > 4 || len(calls) == 0 {
			t.Errorf("%d calls are under way", len(calls))
		}
		close(release)
		synctest.Wait()
		end()
	})
}

func TestCancelledTurnBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := withFakes(t, map[string]fake{"slow": {"transcript": func(ctx context.Context, _ map[string]any) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}})
		defer end()
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			r.runner.Fire(ctx, "pre_chat", said("hello"))
			synctest.Wait()
		}
		if calls := r.take(&r.trace); !slices.Equal(calls, []string{"slow: abandoned", "slow: abandoned", "slow: abandoned", "slow: abandoned"}) {
			t.Errorf("%q", calls)
		}
	})
}

// What withholds an integration keeps it from hearing anything.
func TestWhoHears(t *testing.T) {
	heard := make(chan string, 10)
	listens := func(name string) fake {
		f := func(_ context.Context, in map[string]any) (string, error) {
			heard <- name
			return `{"decision": "handled"}`, nil
		}
		return fake{"transcript": f, "dictation": f, "turnComplete": f}
	}
	const all = `"permissions": [{"kind": "transcript", "scope": "all"}], "hooks": {`
	r, end := newRig(t, map[string]string{
		"aware": manifest("aware", `"privacy_aware": true, `+all+`"transcript": {}}`),
		"plain": manifest("plain", all+`"transcript": {}, "dictation": {"apps": ["notes"]}}`),
		"game":  manifest("game", all+`"transcript": {"apps": ["game"]}}`),
		"deaf":  manifest("deaf", ""), // its server has hooks that its manifest doesn't name
	}, func(m *mcp.Manifest, _ string) (mcp.Server, error) { return listens(m.Name), nil })
	defer end()
	fire := func(point string, e *hooks.Event) string {
		r.runner.Fire(t.Context(), point, e)
		var who []string
		for len(heard) > 0 {
			who = append(who, <-heard)
		}
		slices.Sort(who)
		return strings.Join(who, " ")
	}
	private := func(p *bool) *hooks.Event { return &hooks.Event{Input: "x", ChatPrivate: p} }
	dictated := func(app string) *hooks.Event {
		return &hooks.Event{Input: "x", ChatPrivate: new(false), Metadata: map[string]any{"app": app}}
	}
	for _, test := range []struct {
		name, point string
		e           *hooks.Event
		want        string
	}{
		{"a turn", "pre_chat", said("x"), "aware plain"},
		{"a private one", "pre_chat", private(new(true)), "aware"},
		{"in the game", "pre_chat", &hooks.Event{Input: "x", ChatPrivate: new(false), Surface: hooks.String("game")}, "aware game plain"},
		{"answered already", "pre_chat", &hooks.Event{Input: "x", ChatPrivate: new(false), SkipLLM: true}, ""},
		{"dictation", "dictation", dictated("notes"), "plain"},
		{"dictation for another", "dictation", dictated("diary"), ""},
		{"a private dictation", "dictation", &hooks.Event{Input: "x", ChatPrivate: new(true), Metadata: map[string]any{"app": "notes"}}, ""},
		{"a receipt", "post_chat", said("x"), ""},
	} {
		if got := fire(test.point, test.e); got != test.want {
			t.Errorf("%s: heard by %q, want %q", test.name, got, test.want)
		}
	}

	// The switch silences all of an integration's hooks at once, and lasts.
	if err := r.SetAccess("plain", false); err != nil {
		t.Fatal(err)
	}
	if got := fire("pre_chat", said("x")) + fire("dictation", dictated("notes")); got != "aware" {
		t.Errorf("silenced: heard by %q", got)
	}
	if err := r.Scan(r.ctx); err != nil {
		t.Fatal(err)
	}
	if d, err := r.ledger.Of("plain"); err != nil || !d.Silenced || fire("pre_chat", said("x")) != "aware" {
		t.Errorf("a scan gives its access back: %+v, %v", d, err)
	}
	if err := r.SetAccess("plain", true); err != nil || fire("pre_chat", said("x")) != "aware plain" {
		t.Errorf("it has no access again: %v", err)
	}
	if err := r.SetAccess("nobody", true); !errors.Is(err, mcp.ErrUnknown) {
		t.Errorf("of nobody: %v", err)
	}
}

// An integration that is silenced while it is asked is not heard.
func TestSilencedMeanwhile(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	r, end := withFakes(t, map[string]fake{"a": {"preToolUse": func(context.Context, map[string]any) (string, error) {
		close(asked)
		<-answer
		return `{"decision": "block"}`, nil
	}}})
	defer end()
	e := &hooks.Event{FunctionName: hooks.String("a_x"), ChatPrivate: new(false)}
	done := make(chan struct{})
	go func() { defer close(done); r.runner.Fire(t.Context(), "pre_execute", e) }()
	<-asked
	if err := r.SetAccess("a", false); err != nil {
		t.Fatal(err)
	}
	close(answer)
	<-done
	if e.SkipLLM {
		t.Error("it blocked a tool all the same")
	}
}

func TestDictation(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		want       string
		consumed   bool
	}{
		{"untouched", "", "{}", "buy milk", false},
		{"the first rewrites", `{"updatedText": "Buy milk."}`, `{"updatedText": "BUY MILK"}`, "Buy milk.", false},
		{"consumed", `{"updatedText": "Buy milk."}`, `{"decision": "handled"}`, "buy milk", true},
		{"blocked", `{"decision": "block"}`, `{}`, "buy milk", true},
	} {
		r, end := withFakes(t, map[string]fake{"a": {"dictation": says(test.a)}, "b": {"dictation": func(_ context.Context, in map[string]any) (string, error) {
			if in["text"] != "buy milk" || in["frontmostApp"] != "notes" || len(in) != 2 {
				t.Errorf("asked with %v", in)
			}
			return test.b, nil
		}}})
		e := said("buy milk")
		e.Metadata = map[string]any{"app": "notes"}
		r.runner.Fire(t.Context(), "dictation", e)
		if e.Input != test.want || e.SkipLLM != test.consumed {
			t.Errorf("%s: %q, consumed %v", test.name, e.Input, e.SkipLLM)
		}
		end()
	}
}

// Integrations see their own tools only, and can't take a question back.
func TestToolTaps(t *testing.T) {
	var seen []string
	tap := func(name, before, after string) fake {
		return fake{
			"preToolUse": func(_ context.Context, in map[string]any) (string, error) {
				seen = append(seen, fmt.Sprint(name, " before ", in["toolName"], in["args"]))
				return before, nil
			},
			"postToolUse": func(_ context.Context, in map[string]any) (string, error) {
				seen = append(seen, fmt.Sprint(name, " after ", in["toolName"], in["args"], in["result"]))
				return after, nil
			},
		}
	}
	for _, test := range []struct {
		name, tool    string
		before, after string
		confirm       *string // what another handler wants already
		want          hooks.Event
		seen          string
	}{
		{name: "another's", tool: "set_timer", before: `{"decision": "block"}`, after: `{"updatedResult": "x"}`, want: hooks.Event{Result: hooks.String("result")}},
		{name: "untouched", tool: "a_x", want: hooks.Event{Result: hooks.String("result")}, seen: "a before a.xmap[n:1], a after a.xmap[n:1]result"},
		{
			name: "rewritten", tool: "a_x", before: `{"updatedArgs": {"n": 2}}`, after: `{"updatedResult": {"ok": true}}`,
			want: hooks.Event{Result: hooks.String(`{"ok": true}`)}, seen: "a before a.xmap[n:1], a after a.xmap[n:2]result",
		},
		{
			name: "denied", tool: "a_x", before: `{"decision": "block", "responseText": "Not now.", "reason": "secret"}`,
			want: hooks.Event{SkipLLM: true, Result: hooks.String("Not now.")}, seen: "a before a.xmap[n:1]",
		},
		{
			name: "escalated", tool: "a_x", before: `{"requireConfirmation": true, "reason": "Deletes all."}`,
			want: hooks.Event{Confirm: hooks.String("Deletes all."), Result: hooks.String("result")}, seen: "a before a.xmap[n:1], a after a.xmap[n:1]result",
		},
		{
			name: "softened", tool: "a_x", before: `{"requireConfirmation": false, "decision": "continue"}`, confirm: hooks.String("Really?"),
			want: hooks.Event{Confirm: hooks.String("Really?"), Result: hooks.String("result")}, seen: "a before a.xmap[n:1], a after a.xmap[n:1]result",
		},
		{
			name: "reworded", tool: "a_x", before: `{"requireConfirmation": true, "reason": "Nothing."}`, confirm: hooks.String("Really?"),
			want: hooks.Event{Confirm: hooks.String("Really?"), Result: hooks.String("result")}, seen: "a before a.xmap[n:1], a after a.xmap[n:1]result",
		},
		{
			name: "approved", tool: "a_x", before: `{"decision": "approve", "approved": true}`, confirm: hooks.String("Really?"),
			want: hooks.Event{Confirm: hooks.String("Really?"), Result: hooks.String("result")}, seen: "a before a.xmap[n:1], a after a.xmap[n:1]result",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen = nil
			r, end := withFakes(t, map[string]fake{"a": tap("a", test.before, test.after), "b": tap("b", `{"decision": "block"}`, `{"updatedResult": 1}`)})
			defer end()
			e := &hooks.Event{FunctionName: &test.tool, Arguments: map[string]any{"n": 1.0}, Confirm: test.confirm, ChatPrivate: new(false)}
			r.runner.Fire(t.Context(), "pre_execute", e)
			if !e.SkipLLM {
				e.Result = hooks.String("result")
				r.runner.Fire(t.Context(), "post_execute", e)
			}
			if e.SkipLLM != test.want.SkipLLM || show(e.Result) != show(test.want.Result) || show(e.Confirm) != show(test.want.Confirm) {
				t.Errorf("skipped %v, result %s, confirm %s", e.SkipLLM, show(e.Result), show(e.Confirm))
			}
			if got := strings.Join(seen, ", "); got != test.seen {
				t.Errorf("seen %q, want %q", got, test.seen)
			}
		})
	}
}

func TestReceiptIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan map[string]any, 1)
		r, end := withFakes(t, map[string]fake{
			"slow": {"turnComplete": func(ctx context.Context, _ map[string]any) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
			"a":    {"turnComplete": func(_ context.Context, in map[string]any) (string, error) { got <- in; return "", nil }},
		})
		defer end()
		e := said("hello")
		e.Response = hooks.String("hi")
		e.Metadata = map[string]any{"tools_used": []any{"a_x", "b_y", "a_x", "slow_z"}}
		began := time.Now()
		r.runner.Fire(t.Context(), "post_chat", e)
		in := <-got
		if time.Since(began) != 0 {
			t.Errorf("it came after %v", time.Since(began))
		}
		if want := "map[frontmostApp:chat response:hi toolsUsed:[a.x] transcript:hello]"; fmt.Sprint(in) != want {
			t.Errorf("receipt %v, want %v", in, want)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if calls := r.take(&r.trace); !slices.Equal(calls, []string{"a: committed", "slow: missed"}) {
			t.Errorf("%q", calls)
		}
	})
}

// Nothing runs to which its user has not agreed, and what changes its mind asks again.
func TestConsent(t *testing.T) {
	const hooked = `"hooks": {"transcript": {}}`
	connected := make(map[string]int)
	r, end := newRig(t, nil, func(m *mcp.Manifest, _ string) (mcp.Server, error) {
		connected[m.Name]++
		return fake{"transcript": says(`{"decision": "handled"}`)}, nil
	})
	defer end()
	state := func() string {
		t.Helper()
		if err := r.Scan(r.ctx); err != nil {
			t.Fatal(err)
		}
		i := r.List()[0]
		e := said("x")
		r.runner.Fire(t.Context(), "pre_chat", e)
		return fmt.Sprintf("agreed %v, runs %v, heard %v, %s", i.Agreed, i.Connected, e.SkipLLM, i.Problem)
	}
	const off, on = "agreed false, runs false, heard false, ", "agreed true, runs true, heard true, "
	step := func(what, want string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	r.write(t, "acme", manifest("acme", agent+", "+hooked))
	step("it was put there", off+"its user has not agreed to it yet")
	m, err := mcp.ReadManifest(filepath.Join(r.dir, "acme"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Agree(r.ctx, "acme", "another hash"); err == nil {
		t.Error("agreed to what was not shown")
	}
	if err := r.Agree(r.ctx, "../acme", m.Hash); !errors.Is(err, mcp.ErrUnknown) {
		t.Errorf("of a path: %v", err)
	}
	if err := r.Agree(r.ctx, "acme", m.Hash); err != nil {
		t.Fatal(err)
	}
	step("agreed", on)
	step("the same", on)
	if connected["acme"] != 1 {
		t.Errorf("connected %d times", connected["acme"])
	}
	r.write(t, "acme", manifest("acme", agent+`, "summary": "a new version", `+hooked))
	step("a new version", on)
	if connected["acme"] != 2 {
		t.Errorf("connected %d times", connected["acme"])
	}
	r.write(t, "acme", manifest("acme", `"permissions": [{"kind": "transcript", "scope": "all"}], `+hooked))
	step("more permissions", off+"it asks for more than its user agreed to: the permission transcript:all")
	r.write(t, "acme", manifest("acme", hooked))
	if got := state(); !strings.HasPrefix(got, off) || !strings.Contains(got, "permissions: hooks.transcript") {
		t.Errorf("stripped of its permission: %q", got)
	}
	r.write(t, "acme", strings.Replace(manifest("acme", agent+", "+hooked), `["x"]`, `["y"]`, 1))
	step("another program", off+"it asks for more than its user agreed to: the server y")
	r.write(t, "acme", manifest("acme", agent+", "+hooked))
	step("as it was", on)
	if err := os.RemoveAll(filepath.Join(r.dir, "acme")); err != nil {
		t.Fatal(err)
	}
	if err := r.Scan(r.ctx); err != nil || len(r.List()) != 0 || r.runner.Has("pre_chat") {
		t.Errorf("it is gone: %v, %+v", err, r.List())
	}
}

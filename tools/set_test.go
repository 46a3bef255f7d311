package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"bellbird/dialog"
	"bellbird/tools"
)

// echo is a tool that answers with its arguments.
func echo(name, parameters string) tools.Tool {
	return tools.Tool{
		Spec: dialog.ToolSpec{Name: name, Parameters: json.RawMessage(parameters)},
		Run:  func(_ context.Context, args json.RawMessage) (string, error) { return string(args), nil },
	}
}

func names(s *tools.Set) string {
	var all []string
	for _, spec := range s.Specs() {
		all = append(all, spec.Name)
	}
	return strings.Join(all, " ")
}

func TestOwners(t *testing.T) {
	s, err := tools.NewSet(nil, echo("a", ""), echo("b", ""))
	if err != nil {
		t.Fatal(err)
	}
	put := func(owner string, refused []string, all ...tools.Tool) {
		t.Helper()
		err := s.Put(owner, all...)
		if (err != nil) != (refused != nil) {
			t.Fatalf("%s: error %v", owner, err)
		}
		for _, part := range refused {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", owner, err, part)
			}
		}
	}
	check := func(want string) {
		t.Helper()
		if got := names(s); got != want {
			t.Errorf("tools %q, want %q", got, want)
		}
	}
	put("home", nil, echo("lights", ""), echo("doors", ""))
	put("kitchen", []string{`"lights"`, "home", "kitchen"}, echo("lights", ""), echo("oven", ""))
	check("a b lights doors oven")
	if got := s.Owner("lights"); got != "home" {
		t.Errorf("lights belong to %q", got)
	}
	put("evil", []string{`"a"`, "the appliance", "evil"}, echo("a", ""))
	put("evil", []string{"hooks"}, echo("VoiceOS_hook_transcript", ""), echo("voiceos_hook_dictation", ""))
	put("evil", []string{"letters"}, echo("x y", ""), echo("", ""), echo(strings.Repeat("x", 65), ""))
	put("evil", []string{"parameters"}, echo("x", `{"type":`), echo("y", `[]`), echo("z", `"`+strings.Repeat("x", 40<<10)+`"`))
	put("evil", []string{"two of that name"}, echo("x", ""), echo("x", ""))
	check("a b lights doors oven x")
	put("evil", nil)
	// An owner that comes back gets its place again: what a model reads stays the same.
	put("home", nil)
	check("a b oven")
	put("kitchen", nil, echo("lights", ""), echo("oven", ""))
	put("home", []string{"kitchen"}, echo("lights", ""), echo("doors", ""))
	check("a b doors lights oven")
	if r := s.Call(t.Context(), dialog.ToolCall{Name: "voiceos_hook_dictation"}); r.Content != `There is no tool "voiceos_hook_dictation".` {
		t.Errorf("a hook was called: %q", r.Content)
	}
	if _, err := tools.NewSet(nil, echo("a", ""), echo("a", "")); err == nil {
		t.Error("two of the appliance's own tools share a name")
	}
}

func TestChangesWhileCalled(t *testing.T) {
	s, err := tools.NewSet(nil, echo("a", ""))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				s.Put(fmt.Sprint(i), echo(fmt.Sprintf("t%d", i), ""))
				s.Put(fmt.Sprint(i))
			}
		})
		all.Go(func() {
			for range 200 {
				for _, spec := range s.Specs() {
					s.Call(t.Context(), dialog.ToolCall{Name: spec.Name})
				}
			}
		})
	}
	all.Wait()
	if names(s) != "a" {
		t.Errorf("tools %q", names(s))
	}
}

func TestCallFails(t *testing.T) {
	run := func(t *testing.T, f func(context.Context, json.RawMessage) (string, error), timeout time.Duration) string {
		s, err := tools.NewSet(nil, tools.Tool{Spec: dialog.ToolSpec{Name: "t"}, Run: f, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		if s.Timeout("t") != timeout || s.Timeout("u") != 0 {
			t.Error("the timeout isn't told")
		}
		return s.Call(t.Context(), dialog.ToolCall{Name: "t"}).Content
	}
	if got := run(t, func(context.Context, json.RawMessage) (string, error) { panic("no") }, 0); got != "Sorry, that didn't work." {
		t.Errorf("a panic: %q", got)
	}
	if got := run(t, func(context.Context, json.RawMessage) (string, error) { return "", errors.New("secret") }, 0); got != "Sorry, that didn't work." {
		t.Errorf("an error: %q", got)
	}
	if got := run(t, func(context.Context, json.RawMessage) (string, error) {
		return "", fmt.Errorf("x: %w", tools.Refusal("Not now."))
	}, 0); got != "Not now." {
		t.Errorf("a refusal: %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got := run(t, func(ctx context.Context, _ json.RawMessage) (string, error) { <-ctx.Done(); return "", ctx.Err() }, time.Minute)
		if got != "Sorry, that took too long." || time.Since(began) != time.Minute {
			t.Errorf("%q after %v", got, time.Since(began))
		}
	})
	big := run(t, func(context.Context, json.RawMessage) (string, error) { return strings.Repeat("ü", 5<<20), nil }, 0)
	if len(big) > tools.MaxResult || len(big) < tools.MaxResult-2 || !utf8.ValidString(big) || !strings.HasSuffix(big, "10485760 bytes]") {
		t.Errorf("a large result has %d bytes and ends in %q", len(big), big[len(big)-80:])
	}
	s, _ := tools.NewSet(nil, echo("t", ""))
	if got := s.Call(t.Context(), dialog.ToolCall{Name: "t", Invalid: "That is no JSON."}).Content; got != "That is no JSON." {
		t.Errorf("an invalid call: %q", got)
	}
}

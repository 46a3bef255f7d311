package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"bellbird/hooks"
)

func TestPrivacy(t *testing.T) {
	secret := func(context.Context, *string) (string, bool, error) { return "secret", true, nil }
	for name, test := range map[string]struct {
		resolver func(context.Context, *string) (string, bool, error)
		point    string
		event    hooks.Event
		want     []string // who is called
		private  bool
	}{
		"private":              {secret, "pre_chat", hooks.Event{}, []string{"aware"}, true},
		"public":               {func(context.Context, *string) (string, bool, error) { return "open", false, nil }, "pre_chat", hooks.Event{}, []string{"aware", "plain"}, false},
		"the resolver fails":   {func(context.Context, *string) (string, bool, error) { return "", false, errors.New("no") }, "pre_chat", hooks.Event{}, []string{"aware"}, true},
		"the resolver panics":  {func(context.Context, *string) (string, bool, error) { panic("no") }, "pre_chat", hooks.Event{}, []string{"aware"}, true},
		"no resolver":          {nil, "pre_chat", hooks.Event{}, []string{"aware", "plain"}, false},
		"always delivered":     {secret, "chat_renamed", hooks.Event{ChatPrivate: new(true)}, []string{"aware", "plain"}, true},
		"only to the aware":    {nil, "chat_vaulted", hooks.Event{ChatPrivate: new(true)}, []string{"aware"}, true},
		"stamped by who fires": {secret, "pre_chat", hooks.Event{ChatPrivate: new(false)}, []string{"aware", "plain"}, false},
		"stamped with the name": {func(_ context.Context, name *string) (string, bool, error) {
			return "active", name != nil && *name == "mine", nil
		}, "pre_chat", hooks.Event{ChatName: hooks.String("mine")}, []string{"aware"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := hooks.New(hooks.Options{Private: test.resolver})
			var called []string
			var seen *hooks.Event
			for _, plugin := range []string{"aware", "plain"} {
				register(t, r, hooks.Handler{Plugin: plugin, Point: test.point, Func: func(_ context.Context, e *hooks.Event) error {
					called = append(called, plugin)
					seen = e
					e.ChatPrivate, e.ChatName = new(false), hooks.String("forged")
					return nil
				}})
			}
			r.SetAware("aware", true)
			r.Fire(t.Context(), test.point, &test.event)
			r.Close()
			if !slices.Equal(called, test.want) {
				t.Errorf("called %v, want %v", called, test.want)
			}
			p, _ := hooks.PointNamed(test.point)
			if p.Waits && *test.event.ChatPrivate != test.private {
				t.Errorf("stamped private=%v", *test.event.ChatPrivate)
			}
			if name == "stamped with the name" && *test.event.ChatName != "mine" {
				t.Errorf("stamped name %q", *test.event.ChatName)
			}
			_ = seen
		})
	}
	t.Run("unregistering drops it", func(t *testing.T) {
		r := newRunner(t, hooks.Options{Private: secret})
		r.SetAware("p", true)
		r.Unregister("p")
		register(t, r, hooks.Handler{Plugin: "p", Point: "pre_chat", Func: appends("!")})
		if trace := r.Fire(t.Context(), "pre_chat", &hooks.Event{}); trace[0].Outcome != hooks.WithheldPrivate {
			t.Errorf("trace %v", outcomes(trace))
		}
	})
}

func TestSurfaces(t *testing.T) {
	r := newRunner(t, hooks.Options{})
	for _, point := range []string{"prompt_inject", "ghost_inject", "pre_chat"} {
		register(t, r, hooks.Handler{Plugin: "p", Point: point, Func: func(context.Context, *hooks.Event) error { return nil }})
	}
	called := func(point string, surface *string) bool {
		return r.Fire(t.Context(), point, &hooks.Event{Surface: surface})[0].Outcome == hooks.Committed
	}
	chat, game := hooks.String("chat"), hooks.String("game")
	for _, step := range []struct {
		surfaces []string
		point    string
		surface  *string
		want     bool
	}{
		{nil, "prompt_inject", game, true},
		{[]string{"chat"}, "prompt_inject", game, false},
		{[]string{"chat"}, "ghost_inject", game, false},
		{[]string{"chat"}, "ghost_inject", chat, true},
		{[]string{"chat"}, "pre_chat", game, true},
		{[]string{"chat"}, "prompt_inject", nil, true},
		{[]string{}, "prompt_inject", chat, false},
	} {
		r.SetSurfaces("p", step.surfaces)
		if got := called(step.point, step.surface); got != step.want {
			t.Errorf("%+v: called %v", step, got)
		}
	}
}

func TestVoiceMatch(t *testing.T) {
	for _, test := range []struct {
		mode     hooks.Mode
		triggers []string
		input    string
		want     bool
	}{
		{hooks.Exact, []string{"stop"}, "STOP", true},
		{hooks.Exact, []string{"stop"}, "  Stop. ", true}, // the reference: no
		{hooks.Exact, []string{"stop"}, "please stop talking", false},
		{"", []string{"halt", "stop"}, "stop!", true},
		{hooks.Exact, []string{"lights at 10"}, "Lights at ten", true},
		{hooks.Exact, []string{"lights at twenty five"}, "lights at 25.", true},
		{hooks.StartsWith, []string{"play "}, "play some jazz", true},
		{hooks.StartsWith, []string{"play "}, "player one", false},
		{hooks.StartsWith, []string{"play"}, "please play", false},
		{hooks.Contains, []string{"stop"}, "could you stop, please", true},
		{hooks.Contains, []string{"stop"}, "unstoppable", false}, // the reference: yes
		{hooks.Regex, []string{`set.*timer.*\d+`}, "Set a TIMER for 10", true},
		{hooks.Regex, []string{`set.*timer.*\d+`}, "set a timer", false},
	} {
		m, err := hooks.NewMatch(test.mode, test.triggers)
		if err != nil {
			t.Fatal(err)
		}
		r := newRunner(t, hooks.Options{})
		register(t, r, hooks.Handler{Plugin: "p", Point: "pre_chat", Match: m, Func: appends("!")})
		trace := r.Fire(t.Context(), "pre_chat", &hooks.Event{Input: test.input})
		if got := trace[0].Outcome == hooks.Committed; got != test.want {
			t.Errorf("%s %q on %q: %v", test.mode, test.triggers, test.input, got)
		}
	}
	for _, bad := range []struct {
		mode     hooks.Mode
		triggers []string
	}{{hooks.Regex, []string{"ok", "("}}, {hooks.Exact, nil}, {hooks.Exact, []string{"!"}}, {"sometimes", []string{"x"}}} {
		if _, err := hooks.NewMatch(bad.mode, bad.triggers); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func TestVoiceMatchSeesEarlierChanges(t *testing.T) {
	m, err := hooks.NewMatch(hooks.Regex, []string{`play (\w+) by (\w+)`})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, hooks.Options{})
	register(t, r, hooks.Handler{Plugin: "fix", Point: "pre_chat", Priority: 1, Func: func(_ context.Context, e *hooks.Event) error {
		e.Input = strings.ReplaceAll(e.Input, "pay", "play")
		return nil
	}})
	var captures any
	register(t, r, hooks.Handler{Plugin: "play", Point: "pre_chat", Priority: 2, Match: m, Func: func(_ context.Context, e *hooks.Event) error {
		captures = e.Metadata["captures"]
		return nil
	}})
	r.Fire(t.Context(), "pre_chat", &hooks.Event{Input: "pay Help by Beatles"})
	if got := fmt.Sprint(captures); got != "[play Help by Beatles Help Beatles]" {
		t.Errorf("captures %v", got)
	}
}

// What a handler says of a private chat when it fails is in the trace, marked, and not in the log.
func TestErrorsOfPrivateChats(t *testing.T) {
	for _, private := range []bool{true, false} {
		var logged strings.Builder
		r := hooks.New(hooks.Options{
			Private: func(context.Context, *string) (string, bool, error) { return "diary", private, nil },
			Logger:  slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		register(t, r, hooks.Handler{Plugin: "p", Point: "pre_chat", Func: func(_ context.Context, e *hooks.Event) error {
			return errors.New(e.Input)
		}})
		r.SetAware("p", true)
		trace := r.Fire(t.Context(), "pre_chat", &hooks.Event{Input: "my secret"})
		r.Close()
		if trace[0].Private != private || trace[0].Err == nil || strings.Contains(logged.String(), "secret") == private {
			t.Errorf("private %v: %+v, logged %q", private, trace, logged.String())
		}
	}
}

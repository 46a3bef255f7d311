package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/plugins"
)

// told is a power that tells with what it was called.
func told(_ context.Context, c *plugins.Call) (any, error) {
	got := map[string]any{}
	for _, name := range []string{"sensitivity", "word", "percent", "on", "text", "name"} {
		if !c.Has(name) {
			continue
		}
		got[name] = c.Text(name)
		if n := c.Number(name); n != 0 {
			got[name] = n
		}
		if c.Flag(name) {
			got[name] = true
		}
	}
	return got, nil
}

func newSystem(t *testing.T, do map[string]plugins.Func) *plugins.System {
	t.Helper()
	s, err := plugins.NewSystem(do)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestArgumentsOfPowers(t *testing.T) {
	s := newSystem(t, map[string]plugins.Func{
		"wakeword.set_sensitivity": told, "volume.set": told, "volume.mute": told, "tts.speak": told, "llm_chat.clear_chat": told,
	})
	type args = []any
	type named = map[string]any
	for name, test := range map[string]struct {
		power  string
		args   args
		kwargs named
		want   named
		err    string
	}{
		"in order":         {"wakeword.set_sensitivity", args{0.5, "nabu"}, nil, named{"sensitivity": 0.5, "word": "nabu"}, ""},
		"by name":          {"wakeword.set_sensitivity", nil, named{"word": "nabu", "sensitivity": 0.5}, named{"sensitivity": 0.5, "word": "nabu"}, ""},
		"both":             {"wakeword.set_sensitivity", args{0.5}, named{"word": "nabu"}, named{"sensitivity": 0.5, "word": "nabu"}, ""},
		"left out":         {"wakeword.set_sensitivity", args{0.5}, nil, named{"sensitivity": 0.5}, ""},
		"None":             {"wakeword.set_sensitivity", args{0.5, nil}, nil, named{"sensitivity": 0.5}, ""},
		"another name":     {"llm_chat.session_manager.clear", args{"x"}, nil, named{"name": "x"}, ""},
		"flag":             {"volume.mute", args{true}, nil, named{"on": true}, ""},
		"too many":         {"volume.mute", args{true, true}, nil, nil, "system.volume.mute: 2 arguments, it takes (on)"},
		"missing":          {"wakeword.set_sensitivity", nil, named{"word": "x"}, nil, "sensitivity is missing, it takes (sensitivity, [word])"},
		"None is missing":  {"volume.mute", args{nil}, nil, nil, "on is missing"},
		"unknown argument": {"volume.mute", nil, named{"onn": true}, nil, `no argument is called "onn"`},
		"twice":            {"volume.mute", args{true}, named{"on": true}, nil, "on is given twice"},
		"too large":        {"volume.set", args{101.0}, nil, nil, "percent: 101 is not from 0 to 100"},
		"not a number":     {"volume.set", args{math.NaN()}, nil, nil, "percent: NaN is not from 0 to 100"},
		"not whole":        {"volume.set", args{1.5}, nil, nil, "percent: 1.5 is no whole number"},
		"of another kind":  {"volume.set", args{"loud"}, nil, nil, "percent: it should be a whole number"},
		"a list":           {"tts.speak", args{args{"x"}}, nil, nil, "text: it should be a text"},
		"ten megabytes":    {"tts.speak", args{strings.Repeat("a", 10<<20)}, nil, nil, "text: a text of 10485760 bytes, the most are 4000"},
		"not there":        {"volume.get", nil, nil, nil, "system.volume.get: there is no such function here"},
		"no power at all":  {"format_disk", nil, nil, nil, "there is no such function here"},
	} {
		got, err := s.Grant(&plugins.Owner{}).Call(t.Context(), test.power, test.args, test.kwargs)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || len(err.Error()) > 200 {
				t.Errorf("%s: error %v, want %q", name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(any(test.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := plugins.NewSystem(map[string]plugins.Func{"format_disk": told}); err == nil {
		t.Error("a power that is not in the table: no error")
	}
}

func TestPowersEndWithTheCall(t *testing.T) {
	calls := 0
	s := newSystem(t, map[string]plugins.Func{
		"cancel_generation": func(context.Context, *plugins.Call) (any, error) { calls++; return nil, nil },
		"tts.stop":          func(context.Context, *plugins.Call) (any, error) { panic("oh") },
	})
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	g := s.Grant(&plugins.Owner{})
	for range 1000 { // a script in a loop
		_, _ = g.Call(ctx, "cancel_generation", nil, nil)
	}
	if calls != 100 {
		t.Errorf("%d calls in one hook were let through", calls)
	}
	g = s.Grant(&plugins.Owner{})
	if _, err := g.Call(ctx, "tts.stop", nil, nil); err == nil || !strings.Contains(err.Error(), "panic: oh") {
		t.Errorf("a panic: error %v", err)
	}
	cancel(over)
	if _, err := g.Call(ctx, "cancel_generation", nil, nil); !errors.Is(err, over) || calls != 100 {
		t.Errorf("after the deadline: error %v, %d calls", err, calls)
	}
	if text, err := json.Marshal(map[string]any{"system": s}); err != nil || string(text) != `{"system":null}` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

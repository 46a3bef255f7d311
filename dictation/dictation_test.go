package dictation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dictation"
	"bellbird/event"
	"bellbird/hooks"
)

// A rig is a dictation that runs, and what came of it, line by line.
type rig struct {
	*dictation.Dictation
	runner *hooks.Runner
	bus    *event.Bus
	log    []string
	free   bool
	broken error // of the target
}

func newRig(t *testing.T) (r *rig, end func()) {
	r = &rig{runner: hooks.New(hooks.Options{}), bus: new(event.Bus), free: true}
	deliver := func(_ context.Context, text dictation.Text) error {
		if r.broken != nil {
			return r.broken
		}
		r.note("delivered to %s: %s, private %v", text.App, text.Text, text.Private)
		return nil
	}
	var err error
	r.Dictation, err = dictation.New(dictation.Options{
		Targets: []dictation.Target{{App: "notes", Deliver: deliver}, {App: "diary", Deliver: deliver}},
		Runner:  r.runner, Bus: r.bus, Free: func() bool { return r.free },
		Listen: func() { r.note("listens") },
		Say:    func(_ context.Context, text string) error { r.note("says: %s", text); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	synctest.Wait() // it has subscribed
	return r, func() {
		cancel()
		<-done
		r.runner.Close()
	}
}

func (r *rig) note(format string, args ...any) { r.log = append(r.log, fmt.Sprintf(format, args...)) }

// said fires what a turn fires for what was heard, and returns what is left of it for the agent.
func (r *rig) said(text string, private bool) string {
	e := &hooks.Event{Input: text, ChatName: hooks.String("kitchen"), ChatPrivate: &private}
	r.runner.Fire(context.Background(), "post_stt", e)
	synctest.Wait()
	return e.Input
}

func (r *rig) publish(facts ...event.Fact) {
	for _, f := range facts {
		r.bus.Publish(f)
	}
	synctest.Wait()
}

// want compares what came of it since the last time.
func (r *rig) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(r.log, lines) {
		t.Errorf("got %q, want %q", r.log, lines)
	}
	r.log = nil
}

func to(s event.State) event.Fact { return event.StateChanged{To: s} }

func ended(o event.Outcome) event.Fact { return event.TurnEnded{Record: event.Record{Outcome: o}} }

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := newRig(t)
		defer end()
		if got := r.said("what time is it", false); got != "what time is it" {
			t.Errorf("without a dictation: %q", got)
		}
		if err := r.Start("diary"); err != nil || r.Front() != "diary" {
			t.Fatalf("%v, in front %q", err, r.Front())
		}
		r.publish(to(event.Listening))
		var others []string
		for point, band := range map[string]hooks.Band{"post_stt": hooks.User, "pre_chat": hooks.System, "dictation": hooks.User} {
			err := r.runner.Register(hooks.Handler{Plugin: "p", Point: point, Band: band, Func: func(_ context.Context, e *hooks.Event) error {
				others = append(others, fmt.Sprint(point, ": ", e.Input, " for ", e.Metadata["app"]))
				e.Input = strings.ToUpper(e.Input)
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := r.said(" Dear diary, ", false); got != "" {
			t.Errorf("the agent hears %q", got)
		}
		r.publish(ended(event.Handled), to(event.Idle))
		r.want(t, "listens", "delivered to diary: DEAR DIARY,, private false", "says: It's written down.")
		if want := []string{"dictation: Dear diary, for diary"}; !slices.Equal(others, want) || r.Front() != "" {
			t.Errorf("others heard %q, in front is %q", others, r.Front())
		}
		if got := r.said("and more", false); got != "AND MORE" {
			t.Errorf("after the dictation: %q", got)
		}
	})
}

// "Take a note": the turn that hears it ends with a question, and the microphone opens once after that, whether as a
// follow-up or not.
func TestExpect(t *testing.T) {
	for _, followed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, end := newRig(t)
			defer end()
			text, err := r.Tool().Run(t.Context(), json.RawMessage(`{}`))
			if err != nil || text != "What shall I write down?" || r.Front() != "notes" {
				t.Fatalf("%q, %v, in front %q", text, err, r.Front())
			}
			r.publish(to(event.Speaking), ended(event.Completed))
			if followed {
				r.publish(to("follow_up"))
				r.want(t)
			} else {
				r.publish(to(event.Idle))
				r.want(t, "listens")
				r.publish(to(event.Listening), to(event.Thinking))
			}
			if got := r.said("buy milk", true); got != "" {
				t.Errorf("the agent hears %q", got)
			}
			r.publish(ended(event.Handled), to(event.Idle))
			r.want(t, "delivered to notes: buy milk, private true", "says: It's written down.")
		})
	}
}

func TestNothingIsDictated(t *testing.T) {
	for name, after := range map[string]func(r *rig) string{
		"nobody spoke":   func(r *rig) string { r.publish(ended(event.NothingHeard)); return r.said("x", false) },
		"not understood": func(r *rig) string { r.publish(ended(event.NotUnderstood)); return r.said("x", false) },
		"no recogniser":  func(r *rig) string { r.publish(ended(event.FailedTurn)); return r.said("x", false) },
		"stopped":        func(r *rig) string { r.Stop(); return r.said("x", false) },
		"much later":     func(r *rig) string { time.Sleep(2 * time.Minute); synctest.Wait(); return r.said("x", false) },
		"he backs out": func(r *rig) string {
			return strings.TrimPrefix(r.said("Never mind.", false), "Never mind.") + r.said("x", false)
		},
		"it never mattered":  func(r *rig) string { r.Stop(); r.Stop(); return r.said("x", false) },
		"a button by itself": func(r *rig) string { r.publish(ended(event.Interrupted)); return r.said("x", false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, end := newRig(t)
				defer end()
				facts := r.bus.Subscribe(10)
				defer facts.Close()
				if err := r.Start(""); err != nil {
					t.Fatal(err)
				}
				if got := after(r); got != "x" || r.Front() != "" {
					t.Errorf("the agent hears %q, in front is %q", got, r.Front())
				}
				r.want(t, "listens")
				var told []event.Fact
				for len(facts.C) > 0 {
					if d, ok := (<-facts.C).(event.Dictated); ok {
						told = append(told, event.Dictated{App: d.App, Outcome: d.Outcome})
					}
				}
				if len(told) != 1 || told[0] != (event.Dictated{App: "notes", Outcome: event.DictationAbandoned}) {
					t.Errorf("told %+v", told)
				}
			})
		})
	}
}

func TestHooksAndTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := newRig(t)
		defer end()
		dictate := func() {
			if err := r.Start("notes"); err != nil {
				t.Fatal(err)
			}
			r.said("buy milk", false)
		}
		r.broken = errors.New("no disk")
		dictate()
		r.want(t, "listens", "says: I couldn't deliver that.")
		r.broken = nil
		hook := func(f hooks.Func) {
			if err := r.runner.Register(hooks.Handler{Plugin: "p", Point: "dictation", Band: hooks.User, Func: f}); err != nil {
				t.Fatal(err)
			}
		}
		hook(func(ctx context.Context, e *hooks.Event) error {
			e.Input = "late"
			<-ctx.Done()
			return nil
		})
		dictate()
		time.Sleep(time.Second)
		synctest.Wait()
		r.want(t, "listens", "delivered to notes: buy milk, private false", "says: It's written down.")
		r.runner.Unregister("p")
		hook(func(_ context.Context, e *hooks.Event) error { e.SkipLLM = true; return nil })
		dictate()
		r.want(t, "listens", "says: It's written down.")
	})
}

func TestCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, end := newRig(t)
		defer end()
		if err := r.Start("shop"); err == nil || !strings.Contains(err.Error(), "notes") {
			t.Errorf("an app that isn't there: %v", err)
		}
		r.free = false
		if err := r.Start("notes"); !errors.Is(err, dictation.ErrNotFree) {
			t.Errorf("with a recogniser of commands: %v", err)
		}
		_, err := r.Tool().Run(t.Context(), json.RawMessage(`{"app": "notes"}`))
		if err == nil || !strings.HasPrefix(err.Error(), "Sorry, by myself I understand commands only.") || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("what is said then: %v", err)
		}
		if r.Front() != "" || r.said("x", false) != "x" {
			t.Error("it was begun")
		}
		r.want(t)
		empty, err := dictation.New(dictation.Options{Runner: r.runner, Bus: r.bus})
		if err != nil {
			t.Fatal(err)
		}
		if err := empty.Start(""); !errors.Is(err, dictation.ErrNobody) {
			t.Errorf("without targets: %v", err)
		}
		for _, targets := range [][]dictation.Target{{{App: "x"}}, {{App: "*", Deliver: func(context.Context, dictation.Text) error { return nil }}}} {
			if _, err := dictation.New(dictation.Options{Targets: targets, Runner: r.runner, Bus: r.bus}); err == nil {
				t.Errorf("targets %+v are taken", targets)
			}
		}
	})
}

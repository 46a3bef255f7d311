package main

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/intents"
	"bellbird/pipeline"
	"bellbird/store"
	"bellbird/timers"
	"bellbird/tools"
	"bellbird/wake"
)

// endless is a voice that never comes to an end.
type endless struct{}

func (endless) Synthesize(ctx context.Context, _ string, _ func(audio.Frame) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// The stop word ends a ring and what is being said, and begins no turn.
func TestStopWordStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &appliance{clock: clock.System, bus: new(event.Bus), output: audio.NewOutput(0)}
		var ringing atomic.Bool
		a.timers = timers.New(timers.Options{Clock: a.clock, Bus: a.bus, Ring: ringing.Store})
		a.turns = pipeline.New(pipeline.Options{Voice: endless{}, Chats: oblivious{}, Output: a.output, Bus: a.bus})
		facts := a.bus.Subscribe(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.turns.Run(ctx) }()
		if _, err := a.timers.Set("", time.Second); err != nil {
			t.Fatal(err)
		}
		said := make(chan event.Record)
		go func() {
			r, err := a.turns.Say(ctx, "A long story.")
			if err != nil {
				t.Error(err)
			}
			said <- r
		}()
		<-time.After(2 * time.Second)
		if !ringing.Load() {
			t.Error("the timer doesn't ring")
		}
		(&caller{appliance: a}).called(wake.Call{Word: "stop", Score: 0.8, Action: wake.Stop})
		if r := <-said; r.Outcome != event.Interrupted {
			t.Errorf("outcome %s", r.Outcome)
		}
		if ringing.Load() {
			t.Error("the timer rings")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		facts.Close()
		woke := 0
		for f := range facts.C {
			switch f := f.(type) {
			case event.Woke:
				woke++
				if !f.Stops || f.Word != "stop" {
					t.Errorf("%+v", f)
				}
			case event.StateChanged:
				if f.To == event.Listening {
					t.Error("it listens")
				}
			}
		}
		if woke != 1 {
			t.Errorf("woke %d times", woke)
		}
	})
}

// replies is a model that tells what it was asked.
type replies struct{ asked chan string }

func (r *replies) Generate(_ context.Context, q dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		r.asked <- q.Messages[len(q.Messages)-1].Content
		yield(dialog.Delta{Text: "Done."}, nil)
	}
}

// oblivious is the only chat, of which nothing is remembered.
type oblivious struct{}

func (c oblivious) Active() (pipeline.Chat, error)      { return c, nil }
func (c oblivious) Named(string) (pipeline.Chat, error) { return c, nil }
func (oblivious) Name() string                          { return "default" }
func (oblivious) Private() bool                         { return false }
func (oblivious) Surface() string                       { return "chat" }
func (oblivious) Messages() []dialog.Message            { return nil }
func (oblivious) Append(...dialog.Message) error        { return nil }
func (oblivious) Amend(string) error                    { return nil }
func (oblivious) End(string) error                      { return nil }

// A word with a routine interrupts what is being said, and its words are answered as if they had been said.
func TestRoutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &appliance{clock: clock.System, bus: new(event.Bus), output: audio.NewOutput(0)}
		a.timers = timers.New(timers.Options{Clock: a.clock, Bus: a.bus, Ring: func(bool) {}})
		none, err := tools.NewSet(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		model := &replies{asked: make(chan string, 1)}
		a.turns = pipeline.New(pipeline.Options{Model: model, Voice: endless{}, Output: a.output, Bus: a.bus, Chats: oblivious{}, Tools: none})
		facts := a.bus.Subscribe(100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.turns.Run(ctx) }()
		said := make(chan event.Record, 1)
		go func() {
			r, err := a.turns.Say(ctx, "A long story.")
			if err != nil {
				t.Error(err)
			}
			said <- r
		}()
		synctest.Wait()
		var logged strings.Builder
		c := &caller{appliance: a, log: slog.New(slog.NewTextHandler(&logged, nil))}
		c.called(wake.Call{Word: "computer", Score: 0.9, Action: wake.RunRoutine, Routine: "good night"})
		if r := <-said; r.Outcome != event.Interrupted {
			t.Errorf("outcome %s", r.Outcome)
		}
		if got := <-model.asked; got != "good night" {
			t.Errorf("asked %q", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// The turns have ended: it can't be done, which is said.
		c.called(wake.Call{Word: "computer", Action: wake.RunRoutine, Routine: "good night"})
		synctest.Wait()
		if !strings.Contains(logged.String(), "routine not run") || strings.Contains(logged.String(), "good night") {
			t.Errorf("logged %q", logged.String())
		}
		facts.Close()
		woke := 0
		for f := range facts.C {
			switch f := f.(type) {
			case event.Woke:
				woke++
				if f.Word != "computer" || f.Stops {
					t.Errorf("%+v", f)
				}
			case event.StateChanged:
				if f.To == event.Listening {
					t.Error("it listens")
				}
			}
		}
		if woke != 2 {
			t.Errorf("woke %d times", woke)
		}
	})
}

func TestHint(t *testing.T) {
	grammar, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]wake.Hint{
		"":                            wake.Unknown,
		"set a timer for":             wake.Begun,
		"set a timer for ten":         wake.Begun,
		"set a timer for ten minutes": wake.Complete,
		"what time is it":             wake.Complete,
	} {
		if got := hint(grammar, text); got != want {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
}

// What the ears find out is shown.
func TestScreenShowsHearing(t *testing.T) {
	var out strings.Builder
	began := time.Now()
	s := newScreen(&out, began)
	for _, f := range []event.Fact{
		event.Woke{At: began, Word: "stop", Score: 0.8, Stops: true},
		event.NearMiss{At: began, Word: "alexa", Peak: 0.7, Bar: 0.9},
		event.MicrophoneFault{At: began, Reason: "constant"},
		event.MicrophoneWell{At: began},
	} {
		s.show(f)
	}
	for _, want := range []string{
		`stopped by "stop" (score 0.80)`, `nearly "alexa" (score 0.70, not above 0.90)`,
		"the microphone is deaf: constant", "the microphone is well again",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// What is said to a word that listens privately goes into a chat of its own, which is private and need not be there yet.
func TestPrivateChat(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "bellbird.db"), store.Options{ScryptN: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	chats := conversations{s}
	for range 2 {
		c, err := chats.Named(privateChat)
		if err != nil || !c.Private() || c.Name() != privateChat {
			t.Fatalf("%v, error %v", c, err)
		}
	}
	if c, err := chats.Active(); err != nil || c.Private() {
		t.Errorf("the active one: %v, error %v", c, err)
	}
	if err := s.SetUp("open sesame"); err != nil {
		t.Fatal(err)
	}
	if err := s.Lock(); err != nil {
		t.Fatal(err)
	}
	if _, err := chats.Named(privateChat); !errors.Is(err, pipeline.ErrLocked) {
		t.Errorf("locked: %v", err)
	}
	if list, err := s.Chats(); err != nil || len(list) != 1 {
		t.Errorf("chats %v, error %v", list, err)
	}
}

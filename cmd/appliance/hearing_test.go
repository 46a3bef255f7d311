package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/intents"
	"bellbird/pipeline"
	"bellbird/timers"
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
		a.turns = pipeline.New(pipeline.Options{Voice: endless{}, Output: a.output, Bus: a.bus})
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
		a.called(wake.Call{Word: "stop", Score: 0.8, Action: wake.Stop})
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

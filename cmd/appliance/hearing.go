package main

import (
	"context"
	"log/slog"

	"bellbird/event"
	"bellbird/intents"
	"bellbird/wake"
)

// What becomes of what the ears hear.

// listenTo has the ears tell the appliance. Their logger must be set already.
func (a *appliance) listenTo(o *wake.Options) {
	o.AfterFunc = a.clock.AfterFunc
	o.Sounding = a.output.Sounding
	o.OnWake = (&caller{appliance: a, log: o.Logger}).called
	o.OnNearMiss = func(m wake.NearMiss) {
		a.bus.Publish(event.NearMiss{
			At: a.clock.Now(), Word: m.Word, Peak: m.Peak, Bar: m.Bar, Duration: m.Duration, Scores: m.Course, Untold: m.Untold,
		})
	}
	o.OnMicrophone = func(f wake.Fault) {
		if f == wake.Well {
			a.bus.Publish(event.MicrophoneWell{At: a.clock.Now()})
		} else {
			a.bus.Publish(event.MicrophoneFault{At: a.clock.Now(), Reason: string(f)})
		}
	}
}

// A caller does what calls lead to.
type caller struct {
	*appliance
	log *slog.Logger
}

// called does what a word that was heard leads to. It doesn't wait.
func (a *caller) called(c wake.Call) {
	a.timers.Silence() // calling the appliance ends a ringing timer, also when nothing more is said
	if c.Action != wake.Stop && (!a.wakes.Enabled() || !a.recognises.Enabled()) {
		return // a plugin wants it so
	}
	switch c.Action {
	case wake.Stop:
		a.bus.Publish(event.Woke{At: a.clock.Now(), Word: c.Word, Score: c.Score, Stops: true})
		a.turns.Stop()
	case wake.RunRoutine:
		a.bus.Publish(event.Woke{At: a.clock.Now(), Word: c.Word, Score: c.Score})
		a.turns.Stop() // as any call interrupts
		go a.routine(c.Word, c.Routine)
	case wake.ListenPrivately:
		a.turns.WakeIn(privateChat, c.Word, c.Score, c.Frame)
	default:
		a.turns.Wake(c.Word, c.Score, c.Frame)
	}
}

// routine runs a turn as if the user had said the words of the routine. It ends with the turn, and with the appliance's
// turns at the latest.
func (a *caller) routine(word, text string) {
	if _, err := a.turns.Ask(context.Background(), text); err != nil {
		a.log.Warn("routine not run", "word", word, "error", err)
	}
}

// hint tells whether what was understood so far is a whole sentence.
func hint(grammar *intents.Set, text string) wake.Hint {
	if text == "" {
		return wake.Unknown
	}
	if _, ok := grammar.Match(text); ok {
		return wake.Complete
	}
	return wake.Begun
}

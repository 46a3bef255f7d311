package main

import (
	"fmt"

	"bellbird/event"
	"bellbird/intents"
	"bellbird/wake"
)

// What becomes of what the ears hear.

// listenTo has the ears tell the appliance.
func (a *appliance) listenTo(o *wake.Options) {
	o.AfterFunc = a.clock.AfterFunc
	o.Sounding = a.output.Sounding
	o.OnWake = a.called
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

// called does what a word that was heard leads to.
func (a *appliance) called(c wake.Call) {
	a.timers.Silence() // calling the appliance ends a ringing timer, also when nothing more is said
	if c.Action == wake.Stop {
		a.bus.Publish(event.Woke{At: a.clock.Now(), Word: c.Word, Score: c.Score, Stops: true})
		a.turns.Stop()
		return
	}
	a.turns.Wake(c.Word, c.Score, c.Frame)
}

// checkActions refuses what a wake word can't lead to yet: chats that aren't remembered and routines don't exist.
func checkActions(words []wake.Word) error {
	for _, w := range words {
		if w.Action != wake.Listen && w.Action != wake.Stop {
			return fmt.Errorf("wake word %q: action = %q: not yet possible; use %q or %q", w.Name, w.Action, wake.Listen, wake.Stop)
		}
	}
	return nil
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

package ring

import (
	"context"
	"time"

	"bellbird/event"
)

// Facts lets the ring show what the facts tell. It is for use by one goroutine. Mute is not among them: a fact can be late
// or missed, and what the ring says of the microphone must be true.
type Facts struct {
	ring    *Ring
	timers  map[int]running
	ringing map[int]struct{}
}

type running struct {
	ends  time.Time // by this machine's clock, which the fact's need not be
	total time.Duration
}

// NewFacts returns what lets r show facts.
func NewFacts(r *Ring) *Facts {
	return &Facts{ring: r, timers: make(map[int]running), ringing: make(map[int]struct{})}
}

// Run shows facts until ctx is done or there are no more.
func (f *Facts) Run(ctx context.Context, facts <-chan event.Fact) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case fact, ok := <-facts:
			if !ok {
				return nil
			}
			f.Tell(fact)
		}
	}
}

// ofTurn are the rungs of which a turn holds one.
var ofTurn = []Rung{Listening, FollowUp, Thinking, Speaking}

// Tell shows a fact.
func (f *Facts) Tell(fact event.Fact) {
	r := f.ring
	switch e := fact.(type) {
	case event.StateChanged:
		f.state(e.To)
	case event.Woke:
		if !e.Stops {
			r.Show(Waking, Args{}, 0)
		}
	case event.TurnEnded:
		if e.Record.Outcome == event.FailedTurn {
			r.Show(Failed, Args{Kind: string(e.Record.Error)}, 0)
		}
	case event.MicrophoneFault:
		r.Show(Deaf, Args{}, 0)
	case event.MicrophoneWell:
		r.Hide(Deaf)
	case event.VolumeChanged:
		r.Show(Volume, Args{Fraction: float64(e.Percent) / 100, Silent: e.Muted}, 0)
	case event.TimerChanged:
		f.timer(e)
	case event.PrivacyChanged:
		if e.Private {
			r.Show(Private, Args{}, 0)
		} else {
			r.Hide(Private)
		}
	case event.ProviderSwitched:
		switch {
		case e.Kind != "llm":
		case e.Instead:
			r.Show(NoServer, Args{}, 0)
		default:
			r.Hide(NoServer)
		}
	case event.ButtonMoved:
		if e.Down {
			r.Show(Touched, Args{}, 0)
		} else {
			r.Hide(Touched)
		}
	case event.ButtonPressed:
		switch e.Gesture {
		case event.ResetWarned:
			r.Show(ResetWarning, Args{}, 0)
		case event.ResetArmed:
			r.replace([]Rung{ResetWarning}, ResetArmed, Args{})
		case event.ResetAbandoned, event.ResetReleased:
			r.Hide(ResetWarning, ResetArmed)
		}
	}
}

func (f *Facts) state(to event.State) {
	r := f.ring
	switch to {
	case event.Listening:
		r.replace(ofTurn, Listening, Args{})
	case event.FollowUp:
		r.replace(ofTurn, FollowUp, Args{})
	case event.Thinking:
		r.replace(append(ofTurn[:len(ofTurn):len(ofTurn)], Waking), Thinking, Args{})
	case event.Speaking:
		r.replace(append(ofTurn[:len(ofTurn):len(ofTurn)], Waking), Speaking, Args{})
	default: // a failure shows when its turn has ended, because only then its kind is known
		r.Hide(append(ofTurn[:len(ofTurn):len(ofTurn)], Waking)...)
	}
}

func (f *Facts) timer(e event.TimerChanged) {
	delete(f.timers, e.ID)
	delete(f.ringing, e.ID)
	switch e.What {
	case event.TimerRinging:
		f.ringing[e.ID] = struct{}{}
	case event.TimerSet, event.TimerRestored, event.TimerMoved, event.TimerSnoozed:
		if !e.Alarm && !e.Ends.IsZero() && e.Total > 0 {
			f.timers[e.ID] = running{time.Now().Add(e.Ends.Sub(e.At)), e.Total}
		}
	}
	if len(f.ringing) > 0 {
		f.ring.Show(Ringing, Args{}, 0)
	} else {
		f.ring.Hide(Ringing)
	}
	var soonest running
	for _, t := range f.timers {
		if soonest.ends.IsZero() || t.ends.Before(soonest.ends) {
			soonest = t
		}
	}
	if left := time.Until(soonest.ends); soonest.total > 0 && left > 0 {
		f.ring.Show(Timer, Args{Left: left, Total: max(soonest.total, left)}, left)
	} else {
		f.ring.Hide(Timer)
	}
}

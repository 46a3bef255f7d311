package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bellbird/api"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/turns"
)

// followerQueue is how many facts the follower may be behind; what it misses after that is counted.
const followerQueue = 1024

// A follower knows from the facts what the appliance is at, counts them, and keeps the records of turns.
type follower struct {
	began time.Time
	facts *event.Subscription
	meter turns.Meter
	ring  *turns.Ring // nil: they can't be kept
	log   *slog.Logger

	mu      sync.Mutex
	state   event.State
	since   time.Time
	turn    uint64
	faults  map[string]string // by what is broken
	models  []api.Model
	mayTell map[int]bool // the names of these timers: they aren't of private chats
	broken  bool         // the last record was not kept
}

func (f *follower) run(ctx context.Context) error {
	for {
		select {
		case fact, more := <-f.facts.C:
			if !more {
				return nil
			}
			f.follow(fact)
		case <-ctx.Done():
			for { // the last turn has ended, but may be in the queue
				select {
				case fact, more := <-f.facts.C:
					if more {
						f.follow(fact)
						continue
					}
				default:
				}
				return nil
			}
		}
	}
}

func (f *follower) follow(fact event.Fact) {
	f.meter.Tell(fact)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e := fact.(type) {
	case event.StateChanged:
		f.state, f.since, f.turn = e.To, e.At, max(f.turn, e.Run)
	case event.TurnEnded:
		f.turn = max(f.turn, e.Record.Run)
		f.ended(e.Record)
	case event.TimerChanged:
		f.mayTell[e.ID] = !e.Private
	case event.ProviderSwitched:
		f.switched(e)
	case event.MicrophoneFault:
		f.faults["microphone"] = "The microphone is deaf: " + e.Reason + "."
	case event.MicrophoneWell:
		delete(f.faults, "microphone")
	case event.LoudspeakerFault:
		f.faults["loudspeaker"] = "The loudspeaker doesn't work: " + e.Reason + "."
	case event.LoudspeakerWell:
		delete(f.faults, "loudspeaker")
	case event.BodyFault:
		f.faults["body "+e.Part] = "The " + e.Part + " doesn't work: " + e.Reason + "."
	case event.BodyWell:
		delete(f.faults, "body "+e.Part)
	}
}

// ended keeps the record of a turn. That it can't be is told once.
func (f *follower) ended(r event.Record) {
	if r.Model != nil && r.Model.Input > 0 { // the agent in the appliance takes no tokens
		for i := range f.models {
			if m := &f.models[i]; m.Kind == "llm" && m.Active {
				m.Reached = new(r.Model.Error == "")
			}
		}
	}
	if f.ring == nil {
		return
	}
	// Voice commands that were not said are many, and tell nothing.
	r.Hooks = slices.DeleteFunc(slices.Clone(r.Hooks), func(c event.HookCall) bool { return c.Outcome == string(hooks.NoMatch) })
	err := f.ring.Add(r)
	if err != nil && !f.broken {
		f.log.Error("a turn is not recorded", "err", err)
	}
	f.broken = err != nil
}

// switched has another engine be the active one. If it stands in for the others they were not reached.
func (f *follower) switched(e event.ProviderSwitched) {
	if !slices.ContainsFunc(f.models, func(m api.Model) bool { return m.Kind == e.Kind && m.Name == e.Name }) {
		if len(f.models) >= 32 {
			return
		}
		f.models = append(f.models, api.Model{Kind: e.Kind, Name: e.Name})
	}
	for i := range f.models {
		m := &f.models[i]
		if m.Kind != e.Kind {
			continue
		}
		was := m.Active
		m.Active = m.Name == e.Name
		switch {
		case m.Active:
			m.Reached = new(true)
		case was && e.Instead:
			m.Reached = new(false)
		}
	}
}

// engines are the models as they stand.
func (f *follower) engines() []api.Model {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.models)
}

// named takes the names away that may not be told, and forgets the timers that aren't there any more.
func (f *follower) named(list []api.Timer) []api.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	may := make(map[int]bool)
	for i, t := range list {
		if may[t.ID] = f.mayTell[t.ID]; !may[t.ID] {
			list[i].Name = ""
		}
	}
	if len(f.mayTell) > 1000 {
		f.mayTell = may
	}
	return list
}

// seen is what the facts tell of the state.
func (f *follower) seen() api.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := api.State{State: f.state, Since: f.since, Run: f.turn, Version: version, Began: f.began, Problems: []string{}}
	for _, key := range sorted(f.faults) {
		s.Problems = append(s.Problems, f.faults[key])
	}
	for _, m := range f.models {
		if m.Reached != nil && !*m.Reached {
			s.Problems = append(s.Problems, m.Name+" can't be reached.")
		}
	}
	return s
}

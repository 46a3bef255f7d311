package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bellbird/event"
	"bellbird/gpio"
	"bellbird/pipeline"
)

// Reflexes are what the body's gestures lead to. Each function may be nil, and none waits for long.
type reflexes struct {
	// What a press stops, in this order. Whether there is a turn is known from facts.
	silence  func() bool // a ringing timer; it reports whether there was one
	stopTurn func()      // also an announcement, which is spoken in a turn

	listen  func()
	mute    *gpio.Mute
	private func() error // toggles the chat
	secret  func() bool  // whether the active chat is private
	louder  func(by int) // in percent
	reset   func()
	confirm func() bool // says yes to what is asked; it reports whether anything is

	bus *event.Bus
	log *slog.Logger

	orders chan gpio.Action // full: the newest is dropped, since nobody means so many
}

// dialStep is how much one detent of the dial, or one press of a volume button, changes the volume.
const dialStep = 5

func newReflexes(bus *event.Bus, log *slog.Logger) *reflexes {
	return &reflexes{bus: bus, log: log, orders: make(chan gpio.Action, 8)}
}

// do is for gpio.Options: it asks for an action, and doesn't wait. A double press is a yes while something is asked.
func (r *reflexes) do(_ string, g event.Gesture, a gpio.Action) {
	if g == event.Double && r.confirm != nil && r.confirm() || a == gpio.None {
		return
	}
	select {
	case r.orders <- a:
	default:
		r.log.Warn("a button's action is dropped", "action", string(a))
	}
}

// run does what is asked for until ctx is done.
func (r *reflexes) run(ctx context.Context) error {
	facts := r.bus.Subscribe(256)
	defer facts.Close()
	state := event.Idle
	private := false
	look := func() {
		if r.secret != nil && r.secret() != private {
			private = !private
			r.bus.Publish(event.PrivacyChanged{At: time.Now(), Private: private})
		}
	}
	look()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-r.orders:
			for len(facts.C) > 0 { // what the order is about has happened before it
				state = r.note(<-facts.C, state)
			}
			r.act(a, state)
			look()
		case f := <-facts.C:
			state = r.note(f, state)
			look()
		}
	}
}

// note follows the state of the turn, and does what facts lead to.
func (r *reflexes) note(f event.Fact, state event.State) event.State {
	switch f := f.(type) {
	case event.StateChanged:
		return f.To
	case event.DialTurned:
		r.turnUp(f.Steps)
	case event.MuteChanged:
		if f.Muted && (state == event.Listening || state == event.FollowUp) && r.stopTurn != nil {
			r.stopTurn() // nothing more of it will be heard
		}
	}
	return state
}

func (r *reflexes) act(a gpio.Action, state event.State) {
	switch a {
	case gpio.Listen:
		if !r.stop(state) && r.listen != nil && !r.mute.Muted() {
			r.listen()
		}
	case gpio.Stop:
		r.stop(state)
	case gpio.ToggleMute:
		if err := r.mute.Toggle(); err != nil {
			r.log.Warn("mute", "err", err)
		}
	case gpio.TogglePrivate:
		if r.private == nil {
			return
		}
		if err := r.private(); err != nil {
			r.log.Warn("private chat", "err", err)
			kind := event.ChatUnknown
			if errors.Is(err, pipeline.ErrLocked) {
				kind = event.ChatLocked
			}
			r.bus.Publish(event.TurnEnded{Record: event.Record{Began: time.Now(), Outcome: event.FailedTurn, Error: kind, Private: true}})
		}
	case gpio.VolumeUp:
		r.turnUp(1)
	case gpio.VolumeDown:
		r.turnUp(-1)
	case gpio.Reset:
		if r.reset == nil {
			r.log.Warn("a reset was asked for, and there is none")
			return
		}
		r.reset()
	}
}

// stop ends the first of what is going on, and reports whether there was anything.
func (r *reflexes) stop(state event.State) bool {
	switch {
	case r.silence != nil && r.silence():
	case state != event.Idle && state != event.Failed && r.stopTurn != nil:
		r.stopTurn()
	default:
		return false
	}
	return true
}

func (r *reflexes) turnUp(steps int) {
	if r.louder != nil {
		r.louder(dialStep * steps)
	}
}

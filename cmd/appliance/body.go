package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
	"bellbird/store"
)

// What the buttons do, what the ring shows, and when the microphone is muted.

// An embodiment is the appliance's body, and what it does with it.
type embodiment struct {
	*gpio.Body
	mute      *gpio.Mute
	admission admission
	reflexes  *reflexes
}

// embody gives the appliance its body. What it needs of the appliance may be made later, but before it runs. spoken is
// how loud the loudspeaker is, 0 to 1.
func (a *appliance) embody(o gpio.Options, spoken func() float64, log *slog.Logger) (*embodiment, error) {
	kept := record{a.store.Bucket("body"), "muted"}
	mute, err := gpio.NewMute(gpio.MuteOptions{
		Load: kept.loadFlag, Save: kept.saveFlag,
		Changed: func(e event.MuteChanged) { a.bus.Publish(e) },
	})
	if err != nil {
		log.Error("mute", "err", err)
	}
	e := &embodiment{mute: mute, admission: admission{muted: mute.Muted}, reflexes: newReflexes(a.bus, log.With("part", "reflexes"))}

	r := e.reflexes
	r.mute = mute
	r.silence = func() bool { return a.timers.Silence() }
	r.stopTurn = func() { a.turns.Stop() }
	r.listen = func() {
		if a.ears != nil {
			a.turns.Wake("button", 1, a.ears.Heard())
		}
	}
	r.confirm = func() bool { return a.confirmations != nil && a.confirmations.Answer(true) }
	r.private, r.secret = privateToggle(a.store), isPrivate(a.store)
	volume := loudness{a.output, a.bus, a.clock}
	r.louder = func(by int) { volume.SetVolume(min(max(volume.Volume()+by, 0), 100)) }

	o.Now = a.localTime
	o.Bus, o.Mute, o.Do, o.Logger = a.bus, mute, r.do, log.With("part", "body")
	o.Heard, o.Spoken = e.admission.heard, spoken
	e.Body, err = gpio.Open(o)
	return e, err
}

// parts are what runs of it.
func (e *embodiment) parts() []run.Part {
	return []run.Part{
		{Name: "body", Run: e.Run},
		{Name: "reflexes", Run: func(ctx context.Context) error {
			e.Ring().Hide(ring.Booting)
			return e.reflexes.run(ctx)
		}},
	}
}

// loadFlag reads what saveFlag kept; false if nothing was.
func (r record) loadFlag() (bool, error) {
	v, err := r.Load()
	return bytes.Equal(v, []byte{1}), err
}

func (r record) saveFlag(on bool) error {
	if on {
		return r.Save([]byte{1})
	}
	return r.Save([]byte{0})
}

// An admission decides which frames of the microphone are heard, before anything else sees them, and knows how loud they
// are.
type admission struct {
	muted  func() bool
	level  atomic.Uint64 // bits of a float64
	recent loudest
}

// admit reports whether the frame may be heard. It never waits.
func (a *admission) admit(f *audio.Frame) bool {
	if a.muted() {
		a.level.Store(0)
		return false
	}
	dB := audio.Measure(f[:]).RMS
	a.level.Store(math.Float64bits(brightness(dB)))
	a.recent.hear(dB)
	return true
}

// heard is how loud the last frame was, 0 to 1.
func (a *admission) heard() float64 { return math.Float64frombits(a.level.Load()) }

// brightness makes light of loudness: the 40 dB from the murmur of a room to a loud voice.
func brightness(dB float64) float64 { return min(max((dB+55)/40, 0), 1) }

// privateToggle switches between the private chat and the one that was talked in before.
func privateToggle(s *store.Store) func() error {
	before := ""
	var mu sync.Mutex
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		c, err := s.Active()
		switch {
		case err == nil && c.Name() == privateChat:
			if before == "" {
				before = "default"
			}
			return s.Activate(before)
		case err == nil:
			before = c.Name()
		}
		if err := (conversations{s}).openPrivate(); err != nil {
			return err
		}
		return s.Activate(privateChat)
	}
}

// isPrivate reports whether the active chat is private. One that can't be looked at is.
func isPrivate(s *store.Store) func() bool {
	return func() bool {
		_, private, _ := s.Private(context.Background(), nil) // it says so of what it has an error for
		return private
	}
}

// reportBody prints what there is of the body, and returns how many parts don't work.
func reportBody(o gpio.Options, line func(what, found string, err error), skip func(what, why string)) error {
	var err error
	if o.Mute, err = gpio.NewMute(gpio.MuteOptions{}); err != nil { // for the switch to have something to mute
		return err
	}
	b, err := gpio.Open(o)
	if err != nil {
		return err
	}
	defer b.Close()
	for _, s := range b.Report() {
		switch s.State {
		case gpio.Skipped:
			skip(s.Part, s.Detail)
		case gpio.Failed:
			line(s.Part, "", fmt.Errorf("%s (%s)", s.Detail, s.Remedy))
		default:
			line(s.Part, s.Detail, nil)
		}
	}
	return nil
}

package main

import (
	"context"
	"image/color"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/store"
	"bellbird/timers"
	"bellbird/tools"
)

// How the parts of the appliance look to each other: none of them knows another.

// ringer returns a function that begins and ends the sound of timers.
func ringer(out *audio.Output) func(bool) {
	ring := audio.RingTone()
	stop := func() {}
	return func(ringing bool) {
		stop()
		stop = func() {}
		if ringing {
			stop = out.Sound(ring, true)
		}
	}
}

// loudness tells what becomes of the volume.
type loudness struct {
	*audio.Output
	bus   *event.Bus
	clock clock.Clock
}

func (l loudness) SetVolume(percent int) { l.change(func() { l.Output.SetVolume(percent) }) }
func (l loudness) SetMuted(muted bool)   { l.change(func() { l.Output.SetMuted(muted) }) }

func (l loudness) change(set func()) {
	before := event.VolumeChanged{Percent: l.Volume(), Muted: l.Muted()}
	set()
	if now := (event.VolumeChanged{Percent: l.Volume(), Muted: l.Muted()}); now != before {
		now.At = l.clock.Now()
		l.bus.Publish(now)
	}
}

// timekeeper shows a timers.Keeper to the tools for timers.
type timekeeper struct{ *timers.Keeper }

func (k timekeeper) Set(name string, d time.Duration) error {
	_, err := k.Keeper.Set(name, d)
	return err
}

func (k timekeeper) List() []tools.Timer {
	var list []tools.Timer
	for _, t := range k.Keeper.List() {
		list = append(list, tools.Timer{ID: t.ID, Name: t.Name, Total: t.Total, Left: t.Left})
	}
	return list
}

// alarmkeeper shows a timers.Keeper to the tools for alarms.
type alarmkeeper struct{ *timers.Keeper }

func (k alarmkeeper) SetAlarm(name string, at tools.AlarmTime) (tools.Alarm, error) {
	a, err := k.Keeper.SetAlarm(name, timers.AlarmTime(at))
	return tools.Alarm(a), err
}

func (k alarmkeeper) Alarms() []tools.Alarm {
	var list []tools.Alarm
	for _, a := range k.Keeper.Alarms() {
		list = append(list, tools.Alarm(a))
	}
	return list
}

// A record is a single value of the store.
type record struct {
	bucket *store.Bucket
	key    string
}

func (r record) Load() ([]byte, error)   { return r.bucket.Get(r.key) }
func (r record) Save(value []byte) error { return r.bucket.Put(r.key, value) }

// talker shows the chats to the tools.
type talker struct{ storedChats }

func (t talker) Active() string {
	c, err := t.Store.Active()
	if err != nil {
		return ""
	}
	return c.Name()
}

// laterTurns are the appliance's turns, for those who are made before them.
type laterTurns struct{ *appliance }

func (l laterTurns) Stop() { l.turns.Stop() }

func (l laterTurns) Say(ctx context.Context, text string) (event.Record, error) {
	return l.turns.Say(ctx, text)
}

// laterEars are its ears.
type laterEars struct{ *appliance }

func (l laterEars) SetCutoff(word string, cutoff float64) error {
	return l.ears.SetCutoff(word, cutoff)
}

// A switched thing is on until it is switched off.
type switched struct{ off atomic.Bool }

func (s *switched) Enabled() bool      { return !s.off.Load() }
func (s *switched) SetEnabled(on bool) { s.off.Store(!on) }

// laterRing is the ring, for plugins.
type laterRing struct{ *appliance }

func (l laterRing) Show(plugin string, c color.RGBA, pattern string, d time.Duration) error {
	effect := map[string]ring.Effect{"steady": ring.Solid, "pulse": ring.Breathe, "spin": ring.Spin}[pattern]
	return l.body.Ring().Borrow(plugin, led.Color{R: c.R, G: c.G, B: c.B}, effect, d)
}

package gpio

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/event"
)

// ErrSwitch is returned when something asks for the microphone while the slide switch says mute.
var ErrSwitch = errors.New("the mute switch is on: only sliding it back can end that")

// MuteOptions are what a Mute needs.
type MuteOptions struct {
	// Load reads what Save kept: whether software has muted the microphone. Nil: it is not kept. If it can't be read
	// the microphone is muted.
	Load func() (bool, error)
	Save func(muted bool) error
	// Changed is told every change, in order. It must not call the Mute. May be nil.
	Changed func(event.MuteChanged)
}

// A Mute decides whether the microphone is muted: it is if software says so, or if the switch does. Nothing but the
// switch can end what the switch says. Sliding it back ends also what software said, because somebody stands there who
// wants to be heard. It may be used by any goroutine.
type Mute struct {
	o     MuteOptions
	muted atomic.Bool

	mu       sync.Mutex
	software bool
	hardware bool       // the switch says mute, or can't be read
	show     func(bool) // on the ring
}

// NewMute returns what was kept. An error is of Load; the Mute is usable nevertheless, and muted.
func NewMute(o MuteOptions) (*Mute, error) {
	m := &Mute{o: o}
	var err error
	if o.Load != nil {
		if m.software, err = o.Load(); err != nil {
			m.software = true
			err = fmt.Errorf("whether the microphone was muted: %w (it is muted now: unmute it)", err)
		}
	}
	m.muted.Store(m.software)
	return m, err
}

// Muted reports whether the microphone is muted. It is for each frame that the microphone delivers, before anything else
// sees it: it never waits.
func (m *Mute) Muted() bool { return m.muted.Load() }

// BySwitch reports whether it is the switch that mutes it.
func (m *Mute) BySwitch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hardware
}

// Set mutes or unmutes the microphone for software: commands, plugins, the network. It returns ErrSwitch if the switch
// says mute. Another error is of what keeps it: it is muted or unmuted all the same, until the next start.
func (m *Mute) Set(muted bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !muted && m.hardware {
		return ErrSwitch
	}
	return m.set(muted, m.hardware)
}

// Toggle is Set to what it isn't.
func (m *Mute) Toggle() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hardware {
		return ErrSwitch
	}
	return m.set(!m.software, m.hardware)
}

// showOn has show told whether it is muted, now and whenever that changes.
func (m *Mute) showOn(show func(bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.show = show
	show(m.muted.Load())
}

// slide is told where the switch is. moved: it has just been moved there.
func (m *Mute) slide(muted, moved bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set(m.software && (muted || !moved), muted)
}

// set must be called with the lock held. Muting comes before everything else, and unmuting after.
func (m *Mute) set(software, hardware bool) error {
	kept := m.software != software
	before, now := event.MuteChanged{Muted: m.muted.Load(), Switch: m.hardware}, event.MuteChanged{Muted: software || hardware, Switch: hardware}
	m.software, m.hardware = software, hardware
	if now.Muted {
		m.muted.Store(true)
	}
	if m.show != nil {
		m.show(now.Muted)
	}
	m.muted.Store(now.Muted)
	if now != before && m.o.Changed != nil {
		now.At = time.Now()
		m.o.Changed(now)
	}
	if kept && m.o.Save != nil {
		if err := m.o.Save(software); err != nil {
			return fmt.Errorf("mute: it is not kept beyond a restart: %w", err)
		}
	}
	return nil
}

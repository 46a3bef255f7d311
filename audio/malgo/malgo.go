// Package malgo is the sound card: a microphone that delivers frames and a loudspeaker that plays an audio.Output,
// through miniaudio (PulseAudio or ALSA). It decides nothing about what is heard or said, and opens a card once: who
// uses it opens another when Run says that this one is gone.
//
// It is one of the two packages that need cgo. Without it the package compiles, and Open says so.
package malgo

import (
	"log/slog"
	"time"
)

// Options choose the devices. The zero value means the system's default ones.
type Options struct {
	// Capture and Playback are parts of the names of the microphone and the loudspeaker, or of their ALSA or
	// PulseAudio identifiers ("hw:1", "seeed"); capitals don't matter. Empty means the default.
	Capture  string `toml:"capture"`
	Playback string `toml:"playback"`

	// Backend is "alsa", "pulseaudio", or "null": a device that hears silence and plays to nobody, for tests. Empty
	// means PulseAudio if it runs, and ALSA otherwise.
	Backend string `toml:"backend"`

	// PlaybackOnly opens no microphone; Frames never has any.
	PlaybackOnly bool `toml:"-"`

	// Latency is the time that a sample takes through the loudspeaker's buffers. 0 means what is asked of the
	// system: 60 ms.
	Latency time.Duration `toml:"latency"`

	// Logger gets what miniaudio has to say, at debug level. Nil means nowhere.
	Logger *slog.Logger `toml:"-"`
}

// Info says what was opened.
type Info struct {
	Backend  string
	Capture  string // the name of the microphone
	Playback string // the name of the loudspeaker
	Latency  time.Duration
}

// A Device is a microphone or a loudspeaker that could be opened.
type Device struct {
	Name    string
	ID      string // as the backend calls it, if that can be read
	Default bool
}

// The devices are asked for 20 ms at a time, and three of those are under way: less crackles on small machines.
const (
	period  = 20 * time.Millisecond
	periods = 3

	// stalled is how long a device may deliver or take nothing before it is taken for gone. Unplugging is not
	// reliably told in any other way.
	stalled = 3 * time.Second

	// closing is how long a device may take to be closed. miniaudio waits for ever for a thread that waits for a
	// sound server that is gone.
	closing = 2 * time.Second
)

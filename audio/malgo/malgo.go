// Package malgo is the sound card: a microphone that delivers frames and a loudspeaker that plays an audio.Output,
// through miniaudio (PulseAudio or ALSA). It decides nothing about what is heard or said. A Card is opened once and used
// up; a Supervisor keeps both halves alive, and works without either of them.
//
// It is one of the two packages that need cgo. Without it the package compiles, and Open says so.
package malgo

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"bellbird/audio"
)

// Options choose the devices. The zero value means the system's default ones.
type Options struct {
	// Capture and Playback are parts of the names of the microphone and the loudspeaker, or of their ALSA or
	// PulseAudio identifiers ("hw:1", "seeed"); capitals don't matter. Empty or "default" means the default.
	Capture  string `toml:"capture"`
	Playback string `toml:"playback"`

	// Backend is "alsa", "pulseaudio", or "null": a device that hears silence and plays to nobody, for tests. Empty
	// means PulseAudio if it runs, and ALSA otherwise.
	Backend string `toml:"backend"`

	// Channels is how many channels the microphone is asked for; 0 means as many as it has.
	Channels int `toml:"channels"`

	// Channel says what becomes of several: "average" (the default), the number of one of them, from 0, or "best":
	// then they all come out of Groups, for somebody to choose from.
	Channel string `toml:"channel"`

	// Gain makes the microphone louder, in dB, before its samples are cut to 16 bits. -40 to 60.
	Gain float64 `toml:"gain"`

	// PlaybackOnly opens no microphone; Frames never has any.
	PlaybackOnly bool `toml:"-"`

	// Latency is the time that a sample takes through the loudspeaker's buffers. 0 means what is asked of the
	// system, and what the conversion takes: 64 ms.
	Latency time.Duration `toml:"latency"`

	// OnTrouble is told what a supervised device suffers from, once for each kind of trouble, and OnWell that it is
	// over. Both are called by the goroutine that looks after the device, which waits for them. Nil means nobody.
	OnTrouble func(*Fault) `toml:"-"`
	OnWell    func(Side)   `toml:"-"`

	// Logger is told of devices that come and go, and what miniaudio has to say, at debug level. Nil means nowhere.
	Logger *slog.Logger `toml:"-"`
}

// Best is the Channel that hands all of them on.
const Best = "best"

// Check finds mistakes in what doesn't depend on the devices.
func (o *Options) Check() error {
	switch o.Backend {
	case "", "alsa", "pulseaudio", "pulse", "null":
	default:
		return fmt.Errorf(`sound: backend %q is unknown: choose "alsa", "pulseaudio" or "null"`, o.Backend)
	}
	if o.Channels < 0 || o.Channels > 32 {
		return fmt.Errorf("sound: channels = %d: 0 to 32 are possible, 0 is as many as there are", o.Channels)
	}
	if _, err := o.number(); err != nil {
		return err
	}
	if !(o.Gain >= -40 && o.Gain <= 60) {
		return fmt.Errorf("sound: gain = %v: it goes from -40 to 60 dB", o.Gain)
	}
	return nil
}

// number is the channel that is chosen by one, or -1.
func (o *Options) number() (int, error) {
	switch o.Channel {
	case "", "average", Best:
		return -1, nil
	}
	n, err := strconv.Atoi(o.Channel)
	if err != nil || n < 0 {
		return 0, fmt.Errorf(`sound: channel = %q: choose "average", "best", or the number of one, from 0`, o.Channel)
	}
	return n, nil
}

// mixdown is what is done with so many channels; nil: they are all handed on.
func (o *Options) mixdown(channels int) (*audio.Mixdown, error) {
	if o.Channel == Best {
		return nil, nil
	}
	n, err := o.number()
	if err != nil {
		return nil, err
	}
	m := audio.Average(channels)
	if n >= 0 {
		if m, err = audio.Pick(channels, n); err != nil {
			return nil, fmt.Errorf("sound: %w", err)
		}
	}
	return &m, nil
}

// factor is the gain as one.
func (o *Options) factor() float32 { return float32(math.Pow(10, o.Gain/20)) }

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// latency is the way from Pull to the air.
func (o *Options) latency() time.Duration {
	if o.Latency > 0 {
		return o.Latency
	}
	return periods*period + converting
}

// wanted is the name of the device that is asked for on a side; empty means the default.
func (o *Options) wanted(s Side) string {
	name := o.Capture
	if s == Loudspeaker {
		name = o.Playback
	}
	if strings.EqualFold(name, "default") {
		return ""
	}
	return name
}

// Info says what was opened.
type Info struct {
	Backend  string
	Capture  string // the name of the microphone
	Playback string // the name of the loudspeaker
	Latency  time.Duration

	// CaptureFormat and PlaybackFormat are what the devices have, in words: "48000 Hz, 2 channels, 32 bit".
	CaptureFormat, PlaybackFormat string

	// Channels is how many channels the microphone has.
	Channels int
}

// A Device is a microphone or a loudspeaker that could be opened.
type Device struct {
	Name    string
	ID      string // as the backend calls it, if that can be read
	Default bool

	// Monitor tells that this microphone is what a loudspeaker plays. Unless it is asked for by name it isn't listened
	// to: the appliance would hear nobody but itself.
	Monitor bool
}

// The devices are asked for 20 ms at a time, and three of those are under way: less crackles on small machines.
const (
	period  = 20 * time.Millisecond
	periods = 3

	// converting is what the resampler looks ahead, rounded up.
	converting = 4 * time.Millisecond

	// closing is how long a device may take to be closed. miniaudio waits for ever for a thread that waits for a
	// sound server that is gone.
	closing = 2 * time.Second
)

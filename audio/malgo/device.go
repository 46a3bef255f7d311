package malgo

import (
	"fmt"
	"time"

	"bellbird/audio"
)

// A half is one device that was opened: a microphone or a loudspeaker. The functions are miniaudio's, or a test's.
type half struct {
	side    Side
	name    string
	backend string
	shape
	capture  *capture      // of a microphone
	playback *playback     // of a loudspeaker
	stopped  chan struct{} // a token when the device says that it has stopped
	messages chan string   // what miniaudio says, from any thread; full: it is dropped
	priority priority      // of the device's thread

	start   func() error
	started func() bool
	close   func() // may hang
}

// says is what is logged of a message.
const says = "miniaudio says"

// begin starts the device.
func (h *half) begin() *Fault {
	if err := h.start(); err != nil {
		return &Fault{h.side, h.name, Missing, fmt.Errorf("start %s %q: %w", h.side, h.name, err)}
	}
	return nil
}

// end closes the device, within a bound.
func (h *half) end() *Fault {
	if h.playback != nil {
		h.playback.shut()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.close()
	}()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C: // that goroutine and its thread are lost; they touch nothing that another device uses
		return &Fault{h.side, h.name, Hangs, fmt.Errorf("closing %s %q hangs: start the appliance again", h.side, h.name)}
	}
}

// vitals are what the device shows of itself.
func (h *half) vitals() vitals {
	v := vitals{started: h.started(), rate: h.rate}
	if c := h.capture; c != nil {
		v.moments, v.lively, v.still = c.taken.Load(), c.lively.Load(), c.still.Load()
	} else {
		v.moments = h.playback.asked.Load()
	}
	return v
}

// describe adds what this half is to what is known.
func (h *half) describe(i *Info) {
	i.Backend = h.backend
	if h.side == Microphone {
		i.Capture, i.CaptureFormat, i.Channels = h.name, h.shape.String(), h.channels
	} else {
		i.Playback, i.PlaybackFormat = h.name, h.shape.String()
	}
}

func (s shape) String() string {
	return audio.Format{
		Rate: s.rate, Channels: s.channels, Bits: 8 * s.format.size(), Float: s.format == float32s,
	}.String()
}

package malgo

import (
	"encoding/binary"
	"sync/atomic"

	"bellbird/audio"
)

// What the two callbacks do, without the C around it. They run on threads of the sound system that must never wait: they
// copy, hand over without waiting, count what they lost, and return. Devices deliver and ask for any number of samples,
// so each side keeps what is left of a frame until the next call.

// queueLength is how far the listener may be behind the microphone: a second.
const queueLength = 50

// A capture makes frames of what a microphone delivers.
type capture struct {
	frames  chan audio.Frame // full: the newest frame is dropped and counted
	made    atomic.Uint64
	dropped atomic.Uint64

	// The callback's own.
	frame audio.Frame
	n     int // samples in it
}

func newCapture() *capture { return &capture{frames: make(chan audio.Frame, queueLength)} }

// take copies samples, little-endian 16 bit, out of memory that is the sound system's again afterwards.
func (c *capture) take(samples []byte) {
	for ; len(samples) >= 2; samples = samples[2:] {
		c.frame[c.n] = int16(binary.LittleEndian.Uint16(samples))
		c.n++
		if c.n < audio.FrameSize {
			continue
		}
		c.n = 0
		c.made.Add(1)
		select {
		case c.frames <- c.frame:
		default:
			c.dropped.Add(1)
		}
	}
}

// A playback cuts frames into what a loudspeaker asks for.
type playback struct {
	out    *audio.Output
	pulled atomic.Uint64
	off    atomic.Bool // the card is being closed; another one may be pulling from now on

	// The callback's own.
	frame audio.Frame
	n     int // samples of it that were given already
}

func newPlayback(out *audio.Output) *playback { return &playback{out: out, n: audio.FrameSize} }

// give fills samples.
func (p *playback) give(samples []byte) {
	if p.off.Load() {
		clear(samples)
		return
	}
	for ; len(samples) >= 2; samples = samples[2:] {
		if p.n == audio.FrameSize {
			p.out.Pull(&p.frame)
			p.pulled.Add(1)
			p.n = 0
		}
		binary.LittleEndian.PutUint16(samples, uint16(p.frame[p.n]))
		p.n++
	}
}

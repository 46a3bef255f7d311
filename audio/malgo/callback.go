package malgo

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"bellbird/audio"
)

// What the two callbacks do, without the C around it. They run on threads of the sound system that must never wait: they
// convert, hand over without waiting, count what they lost, and return. Devices deliver and ask for any number of
// samples, so each side keeps what is left of a frame until the next call.
//
//  1. take: what the microphone has becomes 16 bits, then one channel (or all of them, if somebody chooses later), then
//     the inner rate, then frames in a ring. hand takes them out of it, on a goroutine that may wait.
//  2. give: a frame that is pulled from the Output becomes the rate of the loudspeaker, then its format, the same in each
//     of its channels.

// A shape is the form in which a device has its sound.
type shape struct {
	format   sampleFormat
	channels int
	rate     audio.Rate
}

const (
	// ringRoom is how far the listener may be behind the microphone: longer than a busy machine keeps it waiting.
	ringRoom = time.Second

	// block is how many moments of a device are converted at a time.
	block = 1024
)

// A capture makes frames of what a microphone delivers.
type capture struct {
	shape
	gain  float32
	group bool            // all channels are handed on
	rings rings           // full: the newest frame is dropped and counted
	token chan struct{}   // latest wins: one says that there is something in the rings
	beat  beat            // of the callback
	mixes []audio.Mixdown // one for each channel that comes out
	rates []*audio.Resampler

	taken   atomic.Uint64 // moments: samples of each channel
	made    atomic.Uint64 // frames
	dropped atomic.Uint64
	lively  atomic.Uint64 // frames with more than one value in them
	still   atomic.Uint64 // frames since the last of those

	// The callback's own.
	samples []int16   // a block, interleaved
	mono    []int16   // a channel of it
	out     [][]int16 // at the inner rate
}

// newCapture prepares for a microphone of this shape. mix is what is done with its channels; without one they are all
// handed on.
func newCapture(s shape, gain float32, mix *audio.Mixdown) (*capture, error) {
	c := &capture{
		shape: s, gain: gain, group: mix == nil,
		token:   make(chan struct{}, 1),
		samples: make([]int16, block*s.channels),
		mono:    make([]int16, 0, block),
	}
	if c.group {
		for i := range min(s.channels, audio.MaxChannels) {
			one, err := audio.Pick(s.channels, i)
			if err != nil {
				return nil, err
			}
			c.mixes = append(c.mixes, one)
		}
	} else {
		c.mixes = []audio.Mixdown{*mix}
	}
	first, err := audio.NewResampler(s.rate, audio.SampleRate)
	if err != nil {
		return nil, err
	}
	for range c.mixes {
		c.rates = append(c.rates, first.Fork())
		c.out = append(c.out, make([]int16, 0, first.Max(block)+audio.FrameSize))
	}
	c.rings = newRings(len(c.mixes), audio.Frames(ringRoom))
	return c, nil
}

// take copies samples out of memory that is the sound system's again afterwards.
func (c *capture) take(b []byte) {
	began := c.beat.begin()
	group := c.channels * c.format.size()
	for len(b) >= group {
		n := min(block, len(b)/group)
		samples := c.samples[:n*c.channels]
		c.format.read(samples, b, c.gain)
		b = b[n*group:]
		c.taken.Add(uint64(n))
		for i, mix := range c.mixes {
			c.mono = mix.Mono(c.mono[:0], samples)
			c.out[i] = c.rates[i].Process(c.out[i], c.mono)
		}
		c.cut()
	}
	c.beat.end(began)
}

// cut makes frames of the samples that are there.
func (c *capture) cut() {
	at := 0
	for ; len(c.out[0])-at >= audio.FrameSize; at += audio.FrameSize {
		c.made.Add(1)
		c.feel(at)
		if !c.rings.push(c.out, at) {
			c.dropped.Add(1)
			continue
		}
		select {
		case c.token <- struct{}{}:
		default:
		}
	}
	if at > 0 {
		for i, s := range c.out {
			c.out[i] = s[:copy(s, s[at:])]
		}
	}
}

// feel finds out whether there is any life in the frame that begins at a place.
func (c *capture) feel(at int) {
	alive := false
	for _, s := range c.out {
		f := s[at : at+audio.FrameSize]
		for _, v := range f[1:] {
			if v != f[0] {
				alive = true
				break
			}
		}
	}
	if alive {
		c.lively.Add(1)
		c.still.Store(0)
	} else {
		c.still.Add(1)
	}
}

// hand sends what comes to one of the two channels, until ctx is done. It may wait.
func (c *capture) hand(ctx context.Context, frames chan<- audio.Frame, groups chan<- audio.Group) {
	if c.group {
		frames = nil
	} else {
		groups = nil
	}
	var g audio.Group
	for {
		for c.rings.pop(&g) {
			select {
			case frames <- g.Frames[0]:
			case groups <- g:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-c.token:
		case <-ctx.Done():
			return
		}
	}
}

// Rings carry the frames of several channels, in step: all of a moment, or none.
//
// That takes no lock. The one side pushes from the last ring to the first, the other pops from the first to the last. So
// if there is room in the last there is room in all, and if there is a frame in the first there is one in all.
type rings []*audio.Ring

func newRings(n, room int) rings {
	r := make(rings, n)
	for i := range r {
		r[i] = audio.NewRing(room)
	}
	return r
}

// push appends what begins at a place of each channel, or reports false if there is no room.
func (r rings) push(channels [][]int16, at int) bool {
	for i := len(r) - 1; i >= 0; i-- {
		if !r[i].Push(audio.Frame(channels[i][at : at+audio.FrameSize])) {
			return false // this is the last ring: nothing was pushed
		}
	}
	return true
}

// pop removes the oldest frames, or reports false if there are none.
func (r rings) pop(g *audio.Group) bool {
	g.Channels = len(r)
	for i := range r {
		if !r[i].Pop(&g.Frames[i]) {
			return false // this is the first ring
		}
	}
	return true
}

// A playback cuts frames into what a loudspeaker asks for.
type playback struct {
	shape
	out    *audio.Output
	rate   *audio.Resampler
	asked  atomic.Uint64 // moments: samples of each channel
	pulled atomic.Uint64 // frames
	beat   beat

	// state says who may pull. The callback is let in only if nobody closed the door, and closing waits until it is out:
	// the card is gone then, and another one may be pulling.
	state atomic.Int32

	// The callback's own.
	frame audio.Frame
	ready []int16 // at the device's rate
	n     int     // of them that were given already
}

const (
	outside = iota
	inside
	shut
)

func newPlayback(s shape, out *audio.Output) (*playback, error) {
	r, err := audio.NewResampler(audio.SampleRate, s.rate)
	if err != nil {
		return nil, err
	}
	return &playback{shape: s, out: out, rate: r, ready: make([]int16, 0, r.Max(audio.FrameSize))}, nil
}

// give fills b.
func (p *playback) give(b []byte) {
	group := p.channels * p.format.size()
	p.asked.Add(uint64(len(b) / group))
	if !p.state.CompareAndSwap(outside, inside) {
		p.format.silence(b)
		return
	}
	began := p.beat.begin()
	for ; len(b) >= group; b = b[group:] {
		for p.n == len(p.ready) {
			p.out.Pull(&p.frame)
			p.pulled.Add(1)
			p.ready, p.n = p.rate.Process(p.ready[:0], p.frame[:]), 0
		}
		p.format.write(b, p.channels, p.ready[p.n])
		p.n++
	}
	p.beat.end(began)
	p.state.Store(outside)
}

// admit lets the callback pull, again.
func (p *playback) admit() { p.state.CompareAndSwap(shut, outside) }

// shut lets the callback pull nothing any more. It waits for one that is under way, which takes microseconds.
func (p *playback) shut() {
	for !p.state.CompareAndSwap(outside, shut) {
		if p.state.Load() == shut {
			return
		}
		runtime.Gosched()
	}
}

package audio

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrCut is what writers and drainers of a stream get once it has been cut: there is nobody who would hear it.
var ErrCut = errors.New("audio: the stream was cut")

// errFinished is a mistake of the writer.
var errFinished = errors.New("audio: write to a finished stream")

// A Stream is one piece of speech, or of music, on its way to the loudspeaker: one answer of any length, one song. Write
// and Finish are for one goroutine at a time, everything else may be called from any.
//
// Each stream has a ring of its own, and that is what makes a cut final: whatever a voice still delivers for it
// afterwards goes nowhere, and cannot be heard in the next one.
type Stream struct {
	out      *Output
	plane    *plane
	ring     *Ring         // full: the writer waits
	room     chan struct{} // a token whenever the device took a frame; who waits for room takes it and looks again
	started  chan struct{} // closed by Pull
	drained  chan struct{} // closed by Pull
	cut      chan struct{} // closed by Cut
	cutOnce  sync.Once
	silenced atomic.Bool // like cut, cheaper to look at

	finished atomic.Bool
	paused   atomic.Bool
	written  atomic.Uint64
	played   atomic.Uint64
	first    atomic.Uint64 // number of the pulled frame in which it began

	// Pull's own.
	begun   bool
	hungry  bool  // the last frame was an underrun
	last    int16 // the last sample
	tail    int64 // frames pulled since the end
	resting bool  // it is paused, and has died away
	held    bool  // hold is the frame in which it did, which is heard again afterwards
	hold    Frame
}

// Open begins a new stream of speech. If there is one, it is cut.
func (o *Output) Open() *Stream { return o.open(&o.speech) }

// OpenMusic begins a new stream on the plane of music and announcements, which gives way to all others: speech, sounds and
// claims of Duck make it quieter. If there is one, it is cut.
func (o *Output) OpenMusic() *Stream { return o.open(&o.music) }

func (o *Output) open(p *plane) *Stream {
	s := &Stream{
		out:     o,
		plane:   p,
		ring:    NewRing(speechRoom),
		room:    make(chan struct{}, 1), // latest wins: one token says all
		started: make(chan struct{}),
		drained: make(chan struct{}),
		cut:     make(chan struct{}),
	}
	if old := p.current.Swap(s); old != nil {
		old.Cut()
	}
	return s
}

// Write appends a frame, and waits for room first if the device is a good two seconds behind. It returns ErrCut once the
// stream has been cut, and the cause if ctx ends: a device that has stopped taking frames keeps it waiting until then.
func (s *Stream) Write(ctx context.Context, f Frame) error {
	for {
		switch {
		case s.isCut():
			return ErrCut
		case s.finished.Load():
			return errFinished
		case s.ring.Push(f):
			s.written.Add(1)
			return nil
		}
		select {
		case <-s.room:
		case <-s.cut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Full reports whether the next Write would have to wait. While it isn't full only a writer can make it so.
func (s *Stream) Full() bool { return s.ring.Len() == s.ring.Cap() && !s.isCut() }

// Finish says that no more frames will come. It doesn't wait; Drain does. More calls do nothing.
func (s *Stream) Finish() { s.finished.Store(true) }

// Drain waits until the stream is finished and all of it has been heard: until the device has taken the last frame, has
// played it, and its latency has passed, counted in frames that it pulled. A stream without a frame is drained at once.
// It returns ErrCut if the stream is cut first, and the cause if ctx ends.
func (s *Stream) Drain(ctx context.Context) error {
	if s.finished.Load() && s.written.Load() == 0 && !s.isCut() {
		return nil
	}
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.cut:
	}
	select {
	case <-s.drained: // cut after the end: it was all heard
		return nil
	default:
		return ErrCut
	}
}

// Cut ends the stream at once: of what was written, nothing more is heard than a fade of 10 ms in the next frame, even if
// more is written at this very moment. It returns without waiting for that. More calls do nothing.
func (s *Stream) Cut() {
	s.cutOnce.Do(func() {
		s.silenced.Store(true)
		close(s.cut)
	})
}

func (s *Stream) isCut() bool { return s.silenced.Load() }

// Written is the number of frames accepted.
func (s *Stream) Written() int { return int(s.written.Load()) }

// Played is the number of frames that the device has taken. What it took during its latency may not have been heard yet.
func (s *Stream) Played() int { return int(s.played.Load()) }

// Started is closed when the device takes the first frame. It stays open if the stream is cut before.
func (s *Stream) Started() <-chan struct{} { return s.started }

// Age is how long ago, in pulled frames, the device took the first one, or 0 if it hasn't. It lets somebody who is told
// late by Started know when the first sound was: now less Age.
func (s *Stream) Age() time.Duration {
	first := s.first.Load()
	if first == 0 {
		return 0
	}
	pulled := max(s.out.pulled.Load(), first) // Pull counts itself only when it is done
	return time.Duration(pulled-first) * FrameDuration
}

// Pause lets the stream die away within 10 ms, and keeps what is still to come. More calls do nothing.
func (s *Stream) Pause() { s.paused.Store(true) }

// Resume goes on where Pause stopped, swelling up.
func (s *Stream) Resume() { s.paused.Store(false) }

// Paused reports whether the stream was told to pause.
func (s *Stream) Paused() bool { return s.paused.Load() }

// play mixes the next frame into o, with a gain that goes from one value to another, and reports whether the stream has
// been heard to its end. Only Pull calls it.
func (s *Stream) play(o *Output, from, to float32) (ended bool) {
	if s.paused.Load() {
		s.rest(o, from)
		return false
	}
	swell := s.resting && s.begun
	s.resting = false
	finished := s.finished.Load() // before looking into the ring: what is in it then is all there will be
	if s.next(&o.frame) {
		switch {
		case !s.begun:
			s.begun = true
			s.first.Store(o.pulled.Load() + 1)
			close(s.started)
			swell = o.frame[0] > edge || o.frame[0] < -edge
		case s.hungry:
			s.hungry = false
			s.plane.gaps.Add(1)
			swell = true
		}
		if swell {
			o.addFadingIn(&o.frame, from, to)
		} else {
			o.add(&o.frame, from, to)
		}
		s.last = o.frame[FrameSize-1]
		s.played.Add(1)
		s.plane.played.Add(1)
		return false
	}

	if s.last != 0 {
		o.release(s.last, from)
		s.last = 0
	}
	switch {
	case !finished:
		if s.begun {
			s.hungry = true
			s.plane.underruns.Add(1)
		}
		return false
	case s.begun && s.tail < o.latency.Load():
		s.tail++
		return false
	}
	close(s.drained)
	return true
}

// next takes the frame that is to be heard next: the one that is held, or one from the ring.
func (s *Stream) next(dst *Frame) bool {
	if s.held {
		s.held = false
		*dst = s.hold
		return true
	}
	if !s.ring.Pop(dst) {
		return false
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
	return true
}

// rest lets a stream that is paused die away, and be silent from then on.
func (s *Stream) rest(o *Output, gain float32) {
	if s.resting {
		return
	}
	s.resting = true
	if !s.begun || s.hungry { // nothing of it can be heard at the moment
		return
	}
	if s.held = s.next(&s.hold); s.held {
		o.addFadingOut(&s.hold, gain)
	} else if s.last != 0 {
		o.release(s.last, gain)
	}
	s.last = 0
	o.tail = max(o.tail, o.latency.Load())
}

// fade lets a stream that was cut die away. Only Pull calls it.
func (s *Stream) fade(o *Output, gain float32) {
	switch {
	case !s.begun || s.hungry || s.resting: // nothing of it can be heard at the moment
	case s.ring.Pop(&o.frame):
		o.addFadingOut(&o.frame, gain)
	default:
		o.release(s.last, gain)
	}
}

package audio

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A sound is a tone or a ring on the sounds plane.
type sound struct {
	frames  []Frame
	stopped atomic.Bool
	at      int // Pull's own: the next frame
}

// Sound plays frames beside the speech. The frames are not copied and must not change any more. stop ends it early, with
// a fade; it may be called at any time, from any goroutine, more than once.
//
// Short sounds (loop is false) are heard one after the other, in order, because each of them tells the user something.
// At most four wait; one more is refused and counted, since by then nobody would know what it belongs to.
//
// Of looping sounds, which are rings, the newest is heard. When it is stopped the one before it is heard again, so that
// two timers that ring must both be silenced. Rings are ducked while there is speech, a short sound, or a claim of Duck.
func (o *Output) Sound(frames []Frame, loop bool) (stop func()) {
	if len(frames) == 0 {
		return func() {}
	}
	s := &sound{frames: frames}
	if !loop {
		select {
		case o.queue <- s:
		default:
			o.refused.Add(1)
		}
		return func() { s.stopped.Store(true) }
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	o.loops = append(o.loops, s)
	o.loop.Store(s)
	return sync.OnceFunc(func() { o.stopRing(s) })
}

func (o *Output) stopRing(s *sound) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loops = slices.DeleteFunc(o.loops, func(x *sound) bool { return x == s })
	var top *sound
	if n := len(o.loops); n > 0 {
		top = o.loops[n-1]
	}
	o.loop.Store(top)
}

// pullShort mixes in the short sound whose turn it is, and reports whether there is one.
func (o *Output) pullShort() bool {
	for o.short == nil {
		select {
		case s := <-o.queue:
			if !s.stopped.Load() {
				o.short = s
			}
		default:
			return false
		}
	}
	s := o.short
	f := &s.frames[s.at]
	s.at++
	if s.stopped.Load() {
		o.addFadingOut(f, 1)
		o.short = nil
		return true
	}
	o.add(f, 1, 1)
	if s.at == len(s.frames) {
		o.short = nil
	}
	return true
}

// pullRing mixes in the ring that is on, ducked or not, and reports whether there is one.
func (o *Output) pullRing(ducked bool) bool {
	from, to := o.ringDuck.next(ducked)
	s := o.loop.Load()
	if r := o.ringing; r != nil && r != s {
		o.addFadingOut(&r.frames[r.at], from)
		o.ringing = nil
	}
	if s == nil {
		return false
	}
	if o.ringing == nil {
		o.ringing, s.at = s, 0
	}
	o.add(&s.frames[s.at], from, to)
	s.at = (s.at + 1) % len(s.frames)
	return true
}

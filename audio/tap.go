package audio

import (
	"slices"
	"sync/atomic"
)

// A Tap is given every frame that an Output plays, as it is played: mixed, and at the volume that is set. It is the
// reference of an echo canceller, and what is recorded of the loudspeaker.
type Tap struct {
	out     *Output
	ring    *Ring // full: the newest frame is dropped and counted
	dropped atomic.Uint64
}

// Tap returns a new one, with room for so many frames that nobody has taken yet. Close must follow.
func (o *Output) Tap(room int) *Tap {
	t := &Tap{out: o, ring: NewRing(room)}
	o.changeTaps(func(taps []*Tap) []*Tap { return append(taps, t) })
	return t
}

// Close ends the tap.
func (t *Tap) Close() {
	t.out.changeTaps(func(taps []*Tap) []*Tap {
		return slices.DeleteFunc(taps, func(x *Tap) bool { return x == t })
	})
}

// changeTaps replaces the list, which Pull may be reading.
func (o *Output) changeTaps(change func([]*Tap) []*Tap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taps []*Tap
	if old := o.taps.Load(); old != nil {
		taps = slices.Clone(*old)
	}
	taps = change(taps)
	o.taps.Store(&taps)
}

// Pop copies the oldest frame that was not taken yet to dst, or reports false if there is none. It is for one goroutine
// at a time.
func (t *Tap) Pop(dst *Frame) bool { return t.ring.Pop(dst) }

// Len is the number of frames that wait to be taken.
func (t *Tap) Len() int { return t.ring.Len() }

// Dropped is the number of frames that were lost because nobody took them in time.
func (t *Tap) Dropped() uint64 { return t.dropped.Load() }

// feed gives a frame to the taps. Only Pull calls it.
func (o *Output) feed(f *Frame) {
	taps := o.taps.Load()
	if taps == nil {
		return
	}
	for _, t := range *taps {
		if !t.ring.Push(*f) {
			t.dropped.Add(1)
		}
	}
}

package audio

import "sync/atomic"

// A Ring carries frames from one goroutine to another without locks and without allocating: what a device's callback
// may use. Push is for one goroutine at a time, Pop for one (other) at a time; Len and Cap are for anybody. It neither
// waits nor overwrites: a full ring refuses the new frame, an empty one has none, and what to do then is the caller's
// policy.
type Ring struct {
	frames []Frame
	mask   uint64

	// Both counters only grow. Each has one writer, and a cache line of its own, so that the two sides do not
	// slow each other down.
	_      [64]byte
	pushed atomic.Uint64
	_      [56]byte
	popped atomic.Uint64
	_      [56]byte
}

// NewRing returns a ring with room for at least n frames; the room is rounded up to a power of two.
func NewRing(n int) *Ring {
	size := 1
	for size < n {
		size *= 2
	}
	return &Ring{frames: make([]Frame, size), mask: uint64(size - 1)}
}

// Push appends f, or reports false if there is no room.
func (r *Ring) Push(f Frame) bool {
	at := r.pushed.Load()
	if at-r.popped.Load() == uint64(len(r.frames)) {
		return false
	}
	r.frames[at&r.mask] = f
	r.pushed.Store(at + 1) // publishes the frame
	return true
}

// Pop copies the oldest frame to dst and removes it, or reports false and leaves dst alone if there is none.
func (r *Ring) Pop(dst *Frame) bool {
	at := r.popped.Load()
	if at == r.pushed.Load() {
		return false
	}
	*dst = r.frames[at&r.mask]
	r.popped.Store(at + 1) // gives the slot back
	return true
}

// Len is the number of frames waiting.
func (r *Ring) Len() int {
	popped := r.popped.Load() // first: a frame popped in between makes the answer too high, never negative
	return min(int(r.pushed.Load()-popped), len(r.frames))
}

// Cap is the number of frames for which there is room.
func (r *Ring) Cap() int { return len(r.frames) }

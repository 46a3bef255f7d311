package device

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Wire is the SPI bus of the ring, seen from outside: bits are taken over at the rising edge of the clock, most
// significant first. There is no line that selects the ring, so that it sees all bytes, as a chain of LEDs does.
type Wire struct {
	mu    sync.Mutex
	data  bool
	clock bool
	bits  int // of the byte that is not complete
	value byte
	bytes []byte
	at    []time.Time   // when each of them was complete, on the host's clock
	more  chan struct{} // closed when there is another byte
}

func newWire() *Wire { return &Wire{more: make(chan struct{})} }

// level is told that a line has changed.
func (w *Wire) level(line int, high bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch line {
	case RingData:
		w.data = high
	case RingClock:
		if high && !w.clock {
			w.shift()
		}
		w.clock = high
	}
}

func (w *Wire) shift() {
	w.value <<= 1
	if w.data {
		w.value |= 1
	}
	if w.bits++; w.bits < 8 {
		return
	}
	w.bytes, w.at = append(w.bytes, w.value), append(w.at, time.Now())
	w.bits, w.value = 0, 0
	close(w.more)
	w.more = make(chan struct{})
}

// Len is how many bytes were received.
func (w *Wire) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bytes)
}

// Bytes are those received from number on.
func (w *Wire) Bytes(from int) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.bytes[min(from, len(w.bytes)):])
}

// Frames are the frames of size bytes that were received since the byte of that number, which is the first of a frame.
func (w *Wire) Frames(from, size int) [][]byte {
	return slices.Collect(slices.Chunk(w.Bytes(from), size))
}

// Await waits for a frame, among those that begin with the byte from, for which is returns true. next is the first byte
// after it.
func (w *Wire) Await(ctx context.Context, from, size int, is func([]byte) bool) (frame []byte, next int, err error) {
	for {
		w.mu.Lock()
		more, have := w.more, len(w.bytes)
		for ; from+size <= have; from += size {
			frame = slices.Clone(w.bytes[from : from+size])
			w.mu.Unlock()
			if is(frame) {
				return frame, from + size, nil
			}
			w.mu.Lock()
		}
		w.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return nil, from, ctx.Err()
		}
	}
}

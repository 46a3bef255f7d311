package main

import "sync"

// A loudest knows how loud it was within the last second, in dB relative to full scale: that of the loudest frame. When a
// call is heard its last frames are quiet already, and speakers that heard the same call are to be compared by what they
// heard of it. Nobody who uses it waits for long.
type loudest struct {
	mu     sync.Mutex
	frames [50]float64 // 0: none yet
	next   int
}

// hear takes the level of the next frame, which is below 0.
func (l *loudest) hear(dB float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames[l.next] = dB
	l.next = (l.next + 1) % len(l.frames)
}

// level is 0 if nothing was heard yet.
func (l *loudest) level() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 0.0
	for _, dB := range l.frames {
		if dB != 0 && (most == 0 || dB > most) {
			most = dB
		}
	}
	return most
}

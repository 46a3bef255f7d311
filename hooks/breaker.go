package hooks

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Breaker leaves something out for a while after it has missed its deadline a few times in a row: the runner a handler.
// The zero value is closed. It may be used by several goroutines.
type Breaker struct {
	used atomic.Bool // false while nothing was missed: then there is no more to look at

	mu     sync.Mutex
	misses int
	pause  time.Duration // of the last opening
	until  time.Time
}

const (
	missesToOpen = 3
	firstPause   = time.Minute
	longestPause = time.Hour
)

// Closed reports whether it is not left out at that time.
func (b *Breaker) Closed(now time.Time) bool {
	if !b.used.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

// Success tells that it was in time.
func (b *Breaker) Success() {
	if !b.used.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.misses, b.pause = 0, 0
	b.used.Store(false)
}

// Miss counts one. If that opens the breaker, it returns for how long. After a pause a single miss opens it again, for
// twice as long.
func (b *Breaker) Miss(now time.Time) (open time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Store(true)
	b.misses++
	if b.misses < missesToOpen && b.pause == 0 {
		return 0
	}
	return b.opens(now)
}

// open opens it without counting.
func (b *Breaker) open(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opens(now)
}

func (b *Breaker) opens(now time.Time) time.Duration {
	b.used.Store(true)
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.until = now.Add(b.pause)
	b.misses = 0
	return b.pause
}

package hooks

import (
	"sync"
	"sync/atomic"
	"time"
)

// A breaker leaves a handler out for a while after it has missed its deadline a few times in a row.
type breaker struct {
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

func (b *breaker) closed(now time.Time) bool {
	if !b.used.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

func (b *breaker) success() {
	if !b.used.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.misses, b.pause = 0, 0
	b.used.Store(false)
}

// miss counts one. If that opens the breaker, it returns for how long. After a pause a single miss opens it again, for
// twice as long.
func (b *breaker) miss(now time.Time) (open time.Duration) {
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
func (b *breaker) open(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opens(now)
}

func (b *breaker) opens(now time.Time) time.Duration {
	b.used.Store(true)
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.until = now.Add(b.pause)
	b.misses = 0
	return b.pause
}

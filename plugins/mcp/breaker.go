package mcp

import (
	"sync"
	"time"
)

// A breaker leaves a hook of one integration out for a while when it has missed its deadline a few times in a row, as the
// runner does with whole handlers: else each turn would wait for it.
type breaker struct {
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

func (b *breaker) open(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}

func (b *breaker) success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.misses, b.pause = 0, 0
}

// miss counts one, and returns for how long that opens the breaker, if it does. After a pause a single miss opens it
// again, for twice as long.
func (b *breaker) miss(now time.Time) (opens time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.misses++; b.misses < missesToOpen && b.pause == 0 {
		return 0
	}
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.until, b.misses = now.Add(b.pause), 0
	return b.pause
}

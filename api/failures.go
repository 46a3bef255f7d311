package api

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// After maxFailures wrong tokens a network may try once in each failurePause, whatever token it then has: who has
// the right one waits too, since else a guess would be told from it.
const (
	maxFailures  = 10
	failurePause = 10 * time.Second
	maxNetworks  = 1024
)

// failures count wrong tokens by where they come from.
type failures struct {
	mu     sync.Mutex
	by     map[netip.Prefix]*rate.Limiter
	others *rate.Limiter // for those that there is no room for
}

func newFailures() *failures {
	return &failures{by: make(map[netip.Prefix]*rate.Limiter), others: failureLimiter()}
}

func failureLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(failurePause), maxFailures) }

// network is whom an address is counted for. Whoever has an address of IPv6 has a whole network of them.
func network(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // the bits are right
	return p
}

// try calls right, which looks at a token of that address, unless it is too early: then it returns in how many seconds it
// isn't. One call at a time, so that guessing many at once is no way around it.
func (f *failures) try(address string, right func() bool) (ok bool, wait int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := network(address)
	l := f.by[key]
	if l == nil && len(f.by) >= maxNetworks {
		l = f.others
	}
	if l != nil {
		if missing := 1 - l.Tokens(); missing > 0 {
			return false, int(math.Ceil(missing * failurePause.Seconds()))
		}
	}
	if right() {
		return true, 0
	}
	if l == nil {
		l = failureLimiter()
		f.by[key] = l
	}
	l.Allow()
	if len(f.by) >= maxNetworks {
		for k, old := range f.by {
			if old.Tokens() >= maxFailures { // it has been quiet for long enough
				delete(f.by, k)
			}
		}
	}
	return false, 0
}

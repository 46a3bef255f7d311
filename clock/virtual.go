package clock

import (
	"slices"
	"sync"
	"time"
)

// Virtual is a clock that moves only when Advance is called. It is safe for use by several goroutines; Advance must be
// called by one.
type Virtual struct {
	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
	alarms  []*alarm
	working int
	idle    chan struct{} // closed while nothing works
}

type alarm struct {
	at time.Duration // of elapsed
	f  func()
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{now: start, idle: make(chan struct{})}
	close(v.idle)
	return v
}

// Now is the virtual time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Elapsed is how far Advance has moved the clock.
func (v *Virtual) Elapsed() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.elapsed
}

// Step sets the clock forward by d, or back if d is negative, as a machine's clock is set once it learns the time: Now
// changes, and nothing else.
func (v *Virtual) Step(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(d)
}

// AfterFunc calls f once Advance has moved the clock by d. The call counts as work.
func (v *Virtual) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := &alarm{at: v.elapsed + d, f: f}
	i, _ := slices.BinarySearchFunc(v.alarms, a, func(x, a *alarm) int {
		if x.at > a.at {
			return 1
		}
		return -1 // equal times keep their order
	})
	v.alarms = slices.Insert(v.alarms, i, a)
	return func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		i := slices.Index(v.alarms, a)
		if i < 0 {
			return false
		}
		v.alarms = slices.Delete(v.alarms, i, i+1)
		return true
	}
}

// Work keeps the clock from running faster than real time until done is called. done may be called more than once.
func (v *Virtual) Work() (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.working == 0 {
		v.idle = make(chan struct{})
	}
	v.working++
	return sync.OnceFunc(v.endWork)
}

func (v *Virtual) endWork() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.working--
	if v.working == 0 {
		close(v.idle)
	}
}

// Advance moves the clock by d and starts what became due. While something works it first waits, but no longer than d
// of real time, so that what takes time on the machine also takes it here.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	idle := v.idle
	v.mu.Unlock()
	select {
	case <-idle:
	default:
		t := time.NewTimer(d)
		select {
		case <-idle:
		case <-t.C:
		}
		t.Stop()
	}

	v.mu.Lock()
	v.now = v.now.Add(d)
	v.elapsed += d
	n := 0
	for n < len(v.alarms) && v.alarms[n].at <= v.elapsed {
		n++
	}
	due := slices.Clone(v.alarms[:n])
	v.alarms = slices.Delete(v.alarms, 0, n)
	v.mu.Unlock()
	for _, a := range due {
		done := v.Work()
		go func() {
			defer done()
			a.f()
		}()
	}
}

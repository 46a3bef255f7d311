// Package standby keeps account of an engine that can fail and the one that stands in for it: which of them works, and
// until when the first is left alone after it failed. It runs neither.
package standby

import (
	"sync"
	"time"
)

// Options say how patient to be. The names must be set.
type Options struct {
	Primary, Second string // their names

	// After the primary failed it is left alone for MinBackoff, twice as long after each further time, up to MaxBackoff;
	// default 5 s to 2 min.
	MinBackoff, MaxBackoff time.Duration

	// OnSwitch is told which engine works when that is another than the last time, and why if the first failed. At first
	// it is the primary. It must not wait.
	OnSwitch func(name string, why error)
}

// A Switch is between two engines. It is safe for use by several goroutines.
type Switch struct {
	o Options

	mu       sync.Mutex
	second   bool // works now
	failures int  // of the primary, in a row
	rests    time.Time
	why      error // the last failure
}

// New returns a switch.
func New(o Options) *Switch {
	if o.MinBackoff <= 0 {
		o.MinBackoff = 5 * time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 2 * time.Minute
	}
	if o.OnSwitch == nil {
		o.OnSwitch = func(string, error) {}
	}
	return &Switch{o: o}
}

// Resting reports whether the primary is to be left alone.
func (s *Switch) Resting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.rests)
}

// Failed tells that the primary failed, and why: the second works from now on.
func (s *Switch) Failed(why error) {
	s.mu.Lock()
	s.rests = time.Now().Add(min(s.o.MinBackoff<<min(s.failures, 20), s.o.MaxBackoff))
	s.failures++
	s.why = why
	s.mu.Unlock()
	s.use(true)
}

// Works tells that the primary did its work.
func (s *Switch) Works() {
	s.mu.Lock()
	s.failures, s.rests, s.why = 0, time.Time{}, nil
	s.mu.Unlock()
	s.use(false)
}

// Instead reports whether the second works instead of the primary.
func (s *Switch) Instead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.second
}

func (s *Switch) use(second bool) {
	s.mu.Lock()
	changed, why := s.second != second, s.why
	s.second = second
	s.mu.Unlock()
	switch {
	case changed && second:
		s.o.OnSwitch(s.o.Second, why)
	case changed:
		s.o.OnSwitch(s.o.Primary, nil)
	}
}

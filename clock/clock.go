// Package clock is time as the appliance sees it, so that the whole of it can also run on a virtual clock that goes as
// fast as the machine can. It is not for budgets of hooks and other hard real-time limits: those use package time.
package clock

import (
	"context"
	"time"
)

// A Clock tells the time and calls back later.
type Clock interface {
	// Now is the time of day. It steps when the machine's clock is set.
	Now() time.Time

	// Elapsed is the time that has passed since some moment, which is the same one until the program ends. Nothing
	// makes it step.
	Elapsed() time.Duration

	// AfterFunc calls f in a goroutine of its own once d has passed. stop keeps it from being called and reports
	// whether it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)

	// Work marks the start of something that takes real time (a recogniser at work, a message under way), until done
	// is called. A virtual clock goes no faster than real time meanwhile; the system's clock doesn't care.
	Work() (done func())
}

// System is the machine's own clock.
var System Clock = system{started: time.Now()}

type system struct{ started time.Time }

func (system) Now() time.Time { return time.Now() }

func (s system) Elapsed() time.Duration { return time.Since(s.started) }

func (system) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (system) Work() func() { return func() {} }

// WithTimeout is context.WithTimeoutCause on the clock c.
func WithTimeout(ctx context.Context, c Clock, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.AfterFunc(d, func() { cancel(cause) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

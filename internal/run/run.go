// Package run keeps the long-lived parts of a program alive together and stops them in the reverse of the order in
// which they were started. It restarts nothing: that is for systemd, which sees why the program ended.
package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Part is something long-lived. Run blocks until ctx is done or the part can't go on; it returns nil, or ctx's error,
// when it was asked to stop.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// ErrFinished is returned by a part that ends the program because all is done, not because something is wrong.
var ErrFinished = errors.New("finished")

// All runs parts until ctx is done or one of them ends, then stops the rest in reverse order, and waits for each. A part
// later in the list may use those before it until it has ended. All parts together have grace to end; those that need
// longer are left behind and named in the error.
func All(ctx context.Context, grace time.Duration, parts ...Part) error {
	type running struct {
		Part
		stop context.CancelFunc
		done chan struct{}
		err  error
	}
	first := make(chan *running, len(parts))
	started := make([]*running, len(parts))
	for i, p := range parts {
		partCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		r := &running{Part: p, stop: stop, done: make(chan struct{})}
		started[i] = r
		go func() {
			r.err = p.Run(partCtx)
			close(r.done)
			first <- r
		}()
	}

	var errs []error
	select {
	case <-ctx.Done():
	case r := <-first:
		switch {
		case r.err == nil:
			errs = append(errs, fmt.Errorf("%s: ended unasked", r.Name))
		case !errors.Is(r.err, ErrFinished):
			errs = append(errs, fmt.Errorf("%s: %w", r.Name, r.err))
		}
		r.err = nil // reported
	}

	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	var hanging []string
	for i := len(started) - 1; i >= 0; i-- {
		r := started[i]
		r.stop()
		if len(hanging) > 0 { // the time is over: look, but don't wait
			select {
			case <-r.done:
			default:
				hanging = append(hanging, r.Name)
			}
			continue
		}
		select {
		case <-r.done:
			if r.err != nil && !errors.Is(r.err, context.Canceled) && !errors.Is(r.err, ErrFinished) {
				errs = append(errs, fmt.Errorf("%s: %w", r.Name, r.err))
			}
		case <-deadline.C:
			hanging = append(hanging, r.Name)
		}
	}
	if len(hanging) > 0 {
		errs = append(errs, fmt.Errorf("not stopped within %v: %s", grace, strings.Join(hanging, ", ")))
	}
	return errors.Join(errs...)
}

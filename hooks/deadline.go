package hooks

import (
	"context"
	"sync"
	"time"
)

// A deadline is the context of a fire: one of context.WithDeadlineCause, which is only made when somebody asks for more
// than a look at the time. Most handlers are done before it would be, and to make one costs more than all of them.
type deadline struct {
	parent context.Context
	at     time.Time

	mu     sync.Mutex
	made   context.Context // nil: nobody asked yet
	cancel context.CancelFunc
	ended  bool
}

func (d *deadline) make() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made, d.cancel = context.WithDeadlineCause(d.parent, d.at, errDeadline)
		if d.ended {
			d.cancel()
		}
	}
	return d.made
}

// end ends it before its time. If that has come, it ends by itself, and for that reason.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil && time.Now().Before(d.at) {
		d.cancel()
	}
}

// over reports whether it has ended at the time now, if nobody has called end.
func (d *deadline) over(now time.Time) bool { return !now.Before(d.at) || d.parent.Err() != nil }

func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.parent.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

func (d *deadline) Done() <-chan struct{} { return d.make().Done() }
func (d *deadline) Err() error            { return d.make().Err() }

// Value also finds the context within, so that package context takes this one for one of its own.
func (d *deadline) Value(key any) any { return d.make().Value(key) }

package mqtt

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
)

type announcement struct {
	text   string
	urgent bool
}

// maxAnnouncements is how many may wait to be spoken.
const maxAnnouncements = 8

// An announcer speaks one announcement after the other, the urgent ones first. An urgent one also ends what is being
// spoken, unless that is urgent too.
type announcer struct {
	speak func(ctx context.Context, text string) error
	stop  func() error // nil: what is spoken can't be ended
	log   *slog.Logger
	more  chan struct{}

	mu     sync.Mutex
	queue  []announcement
	urgent bool               // what is being spoken is
	cancel context.CancelFunc // ends it; nil: nothing is
}

func newAnnouncer(a Appliance, log *slog.Logger) *announcer {
	return &announcer{speak: a.Announce, stop: a.Stop, log: log, more: make(chan struct{}, 1)}
}

// add has a spoken later. It doesn't wait.
func (n *announcer) add(a announcement) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == maxAnnouncements {
		return errors.New("too many announcements wait to be spoken")
	}
	if !a.urgent {
		n.queue = append(n.queue, a)
	} else {
		i := slices.IndexFunc(n.queue, func(b announcement) bool { return !b.urgent })
		if i < 0 {
			i = len(n.queue)
		}
		n.queue = slices.Insert(n.queue, i, a)
		if !n.urgent {
			if n.cancel != nil {
				n.cancel()
			}
			if n.stop != nil {
				if err := n.stop(); err != nil {
					n.log.Warn("what is spoken can't be ended for an urgent announcement", "err", err)
				}
			}
		}
	}
	select {
	case n.more <- struct{}{}:
	default:
	}
	return nil
}

func (n *announcer) next(ctx context.Context) (context.Context, string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cancel != nil {
		n.cancel()
		n.cancel, n.urgent = nil, false
	}
	if len(n.queue) == 0 {
		return nil, "", false
	}
	a := n.queue[0]
	n.queue = n.queue[1:]
	n.urgent = a.urgent
	ctx, n.cancel = context.WithCancel(ctx)
	return ctx, a.text, true
}

func (n *announcer) run(ctx context.Context) {
	for {
		one, text, ok := n.next(ctx)
		if !ok {
			select {
			case <-n.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		if err := n.speak(one, text); err != nil && one.Err() == nil {
			n.log.Warn("an announcement was not spoken", "err", err)
		}
		if ctx.Err() != nil {
			n.next(ctx) // lets go of it
			return
		}
	}
}

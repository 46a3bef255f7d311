package gpio

import (
	"context"
	"fmt"
	"time"

	"periph.io/x/conn/v3/gpio"
)

const (
	// poll is how long a line is waited for at most, so that a stop is seen and an edge that was missed is made up for.
	// The wait must never be zero or less: drivers don't agree on what that means.
	poll = 200 * time.Millisecond
	// A line that ends so many waits too early, one after the other, is broken.
	earlyAtMost = 3
	// A line may have so many edges in a second. A button that bounces badly has some dozens.
	edgesAtMost = 2000
	// How long a line that is broken is left alone, at first and at last.
	backoffFirst, backoffLast = time.Second, 30 * time.Second
)

// An outcome is what became of a wait.
type outcome int

const (
	quiet outcome = iota // nothing happened all the time
	edge
	gone // the line doesn't work any more
	back // it does again: what it did meanwhile is not known
	over // ctx is done
)

// A line waits for edges on a pin. It survives one that vanishes, or never rests.
type line struct {
	pin  gpio.PinIO
	pull gpio.Pull
	// fault is told why the line is gone, and with nil when it is back.
	fault func(error)

	early   int
	counted time.Time // edges are counted from then on
	edges   int
	backoff time.Duration // of a line that is gone
}

// open begins to listen to the pin, and reads it.
func (l *line) open() (gpio.Level, error) {
	if err := l.pin.In(l.pull, gpio.BothEdges); err != nil {
		return false, err
	}
	return l.pin.Read(), nil
}

// wait waits for an edge, for d at most, or if the line is gone until it is back.
func (l *line) wait(ctx context.Context, d time.Duration) outcome {
	if ctx.Err() != nil {
		return over
	}
	if l.backoff > 0 {
		return l.revive(ctx)
	}
	d = min(max(d, time.Millisecond), poll)
	began := time.Now()
	happened := l.pin.WaitForEdge(d)
	now := time.Now()
	switch {
	case ctx.Err() != nil:
		return over
	case happened:
		l.early = 0
		if now.Sub(l.counted) > time.Second {
			l.counted, l.edges = now, 0
		}
		if l.edges++; l.edges > edgesAtMost {
			return l.lose(fmt.Errorf("%s never rests: check its wiring and its pull-up", l.pin.Name()))
		}
		return edge
	case now.Sub(began) < d/2:
		if l.early++; l.early >= earlyAtMost {
			return l.lose(fmt.Errorf("%s can't be waited for any more", l.pin.Name()))
		}
		return l.wait(ctx, d)
	}
	l.early = 0
	return quiet
}

func (l *line) lose(why error) outcome {
	l.early, l.edges = 0, 0
	l.backoff = backoffFirst
	l.fault(why)
	return gone
}

// revive tries the line from time to time, until it waits as it should.
func (l *line) revive(ctx context.Context) outcome {
	for {
		t := time.NewTimer(l.backoff)
		select {
		case <-ctx.Done():
			t.Stop()
			return over
		case <-t.C:
		}
		l.backoff = min(2*l.backoff, backoffLast)
		if _, err := l.open(); err != nil {
			continue
		}
		began := time.Now()
		if happened := l.pin.WaitForEdge(poll); happened || time.Since(began) >= poll/2 {
			break
		}
	}
	l.backoff, l.counted = 0, time.Time{}
	l.fault(nil)
	return back
}

// A level follows the debounced level of a line.
type level struct {
	line     *line
	high     gpio.Level // at rest
	debounce time.Duration
	// moved is told each change, and when its first edge was.
	moved func(high gpio.Level, at time.Time)
	// lost is told that the line is gone, and found where it is when it is back.
	lost  func()
	found func(high gpio.Level)
	// due is when pass has to be called again; zero: not before something moves. Nil: never.
	due  func() time.Time
	pass func(at time.Time)
}

// run follows the line until ctx is done.
func (v *level) run(ctx context.Context) {
	defer v.line.pin.Halt() // there is nothing to do about an error
	var first time.Time     // edge of a change that has not settled
	for {
		wait := poll
		if !first.IsZero() {
			wait = v.debounce
		} else if v.due != nil {
			if due := v.due(); !due.IsZero() {
				wait = min(wait, time.Until(due))
			}
		}
		switch v.line.wait(ctx, wait) {
		case over:
			return
		case gone:
			first = time.Time{}
			v.lost()
			continue
		case edge:
			if first.IsZero() {
				first = time.Now()
			}
			continue
		case quiet:
			if now := v.line.pin.Read(); now == v.high {
				first = time.Time{}
			} else if !first.IsZero() {
				v.high = now
				v.moved(now, first)
				first = time.Time{}
			} else {
				first = time.Now() // its edge was missed
			}
		case back:
			v.high = v.line.pin.Read()
			v.found(v.high)
		}
		if v.due != nil {
			if due, now := v.due(), time.Now(); !due.IsZero() && !now.Before(due) {
				v.pass(now)
			}
		}
	}
}

package hooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A fire is one Fire under way.
type fire struct {
	runner   *Runner
	point    Point
	table    *table
	handlers []*handler
	event    *Event // of who fires: touched only by run
	budget   time.Duration
	ctx      deadline

	mu        sync.Mutex
	committed *Event
	spare     *Event // a stamped copy of it, of the goroutine alone
	trace     Trace
	over      bool // the deadline has passed: nothing is committed any more
	current   int  // the handler that is running
	began     time.Time
}

var errDeadline = errors.New("the deadline passed")

// run fires, and tells who wants to know.
func (f *fire) run(parent context.Context) Trace {
	trace := f.call(parent)
	if told := f.runner.o.OnTrace; told != nil {
		told(trace)
	}
	return trace
}

func (f *fire) call(parent context.Context) Trace {
	f.ctx = deadline{parent: parent, at: time.Now().Add(f.budget)}
	defer f.ctx.end()
	f.resolve(&f.ctx)
	f.committed = f.event.clone()
	f.trace = make(Trace, len(f.handlers))
	for i, h := range f.handlers {
		f.trace[i] = Call{Plugin: h.Plugin, Point: f.point.Name, Outcome: NotReached, Private: *f.event.ChatPrivate}
	}
	if now := time.Now(); !f.ctx.over(now) {
		f.wait(now)
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	var blamed *handler
	if f.trace[f.current].Outcome == Missed {
		blamed = f.missed(time.Now())
		f.committed = f.committed.clone() // the one who is late may still be looking at it
	}
	for i, c := range f.trace {
		if h := f.handlers[i]; c.Outcome == Committed && h != blamed {
			h.breaker.Success()
		}
	}
	f.failClosed()
	f.honour()
	return f.trace
}

// wait has the handlers called, until they are through or the deadline has passed.
func (f *fire) wait(now time.Time) {
	w, _ := f.runner.watches.Get().(*watch)
	if w == nil {
		w = &watch{finished: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	}
	w.timer.Reset(f.ctx.at.Sub(now))
	go func() {
		defer func() { w.finished <- struct{}{} }()
		f.work(now)
	}()
	select {
	case <-w.finished:
		w.timer.Stop()
		f.runner.watches.Put(w)
	case <-w.timer.C:
	case <-f.ctx.parent.Done():
		w.timer.Stop()
	}
}

// A watch is what a fire waits with. It serves another one if the handlers were in time.
type watch struct {
	finished chan struct{}
	timer    *time.Timer
}

// resolve stamps the chat and its privacy, once per fire.
func (f *fire) resolve(ctx context.Context) {
	e := f.event
	if e.ChatPrivate != nil {
		return
	}
	private := false
	if resolve := f.runner.o.Private; resolve != nil && f.point.Private != always {
		chat, isPrivate, err := protect(func() (string, bool, error) { return resolve(ctx, e.ChatName) })
		if err != nil {
			f.runner.o.Logger.Error("the privacy of a chat is not known, it is taken for private", "point", f.point.Name, "err", err)
		} else if e.ChatName == nil {
			e.ChatName = &chat
		}
		private = isPrivate || err != nil
	}
	e.ChatPrivate = &private
}

// protect makes an error of a panic.
func protect(f func() (string, bool, error)) (chat string, private bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// work calls the handlers. It tells the time once for each of them: now is when it begins, and then when the last one
// returned.
func (f *fire) work(now time.Time) {
	for i, h := range f.handlers {
		event, captures, call, over := f.next(i, now)
		if over {
			return
		}
		if h.Match != nil {
			now = time.Now() // to compare took time too
		}
		if !call {
			continue
		}

		// Nobody else touches what was committed. A copy that the handler before left as it got it serves again.
		own := f.spare
		if own == nil || captures != nil {
			own = event.clone()
			f.stamp(own, captures)
		}
		f.spare = nil
		err := h.run(&f.ctx, own)
		began := now
		now = time.Now()

		if errors.Is(err, ErrKilled) {
			f.runner.opened(h, h.breaker.open(now))
		}
		if f.ctx.over(now) {
			return // too late, whatever it says
		}
		if f.returned(i, own, captures != nil, now.Sub(began), err) {
			return
		}
	}
}

// next prepares the call of handler i, with the event of which it gets a copy. There is none if something withholds it.
func (f *fire) next(i int, now time.Time) (event *Event, captures []any, call, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil, nil, false, true
	}
	outcome, captures := f.withheld(f.handlers[i], f.committed, now)
	if outcome != "" {
		f.trace[i].Outcome = outcome
		return nil, nil, false, false
	}
	f.current, f.began = i, now
	f.trace[i].Outcome = Missed // until it has returned
	return f.committed, captures, true, false
}

// returned takes note of what handler i made of its copy, and reports whether no other one is to be called.
func (f *fire) returned(i int, own *Event, captured bool, took time.Duration, err error) (last bool) {
	h, c := f.handlers[i], &f.trace[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return true
	}
	c.Took = took
	if err != nil {
		c.Outcome, c.Err = Failed, err
		// What it says may be what was said to the appliance, which is not for logs. It is in the trace.
		f.runner.o.Logger.Warn("hook failed", "plugin", h.Plugin, "point", h.Point)
		if !c.Private {
			f.runner.o.Logger.Debug("hook failed", "plugin", h.Plugin, "point", h.Point, "err", err)
		}
		return false
	}
	c.Outcome = Committed
	if !captured && own.plain() && f.committed.plain() && own.sameScalars(f.committed) {
		f.spare = own
		return false
	}
	f.commit(h, own)
	return own.StopPropagate
}

// run calls the handler's function. While an earlier call, which was given up, has not returned, it waits for that.
func (h *handler) run(ctx context.Context, e *Event) (err error) {
	if !h.running.CompareAndSwap(false, true) {
		return errBusy
	}
	defer h.running.Store(false)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return h.Func(ctx, e)
}

var errBusy = errors.New("its last call has not returned yet")

// stamp gives a handler's copy what the point has for it.
func (f *fire) stamp(e *Event, captures []any) {
	o := &f.runner.o
	e.Config = nil
	if f.point.Config {
		e.Config = o.Config
	}
	delete(e.Metadata, systemKey)
	delete(e.Metadata, capturesKey)
	e.GhostText = nil
	if e.Metadata == nil && (f.point.System || captures != nil) {
		e.Metadata = make(map[string]any)
	}
	if f.point.System {
		e.Metadata[systemKey] = o.System
	}
	if captures != nil {
		e.Metadata[capturesKey] = captures
	}
}

// commit makes a handler's copy the event for the next one. What handlers must not set is taken from the event before.
func (f *fire) commit(h *handler, own *Event) {
	before := f.committed
	own.ChatName, own.ChatPrivate, own.Surface, own.Config = before.ChatName, before.ChatPrivate, before.Surface, before.Config
	own.GhostContributions = before.GhostContributions
	if own.GhostText != nil && *own.GhostText != "" {
		own.GhostContributions = append(own.GhostContributions, Contribution{h.Plugin, *own.GhostText})
	}
	own.GhostText = nil
	delete(own.Metadata, systemKey)
	delete(own.Metadata, capturesKey)
	if own.Confirm == nil {
		own.Confirm = before.Confirm // one way
	}
	f.committed = own
}

// missed ends the call that was running at the deadline, and returns whose fault that is: if another one used most of
// the budget, it is that one's. Nobody is to blame if the turn was cancelled.
func (f *fire) missed(now time.Time) (blamed *handler) {
	at := f.current
	f.trace[at].Took = now.Sub(f.began)
	if now.Before(f.ctx.at) {
		f.trace[at].Outcome = Abandoned
		return nil
	}
	slowest := at
	for i, c := range f.trace {
		if c.Took > f.trace[slowest].Took {
			slowest = i
		}
	}
	h := f.handlers[slowest]
	f.runner.o.Logger.Warn("hook missed its deadline", "plugin", h.Plugin, "point", h.Point, "budget", f.budget)
	if open := h.breaker.Miss(now); open > 0 {
		f.runner.opened(h, open)
	}
	return h
}

// opened tells that a handler's breaker is open now.
func (r *Runner) opened(h *handler, d time.Duration) {
	r.o.Logger.Error("hook is left out for a while", "plugin", h.Plugin, "point", h.Point, "for", d)
	if r.o.OnBreaker != nil {
		r.o.OnBreaker(h.Plugin, h.Point, d)
	}
}

// failClosed makes the fire a refusal if a guard could not say otherwise.
func (f *fire) failClosed() {
	for i, c := range f.trace {
		if f.handlers[i].FailClosed && (c.Outcome == Failed || c.Outcome == Missed || c.Outcome == NotReached || c.Outcome == BreakerOpen) {
			f.committed.SkipLLM = true
			f.committed.Result = String("Blocked: the guard of plugin " + c.Plugin + " did not answer.")
			return
		}
	}
}

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"bellbird/hooks"
)

// A round asks all integrations that subscribe to an event, at once:
//
//  1. subscribed says who that is: who is switched on, in whose app this is, and who may hear it,
//  2. ask calls each on a goroutine of its own, and waits until all have answered, or the budget is used up,
//  3. the functions of points.go combine what came in the order of the names.

// A reply is what became of one integration in a round.
type reply struct {
	*integration
	result  *Result // nil: as if it had not been asked
	outcome hooks.Outcome
	took    time.Duration
	err     error
}

// inFlight is how many calls one integration may have under way. One that never ends them is not called any more.
const inFlight = 4

var (
	errMissed = errors.New("it doesn't answer in time")
	errBusy   = errors.New("its earlier calls have not returned yet")
)

// reserve is what is kept of a budget for what comes after the round.
func reserve(left time.Duration) time.Duration {
	return min(max(left/10, 5*time.Millisecond), 50*time.Millisecond)
}

// subscribed are those who are to be asked, in the order of their names. What withholds the others is not the same as an
// answer of theirs: they hear nothing.
func (s *Set) subscribed(hook, front string, e *hooks.Event) []*integration {
	var who []*integration
	for _, i := range *s.active.Load() {
		h, declared := i.Hooks[hook]
		switch {
		case !declared || i.silenced.Load():
		case len(h.Apps) > 0 && !slices.Contains(h.Apps, front):
		case isPrivate(e) && !i.PrivacyAware:
		case !slices.Contains(i.server.Hooks(), toolOf(hook)): // also: it isn't connected
		default:
			who = append(who, i)
		}
	}
	return who
}

// toolOf is the reserved tool of an event.
func toolOf(hook string) string { return reservedPrefix + hook }

// isPrivate is true also if nobody has said so: the runner always does.
func isPrivate(e *hooks.Event) bool { return e.ChatPrivate == nil || *e.ChatPrivate }

// ask has all of them called with their inputs, and returns the replies in the same order.
func (s *Set) ask(ctx context.Context, hook string, who []*integration, input func(*integration) any, private bool) []reply {
	if len(who) == 0 {
		return nil
	}
	began := time.Now()
	budget, _ := hooks.PointNamed(events[hook].point)
	at := began.Add(budget.Budget)
	if d, ok := ctx.Deadline(); ok && d.Before(at) {
		at = d
	}
	at = at.Add(-reserve(at.Sub(began)))
	ctx, cancel := context.WithDeadline(ctx, at)
	defer cancel()

	type answer struct {
		of int
		reply
	}
	answers := make(chan answer, len(who)) // has room for those that come too late
	replies := make([]reply, len(who))
	waiting := 0
	for n, i := range who {
		replies[n] = reply{integration: i, outcome: hooks.Missed}
		if !i.breakers[hook].Closed(began) {
			replies[n].outcome = hooks.BreakerOpen
			continue
		}
		waiting++
		go func() {
			result, err := i.call(ctx, hook, input(i))
			answers <- answer{n, reply{i, result, hooks.Committed, time.Since(began), err}}
		}()
	}
	for over := false; waiting > 0 && !over; {
		select {
		case a := <-answers:
			waiting--
			if ctx.Err() == nil || a.err == nil {
				replies[a.of] = a.reply
			}
		case <-ctx.Done():
			over = true
		}
	}
	s.judge(ctx, hook, replies, began, at, private)
	return replies
}

// call is one call. It returns when its server does, or ctx ends.
func (i *integration) call(ctx context.Context, hook string, input any) (r *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	select {
	case i.calls <- struct{}{}:
		defer func() { <-i.calls }()
	default:
		return nil, errBusy
	}
	var answer json.RawMessage
	if answer, err = i.server.CallHook(ctx, toolOf(hook), input); err != nil {
		return nil, err
	}
	return ParseResult(answer)
}

// judge says what became of each: who failed, who missed the deadline, and who is left out for that from now on.
func (s *Set) judge(ctx context.Context, hook string, replies []reply, began, at time.Time, private bool) {
	now := time.Now()
	trace := make(hooks.Trace, 0, len(replies))
	for n := range replies {
		r := &replies[n]
		log := s.o.Logger.With("integration", r.Name, "hook", hook)
		switch {
		case r.outcome == hooks.BreakerOpen:
		case r.silenced.Load(): // meanwhile
			r.outcome, r.result = hooks.Abandoned, nil
		case r.outcome == hooks.Missed && ctx.Err() != nil && now.Before(at):
			r.outcome, r.took = hooks.Abandoned, now.Sub(began)
		case r.outcome == hooks.Missed:
			r.took, r.err = now.Sub(began), errMissed
			log.Warn("an integration missed its deadline")
			if d := r.breakers[hook].Miss(now); d > 0 {
				log.Error("an integration's hook is left out for a while", "for", d)
				if s.o.OnBreaker != nil {
					s.o.OnBreaker(r.Name, events[hook].point, d)
				}
			}
		case r.err != nil:
			// What it says may be what was said to the appliance, which is not for logs.
			r.outcome, r.result = hooks.Failed, nil
			log.Warn("an integration's hook failed")
			if !private {
				log.Debug("an integration's hook failed", "err", r.err)
			}
		default:
			r.breakers[hook].Success()
			if r.result.Reason != "" && !private {
				log.Debug("an integration gives a reason", "decision", r.result.Decision, "reason", r.result.Reason)
			}
		}
		trace = append(trace, hooks.Call{
			Plugin: r.Name, Point: events[hook].point, Outcome: r.outcome, Took: r.took, Err: r.err, Private: private,
		})
	}
	if s.o.OnTrace != nil {
		s.o.OnTrace(trace)
	}
}

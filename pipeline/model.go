package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"

	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/event"
)

// This file is what a turn waits for while it talks with the model: a piece of the answer, and the end of a tool.

// generate has the model write until it ends, and hands its words to the speech.
func (t *turn) generate(ctx context.Context, req dialog.Request, limit int) (text string, calls []dialog.ToolCall, err error) {
	o := &t.p.o
	speechCtx := ctx // the speech goes on when this round of the model is over
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := newWatchdog(o.Clock, o.ModelTimeout, func() { cancel(&failure{event.ModelFailed, errNoAnswer}) })
	defer watchdog.stop()

	// The model has a goroutine of its own, so that one which doesn't look at its context can't hold up the turn.
	type piece struct {
		dialog.Delta
		err error
	}
	pieces := make(chan piece)
	go func() {
		defer close(pieces)
		for delta, err := range o.Model.Generate(ctx, req) {
			select {
			case pieces <- piece{delta, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()

	var written strings.Builder
	for {
		select {
		case p, more := <-pieces:
			switch {
			case ctx.Err() != nil:
				return written.String(), nil, context.Cause(ctx)
			case !more:
				return written.String(), calls, nil
			case errors.Is(p.err, dialog.ErrNotUnderstood):
				return written.String(), nil, p.err
			case p.err != nil:
				return written.String(), nil, t.modelFailed(p.err)
			}
			watchdog.reset()
			if p.Usage != nil {
				t.used(*p.Usage)
			}
			if p.Text != "" {
				if t.record.Stages.FirstWord == 0 {
					t.record.Stages.FirstWord = t.since()
				}
				written.WriteString(p.Text)
				if o.streams() {
					watchdog.stop() // while the voice can't keep up, the model waits for us
					t.speech.push(speechCtx, p.Text)
					watchdog.reset()
				}
				if written.Len() > limit {
					return written.String(), nil, nil
				}
			}
			if p.Call != nil {
				calls = append(calls, *p.Call)
			}
		case <-ctx.Done():
			return written.String(), nil, context.Cause(ctx)
		}
	}
}

// used adds what a request took.
func (t *turn) used(u dialog.Usage) {
	if t.record.Model == nil {
		t.record.Model = new(event.ModelUse)
	}
	m := t.record.Model
	m.Requests++
	m.Input += u.Input
	m.CacheRead += u.CacheRead
	m.CacheWrite += u.CacheWritten
	m.Output += u.Output
}

// modelFailed is the failure of a model's error.
func (t *turn) modelFailed(err error) error {
	var e *dialog.ModelError
	if errors.As(err, &e) {
		if t.record.Model == nil {
			t.record.Model = new(event.ModelUse)
		}
		t.record.Model.Error = string(e.Kind)
	}
	return &failure{event.ModelFailed, err}
}

// callTool runs one tool. Only the end of the turn is an error: what goes wrong in a tool is for the model to hear of.
func (t *turn) callTool(ctx context.Context, call dialog.ToolCall) (dialog.ToolResult, error) {
	o := &t.p.o
	limit := o.ToolTimeout
	if own := o.Tools.Timeout(call.Name); own > 0 {
		limit = own + time.Second // it ends by itself, and says so
	}
	toolCtx, cancel := clock.WithTimeout(ctx, o.Clock, limit, errNoResult)
	defer cancel()
	result := make(chan dialog.ToolResult, 1)
	go func() { result <- o.Tools.Call(toolCtx, call) }()
	select {
	case r := <-result:
		return r, nil
	case <-toolCtx.Done():
		if ctx.Err() != nil {
			return dialog.ToolResult{}, context.Cause(ctx)
		}
		o.Logger.Warn("tool", "run", t.record.Run, "tool", call.Name, "err", errNoResult)
		return dialog.ToolResult{CallID: call.ID, Content: "Sorry, that took too long."}, nil
	}
}

// A watchdog calls f when it was not reset for the time d.
type watchdog struct {
	c    clock.Clock
	d    time.Duration
	f    func()
	halt func() bool
}

func newWatchdog(c clock.Clock, d time.Duration, f func()) *watchdog {
	return &watchdog{c, d, f, c.AfterFunc(d, f)}
}

func (w *watchdog) stop() { w.halt() }

func (w *watchdog) reset() {
	w.halt()
	w.halt = w.c.AfterFunc(w.d, w.f)
}

package hooks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/hooks"
)

// fireWith fires tts_chunk_audio, with 20 ms, at a handler that does f, and returns the handler's context.
func fireWith(t *testing.T, ctx context.Context, f func(ctx context.Context)) (handlers context.Context) {
	r := hooks.New(hooks.Options{})
	register(t, r, hooks.Handler{Plugin: "p", Point: "tts_chunk_audio", Func: func(ctx context.Context, _ *hooks.Event) error {
		handlers = ctx
		f(ctx)
		return nil
	}})
	r.FireWithin(ctx, "tts_chunk_audio", &hooks.Event{}, 20*time.Millisecond)
	synctest.Wait()
	r.Close()
	return handlers
}

type key struct{}

// A handler's context is what one of context.WithDeadline would be.
func TestContextOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		parent := context.WithValue(t.Context(), key{}, "value")
		var called bool
		ctx := fireWith(t, parent, func(ctx context.Context) {
			if ctx.Err() != nil || ctx.Value(key{}) != "value" {
				t.Errorf("at the beginning: %v, value %v", ctx.Err(), ctx.Value(key{}))
			}
			if at, ok := ctx.Deadline(); !ok || !at.Equal(began.Add(20*time.Millisecond)) {
				t.Errorf("deadline %v, %v", at, ok)
			}
			context.AfterFunc(ctx, func() { called = true })
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if context.Cause(child) != context.Cause(ctx) || child.Err() != context.DeadlineExceeded {
				t.Errorf("child: %v because of %v", child.Err(), context.Cause(child))
			}
		})
		if d := time.Since(began); d != 20*time.Millisecond || !called || ctx.Err() != context.DeadlineExceeded {
			t.Errorf("after %v, called %v: %v", d, called, ctx.Err())
		}
	})
}

// It ends with the fire, also for who asks only then, and with the caller's.
func TestContextOfHandlersEnds(t *testing.T) {
	ended := func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return ctx.Err() != nil
		default:
			return false
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if ctx := fireWith(t, t.Context(), func(context.Context) {}); !ended(ctx) {
			t.Error("the fire is over, and the context of a handler that didn't ask for it is not")
		}
		if ctx := fireWith(t, t.Context(), func(ctx context.Context) { ctx.Done() }); !ended(ctx) {
			t.Error("the fire is over, and the context of a handler is not")
		}
		parent, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		began := time.Now()
		fireWith(t, parent, func(ctx context.Context) {
			if at, _ := ctx.Deadline(); !at.Equal(began.Add(5 * time.Millisecond)) {
				t.Errorf("the deadline is %v after the beginning", at.Sub(began))
			}
			<-ctx.Done()
		})
		if d := time.Since(began); d != 5*time.Millisecond {
			t.Errorf("the caller gave up after 5ms, and the fire after %v", d)
		}
	})
}

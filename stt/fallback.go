// Package stt has Fallback, which has a second recogniser listen when the first doesn't understand because it can't be
// reached. It recognises nothing itself: each engine has a package below this one.
package stt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/internal/standby"
)

// A Recognizer turns an utterance into text.
type Recognizer interface {
	// Recognize reads frames until the channel is closed. An empty text without an error means that nothing was
	// understood.
	Recognize(ctx context.Context, frames <-chan audio.Frame) (text string, err error)
}

// FallbackOptions are what a Fallback is made of. The recognisers and their names must be set.
type FallbackOptions struct {
	Primary, Second         Recognizer
	PrimaryName, SecondName string

	// Deadline is how long the primary may take from the end of an utterance; default 6 s.
	Deadline time.Duration

	// MaxUtterance is where an utterance is cut off, because it must be kept for the second; default 60 s.
	MaxUtterance time.Duration

	// After the primary failed it is left alone for MinBackoff, twice as long after each further time, up to MaxBackoff;
	// default 5 s to 2 min.
	MinBackoff, MaxBackoff time.Duration

	// OnSwitch is told which recogniser works when that is another than the last time, and why if the first failed. At
	// first it is the primary. It must not wait.
	OnSwitch func(name string, why error)
}

// A Fallback listens with its second recogniser while the first is out of reach. It is safe for use by several goroutines
// if both are.
type Fallback struct {
	o     FallbackOptions
	state *standby.Switch
}

// NewFallback returns a Fallback.
func NewFallback(o FallbackOptions) *Fallback {
	if o.Deadline <= 0 {
		o.Deadline = 6 * time.Second
	}
	if o.MaxUtterance <= 0 {
		o.MaxUtterance = time.Minute
	}
	return &Fallback{o: o, state: standby.New(standby.Options{
		Primary: o.PrimaryName, Second: o.SecondName, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, OnSwitch: o.OnSwitch,
	})}
}

// errSlow is why the primary failed when it didn't answer by the deadline.
var errSlow = fmt.Errorf("the recogniser did not answer in time: %w", context.DeadlineExceeded)

// Recognize has the primary listen while it is spoken. If it fails, or is too slow after the end, the second gets the
// whole utterance from its beginning.
func (f *Fallback) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	if f.state.Resting() {
		return f.o.Second.Recognize(ctx, frames)
	}
	// Everything that is started here ends with ctx, and is waited for.
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	kept := newRecording(audio.Frames(f.o.MaxUtterance))
	first, give := context.WithCancelCause(ctx)
	defer give(nil)
	wg.Go(func() {
		kept.record(ctx, frames)
		late := time.AfterFunc(f.o.Deadline, func() { give(errSlow) })
		defer late.Stop()
		<-first.Done()
	})
	text, err := f.o.Primary.Recognize(first, kept.play(first, &wg))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		f.state.Works()
		return text, nil
	case first.Err() != nil:
		err = context.Cause(first)
	}
	give(nil)
	f.state.Failed(err)
	return f.o.Second.Recognize(ctx, kept.play(ctx, &wg))
}

// Pause tells the second recogniser that the speaker pauses, if it wants to know. It does so only of an utterance that it
// listens to.
func (f *Fallback) Pause() {
	if p, ok := f.o.Second.(interface{ Pause() }); ok {
		p.Pause()
	}
}

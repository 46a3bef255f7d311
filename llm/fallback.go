package llm

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"bellbird/dialog"
)

// FallbackOptions are what a Fallback is made of. The models and their names must be set.
type FallbackOptions struct {
	Primary, Second         Model
	PrimaryName, SecondName string

	// Deadline is how long the primary may take to begin an answer; default 8 s.
	Deadline time.Duration

	// After the primary failed it is left alone for MinBackoff, twice as long after each further time, up to MaxBackoff;
	// default 5 s to 2 min.
	MinBackoff, MaxBackoff time.Duration

	// OnSwitch is told which model answers when that is another than the last time. At first it is the primary.
	OnSwitch func(name string)
}

// A Fallback answers with its second model while the first is out of reach. It is safe for use by several goroutines.
type Fallback struct {
	o FallbackOptions

	mu       sync.Mutex
	inUse    string
	failures int       // of the primary, in a row
	rests    time.Time // until when the primary is left alone
	why      error     // the last failure
}

// NewFallback returns a Fallback.
func NewFallback(o FallbackOptions) *Fallback {
	if o.Deadline <= 0 {
		o.Deadline = 8 * time.Second
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = 5 * time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 2 * time.Minute
	}
	if o.OnSwitch == nil {
		o.OnSwitch = func(string) {}
	}
	return &Fallback{o: o, inUse: o.PrimaryName}
}

// errSlow is why the primary failed when it didn't answer by the deadline.
var errSlow = &dialog.ModelError{Kind: dialog.Stalled, Err: errNoBeginning}

// Generate answers with the primary, or with the second if the primary fails or is too slow before anything came of its
// answer. If the second can't answer either the error is that of the primary. An error that lies in the request itself
// is passed on: nothing is wrong with the primary then.
func (f *Fallback) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		why, resting := f.resting()
		if !resting {
			var over bool
			if why, over = f.primary(ctx, req, yield); over {
				return
			}
		}
		f.second(ctx, req, why, yield)
	}
}

// resting tells whether the primary is to be left alone, and why.
func (f *Fallback) resting() (why error, resting bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why, time.Now().Before(f.rests)
}

// primary passes on the answer of the primary. Over is false, and why says what failed, if there was none.
func (f *Fallback) primary(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) (why error, over bool) {
	callerCtx := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(f.o.Deadline, func() { cancel(errSlow) })
	defer late.Stop()

	var begun bool // something came of the answer
	for d, err := range f.o.Primary.Generate(ctx, req) {
		late.Stop()
		switch {
		case callerCtx.Err() != nil:
			yield(dialog.Delta{}, context.Cause(callerCtx))
			return nil, true
		case ctx.Err() != nil: // late, whatever came
			f.failed(errSlow)
			return errSlow, false
		case err != nil:
			if ofRequest(err) {
				yield(dialog.Delta{}, err)
				return nil, true
			}
			f.failed(err)
			if begun {
				yield(dialog.Delta{}, err)
			}
			return err, begun
		}
		if !begun && (d.Text != "" || d.Call != nil) {
			begun = true
			f.recovered()
		}
		if !yield(d, nil) {
			return nil, true
		}
	}
	if callerCtx.Err() == nil && ctx.Err() != nil {
		f.failed(errSlow)
		return errSlow, begun
	}
	f.recovered() // an empty answer is one
	return nil, true
}

// second passes on the answer of the second. why is what is wrong with the primary.
func (f *Fallback) second(ctx context.Context, req dialog.Request, why error, yield func(dialog.Delta, error) bool) {
	var begun bool
	for d, err := range f.o.Second.Generate(ctx, req) {
		switch {
		case err != nil && ctx.Err() != nil:
			yield(dialog.Delta{}, context.Cause(ctx))
			return
		case err != nil && !begun:
			yield(dialog.Delta{}, why)
			return
		case err != nil:
			yield(dialog.Delta{}, err)
			return
		}
		begun = begun || d.Text != "" || d.Call != nil
		f.use(f.o.SecondName)
		if !yield(d, nil) {
			return
		}
	}
}

func (f *Fallback) failed(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := min(f.o.MinBackoff<<min(f.failures, 20), f.o.MaxBackoff)
	f.failures++
	f.rests, f.why = time.Now().Add(rest), why
}

func (f *Fallback) recovered() {
	f.mu.Lock()
	f.failures, f.rests, f.why = 0, time.Time{}, nil
	f.mu.Unlock()
	f.use(f.o.PrimaryName)
}

func (f *Fallback) use(name string) {
	f.mu.Lock()
	changed := f.inUse != name
	f.inUse = name
	f.mu.Unlock()
	if changed {
		f.o.OnSwitch(name)
	}
}

// ofRequest tells whether the fault lies in what was asked, so that the same model may well answer something else.
func ofRequest(err error) bool {
	var e *dialog.ModelError
	if errors.Is(err, dialog.ErrNotUnderstood) {
		return true
	}
	return errors.As(err, &e) && (e.Kind == dialog.ContextTooLong || e.Kind == dialog.Refused || e.Kind == dialog.BadRequest)
}

package stt

import (
	"context"
	"sync"

	"bellbird/audio"
)

// A recording keeps an utterance while it is spoken, and plays it to whoever wants it, from its beginning.
type recording struct {
	most int // frames that are kept

	mu     sync.Mutex
	frames []audio.Frame
	over   bool
	more   chan struct{} // closed, and made anew, when there is more or it is over
}

func newRecording(most int) *recording {
	return &recording{most: most, more: make(chan struct{})}
}

// record takes frames until they end, or ctx does. Those that are too many are taken, and lost.
func (r *recording) record(ctx context.Context, frames <-chan audio.Frame) {
	for {
		select {
		case f, ok := <-frames:
			r.add(f, ok)
			if !ok {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *recording) add(f audio.Frame, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ok:
		r.over = true
	case len(r.frames) == r.most:
		return
	default:
		r.frames = append(r.frames, f)
	}
	close(r.more)
	r.more = make(chan struct{})
}

// next is frame number i, or what to wait for if it isn't there yet; over if there won't be one.
func (r *recording) next(i int) (f audio.Frame, more <-chan struct{}, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case i < len(r.frames):
		return r.frames[i], nil, false
	case r.over:
		return f, nil, true
	}
	return f, r.more, false
}

// play returns a channel with all frames, which is closed behind the last. What feeds it ends with ctx, and is one of wg.
func (r *recording) play(ctx context.Context, wg *sync.WaitGroup) <-chan audio.Frame {
	out := make(chan audio.Frame, 8)
	wg.Go(func() {
		for i := 0; ; {
			f, more, over := r.next(i)
			switch {
			case over:
				close(out)
				return
			case more != nil:
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
				continue
			}
			select {
			case out <- f:
				i++
			case <-ctx.Done():
				return
			}
		}
	})
	return out
}

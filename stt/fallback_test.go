package stt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/stt"
)

// engine is a recogniser in memory, which tells how many frames it heard and the first sample of the first.
type engine struct {
	name   string
	after  time.Duration // from the end of the utterance to the text
	fails  int           // at which frame; 0: never
	heard  int
	calls  int
	paused int
}

var errGone = errors.New("gone")

func (e *engine) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	e.calls++
	e.heard = 0
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				select {
				case <-time.After(e.after):
					return fmt.Sprintf("%s heard %d", e.name, e.heard), nil
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}
			if int(f[0]) != e.heard {
				return "", fmt.Errorf("frame %d is number %d", f[0], e.heard)
			}
			e.heard++
			if e.heard == e.fails {
				return "", errGone
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (e *engine) Pause() { e.paused++ }

// utterance is one of n frames, spoken in real time while somebody listens.
func utterance(ctx context.Context, n int) <-chan audio.Frame {
	c := make(chan audio.Frame)
	go func() {
		defer close(c)
		for i := range n {
			select {
			case <-time.After(audio.FrameDuration):
			case <-ctx.Done():
				return
			}
			select {
			case c <- audio.Frame{int16(i)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return c
}

func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		remote, local := &engine{name: "remote"}, &engine{name: "local"}
		f := stt.NewFallback(stt.FallbackOptions{Primary: remote, Second: local, PrimaryName: "wyoming", SecondName: "pocketsphinx",
			Deadline: 3 * time.Second, MinBackoff: 10 * time.Second,
			OnSwitch: func(name string, why error) { told = append(told, fmt.Sprint(name, ": ", why)) }})
		say := func(want string, within time.Duration) {
			t.Helper()
			begin := time.Now()
			text, err := f.Recognize(t.Context(), utterance(t.Context(), 100)) // 2 s
			if took := time.Since(begin) - 2*time.Second; err != nil || text != want || took > within {
				t.Errorf("got %q, %v, %v after the end; want %q within %v", text, err, took, want, within)
			}
		}
		say("remote heard 100", 0)
		remote.after = 2 * time.Second
		say("remote heard 100", 2*time.Second)

		remote.after = time.Hour // too slow: the second hears all of it again
		say("local heard 100", 3*time.Second)
		remote.after = 0
		say("local heard 100", 0) // it is left alone
		if remote.calls != 3 {
			t.Errorf("the first was asked %d times", remote.calls)
		}
		time.Sleep(10 * time.Second)
		remote.fails = 40 // in the middle: the second hears what was said until then, and the rest as it comes
		say("local heard 100", 0)
		remote.fails = 0
		time.Sleep(20 * time.Second)
		say("remote heard 100", 0)
		want := []string{"pocketsphinx: " + "the recogniser did not answer in time: context deadline exceeded", "wyoming: <nil>"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		f.Pause()
		if local.paused != 1 {
			t.Error("the second isn't told of a pause")
		}
	})
}

func TestFallbackBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := stt.NewFallback(stt.FallbackOptions{Primary: &engine{fails: 1}, Second: &engine{fails: 5}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := f.Recognize(ctx, utterance(ctx, 10)); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFallbackCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told int
		f := stt.NewFallback(stt.FallbackOptions{Primary: &engine{}, Second: &engine{}, OnSwitch: func(string, error) { told++ }})
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("barge-in")
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := f.Recognize(ctx, make(chan audio.Frame)); !errors.Is(err, why) || told != 0 {
			t.Errorf("got %v, and a switch %d times: nothing is wrong with the first", err, told)
		}
	})
}

// Of an utterance that doesn't end only so much is kept.
func TestFallbackBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := stt.NewFallback(stt.FallbackOptions{Primary: &engine{name: "remote"}, Second: &engine{}, MaxUtterance: time.Second})
		if text, err := f.Recognize(t.Context(), utterance(t.Context(), 500)); err != nil || text != "remote heard 50" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

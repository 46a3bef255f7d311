//go:build cgo

package pocketsphinx_test

import (
	"testing"

	"bellbird/audio"
	"bellbird/stt/pocketsphinx"
)

// In a pause it is told what was understood so far, be it a whole sentence or the beginning of one, and the sentence is
// understood to its end as if nobody had asked.
func TestPartial(t *testing.T) {
	type partial struct {
		text   string
		frames int
	}
	partials := make(chan partial, 1)
	r := recognizer(t, pocketsphinx.Options{OnPartial: func(text string, frames int) { partials <- partial{text, frames} }})
	r.Pause() // nothing is said: it is forgotten
	for _, tt := range []struct {
		said, then, want string
	}{
		{"what time is it", "", "what time is it"},
		{"set a timer for ten", "minutes", "set a timer for ten minutes"},
	} {
		frames := make(chan audio.Frame)
		final := make(chan string)
		go func() {
			text, err := r.Recognize(t.Context(), frames)
			if err != nil {
				t.Error(err)
			}
			final <- text
		}()
		give := func(samples []int16) (n int) {
			for ; len(samples) >= audio.FrameSize; samples = samples[audio.FrameSize:] {
				frames <- audio.Frame(samples)
				n++
			}
			return n
		}
		n := give(say(t, "en-us+f2", tt.said))
		r.Pause()
		if p := <-partials; p.text != tt.said || p.frames < n-1 || p.frames > n {
			t.Errorf("%q is partially %q, after %d frames of %d", tt.said, p.text, p.frames, n)
		}
		if tt.then != "" {
			give(say(t, "en-us+f2", tt.then))
		}
		close(frames)
		if text := <-final; text != tt.want {
			t.Errorf("%q is finally %q", tt.want, text)
		}
	}
	select {
	case p := <-partials:
		t.Errorf("%+v is told though nobody asked", p)
	default:
	}
}

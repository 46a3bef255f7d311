package wake

import (
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

// After a whole sentence the end comes sooner, after half a one later, and a hint is forgotten when somebody goes on.
func TestHint(t *testing.T) {
	const speech, pause = 1200 * time.Millisecond, 260 * time.Millisecond
	for _, tt := range []struct {
		name    string
		first   Hint // at the first pause
		second  Hint // at the second, which is the end
		silence time.Duration
	}{
		{"none", Unknown, Unknown, 500 * time.Millisecond},
		{"complete", Unknown, Complete, 300 * time.Millisecond},
		{"begun", Unknown, Begun, time.Second},
		{"complete, and more", Complete, Unknown, 500 * time.Millisecond},
		{"begun, and completed", Begun, Complete, 300 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pauses := 0
			o := Options{OnPause: func() { pauses++ }}
			bubble(t, o, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
				feed(frames(room(2 * time.Second))...)
				h := listening(t.Context(), e, e.Heard())
				sound := frames(vowels(speech), room(pause), vowels(speech), room(3*time.Second))
				told := 0
				for _, f := range sound {
					if h.over {
						break
					}
					feed(f)
					if pauses > told {
						told = pauses
						e.Hint(len(h.frames), []Hint{tt.first, tt.second}[min(told-1, 1)])
						synctest.Wait()
					}
				}
				if !h.over || !h.voiced || h.silence != tt.silence || told != 2 {
					t.Errorf("over %v, voiced %v, silence %v, %d pauses", h.over, h.voiced, h.silence, told)
				}
			})
		})
	}
}

// A hint that comes when nobody listens does nothing.
func TestHintToNobody(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		for range 100 {
			e.Hint(1, Complete)
		}
		feed(frames(room(time.Second))...)
		h := listening(t.Context(), e, e.Heard())
		feed(frames(room(time.Second))...)
		if h.over {
			t.Error("over")
		}
		feed(frames(room(5 * time.Second))...)
	})
}

package wake

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

// Of a frame that is split, wake words and speech are found in one half, and whoever listens gets the other.
func TestTwoFeeds(t *testing.T) {
	newDetector(t, "alexa") // skips
	word := readFLAC(t, filepath.Join(filepath.Dir(recordings(t, "wake/reference_tests")[0]), "alexa_pymicro_1.flac"))
	sound := frames(inRoom(append(word[:16640], vowels(time.Second)...), 2*sampleRate, 3*sampleRate))
	for _, tt := range []struct {
		name  string
		split func(mic, mark audio.Frame) (words, order audio.Frame)
		calls int
	}{
		{"the word is in the first", func(mic, mark audio.Frame) (audio.Frame, audio.Frame) { return mic, mark }, 1},
		{"the word is in the second", func(mic, mark audio.Frame) (audio.Frame, audio.Frame) { return mark, mic }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, n := 0, 0
				e, err := New(Options{
					Words: []string{"alexa"}, ModelDirs: modelDirs(), OnWake: func(Call) { calls++ },
					Split: func(mic audio.Frame) (words, order audio.Frame) {
						n++
						return tt.split(mic, audio.Frame{int16(n)})
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				feed, stop := hearing(t, e)
				var h *heard
				for _, f := range sound {
					feed(f)
					if h == nil && calls > 0 {
						h = listening(t.Context(), e, e.Heard())
					}
				}
				stop()
				synctest.Wait()
				if calls != tt.calls {
					t.Fatalf("%d calls", calls)
				}
				if h == nil {
					return
				}
				if !h.over || !h.voiced || len(h.frames) == 0 {
					t.Fatalf("over %v, voiced %v, %d frames", h.over, h.voiced, len(h.frames))
				}
				for i, f := range h.frames {
					if want := (audio.Frame{h.frames[0][0] + int16(i)}); f != want {
						t.Fatalf("frame %d is %v, not %d", i, f[:3], want[0])
					}
				}
			})
		})
	}
}

// What isn't admitted is nowhere, whatever the two halves would be.
func TestRefusedIsInNeitherFeed(t *testing.T) {
	admitted := true
	loud := frames(vowels(2 * time.Second))
	o := Options{
		Admit: func(*audio.Frame) bool { return admitted },
		Split: func(mic audio.Frame) (words, order audio.Frame) {
			if admitted {
				return mic, mic
			}
			return loud[20], loud[21]
		},
	}
	bubble(t, o, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		feed(frames(room(time.Second))...)
		admitted = false
		h := listening(t.Context(), e, e.Heard())
		feed(loud...)
		if len(h.frames) != 0 {
			t.Fatalf("%d frames of what isn't admitted are taken for speech", len(h.frames))
		}
		admitted = true
		feed(loud...)
		before := len(h.frames) - len(loud)
		if before < 1 || before > onset {
			t.Fatalf("%d frames, the last %d should be those that were admitted", len(h.frames), len(loud))
		}
		for i, f := range h.frames[:before] {
			if f != (audio.Frame{}) {
				t.Fatalf("frame %d is sound that wasn't admitted", i)
			}
		}
	})
}

// Whoever listens may say how long he waits for somebody to speak, and there is time for a whole utterance after that.
func TestWait(t *testing.T) {
	o := Options{NoSpeech: 2 * time.Second, MaxUtterance: 3 * time.Second}
	bubble(t, o, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		feed(frames(room(time.Second))...)
		h := listeningFor(t.Context(), e, e.Heard(), 10*time.Second)
		feed(frames(room(9980 * time.Millisecond))...)
		if h.over {
			t.Fatal("over too early")
		}
		feed(frames(room(20 * time.Millisecond))...)
		if !h.over || h.voiced || h.err != nil || len(h.frames) != 0 {
			t.Errorf("%d frames, over %v, voiced %v, error %v", len(h.frames), h.over, h.voiced, h.err)
		}

		h = listeningFor(t.Context(), e, e.Heard(), 10*time.Second)
		feed(frames(room(9*time.Second), vowels(2500*time.Millisecond), room(time.Second))...)
		if !h.over || !h.voiced || h.silence != 500*time.Millisecond {
			t.Errorf("over %v, voiced %v, silence %v", h.over, h.voiced, h.silence)
		}
	})
}

package wake

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

// vowels is speech enough for the voice activity detector: the pulses of a voice through two resonances, with a gap
// every 200 ms as between syllables.
func vowels(d time.Duration) []int16 {
	x := make([]int16, int(d*sampleRate/time.Second))
	var y1, y2, z1, z2 float64
	for i := range x {
		var pulse float64
		if i%130 == 0 {
			pulse = 3000
		}
		y := pulse + 1.85*y1 - 0.94*y2 // 700 Hz
		y1, y2 = y, y1
		z := pulse + 1.70*z1 - 0.94*z2 // 1200 Hz
		z1, z2 = z, z1
		syllable := math.Sin(math.Pi * float64(i%3200) / 3200)
		x[i] = int16(max(min((y+z)*syllable*syllable/4, 20000), -20000))
	}
	return x
}

// frames cuts a sound into whole frames.
func frames(sounds ...[]int16) (f []audio.Frame) {
	for _, s := range sounds {
		for ; len(s) >= audio.FrameSize; s = s[audio.FrameSize:] {
			f = append(f, audio.Frame(s))
		}
	}
	return f
}

// room is n of a quiet room.
func room(d time.Duration) []int16 {
	g := generator(3)
	return g.hiss(int(d*sampleRate/time.Second), 20)
}

// hearing runs e in a synctest bubble. feed gives it frames, one after the other, and returns when it has dealt with
// them; stop ends it.
func hearing(t *testing.T, e *Ears) (feed func(...audio.Frame), stop func()) {
	c := make(chan audio.Frame)
	done := make(chan error)
	go func() { done <- e.Run(t.Context(), c) }()
	feed = func(frames ...audio.Frame) {
		for _, f := range frames {
			c <- f
			synctest.Wait()
		}
	}
	return feed, func() {
		close(c)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// heard is what a Listen gave.
type heard struct {
	frames  []audio.Frame
	voiced  bool
	silence time.Duration
	err     error
	over    bool
}

func listening(ctx context.Context, e *Ears, from uint64) *heard {
	return listeningFor(ctx, e, from, 0)
}

func listeningFor(ctx context.Context, e *Ears, from uint64, wait time.Duration) *heard {
	h := new(heard)
	go func() {
		h.voiced, h.silence, h.err = e.Listen(ctx, from, wait, func(f audio.Frame) { h.frames = append(h.frames, f) })
		h.over = true
	}()
	synctest.Wait()
	return h
}

// bubble runs a test with ears that have no models.
func bubble(t *testing.T, o Options, test func(t *testing.T, e *Ears, feed func(...audio.Frame))) {
	synctest.Test(t, func(t *testing.T) {
		e, err := newEars(o)
		if err != nil {
			t.Fatal(err)
		}
		feed, stop := hearing(t, e)
		test(t, e, feed)
		stop()
		if _, _, err := e.Listen(t.Context(), 0, 0, func(audio.Frame) {}); !errors.Is(err, ErrStopped) {
			t.Errorf("Listen after Run gives %v", err)
		}
	})
}

func TestListenToTheEnd(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		before := frames(room(3 * time.Second))
		order := frames(vowels(1200*time.Millisecond), room(5*time.Second))
		feed(before...)
		h := listening(t.Context(), e, e.Heard()-20) // some of it has been already
		for i, f := range order {
			if h.over {
				t.Logf("over %v after the beginning of the order", time.Duration(i)*audio.FrameDuration)
				break
			}
			feed(f)
		}
		if !h.over || h.err != nil || !h.voiced || h.silence != 500*time.Millisecond {
			t.Fatalf("over %v, voiced %v, silence %v, error %v", h.over, h.voiced, h.silence, h.err)
		}
		all := append(before[len(before)-20:], order...)
		first := slices.Index(all, h.frames[0])
		if first < 20-onset || first > 20-onset+3 { // what was quiet earlier is left out
			t.Fatalf("it begins with frame %d", first)
		}
		all = all[first:]
		if n := len(h.frames) + first; n < 20+60+25 || n > 20+60+25+10 {
			t.Errorf("%d frames", len(h.frames))
		}
		for i, f := range h.frames {
			if f != all[i] {
				t.Fatalf("frame %d is another", i)
			}
		}
	})
}

// All frames are there even if nobody takes them before the end: Run doesn't wait and nothing is lost.
func TestListenerIsSlow(t *testing.T) {
	bubble(t, Options{MaxUtterance: 3 * time.Second}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		feed(frames(room(time.Second))...)
		slow := make(chan struct{})
		var got int
		var err error
		done := make(chan struct{})
		go func() {
			_, _, err = e.Listen(t.Context(), e.Heard(), 0, func(audio.Frame) { <-slow; got++ })
			close(done)
		}()
		synctest.Wait()
		feed(frames(vowels(4 * time.Second))...)
		close(slow)
		<-done
		if err != nil || got != 150 {
			t.Errorf("%d frames, error %v", got, err)
		}
	})
}

func TestNobodySpeaks(t *testing.T) {
	bubble(t, Options{NoSpeech: 2 * time.Second}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		feed(frames(room(time.Second))...)
		h := listening(t.Context(), e, e.Heard())
		feed(frames(room(1980 * time.Millisecond))...)
		if h.over {
			t.Fatal("over too early")
		}
		feed(frames(room(20 * time.Millisecond))...)
		if !h.over || h.voiced || h.err != nil || len(h.frames) != 0 {
			t.Errorf("%d frames, over %v, voiced %v, error %v", len(h.frames), h.over, h.voiced, h.err)
		}
	})
}

// The wake tone, should the microphone hear it, and a knock are no speech.
func TestNoisesAreNoSpeech(t *testing.T) {
	var tone []int16
	for _, f := range audio.WakeTone() {
		tone = append(tone, f[:]...)
	}
	g := generator(5)
	for _, tt := range []struct {
		name  string
		sound []int16
	}{
		{"wake tone", tone},
		{"knock", g.hiss(1600, 12000)},
		{"water", g.hiss(4*sampleRate, 3000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
				feed(frames(room(2 * time.Second))...)
				h := listening(t.Context(), e, e.Heard())
				feed(frames(room(300*time.Millisecond), tt.sound, room(5*time.Second))...)
				if !h.over || h.voiced {
					t.Errorf("over %v, voiced %v", h.over, h.voiced)
				}
			})
		})
	}
}

func TestSecondListenEndsTheFirst(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, e *Ears, feed func(...audio.Frame)) {
		feed(frames(room(time.Second))...)
		first := listening(t.Context(), e, e.Heard())
		ctx, cancel := context.WithCancel(t.Context())
		second := listening(ctx, e, 0)
		if !first.over || !errors.Is(first.err, ErrSuperseded) {
			t.Errorf("the first is over %v, with %v", first.over, first.err)
		}
		if second.over || len(second.frames) != 0 {
			t.Errorf("the second is over %v, with %d frames", second.over, len(second.frames))
		}
		cancel()
		synctest.Wait()
		if !second.over || !errors.Is(second.err, context.Canceled) {
			t.Errorf("the second is over %v, with %v", second.over, second.err)
		}
		feed(frames(room(time.Second))...) // goes on
	})
}

func TestRunEndsListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := newEars(Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx, make(chan audio.Frame)) }()
		h := listening(t.Context(), e, 0)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !errors.Is(h.err, ErrStopped) {
			t.Errorf("error %v", h.err)
		}
	})
}

// A frame costs no allocation, with models and with a listener.
func TestFrameDoesNotAllocate(t *testing.T) {
	newDetector(t, "okay_nabu") // skips
	e, err := New(Options{ModelDirs: modelDirs()})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{
		queue: make(chan queued, 1000), left: make(chan struct{}),
		endpoint: endpoint{silence: 1000, noSpeech: 1000, most: 1000},
	}
	e.listen(l)
	f := audio.Frame(vowels(audio.FrameDuration))
	if n := testing.AllocsPerRun(500, func() { e.hear(&f, f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Silence: 600}, "silence is 600ns, not 100ms to 2m0s"},
		{Options{Cutoff: map[string]float64{"alexa": 0.5}}, `cutoff of "alexa", which is none of the words ["okay_nabu"]`},
		{Options{Cutoff: map[string]float64{"okay_nabu": 97}}, `cutoff of "okay_nabu" is 97, not between 0 and 1`},
		{Options{ModelDirs: []string{"/nowhere"}}, `wake word model "okay_nabu": not found in /nowhere (there are none)`},
	} {
		if _, err := New(tt.o); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, not %v", err, tt.want)
		}
	}
}

// A call is told once, with the place where the word ended, and the word itself is no order.
func TestCall(t *testing.T) {
	newDetector(t, "alexa") // skips
	word := readFLAC(t, filepath.Join(filepath.Dir(recordings(t, "wake/reference_tests")[0]), "alexa_pymicro_1.flac"))
	const before = 2 * time.Second
	for _, tt := range []struct {
		name   string
		then   []int16
		voiced bool
	}{
		{"alone", nil, false},
		{"with an order", vowels(time.Second), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []uint64
				e, err := New(Options{
					Words: []string{"alexa"}, ModelDirs: modelDirs(),
					OnWake: func(c Call) { calls = append(calls, c.Frame) },
				})
				if err != nil {
					t.Fatal(err)
				}
				feed, stop := hearing(t, e)
				const end = 1040 * time.Millisecond // of the word in the recording
				sound := append(word[:int(end*sampleRate/time.Second)], tt.then...)
				var h *heard
				for _, f := range frames(inRoom(sound, int(before*sampleRate/time.Second), 7*sampleRate)) {
					feed(f)
					if h == nil && len(calls) > 0 {
						h = listening(t.Context(), e, calls[0])
					}
				}
				stop()
				synctest.Wait()
				if len(calls) != 1 {
					t.Fatalf("calls at %v", calls)
				}
				from := time.Duration(calls[0]) * audio.FrameDuration
				if late := from - before - end; late > 60*time.Millisecond || late < -320*time.Millisecond {
					t.Errorf("the word ended at %v, not %v", from, before+end)
				}
				if !h.over || h.err != nil || h.voiced != tt.voiced {
					t.Errorf("over %v, voiced %v, error %v", h.over, h.voiced, h.err)
				}
			})
		})
	}
}

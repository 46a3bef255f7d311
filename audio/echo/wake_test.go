package echo_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/echo"
	"bellbird/audio/echo/echotest"
	"bellbird/wake"
)

// least is what the canceller must say for a wake word to be somebody else's.
const least = 0.16

const (
	recordings = "../../../shared/data/speech"
	second     = int(audio.SampleRate)
)

func glob(t *testing.T, pattern string) (all [][]int16) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(recordings, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skipf("no recordings in %s", recordings)
	}
	for _, p := range paths {
		x, _, err := audio.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// wakes are the frames in which ears that hear x woke, and over is what the canceller said in each.
func wakes(t *testing.T, word string, x []int16, sounding bool, over []float64) (at []uint64) {
	t.Helper()
	off := false
	var ears *wake.Ears
	var err error
	ears, err = wake.New(wake.Options{
		Words:     []string{word},
		StopWord:  &off,
		ModelDirs: []string{"../../models"},
		Sounding:  func() bool { return sounding },
		OnWake: func(c wake.Call) {
			now := ears.Heard() - 1
			if over == nil || over[now] >= least {
				at = append(at, now)
			}
		},
	})
	if err != nil {
		t.Skip(err)
	}
	frames := make(chan audio.Frame)
	go func() {
		defer close(frames)
		for i := 0; i+audio.FrameSize <= len(x); i += audio.FrameSize {
			frames <- audio.Frame(x[i:])
		}
	}()
	if err := ears.Run(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	return at
}

// cancel is the linear feed of mic, and what the canceller says of it.
func cancel(c *echo.Canceller, mic, played []int16) (linear []int16, over []float64) {
	for at := 0; at+audio.FrameSize <= min(len(mic), len(played)); at += audio.FrameSize {
		m, p := audio.Frame(mic[at:]), audio.Frame(played[at:])
		c.Play(&p)
		l, _ := c.Hear(&m)
		linear = append(linear, l[:]...)
		over = append(over, c.Over())
	}
	return linear, over
}

// activeRMS is that of the frames that are within 20 dB of the loudest.
func activeRMS[T int16 | float64](x []T) float64 {
	var powers []float64
	for at := 0; at+audio.FrameSize <= len(x); at += audio.FrameSize {
		sum := 0.0
		for _, v := range x[at : at+audio.FrameSize] {
			sum += float64(v) * float64(v)
		}
		powers = append(powers, sum/audio.FrameSize)
	}
	loudest := slices.Max(powers)
	sum, n := 0.0, 0
	for _, p := range powers {
		if p > loudest/100 {
			sum += p
			n++
		}
	}
	return math.Sqrt(sum / float64(n))
}

// Wake words over an answer that is as loud as they are. If BELLBIRD_MEASURE is set all of them are used, in two rooms,
// otherwise each fourth, in one.
func TestWakeWordsOverAnswer(t *testing.T) {
	if underRace {
		t.Skip("it is one goroutine's work, which the race detector makes ten times slower: run it without")
	}
	const start, slot = 10, 4 // seconds
	clips := glob(t, "wake/alexa/*.flac")
	if os.Getenv("BELLBIRD_MEASURE") == "" {
		var some [][]int16
		for i := 0; i < len(clips); i += 4 {
			some = append(some, clips[i])
		}
		clips = some
	}
	answers := slices.Concat(glob(t, "negative/librispeech_test_other/*.flac")...)
	n := (start + slot*len(clips)) * second
	for len(answers) < n {
		answers = append(answers, answers...)
	}
	played := answers[:n]

	rooms := []echotest.Room{
		{Delay: 120 * time.Millisecond, RT60: 200 * time.Millisecond, Gain: 0.3, Noise: 8, Seed: 1},
		{Delay: 120 * time.Millisecond, RT60: 400 * time.Millisecond, Gain: 0.3, Noise: 8, Seed: 2, PPM: 60, Clip: 12000},
	}
	if os.Getenv("BELLBIRD_MEASURE") == "" {
		rooms = rooms[1:]
	}
	for _, r := range rooms {
		back := r.Echo(played)
		level := activeRMS(back)
		near := make([]float64, n)
		for i, clip := range clips {
			gain := level / activeRMS(clip)
			for k, v := range clip {
				near[(start+i*slot)*second+k] = gain * float64(v)
			}
		}
		found := func(x []int16, sounding bool, over []float64) (hit []bool) {
			at := wakes(t, "alexa", x, sounding, over)
			hit = make([]bool, len(clips))
			for i := range clips {
				from := uint64((start + i*slot) * 50)
				hit[i] = slices.ContainsFunc(at, func(f uint64) bool { return f >= from && f < from+slot*50 })
			}
			return hit
		}
		both := func(a, b []bool) (n int) {
			for i := range a {
				if a[i] && b[i] {
					n++
				}
			}
			return n
		}
		mic := r.Hear(back, near)
		c := echo.New()
		linear, over := cancel(c, mic, played)
		alone := found(r.Hear(near), false, nil)
		all := both(alone, alone)
		with := both(alone, found(linear, true, over))
		t.Logf("RT60 %v: of %d words %d are found without echo; of them %d with echo and canceller (%d if nothing is asked of Over, %d at the usual bar), %d without canceller; %+v",
			r.RT60, len(clips), all, with, both(alone, found(linear, true, nil)), both(alone, found(linear, false, nil)),
			both(alone, found(mic, true, nil)), c.Stats())
		if with*10 < all*9 {
			t.Errorf("RT60 %v: %d of %d wake words are found, want 90 %%", r.RT60, with, all)
		}
	}
}

// The appliance's own voice says the wake word, again and again, and must not wake it. It speaks for a minute; or, with each
// of three words, for as many as BELLBIRD_OWN_SPEECH says.
func TestOwnVoiceDoesNotWake(t *testing.T) {
	if underRace {
		t.Skip("it is one goroutine's work, which the race detector makes ten times slower: run it without")
	}
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip(err)
	}
	const piece = 5 // minutes
	minutes := 1
	if s := os.Getenv("BELLBIRD_OWN_SPEECH"); s != "" {
		var err error
		if minutes, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	words := []struct{ word, said string }{{"alexa", "alexa"}, {"okay_nabu", "okay nabu"}, {"hey_jarvis", "hey jarvis"}}
	if os.Getenv("BELLBIRD_OWN_SPEECH") == "" {
		words = words[:1]
	}
	for _, tt := range words {
		var speech []int16
		wav := filepath.Join(t.TempDir(), "speech.wav")
		for _, voice := range []string{"en-us", "en-gb", "en-us+f3", "en-gb+m3", "en-us+f2", "en+m7"} {
			text := "You can call me by saying " + tt.said + ". Then tell me what to do. " + tt.said + ", set a timer for ten minutes. " +
				tt.said + "! The weather today is cloudy, with some rain in the evening. " + tt.said + ", stop. I am " + tt.said + "."
			if out, err := exec.Command("espeak-ng", "-v", voice, "-w", wav, text).CombinedOutput(); err != nil {
				t.Fatalf("espeak-ng: %v: %s", err, out)
			}
			x, _, err := audio.ReadFile(wav)
			if err != nil {
				t.Fatal(err)
			}
			speech = append(append(speech, x...), make([]int16, second)...)
		}
		var without, with, careless, usual int
		c := echo.New()
		for minute := 0; minute < minutes; minute += piece {
			played := slices.Repeat(speech, piece*60*second/len(speech)+1)[:min(piece, minutes-minute)*60*second]
			r := echotest.Room{Delay: 120 * time.Millisecond, RT60: 300 * time.Millisecond, Gain: 0.3, Noise: 8, PPM: 30, Clip: 12000}
			r.Seed = uint64(minute) // people have moved
			mic := r.Hear(r.Echo(played))
			linear, over := cancel(c, mic, played)
			without += len(wakes(t, tt.word, mic, true, nil))
			with += len(wakes(t, tt.word, linear, true, over))
			careless += len(wakes(t, tt.word, linear, true, nil))
			usual += len(wakes(t, tt.word, linear, false, nil))
		}
		t.Logf("%s: %d min, heard without canceller %d times, with it %d times (%d if nothing is asked of Over, %d at the usual bar); %+v",
			tt.word, minutes, without, with, careless, usual, c.Stats())
		if with > 0 {
			t.Errorf("%s: woke %d times by the appliance's own voice", tt.word, with)
		}
	}
}

//go:build cgo

package malgo_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/malgo"
	"bellbird/audio/malgo/malgotest"
)

// The conformance test of a card, on any backend: it delivers frames in real time, it drains what is spoken in the time
// that this takes, and it stops when it is told to.
func testCard(t *testing.T, o malgo.Options) {
	out := audio.NewOutput(0)
	card, err := malgo.Open(o, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", card.Info())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- card.Run(ctx) }()

	within, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	hear := func(n int) {
		t.Helper()
		for range n {
			select {
			case <-card.Frames():
			case err := <-done:
				t.Fatalf("stopped by itself: %v", err)
			case <-within.Done():
				t.Fatalf("no more frames after %d", card.Heard())
			}
		}
	}
	hear(10) // until it is under way
	at := time.Now()
	hear(50)
	if d := time.Since(at); d < 700*time.Millisecond || d > 2*time.Second {
		t.Errorf("a second of sound took %v", d)
	}

	s := out.Open()
	for range 25 {
		if err := s.Write(within, audio.Frame{1}); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish()
	at = time.Now()
	if err := s.Drain(within); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(at); d < 400*time.Millisecond || d > 2*time.Second || s.Played() != 25 {
		t.Errorf("half a second of speech took %v, %d frames played", d, s.Played())
	}
	if st := out.Stats(); st.Underruns != 0 {
		t.Errorf("%d underruns though all was there", st.Underruns)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if card.Dropped() > 0 {
		t.Logf("%d frames dropped while nobody listened", card.Dropped())
	}
}

// miniaudio's null device is a real callback thread without a sound card.
func TestNullCard(t *testing.T) { testCard(t, malgo.Options{Backend: "null"}) }

func TestPlaybackOnly(t *testing.T) {
	out := audio.NewOutput(0)
	card, err := malgo.Open(malgo.Options{Backend: "null", PlaybackOnly: true}, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- card.Run(ctx) }()
	s := out.Open()
	if err := s.Write(ctx, audio.Frame{1}); err != nil {
		t.Fatal(err)
	}
	s.Finish()
	if err := s.Drain(ctx); err != nil || card.Heard() != 0 {
		t.Errorf("%v, %d frames heard without a microphone", err, card.Heard())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOpenTwice(t *testing.T) {
	for range 2 {
		card, err := malgo.Open(malgo.Options{Backend: "null"}, audio.NewOutput(0))
		if err != nil {
			t.Fatal(err)
		}
		card.Close()
		card.Close()
	}
}

func TestOpenErrors(t *testing.T) {
	for _, row := range []struct {
		o    malgo.Options
		want []string
	}{
		{malgo.Options{Backend: "oss"}, []string{`backend "oss" is unknown`, `"alsa"`}},
		{malgo.Options{Backend: "null", Capture: "blue"}, []string{"no microphone found", `none is called "blue"`, "there are", "bellbird demo"}},
		{malgo.Options{Backend: "null", Playback: "blue"}, []string{"no loudspeaker found", `none is called "blue"`}},
	} {
		_, err := malgo.Open(row.o, audio.NewOutput(0))
		if err == nil {
			t.Errorf("%+v: no error", row.o)
			continue
		}
		for _, w := range row.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %v, want %q in it", row.o, err, w)
			}
		}
	}
}

// On a machine without a sound card the default says so. On one with a card there is nothing to test.
func TestNoCard(t *testing.T) {
	if cards, _ := filepath.Glob("/dev/snd/pcm*"); len(cards) > 0 {
		t.Skip("there is a sound card")
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("PULSE_SERVER", "unix:/nowhere")
	card, err := malgo.Open(malgo.Options{}, audio.NewOutput(0))
	if err == nil {
		card.Close()
		t.Skip("there is a sound system after all")
	}
	t.Log(err)
	if !strings.HasPrefix(err.Error(), "no ") || !strings.Contains(err.Error(), ": ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestPulse(t *testing.T) {
	malgotest.Pulse(t)
	t.Run("card", func(t *testing.T) {
		testCard(t, malgo.Options{Backend: "pulseaudio", Capture: "microphone", Playback: "Speaker"})
	})
	t.Run("sound", testPulseSound)
	t.Run("dies", testPulseDies)
}

// What is played into the microphone is heard, and what is spoken comes out of the loudspeaker.
func testPulseSound(t *testing.T) {
	for _, tool := range []string{"paplay", "parec"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	out := audio.NewOutput(0)
	card, err := malgo.Open(malgo.Options{}, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- card.Run(ctx) }()
	defer cancel()
	select {
	case <-card.Frames():
	case err := <-done:
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "tone.wav")
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	var tone audio.Frame
	for i := range tone { // 1000 Hz: 20 whole waves in a frame
		tone[i] = int16(8000 * math.Sin(2*math.Pi*float64(i)/16))
	}
	for range 50 {
		w.Write(tone)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	play := exec.Command("paplay", "-d", "mic", path)
	if err := play.Start(); err != nil {
		t.Fatal(err)
	}
	loud, quiet := 0, 0
	for range 500 {
		f := <-card.Frames()
		if audio.Measure(f[:]).RMS > -18 {
			loud++
		} else if loud > 0 {
			quiet++
		}
		if quiet > 20 {
			break
		}
	}
	play.Wait()
	if loud < 25 || loud > 60 { // a busy sound server drops some
		t.Errorf("a second of sound was heard for %d frames", loud)
	}

	// The recorder is as long as it takes to come up, so speak until it has heard enough.
	rec := exec.Command("parec", "-d", "speaker.monitor", "--rate=16000", "--channels=1", "--format=s16le", "--latency-msec=50")
	sound, err := rec.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { rec.Process.Kill(); rec.Wait() }()
	s := out.Open()
	speaking, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go func() {
		for s.Write(speaking, tone) == nil {
		}
	}()
	heard := make([]byte, 640)
	found := false
	for n := 0; n < 250 && !found; n++ {
		if _, err := io.ReadFull(sound, heard); err != nil {
			t.Fatal(err)
		}
		samples := make([]int16, len(heard)/2)
		for i := range samples {
			samples[i] = int16(uint16(heard[2*i]) | uint16(heard[2*i+1])<<8)
		}
		found = audio.Measure(samples).RMS > -18
	}
	if !found {
		t.Error("what is spoken isn't heard")
	}
	s.Cut()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A sound server that goes away is noticed, and named.
func testPulseDies(t *testing.T) {
	out := audio.NewOutput(0)
	card, err := malgo.Open(malgo.Options{Backend: "pulseaudio"}, out)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- card.Run(t.Context()) }()
	select {
	case <-card.Frames():
	case err := <-done:
		t.Fatal(err)
	}
	if err := exec.Command("pactl", "exit").Run(); err != nil {
		t.Skipf("pactl: %v", err)
	}
	at := time.Now()
	select {
	case err := <-done:
		t.Logf("after %v: %v", time.Since(at), err)
		if err == nil || !strings.Contains(err.Error(), "plugged in?") {
			t.Errorf("got %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Error("not noticed")
	}
}

func ExampleOpen() {
	out := audio.NewOutput(0)
	card, err := malgo.Open(malgo.Options{Capture: "seeed"}, out)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for range card.Frames() { // listen
			cancel()
		}
	}()
	if err := card.Run(ctx); err != nil {
		fmt.Println(err) // the card is gone: open another
	}
}

func ExampleNewSupervisor() {
	out := audio.NewOutput(0)
	s, err := malgo.NewSupervisor(malgo.Options{
		OnTrouble: func(f *malgo.Fault) { fmt.Println(f.Side, f.Reason, f) },
		OnWell:    func(side malgo.Side) { fmt.Println(side, "well") },
	}, out)
	if err != nil {
		fmt.Println(err) // the options make no sense
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		for {
			select {
			case <-s.Frames(): // listen
			case <-ctx.Done():
				return
			}
		}
	}()
	before := s.Stats()
	s.Run(ctx)
	fmt.Println(s.Stats().Since(before))
}

// Whether the devices' threads could have a higher priority is said once for each, and nowhere but at debug level.
func TestPriorityIsTold(t *testing.T) {
	told := make(chan string, 100)
	log := slog.New(slog.NewTextHandler(lineWriter(told), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := malgo.NewSupervisor(malgo.Options{Backend: "null", Logger: log}, audio.NewOutput(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	limit := time.After(20 * time.Second)
	for seen := map[string]bool{}; len(seen) < 2; {
		select {
		case line := <-told:
			if !strings.Contains(line, "priority of a sound device's thread") {
				continue
			}
			side := "microphone"
			if strings.Contains(line, "side=loudspeaker") {
				side = "loudspeaker"
			}
			if seen[side] || !strings.Contains(line, "level=DEBUG") {
				t.Errorf("told %s", line)
			}
			seen[side] = true
		case <-limit:
			t.Fatal("never told")
		}
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// A lineWriter sends what is written.
type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

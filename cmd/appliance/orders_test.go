package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"bellbird/audio"
	"bellbird/intents"
	"bellbird/stt/pocketsphinx"
	"bellbird/wake"
)

// How many orders are understood that follow a recorded wake word after a pause, in a room with some noise: what the
// recogniser makes of what the ears give it. BELLBIRD_MEASURE=1 go test -run OrdersAfterTheWakeWord -v ./cmd/appliance
func TestOrdersAfterTheWakeWord(t *testing.T) {
	if os.Getenv("BELLBIRD_MEASURE") == "" {
		t.Skip("a measurement: set BELLBIRD_MEASURE=1")
	}
	calls, err := filepath.Glob("../../../shared/data/speech/wake/alexa/*.flac")
	if err != nil || len(calls) == 0 {
		t.Skip("no recordings of the wake word beside the checkout")
	}
	heard, err := intents.Heard()
	if err != nil {
		t.Fatal(err)
	}
	recognizer, err := pocketsphinx.New(pocketsphinx.Options{Logger: slog.New(slog.DiscardHandler)}, pocketsphinx.Grammar(heard.Grammar()))
	if err != nil {
		t.Fatal(err)
	}
	defer recognizer.Close()
	recognise := func(frames []audio.Frame) string {
		c := make(chan audio.Frame, len(frames))
		for _, f := range frames {
			c <- f
		}
		close(c)
		text, err := recognizer.Recognize(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	orders := []string{"what time is it", "set a timer for ten minutes", "turn it up"}
	spoken := make([][]audio.Frame, len(orders))
	for i, text := range orders {
		file := filepath.Join(t.TempDir(), "order.wav")
		if out, err := exec.Command("espeak-ng", "-v", "en-us", "-w", file, text).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		spoken[i] = framesOf(t, file)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	n, whole, alone := 0, 0, 0
	for i, call := range calls {
		if i%4 != 0 {
			continue
		}
		for j, pause := range []int{5, 15, 40} { // frames
			order := (i/4 + j) % len(orders)
			sound := append(make([]audio.Frame, 20), framesOf(t, call)...)
			sound = append(sound, make([]audio.Frame, pause)...)
			begin := len(sound)
			sound = append(append(sound, spoken[order]...), make([]audio.Frame, 60)...)
			for k := range sound {
				for s := range sound[k] {
					sound[k][s] += int16(rnd.IntN(61) - 30)
				}
			}
			utterance, woke := listenOnce(t, sound)
			if !woke {
				continue
			}
			n++
			if recognise(utterance) == orders[order] {
				whole++
			}
			if recognise(sound[begin:]) == orders[order] {
				alone++
			}
		}
	}
	t.Logf("of %d orders after a wake word %d are understood, and %d if the recogniser gets the order alone", n, whole, alone)
}

// listenOnce is what the ears take for the order in a sound, if a wake word is in it.
func listenOnce(t *testing.T, sound []audio.Frame) (utterance []audio.Frame, woke bool) {
	synctest.Test(t, func(t *testing.T) {
		var ears *wake.Ears
		over := false
		ears, err := wake.New(wake.Options{Words: []string{"alexa"}, ModelDirs: []string{"../../models"}, OnWake: func(c wake.Call) {
			if woke {
				return
			}
			woke = true
			go func() {
				_, _, err := ears.Listen(t.Context(), c.Frame, 0, func(f audio.Frame) { utterance = append(utterance, f) })
				if over = true; err != nil {
					t.Error(err)
				}
			}()
		}})
		if err != nil {
			t.Fatal(err)
		}
		frames := make(chan audio.Frame)
		ended := make(chan error, 1)
		go func() { ended <- ears.Run(t.Context(), frames) }()
		for _, f := range append(sound, make([]audio.Frame, 300)...) { // a slow speaker is waited for
			frames <- f
			synctest.Wait()
			if over {
				break
			}
		}
		close(frames)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return utterance, woke
}

// framesOf reads a sound file of any kind, with sox.
func framesOf(t *testing.T, path string) (frames []audio.Frame) {
	t.Helper()
	raw, err := exec.Command("sox", path, "-r", fmt.Sprint(int(audio.SampleRate)), "-c", "1", "-b", "16", "-e", "signed", "-t", "raw", "-").Output()
	if err != nil {
		if strings.Contains(err.Error(), "executable file not found") {
			t.Skip("no sox")
		}
		t.Fatal(err)
	}
	for s := samplesOf(raw); len(s) >= audio.FrameSize; s = s[audio.FrameSize:] {
		frames = append(frames, audio.Frame(s[:audio.FrameSize]))
	}
	return frames
}

package main

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/malgo/malgotest"
)

// The appliance on a real sound server: what is played into its microphone is answered from its loudspeaker, and Ctrl-C
// ends it within two seconds.
func TestRunOnPulseAudio(t *testing.T) {
	binary := os.Getenv("BELLBIRD_BINARY")
	if binary == "" {
		t.Skip(`it needs a program that is quick enough for real time, and a quiet machine: run "make smoke"`)
	}
	needDemo(t)
	malgotest.Pulse(t)
	dir := t.TempDir()
	user := filepath.Join(dir, "user.toml")
	if err := os.WriteFile(user, []byte("[tts]\nvoice = \"en-us+m5\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	speech := func(text string) string {
		path := filepath.Join(dir, strings.ReplaceAll(text, " ", "_")+".wav")
		var stderr bytes.Buffer
		if code := execute(t.Context(), []string{"say", "--config", user, "--wav", path, text}, io.Discard, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
		return path
	}
	sentence := speech("okay nabu. what time is it") // one file: between two, the server may take its time

	recording := filepath.Join(dir, "speaker.raw")
	record := exec.CommandContext(t.Context(), "parec", "-d", "speaker.monitor", "--rate=16000", "--channels=1", "--format=s16le", recording)
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "run", "--show", "--models", modelDirs[0], "--state", filepath.Join(dir, "state"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	await := func(part string) {
		t.Helper()
		limit := time.After(20 * time.Second)
		for {
			select {
			case line, more := <-lines:
				if !more {
					t.Fatalf("the appliance ended before %q: %s", part, stderr.String())
				}
				t.Log(line)
				if strings.Contains(line, part) {
					return
				}
			case <-limit:
				t.Fatalf("%q never came", part)
			}
		}
	}
	play := func(path string) {
		t.Helper()
		if out, err := exec.Command("paplay", "--latency-msec=50", "-d", "mic", path).CombinedOutput(); err != nil {
			t.Fatalf("paplay: %v: %s", err, out)
		}
	}

	// A room is never as silent as a sink to which nothing is played.
	room := exec.CommandContext(t.Context(), "paplay", "--latency-msec=50", "-d", "mic", noise(t, dir, time.Minute))
	if err := room.Start(); err != nil {
		t.Fatal(err)
	}
	await("idle")
	play(noise(t, dir, 1500*time.Millisecond)) // the models need a second of it
	play(sentence)
	await("listening")
	await(`heard "what time is it"`)
	await("turn 1: completed")
	play(noise(t, dir, time.Second)) // the recorder is behind by its buffer
	asked := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for line := range lines {
		t.Log(line)
	}
	if err := cmd.Wait(); err != nil || time.Since(asked) > 2*time.Second {
		t.Errorf("after Ctrl-C: %v after %v: %s", err, time.Since(asked), stderr.String())
	}
	record.Process.Signal(os.Interrupt)
	record.Wait()

	raw, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	spoken := recognizePieces(t, samplesOf(raw))
	if len(spoken) != 1 || !strings.HasPrefix(spoken[0], "it's ") {
		t.Errorf("the loudspeaker said %q", spoken)
	}
}

// noise writes a file with the noise of a quiet room.
func noise(t *testing.T, dir string, d time.Duration) string {
	t.Helper()
	path := filepath.Join(dir, d.String()+".wav")
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range audio.Frames(d) {
		var f audio.Frame
		for i := range f {
			f[i] = int16(random.NormFloat64() * 18) // -65 dBFS
		}
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

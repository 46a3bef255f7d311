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

// A pulsed appliance runs as a program of its own, on a real sound server.
type pulsed struct {
	t      *testing.T
	dir    string
	binary string
	config string
	cmd    *exec.Cmd
	lines  chan string // that it shows
	stderr bytes.Buffer
}

// startPulsed skips the test where that is impossible.
func startPulsed(t *testing.T, config string) *pulsed {
	t.Helper()
	l := &pulsed{t: t, dir: t.TempDir(), binary: os.Getenv("BELLBIRD_BINARY"), lines: make(chan string)}
	if l.binary == "" {
		t.Skip(`it needs a program that is quick enough for real time, and a quiet machine: run "make smoke"`)
	}
	needDemo(t)
	malgotest.Pulse(t)
	l.config = filepath.Join(l.dir, "config.toml")
	config += "\n[api]\nsocket = \"" + filepath.Join(l.dir, "socket") + "\"\n"
	if err := os.WriteFile(l.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// run starts it, and waits until it is idle.
func (l *pulsed) run() {
	l.t.Helper()
	l.cmd = exec.CommandContext(l.t.Context(), l.binary, "run", "--show", "--config", l.config, "--models", modelDirs[0], "--state", filepath.Join(l.dir, "state"))
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	l.cmd.Stderr = &l.stderr
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case l.lines <- s.Text():
			case <-l.t.Context().Done():
				return
			}
		}
	}()
	// A room is never as silent as a sink to which nothing is played.
	room := exec.CommandContext(l.t.Context(), "paplay", "--latency-msec=50", "-d", "mic", noise(l.t, l.dir, 3*time.Minute))
	if err := room.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.await("idle")
	l.play(noise(l.t, l.dir, 1500*time.Millisecond)) // the models need a second of it
}

// await waits for a line with this in it.
func (l *pulsed) await(part string) {
	l.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case line, more := <-l.lines:
			if !more {
				l.t.Fatalf("the appliance ended before %q: %s", part, l.stderr.String())
			}
			l.t.Log(line)
			if strings.Contains(line, part) {
				return
			}
		case <-limit:
			l.t.Fatalf("%q never came", part)
		}
	}
}

// speech is a file in which the user says something.
func (l *pulsed) speech(text string) string {
	l.t.Helper()
	user := filepath.Join(l.dir, "user.toml")
	if err := os.WriteFile(user, []byte("[tts]\nvoice = \""+userVoice+"\"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	path := filepath.Join(l.dir, strings.ReplaceAll(text, " ", "_")+".wav")
	var stderr bytes.Buffer
	if code := execute(l.t.Context(), []string{"say", "--config", user, "--wav", path, text}, io.Discard, &stderr); code != 0 {
		l.t.Fatal(stderr.String())
	}
	return path
}

// play has the microphone hear a file, to its end.
func (l *pulsed) play(path string) {
	l.t.Helper()
	if out, err := exec.Command("paplay", "--latency-msec=50", "-d", "mic", path).CombinedOutput(); err != nil {
		l.t.Fatalf("paplay: %v: %s", err, out)
	}
}

// stop ends it as Ctrl-C does.
func (l *pulsed) stop() {
	l.t.Helper()
	asked := time.Now()
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		l.t.Fatal(err)
	}
	for line := range l.lines {
		l.t.Log(line)
	}
	if err := l.cmd.Wait(); err != nil || time.Since(asked) > 2*time.Second {
		l.t.Errorf("after Ctrl-C: %v after %v: %s", err, time.Since(asked), l.stderr.String())
	}
}

// The appliance on a real sound server: what is played into its microphone is answered from its loudspeaker, and Ctrl-C
// ends it within two seconds.
func TestRunOnPulseAudio(t *testing.T) {
	l := startPulsed(t, "")
	sentence := l.speech("okay nabu. what time is it") // one file: between two, the server may take its time
	recording := filepath.Join(l.dir, "speaker.raw")
	record := exec.CommandContext(t.Context(), "parec", "-d", "speaker.monitor", "--rate=16000", "--channels=1", "--format=s16le", recording)
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.play(sentence)
	l.await("listening")
	l.await(`heard "what time is it"`)
	l.await("turn 1: completed")
	l.play(noise(t, l.dir, time.Second)) // the recorder is behind by its buffer
	l.stop()
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

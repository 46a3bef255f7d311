package main

import (
	"io"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"bellbird/audio"
)

// A listener records a device of the sound server, and notes when it heard what.
type listener struct {
	mu    sync.Mutex
	loud  []time.Time // the ends of the 10 ms that weren't silent
	level float64     // above which they aren't
}

// listenAt begins to record a device until the test ends.
func listenAt(t *testing.T, device string, level float64) *listener {
	t.Helper()
	l := &listener{level: level}
	rec := exec.CommandContext(t.Context(), "parec", "-d", device, "--rate=16000", "--channels=1", "--format=s16le", "--latency-msec=10")
	out, err := rec.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for piece := make([]byte, 320); ; {
			if _, err := io.ReadFull(out, piece); err != nil {
				return
			}
			if audio.Measure(samplesOf(piece)).RMS > l.level {
				l.mu.Lock()
				l.loud = append(l.loud, time.Now())
				l.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { rec.Process.Kill(); done.Wait(); rec.Wait() })
	return l
}

// last is when something was heard last, between two moments; zero: nothing was.
func (l *listener) last(from, to time.Time) (at time.Time) { return l.end(from, to, to.Sub(from)) }

// end is when what was heard from a moment on came to an end, which is when nothing more came for so long.
func (l *listener) end(from, to time.Time, quiet time.Duration) (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.loud {
		if !x.After(from) || x.After(to) {
			continue
		}
		if !at.IsZero() && x.Sub(at) > quiet {
			break
		}
		at = x
	}
	return at
}

// The wake word said over an answer silences it. How long that takes is told, from the end of the word to the last sound
// of the answer, both as they are recorded.
func TestBargeInOnPulseAudio(t *testing.T) {
	const times = 5
	l := startPulsed(t, "wake_sound = false\n[wake]\nno_speech = \"1s\"\n")
	word := l.speech(userCalls)
	user, speaker := listenAt(t, "mic.monitor", -45), listenAt(t, "speaker.monitor", -60)
	l.run()
	var took []time.Duration
	for range times {
		asked := time.Now()
		ask := exec.CommandContext(t.Context(), l.binary, "ask", "--config", l.config, "what can you do")
		if err := ask.Start(); err != nil {
			t.Fatal(err)
		}
		l.await("speaking")
		l.play(noise(t, l.dir, 1500*time.Millisecond)) // it has said some of it
		l.play(word)
		l.await(": interrupted")
		l.await("idle") // nobody says more
		idle := time.Now()
		l.play(noise(t, l.dir, 500*time.Millisecond)) // the recorders are behind by their buffers
		if err := ask.Wait(); err == nil {
			t.Error("the answer was heard to its end")
		}
		called := user.last(asked, idle)
		if called.IsZero() {
			t.Fatal("the word isn't in the recording")
		}
		silent := speaker.end(called.Add(-50*time.Millisecond), idle, 300*time.Millisecond)
		if silent.IsZero() {
			t.Fatal("the answer isn't in the recording when the word ends")
		}
		if at := speaker.last(idle, time.Now()); !at.IsZero() {
			t.Error("the answer goes on")
		}
		took = append(took, silent.Sub(called))
	}
	l.stop()
	slices.Sort(took)
	t.Logf("from the end of the wake word to silence: the best %v, the median %v, of %v", took[0], took[len(took)/2], took)
}

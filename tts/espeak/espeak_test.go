package espeak_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/tts/espeak"
)

func real(t testing.TB, o espeak.Options) *espeak.Voice {
	t.Helper()
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed")
	}
	v, err := espeak.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// script makes a command that behaves as the shell program says.
func script(t testing.TB, body string, o espeak.Options) *espeak.Voice {
	t.Helper()
	o.Command = filepath.Join(t.TempDir(), "voice")
	// A process that is started while the file is open would inherit it for a moment, and it couldn't be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(o.Command, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := espeak.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func say(ctx context.Context, v *espeak.Voice, text string) (samples []int16, err error) {
	err = v.Synthesize(ctx, text, func(f audio.Frame) error {
		samples = append(samples, f[:]...)
		return nil
	})
	return samples, err
}

func TestSpeak(t *testing.T) {
	v := real(t, espeak.Options{})
	s, err := say(t.Context(), v, "Okay. Your timer is set for ten minutes.")
	if err != nil {
		t.Fatal(err)
	}
	d := time.Duration(len(s)) * time.Second / time.Duration(audio.SampleRate)
	if l := audio.Measure(s); d < 2*time.Second || d > 4*time.Second || l.RMS < -35 || l.Peak > -0.1 {
		t.Errorf("%v of speech at %+v", d, l)
	}
	// The first sound is in the first frame's beginning, and after the last comes the pause.
	lead, trail := 0, 0
	for lead < len(s) && s[lead] == 0 {
		lead++
	}
	for trail < len(s) && s[len(s)-1-trail] == 0 {
		trail++
	}
	if lead != 0 {
		t.Errorf("%d samples of silence before the first sound", lead)
	}
	if trail < 16*115 || trail > 16*145 {
		t.Errorf("%d ms of silence after the last, want about 120", trail/16)
	}
}

func TestSpeakOddTexts(t *testing.T) {
	v := real(t, espeak.Options{WordsPerMinute: 300, Pitch: 70, Pause: -1, Voice: "de"})
	for _, row := range []struct {
		name, text string
		spoken     bool
	}{
		{"nothing", "", false},
		{"space", " \n\t\x00\x01", false},
		{"an option", "--version", true},
		{"another option", "-f /etc/passwd", true},
		{"a command", "\x0150p high", true},
		{"phonemes", "[[h@l'oU]] world", true},
		{"markup", "<speak>a &amp; b</speak>", true},
		{"not UTF-8", "caf\xe9 \xff", true},
		{"emoji", "Fine 🙂", true},
	} {
		s, err := say(t.Context(), v, row.text)
		if err != nil || len(s) > 0 != row.spoken {
			t.Errorf("%s: %d samples, %v", row.name, len(s), err)
		}
	}
	if _, err := say(t.Context(), v, strings.Repeat("long ", 10000)); err == nil {
		t.Error("a text without end was accepted")
	}
}

func TestSpeakConcurrently(t *testing.T) {
	v := real(t, espeak.Options{})
	want, err := say(t.Context(), v, "One two three.")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if s, err := say(t.Context(), v, "One two three."); err != nil || len(s) != len(want) {
				t.Errorf("%d samples, want %d, %v", len(s), len(want), err)
			}
		})
	}
	wg.Wait()
}

// A slow listener is no fault of the voice, and its error comes through as it is.
func TestListener(t *testing.T) {
	v := real(t, espeak.Options{})
	mine := errors.New("enough")
	n := 0
	err := v.Synthesize(t.Context(), strings.Repeat("A long text for somebody who does not want it. ", 50), func(audio.Frame) error {
		if n++; n == 3 {
			return mine
		}
		return nil
	})
	if err != mine || n != 3 {
		t.Errorf("%v after %d frames", err, n)
	}
}

func TestCancel(t *testing.T) {
	// The child and its own child write their numbers and then do nothing.
	file := filepath.Join(t.TempDir(), "pids")
	v := script(t, fmt.Sprintf("sleep 1000 & echo $! $$ > %s.tmp; mv %s.tmp %s; wait", file, file, file), espeak.Options{})
	cause := errors.New("barge-in")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := say(ctx, v, "text")
		done <- err
	}()
	var child, parent int
	for child == 0 {
		if b, err := os.ReadFile(file); err == nil {
			fmt.Sscan(string(b), &child, &parent)
		}
		pause(t)
	}
	start := time.Now()
	cancel(cause)
	if err := <-done; err != cause {
		t.Errorf("got %v, want the cause", err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("it took %v to be cancelled", d)
	}
	for _, pid := range []int{child, parent} {
		for deadline := time.Now().Add(5 * time.Second); alive(pid); pause(t) {
			if time.Now().After(deadline) {
				t.Errorf("process %d is still there", pid)
				break
			}
		}
	}
	if _, err := say(ctx, v, "text"); err != cause {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// alive reports whether a process runs; one that is dead but not yet collected doesn't.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// pause lets another process go on.
func pause(t *testing.T) {
	timer := time.NewTimer(2 * time.Millisecond)
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// head is a WAV header of unknown length, for printf.
const head = `printf 'RIFF\377\377\377\377WAVEfmt \020\0\0\0\001\0\001\0\042V\0\0D\254\0\0\002\0\020\0data\377\377\377\377'; `

func TestBrokenCommands(t *testing.T) {
	for _, row := range []struct {
		name, body, want string
		frames           bool
	}{
		{"fails", "cat >/dev/null; echo 'no such voice: xx' >&2; echo more >&2; exit 1", `voice" failed: exit status 1: no such voice: xx`, false},
		{"fails silently", "exit 3", `voice" failed: exit status 3`, false},
		{"fails after some sound", head + "head -c 20000 /dev/urandom; exit 2", "exit status 2", true},
		{"says nothing", "cat >/dev/null", "what it wrote is no sound: not a WAV file", false},
		{"garbage", "head -c 100000 /dev/zero", "what it wrote is no sound: not a WAV file", false},
		{"garbage without end", "cat /dev/zero", "what it wrote is no sound: not a WAV file", false},
		{"truncated", `printf 'RIFF\377\377\377\377WAVEfmt \020\0\0\0\001\0\001\0\042V\0\0D\254\0\0\002\0\020\0data\0\0\001\0'; head -c 4410 /dev/urandom`, "truncated: the header promises 1.5 s, the file has 0.1 s", true},
		{"stereo", `printf 'RIFF\377\377\377\377WAVEfmt \020\0\0\0\001\0\002\0\042V\0\0D\254\0\0\002\0\020\0data\0\0\001\0'`, "it speaks in 2 channels", false},
		{"does not stop", head + "cat /dev/urandom", "it doesn't stop: more than 14s of sound", true},
		{"is killed", "kill -9 $$", "what it wrote is no sound", false},
		{"long complaint", `head -c 100000 /dev/zero | tr '\0' x >&2; exit 1`, "exit status 1: xxx", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := script(t, row.body, espeak.Options{Logger: slog.New(slog.DiscardHandler)})
			s, err := say(t.Context(), v, "text")
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasPrefix(err.Error(), "voice: ") || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, row.want)
			}
			if len(s) > 0 != row.frames || len(s) > 20*int(audio.SampleRate) {
				t.Errorf("%d samples", len(s))
			}
		})
	}
}

// A child that says nothing is given up after a while; one that lingers after its sound is not waited for longer than a
// moment.
func TestHang(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"at once", "exec sleep 1000", "hangs: no sound for 1s"},
		{"in the middle", head + "head -c 1000 /dev/urandom; exec sleep 1000", "hangs: no sound for 1s"},
		{"after the end", head + "head -c 1000 /dev/urandom; exec sleep 1000 >/dev/null", "signal: killed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := script(t, row.body, espeak.Options{})
			v.SetPatience(time.Second)
			start := time.Now()
			_, err := say(t.Context(), v, "text")
			if err == nil || !strings.Contains(err.Error(), row.want) || time.Since(start) > 5*time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	}
}

func TestNew(t *testing.T) {
	for _, row := range []struct {
		o    espeak.Options
		want string
	}{
		{espeak.Options{Command: "no-such-voice"}, `voice: "no-such-voice" not found: install it with "apt install espeak-ng"`},
		{espeak.Options{Voice: "--path=/"}, "not the name of a voice"},
		{espeak.Options{WordsPerMinute: 5}, "5 words per minute: choose 80 to 450"},
		{espeak.Options{Pitch: 100}, "pitch 100"},
	} {
		if _, err := espeak.New(row.o); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row.o, err)
		}
	}
	if _, err := say(t.Context(), real(t, espeak.Options{Voice: "klingonese"}), "text"); err == nil {
		t.Error("a voice that isn't there speaks")
	}
}

func BenchmarkFirstFrame(b *testing.B) {
	v := real(b, espeak.Options{})
	enough := errors.New("enough")
	for b.Loop() {
		err := v.Synthesize(b.Context(), "Okay. Your timer is set for ten minutes.", func(audio.Frame) error { return enough })
		if err != enough {
			b.Fatal(err)
		}
	}
}

func BenchmarkSentence(b *testing.B) {
	v := real(b, espeak.Options{})
	for b.Loop() {
		if _, err := say(b.Context(), v, "Okay. Your timer is set for ten minutes."); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleVoice() {
	v, err := espeak.New(espeak.Options{Command: "not-installed"})
	if err != nil {
		fmt.Println(err)
		return
	}
	v.Synthesize(context.Background(), "Hello.", func(f audio.Frame) error {
		return nil // to the loudspeaker
	})
	// Output: voice: "not-installed" not found: install it with "apt install espeak-ng"
}

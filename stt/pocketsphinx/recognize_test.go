//go:build cgo

package pocketsphinx_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/intents"
	"bellbird/stt/pocketsphinx"
)

// sharedData are recordings that are no part of the repository.
const sharedData = "../../../shared/data/speech"

// recognizer has the grammar of the appliance.
func recognizer(t testing.TB, o pocketsphinx.Options) *pocketsphinx.Recognizer {
	t.Helper()
	if _, err := os.Stat(pocketsphinx.DefaultModelDir); err != nil {
		t.Skipf("no model: %v; apt install pocketsphinx-en-us", err)
	}
	r, err := pocketsphinx.New(o, pocketsphinx.Grammar(sentences(t).Grammar()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func sentences(t testing.TB) *intents.Set {
	t.Helper()
	s, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// say has a sentence spoken by espeak-ng, with the quiet around it that a microphone would have.
func say(t testing.TB, voice, text string) []int16 {
	t.Helper()
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed: apt install espeak-ng")
	}
	file := filepath.Join(t.TempDir(), "said.wav")
	return spoken(t, file, exec.Command("espeak-ng", "-v", voice, "-s", "165", "-w", file, text))
}

func spoken(t testing.TB, file string, cmd *exec.Cmd) []int16 {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd, err, out)
	}
	samples, _, err := audio.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return surround(samples)
}

// surround puts quiet noise before, behind and below samples, and half of full loudness into them.
func surround(samples []int16) []int16 {
	peak := 1
	for _, s := range samples {
		peak = max(peak, int(s), -int(s))
	}
	out := make([]int16, 16000*3/10, len(samples)+16000)
	for _, s := range samples {
		out = append(out, int16(int(s)*16000/peak))
	}
	out = append(out, make([]int16, 16000*6/10)...)
	seed := uint32(1)
	for i := range out {
		seed = seed*1664525 + 1013904223
		out[i] += int16(seed>>27) - 16
	}
	return out
}

// frames is a closed channel of samples.
func frames(samples []int16) <-chan audio.Frame {
	c := make(chan audio.Frame, len(samples)/audio.FrameSize+1)
	for len(samples) > 0 {
		var f audio.Frame
		samples = samples[copy(f[:], samples):]
		c <- f
	}
	close(c)
	return c
}

func recognize(t testing.TB, r *pocketsphinx.Recognizer, samples []int16) string {
	t.Helper()
	text, err := r.Recognize(t.Context(), frames(samples))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lines are those of a file in testdata.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

// same reports whether two sentences mean the same.
func same(s *intents.Set, heard, said string) bool {
	a, okA := s.Match(heard)
	b, okB := s.Match(said)
	return okA && okB && a.Intent == b.Intent && reflect.DeepEqual(values(a), values(b))
}

// values are slots without their wording: fifteen minutes is a quarter of an hour.
func values(m intents.Match) map[string]intents.Value {
	out := make(map[string]intents.Value)
	for name, v := range m.Slots {
		if v.Number != 0 || v.Duration != 0 {
			v.Text = ""
		}
		out[name] = v
	}
	return out
}

func TestUtterancesInARow(t *testing.T) {
	r := recognizer(t, pocketsphinx.Options{})
	for range 2 {
		for _, text := range []string{"set a timer for five minutes", "", "what time is it"} {
			var samples []int16
			if text != "" {
				samples = say(t, "en-us+f2", text)
			}
			if got := recognize(t, r, samples); got != text {
				t.Errorf("got %q, want %q", got, text)
			}
		}
	}
}

func TestWakeWordInFront(t *testing.T) {
	r := recognizer(t, pocketsphinx.Options{})
	for _, front := range []string{"okay nabu", "nabu", "hey jarvis", "alexa"} {
		if got := recognize(t, r, say(t, "en-us", front+", set the volume to fifty percent")); got != "set the volume to fifty percent" {
			t.Errorf("after %q: %q", front, got)
		}
	}
}

func TestSilence(t *testing.T) {
	r := recognizer(t, pocketsphinx.Options{})
	for name, samples := range map[string][]int16{
		"digital silence": make([]int16, 32000), "quiet": surround(make([]int16, 16000)), "an instant": make([]int16, 100),
	} {
		if got := recognize(t, r, samples); got != "" {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestCancelledUtterance(t *testing.T) {
	r := recognizer(t, pocketsphinx.Options{})
	samples := say(t, "en-us+f2", "set a timer for five minutes")
	why := errors.New("barge-in")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := make(chan audio.Frame)
	done := make(chan error)
	go func() {
		_, err := r.Recognize(ctx, c)
		done <- err
	}()
	for f := range frames(samples[:len(samples)/2]) {
		c <- f
	}
	cancel(why)
	select {
	case err := <-done:
		if !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
	case <-time.After(2 * time.Second):
		t.Fatal("still at it 2 s after it was cancelled")
	}
	if got := recognize(t, r, samples); got != "set a timer for five minutes" {
		t.Errorf("the utterance after the cancelled one is %q", got)
	}
}

func TestOneAtATime(t *testing.T) {
	r := recognizer(t, pocketsphinx.Options{})
	first := make(chan audio.Frame)
	done := make(chan error)
	go func() {
		_, err := r.Recognize(t.Context(), first)
		done <- err
	}()
	first <- audio.Frame{} // it is in there now
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Recognize(ctx, frames(nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second call: %v, want that it waits", err)
	}
	close(first)
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.Close()
	r.Close()
	if _, err := r.Recognize(t.Context(), frames(nil)); err == nil || err.Error() != "recogniser: closed" {
		t.Errorf("after Close: %v", err)
	}
}

func TestMissingModel(t *testing.T) {
	g := pocketsphinx.Grammar{JSGF: "#JSGF V1.0;\ngrammar g;\npublic <g> = stop;\n", Words: []string{"stop"}}
	_, err := pocketsphinx.New(pocketsphinx.Options{ModelDir: "/nowhere"}, g)
	want := "recogniser: model: stat /nowhere/en-us/mdef: no such file or directory; install it with: apt install pocketsphinx-en-us"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestBrokenModel cuts every file of the model at several places. The library would end the process, or crash.
func TestBrokenModel(t *testing.T) {
	recognizer(t, pocketsphinx.Options{})
	g := pocketsphinx.Grammar{JSGF: "#JSGF V1.0;\ngrammar g;\npublic <g> = stop;\n", Words: []string{"stop"}}
	source := filepath.Join(pocketsphinx.DefaultModelDir, "en-us")
	files, err := os.ReadDir(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "README" || f.Name() == "feat.params" || f.Name() == "noisedict" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(source, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{0, 3, 30, 100, 632, 1100, len(data) / 2, len(data) - 5, len(data) - 1} {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "en-us"), os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(pocketsphinx.DefaultModelDir, "cmudict-en-us.dict"), filepath.Join(dir, "cmudict-en-us.dict")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "en-us", f.Name()), data[:min(cut, len(data)-1)], 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := pocketsphinx.New(pocketsphinx.Options{ModelDir: dir}, g)
			if err == nil {
				r.Close()
				t.Errorf("%s with %d of %d bytes is taken", f.Name(), cut, len(data))
			} else if text := err.Error(); !strings.Contains(text, dir) || !strings.Contains(text, "apt install") || strings.Contains(text, "\n") {
				t.Errorf("%s with %d bytes: the error doesn't name the model and a remedy: %q", f.Name(), cut, text)
			}
		}
	}
}

func TestBadGrammar(t *testing.T) {
	recognizer(t, pocketsphinx.Options{})
	const head = "#JSGF V1.0;\ngrammar g;\n"
	for name, g := range map[string]pocketsphinx.Grammar{
		"unknown word":   {JSGF: head + "public <g> = xyzzyx;\n", Words: []string{"xyzzyx"}},
		"word not given": {JSGF: head + "public <g> = stop;\n"},
		"syntax":         {JSGF: head + "public <g> = ( stop;\n", Words: []string{"stop"}},
		"empty":          {},
	} {
		r, err := pocketsphinx.New(pocketsphinx.Options{}, g)
		if err == nil {
			r.Close()
			t.Errorf("%s: taken", name)
		} else if !strings.HasPrefix(err.Error(), "recogniser: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

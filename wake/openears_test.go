package wake

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

// linked is a directory with some of the openWakeWord files.
func linked(t *testing.T, names ...string) string {
	t.Helper()
	from, err := filepath.Abs(openWakeWordModels)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(filepath.Join(from, name+tfliteExt), filepath.Join(dir, name+tfliteExt)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Words of both kinds are listened to at once. Those of openWakeWord's share what they have in common, which lies in
// another directory.
func TestEarsHearOpenWakeWord(t *testing.T) {
	openWakeWords(t)        // skips
	newDetector(t, "alexa") // skips
	words, shared := linked(t, "alexa_v0.1", "hey_jarvis_v0.1"), linked(t, spectrumName, embedName)
	call := readFLAC(t, reference(t, "alexa_pymicro_1.flac"))
	var calls []Call
	e, err := New(Options{
		Words:     []string{"okay_nabu"},
		Word:      []Word{{Name: "hey_jarvis_v0.1"}, {Name: "alexa_v0.1", Cutoff: 0.6, Window: 2, Action: RunRoutine, Routine: "good night"}},
		ModelDirs: append([]string{words, shared}, modelDirs()...),
		OnWake:    func(c Call) { calls = append(calls, c) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.embedded) != 2 || len(e.fronts[0].words) < 1 {
		t.Errorf("%d of openWakeWord's, %d others", len(e.embedded), len(e.fronts[0].words))
	}
	sound := frames(inRoom(call, 2*sampleRate, 2*sampleRate))
	for i := range sound {
		e.hear(&sound[i], sound[i])
	}
	if len(calls) != 1 || calls[0].Word != "alexa_v0.1" || calls[0].Routine != "good night" || !(calls[0].Score > 0.6) {
		t.Fatalf("calls %+v", calls)
	}
	if n := testing.AllocsPerRun(100, func() { e.hear(&sound[0], sound[0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := e.SetCutoff("alexa_v0.1", 0.99999); err != nil {
		t.Fatal(err)
	}
	for i := range sound {
		e.hear(&sound[i], sound[i])
	}
	if len(calls) != 1 {
		t.Errorf("with the highest cutoff: %+v", calls[1:])
	}
}

// The order that follows a call in the same breath is heard whole, and the word alone is none.
func TestOpenWakeWordCall(t *testing.T) {
	openWakeWords(t) // skips
	word := readFLAC(t, reference(t, "alexa_pymicro_1.flac"))
	const before, end = 2 * time.Second, 1040 * time.Millisecond
	for name, then := range map[string][]int16{"alone": nil, "with an order": vowels(time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []uint64
				e, err := New(Options{
					Words: []string{"alexa_v0.1"}, ModelDirs: []string{openWakeWordModels},
					OnWake: func(c Call) { calls = append(calls, c.Frame) },
				})
				if err != nil {
					t.Fatal(err)
				}
				feed, stop := hearing(t, e)
				sound := append(word[:int(end*sampleRate/time.Second):int(end*sampleRate/time.Second)], then...)
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
				late := time.Duration(calls[0])*audio.FrameDuration - before - end
				t.Logf("said to end %v after it ended", late)
				if late > 60*time.Millisecond || late < -320*time.Millisecond {
					t.Errorf("the word is said to end %v after it did", late)
				}
				if !h.over || h.err != nil || h.voiced != (then != nil) {
					t.Errorf("over %v, voiced %v, error %v", h.over, h.voiced, h.err)
				}
			})
		})
	}
}

func TestOpenWakeWordConfigured(t *testing.T) {
	openWakeWords(t) // skips
	word := linked(t, "alexa_v0.1")
	if names := ModelNames([]string{word, linked(t, spectrumName, embedName)}); len(names) != 1 || names[0] != "alexa_v0.1" {
		t.Errorf("names %q", names)
	}
	m, err := FindModel("alexa_v0.1", []string{word})
	if err != nil {
		t.Fatal(err)
	}
	if !m.IsOpenWakeWord() || m.Cutoff != 0.5 || m.Window != 1 || m.Step != 80*time.Millisecond {
		t.Errorf("%+v", m)
	}
	if _, err := NewDetector(m, 0); err == nil || !strings.Contains(err.Error(), "it is openWakeWord's") {
		t.Errorf("error %v", err)
	}
	for _, tt := range []struct{ name, dir, want string }{
		{"alexa_v0.1", word, `wake word "alexa_v0.1": model "melspectrogram.tflite" is missing: `},
		{embedName, openWakeWordModels, `model "embedding_model.tflite": `},
	} {
		if _, err := New(Options{Words: []string{tt.name}, ModelDirs: []string{tt.dir}}); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, not %s", err, tt.want)
		}
	}
	if micro, err := FindModel("alexa", modelDirs()); err == nil {
		if _, err := micro.FindEmbedder(); err == nil {
			t.Error("a model of microWakeWord's finds an embedder")
		}
	}
}

package wake

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const openWakeWordModels = sharedData + "/models/openwakeword"

// openWakeWords are all words there are, with their embedder; it skips where there are none.
func openWakeWords(t testing.TB) (*Embedder, []*OpenWakeWord) {
	t.Helper()
	names := OpenWakeWordNames(openWakeWordModels)
	if len(names) == 0 {
		t.Skipf("no openWakeWord models in %s", openWakeWordModels)
	}
	e, err := LoadEmbedder(openWakeWordModels)
	if err != nil {
		t.Fatal(err)
	}
	var words []*OpenWakeWord
	for _, n := range names {
		words = append(words, openWakeWord(t, n))
	}
	return e, words
}

func openWakeWord(t testing.TB, name string) *OpenWakeWord {
	t.Helper()
	w, err := LoadOpenWakeWord(openWakeWordModels, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run gives the embeddings of the sound and the scores of each word, from the first that counts.
func run(e *Embedder, words []*OpenWakeWord, sound []int16) (embeddings []Embedding, scores map[string][]float64) {
	scores = make(map[string][]float64)
	for len(sound) > 0 {
		n := min(micSamples, len(sound))
		if e.Write(sound[:n]) {
			embeddings = append(embeddings, *e.Embedding())
			for _, w := range words {
				if w.Write(e.Embedding()) {
					scores[w.Name()] = append(scores[w.Name()], w.Score())
				}
			}
		}
		sound = sound[n:]
	}
	return embeddings, scores
}

// micSamples is the microphone's 20 ms, which the steps of 80 ms are put together of.
const micSamples = 320

// compared tells how far apart the scores are at most, and how many there are.
func compared(t *testing.T, what string, got, want map[string][]float64) (worst float64, n int) {
	t.Helper()
	for word, w := range want {
		g := got[word]
		if len(g) != len(w) {
			t.Errorf("%s: %s has %d scores, not %d", what, word, len(g), len(w))
			continue
		}
		for i := range w {
			d := math.Abs(g[i] - w[i])
			if !(d <= 1e-3) {
				t.Errorf("%s: score %d of %s is %v, not %v", what, i, word, g[i], w[i])
			}
			worst = max(worst, d)
		}
		n += len(w)
	}
	return worst, n
}

// openwakeword.golden has what TensorFlow Lite makes of synthetic(64000): compare/openwakeword.py --golden writes it.
func TestOpenWakeWordIsTheReference(t *testing.T) {
	data, err := os.ReadFile("testdata/openwakeword.golden")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Embeddings [][]float64
		Scores     map[string][]float64
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	e, words := openWakeWords(t)
	for _, again := range []string{"at first", "after Reset"} {
		embeddings, scores := run(e, words, synthetic(64000))
		var far float64
		for i, step := range []int{0, 1, 5, 20, 49} {
			for k, want := range golden.Embeddings[i] {
				far = max(far, math.Abs(float64(embeddings[step][k])-want))
			}
		}
		if far > 2e-3 { // of up to 60
			t.Errorf("%s: the embeddings are %v off", again, far)
		}
		worst, n := compared(t, again, scores, golden.Scores)
		t.Logf("%s: the embeddings are %.2g off, %d scores %.2g", again, far, n, worst)
		e.Reset()
		for _, w := range words {
			w.Reset()
		}
	}
}

// compare/openwakeword.py runs this with the scores that TensorFlow Lite gives for recordings.
func TestOpenWakeWordPeer(t *testing.T) {
	path := os.Getenv("BELLBIRD_OPENWAKEWORD")
	if path == "" {
		t.Skip("run wake/compare/openwakeword.py")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, words := openWakeWords(t)
	var worst, far float64
	files, steps := 0, 0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	for ; s.Scan(); files++ {
		var want struct {
			Path       string
			Scores     map[string][]float64
			Embeddings [][]float64
		}
		if err := json.Unmarshal(s.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		sound := append(make([]int16, sampleRate), readFLAC(t, want.Path)...)
		sound = append(sound, make([]int16, sampleRate/2)...)
		e.Reset()
		for _, w := range words {
			w.Reset()
		}
		embeddings, scores := run(e, words, sound)
		for i, w := range want.Embeddings {
			for k, x := range w {
				far = max(far, math.Abs(float64(embeddings[i][k])-x))
			}
		}
		d, n := compared(t, filepath.Base(want.Path), scores, want.Scores)
		worst, steps = max(worst, d), steps+n
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d recordings, %d scores: at most %.2g apart; embeddings %.2g", files, steps, worst, far)
}

func TestOpenWakeWordHears(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	e, _ := openWakeWords(t)
	word := openWakeWord(t, "alexa_v0.1")
	heard := func(x []int16) bool {
		e.Reset()
		word.Reset()
		x = inRoom(x, 3*sampleRate/2, sampleRate/2)
		for ; len(x) > 0; x = x[min(len(x), embedStep):] {
			if e.Write(x[:min(len(x), embedStep)]) && word.Write(e.Embedding()) && word.Heard() {
				return true
			}
		}
		return false
	}
	hits := 0
	alexa := recordings(t, "wake/alexa")
	for _, path := range alexa {
		if heard(readFLAC(t, path)) {
			hits++
		}
	}
	if hits < len(alexa)*85/100 {
		t.Errorf("%d of %d recordings of \"alexa\" were heard", hits, len(alexa))
	}
	mistaken := 0
	others := recordings(t, "wake/computer")
	for _, path := range others {
		if heard(readFLAC(t, path)) {
			mistaken++
		}
	}
	if mistaken > 0 {
		t.Errorf("%d of %d recordings of other words were taken for \"alexa\"", mistaken, len(others))
	}
	t.Logf("%d of %d heard, %d of %d others", hits, len(alexa), mistaken, len(others))
}

func TestOpenWakeWordIsDeafAtFirst(t *testing.T) {
	e, words := openWakeWords(t)
	sound := synthetic(embedStep)
	for step := 1; step <= 20; step++ {
		if !e.Write(sound) {
			t.Fatalf("step %d gives no embedding", step)
		}
		for _, w := range words {
			if ran := w.Write(e.Embedding()); ran != (step >= 16) {
				t.Errorf("%s: in step %d ran is %v", w.Name(), step, ran)
			}
		}
	}
}

func TestOpenWakeWordStepDoesNotAllocate(t *testing.T) {
	e, words := openWakeWords(t)
	sound := synthetic(embedStep)
	n := testing.AllocsPerRun(30, func() {
		e.Write(sound)
		for _, w := range words {
			w.Write(e.Embedding())
			w.Heard()
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOpenWakeWordErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadEmbedder(dir); err == nil || !strings.HasPrefix(err.Error(), `model "melspectrogram.tflite" is missing: `) {
		t.Errorf("error %v", err)
	}
	if _, err := LoadOpenWakeWord(dir, "alexa", 0); err == nil || !strings.HasPrefix(err.Error(), `model "alexa.tflite" is missing: `) {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"", "../alexa"} {
		if _, err := LoadOpenWakeWord(dir, name, 0); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	if _, err := LoadOpenWakeWord(dir, "alexa", math.NaN()); err == nil {
		t.Error("NaN is taken for a cutoff")
	}
	openWakeWords(t) // skips without models
	if _, err := LoadOpenWakeWord(openWakeWordModels, "embedding_model", 0); err == nil || !strings.Contains(err.Error(), "isn't a word") {
		t.Errorf("error %v", err)
	}
	if _, err := LoadOpenWakeWord(sharedModels, "alexa", 0); err == nil || !strings.Contains(err.Error(), "isn't float32") {
		t.Errorf("error %v", err)
	}
}

// BenchmarkOpenWakeWordStep is one step of 80 ms: spectrum, embedding and a run of each word.
func BenchmarkOpenWakeWordStep(b *testing.B) {
	for _, bb := range []struct {
		name  string
		words []string
	}{
		{"embedding", nil},
		{"1model", []string{"alexa_v0.1"}},
		{"3models", []string{"alexa_v0.1", "hey_jarvis_v0.1", "ok_nabu_v0.1"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			e, _ := openWakeWords(b)
			var words []*OpenWakeWord
			for _, w := range bb.words {
				words = append(words, openWakeWord(b, w))
			}
			sound := synthetic(10 * embedStep)
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				e.Write(sound[at : at+embedStep])
				for _, w := range words {
					w.Write(e.Embedding())
				}
				at = (at + embedStep) % len(sound)
			}
			perStep := b.Elapsed() / time.Duration(b.N)
			b.ReportMetric(float64(80*time.Millisecond)/float64(perStep), "x-realtime")
		})
	}
}

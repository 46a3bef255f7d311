package wake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bellbird/wake/tflite"
)

// openWakeWord's models, which users bring: nothing of them is shipped or fetched, for many may not be used in a product.
// From sample to score, every 80 ms:
//
//  1. spectrum: 80 ms and the 30 ms before them become 8 slices of 32 mel bands (melspectrogram.tflite)
//  2. embedding: the last 76 slices become 96 numbers (embedding_model.tflite). All its operators look at neighbouring
//     slices without padding, and it moves on by as many slices as it shrinks the time by, so that only what the 8 new
//     slices change is computed; the result is the same to the bit
//  3. score: the last 16 embeddings, or as many as the word's own network takes, become a probability
//
// The first two are the same for all words: one Embedder feeds any number of OpenWakeWords.

const (
	embedStep     = 1280 // samples, 80 ms
	embedLookBack = 480  // samples before them that the spectrum looks at as well
	melSlices     = 8    // for each step
	melBands      = 32
	melWindow     = 76 // slices that an embedding is of

	// deafEmbeddings is for how many steps after a reset a word isn't heard: 1.28 s. The original fills the place of
	// the embeddings that aren't there yet with those of noise, and its scores are as random until they are gone.
	deafEmbeddings = 16

	openWakeWordCutoff = 0.5
)

// The files of the first two, and what all of them end with.
const (
	spectrumName = "melspectrogram"
	embedName    = "embedding_model"
	tfliteExt    = ".tflite"
)

// An Embedding is what was heard in the last 775 ms, as 96 numbers.
type Embedding [96]float32

// An Embedder turns sound into embeddings. It is for one goroutine at a time.
type Embedder struct {
	spectrum, net *tflite.FloatInterpreter
	input         [embedLookBack + embedStep]int16
	used          int // of the input, look-back included
	steps         int // since the reset, until the look-back is sound
	out           Embedding
}

// LoadEmbedder reads the two models from a directory.
func LoadEmbedder(dir string) (*Embedder, error) {
	e := new(Embedder)
	for _, part := range []struct {
		name string
		in   **tflite.FloatInterpreter
		plan tflite.FloatOptions
		out  int
	}{
		{spectrumName, &e.spectrum, tflite.FloatOptions{Input: []int{1, len(e.input)}}, melSlices * melBands},
		{embedName, &e.net, tflite.FloatOptions{Input: []int{1, melWindow, melBands, 1}, Fresh: melSlices}, len(e.out)},
	} {
		m, err := loadFloat(dir, part.name)
		if err != nil {
			return nil, err
		}
		if *part.in, err = m.NewFloat(part.plan); err != nil {
			return nil, fmt.Errorf("model %q: %w", part.name+tfliteExt, err)
		}
		if got := len((*part.in).Output()); got != part.out {
			return nil, fmt.Errorf("model %q: it gives %d numbers, not %d: it isn't openWakeWord's", part.name+tfliteExt, got, part.out)
		}
	}
	// Before the first sound all bands are 1, as in the original. What the network makes of that is where it begins.
	for range (melWindow+melSlices-1)/melSlices + 1 {
		in := e.net.Input()
		for i := range in {
			in[i] = 1
		}
		e.net.Invoke()
	}
	e.net.Mark()
	e.Reset()
	return e, nil
}

// loadFloat reads a model that belongs to openWakeWord.
func loadFloat(dir, name string) (*tflite.Model, error) {
	m, err := tflite.Load(filepath.Join(dir, name+tfliteExt))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model %q is missing: openWakeWord's files, with melspectrogram.tflite and embedding_model.tflite, go into %s", name+tfliteExt, dir)
	} else if err != nil {
		return nil, err
	}
	if !m.IsFloat() {
		return nil, fmt.Errorf("model %q: its input isn't float32: it isn't openWakeWord's (a microWakeWord model needs its manifest beside it)", name+tfliteExt)
	}
	return m, nil
}

// Reset makes the embedder forget what it has heard.
func (e *Embedder) Reset() {
	e.net.Reset()
	clear(e.input[:])
	e.used, e.steps = embedLookBack, 0
}

// Write takes samples, no more than a step of 80 ms, and reports whether they completed one, whose embedding is then in
// Embedding.
func (e *Embedder) Write(samples []int16) bool {
	n := copy(e.input[e.used:], samples)
	if e.used += n; e.used < len(e.input) {
		return false
	}
	e.embed()
	e.used = copy(e.input[:], e.input[embedStep:])
	e.used += copy(e.input[e.used:], samples[n:])
	return true
}

func (e *Embedder) embed() {
	x := e.spectrum.Input()
	for i, v := range e.input {
		x[i] = float32(v)
	}
	e.spectrum.Invoke()
	in := e.net.Input()
	for i, v := range e.spectrum.Output() {
		in[i] = v/10 + 2 // so that it is what Google's own spectrum is, with which the embedding was trained
	}
	if e.steps == 0 {
		// The first slices would be of the silence before the sound; the original hasn't got them.
		for i := range embedLookBack / (embedStep / melSlices) * melBands {
			in[i] = 1
		}
		e.steps = 1
	}
	e.net.Invoke()
	copy(e.out[:], e.net.Output())
}

// Embedding is that of the last step. The next step overwrites it.
func (e *Embedder) Embedding() *Embedding { return &e.out }

// FindEmbedder returns an embedder for openWakeWord models, with the two models that lie beside the model itself, or else
// in the first of the directories that FindModel was given that has them. It is good for all others as well.
func (m *Model) FindEmbedder() (*Embedder, error) {
	if len(m.dirs) == 0 {
		return nil, fmt.Errorf("model %q: it isn't openWakeWord's, and needs no embeddings", m.Name)
	}
	for _, dir := range m.dirs {
		if _, err := os.Stat(filepath.Join(dir, spectrumName+tfliteExt)); err == nil {
			return LoadEmbedder(dir)
		}
	}
	return LoadEmbedder(m.dirs[0]) // says what is missing, and where it goes
}

// loadOpenModel reads the model "name.tflite" from a directory; dirs are where else its embedder may be.
func loadOpenModel(dir, name string, dirs []string) (*Model, error) {
	net, err := loadFloat(dir, name)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Name: name, Cutoff: openWakeWordCutoff, Window: 1, Step: embedStep * time.Second / sampleRate,
		net: net, dirs: append([]string{dir}, dirs...),
	}
	if _, err := NewOpenWakeWord(m, 0); err != nil {
		return nil, err
	}
	return m, nil
}

// An OpenWakeWord listens for one word with a model of openWakeWord's. It is for one goroutine at a time.
type OpenWakeWord struct {
	name   string
	cutoff float64
	net    *tflite.FloatInterpreter
	recent []float32 // the embeddings, the newest last
	steps  int       // since the reset, until it is believed
	deaf   int       // steps that it isn't believed for
	scores []float32 // that the mean is of, the newest last
}

// LoadOpenWakeWord reads the model "name.tflite" from a directory. It hears the word when the score is above the cutoff;
// 0 means 0.5.
func LoadOpenWakeWord(dir, name string, cutoff float64) (*OpenWakeWord, error) {
	if name == "" || name != filepath.Base(name) {
		return nil, fmt.Errorf("%q is no name of a wake word", name)
	}
	m, err := loadOpenModel(dir, name, nil)
	if err != nil {
		return nil, err
	}
	return NewOpenWakeWord(m, cutoff)
}

// NewOpenWakeWord returns one that hears the model's word when the mean of its last probabilities is above the cutoff; 0
// means 0.5.
func NewOpenWakeWord(m *Model, cutoff float64) (*OpenWakeWord, error) {
	if cutoff == 0 {
		cutoff = m.Cutoff
	}
	if !(cutoff > 0 && cutoff < 1) {
		return nil, fmt.Errorf("model %q: a cutoff of %v isn't between 0 and 1", m.Name, cutoff)
	}
	file := m.Name + tfliteExt
	net, err := m.net.NewFloat(tflite.FloatOptions{})
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", file, err)
	}
	size := len(Embedding{})
	in, out := net.InputShape(), net.OutputShape()
	if len(in) != 3 || in[0] != 1 || in[2] != size {
		return nil, fmt.Errorf("model %q: its input is %v, not [1 n %d]: it isn't a word of openWakeWord's", file, in, size)
	}
	if len(net.Output()) != 1 {
		return nil, fmt.Errorf("model %q: its output is %v, not [1 1]: only models of one word are known here", file, out)
	}
	return &OpenWakeWord{
		name: m.Name, cutoff: cutoff, net: net,
		recent: make([]float32, in[1]*size), scores: make([]float32, m.Window), deaf: max(in[1], deafEmbeddings),
	}, nil
}

// Reset makes it forget what it has heard.
func (w *OpenWakeWord) Reset() {
	clear(w.recent)
	clear(w.scores)
	w.steps = 0
}

// Write takes the next embedding. If ran is true, Score and Heard have news: not before 1.28 s after a reset, or however
// much the network looks at.
func (w *OpenWakeWord) Write(e *Embedding) (ran bool) {
	copy(w.recent, w.recent[len(e):])
	copy(w.recent[len(w.recent)-len(e):], e[:])
	if w.steps = min(w.steps+1, w.deaf); w.steps < w.deaf {
		return false
	}
	copy(w.net.Input(), w.recent)
	w.net.Invoke()
	copy(w.scores, w.scores[1:])
	w.scores[len(w.scores)-1] = w.net.Output()[0]
	return true
}

// Score is the mean of the last probabilities, 0 to 1; 0 before there is one, and NaN if the model is damaged.
func (w *OpenWakeWord) Score() float64 {
	var sum float64
	for _, s := range w.scores {
		sum += float64(s)
	}
	return sum / float64(len(w.scores))
}

// Heard tells whether the word has been said just now.
func (w *OpenWakeWord) Heard() bool { return w.Score() > w.cutoff }

// Name is the model's: its file name without ".tflite".
func (w *OpenWakeWord) Name() string { return w.name }

// OpenWakeWordNames lists the names of the words in a directory, sorted.
func OpenWakeWordNames(dir string) []string {
	other := map[string]bool{spectrumName + tfliteExt: true, embedName + tfliteExt: true}
	manifests, _ := filepath.Glob(filepath.Join(dir, "*.json")) // only a bad pattern is an error
	for _, path := range manifests {
		// One that is beside a manifest, or is named by one, is microWakeWord's.
		other[strings.TrimSuffix(filepath.Base(path), ".json")+tfliteExt] = true
		if m, err := readManifest(path); err == nil {
			other[m.Model] = true
		}
	}
	var names []string
	models, _ := filepath.Glob(filepath.Join(dir, "*"+tfliteExt))
	for _, path := range models {
		if base := filepath.Base(path); !other[base] {
			names = append(names, strings.TrimSuffix(base, tfliteExt))
		}
	}
	slices.Sort(names)
	return names
}

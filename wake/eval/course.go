package eval

import (
	"fmt"
	"math"
	"time"

	"bellbird/audio"
	"bellbird/wake"
)

// A Course is how a word's score went in a recording: its points above Floor, in order. Nearly all of a recording is
// below, so that hours of it are kept in little.
type Course []Point

// A Point is the score at one time, seen from the beginning of the sound.
type Point struct {
	At    time.Duration
	Score float64
}

// Floor is the lowest cutoff that can be asked for.
const Floor = 0.005

// Best is the point of the highest score, the first of them.
func (c Course) Best() Point {
	var best Point
	for _, p := range c {
		if p.Score > best.Score {
			best = p
		}
	}
	return best
}

// Detections are where an appliance would have heard the word: where the score is above the cutoff, but not within the
// refractory time after the last one.
func (c Course) Detections(cutoff float64, refractory time.Duration) []Point {
	var found []Point
	for _, p := range c {
		if p.Score > cutoff && (len(found) == 0 || p.At-found[len(found)-1].At >= refractory) {
			found = append(found, p)
		}
	}
	return found
}

// A Scorer listens to a whole sound, from the state of an appliance just switched on, and tells the course of each of its
// words. It is for one goroutine at a time.
type Scorer interface {
	Score(sound []int16) ([]Course, error)
}

// Models is the Scorer of wake word models.
type Models struct {
	names     []string
	fronts    []*front
	embedder  *wake.Embedder       // nil without openWakeWord's models
	open      []*wake.OpenWakeWord // that share it
	openWords []int                // of each, its place in names
}

// A front is a frontend and the detectors that want features in its step.
type front struct {
	step      time.Duration
	detectors []*wake.Detector
	words     []int // of each detector, its place in names
}

// NewScorer returns the scorer of the models, with courses in their order.
func NewScorer(models []*wake.Model) (*Models, error) {
	m := &Models{}
	for i, model := range models {
		m.names = append(m.names, model.Name)
		if model.IsOpenWakeWord() {
			if err := m.addOpen(model, i); err != nil {
				return nil, err
			}
			continue
		}
		d, err := wake.NewDetector(model, Floor)
		if err != nil {
			return nil, err
		}
		f := m.front(model.Step)
		f.detectors, f.words = append(f.detectors, d), append(f.words, i)
	}
	return m, nil
}

func (m *Models) addOpen(model *wake.Model, word int) (err error) {
	if m.embedder == nil {
		if m.embedder, err = model.FindEmbedder(); err != nil {
			return err
		}
	}
	w, err := wake.NewOpenWakeWord(model, Floor)
	m.open, m.openWords = append(m.open, w), append(m.openWords, word)
	return err
}

func (m *Models) front(step time.Duration) *front {
	for _, f := range m.fronts {
		if f.step == step {
			return f
		}
	}
	f := &front{step: step}
	m.fronts = append(m.fronts, f)
	return f
}

// Score implements Scorer.
func (m *Models) Score(sound []int16) ([]Course, error) {
	courses := make([]Course, len(m.names))
	// Heard is above the floor, and not in a model's first second.
	add := func(word int, score float64, heard bool, n int) error {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("model %q: its score is %v at %v: it is broken, get it again", m.names[word], score, lengthOf(n))
		}
		if heard {
			courses[word] = append(courses[word], Point{lengthOf(n), score})
		}
		return nil
	}
	for _, f := range m.fronts {
		frontend := wake.NewFrontend(f.step)
		for _, d := range f.detectors {
			d.Reset()
		}
		n := int(f.step * time.Duration(audio.SampleRate) / time.Second)
		var features wake.Features
		for at := n; at <= len(sound); at += n {
			if !frontend.Write(sound[at-n:at], &features) {
				continue
			}
			for i, d := range f.detectors {
				if !d.Write(&features) {
					continue
				}
				if err := add(f.words[i], d.Score(), d.Heard(), at); err != nil {
					return nil, err
				}
			}
		}
	}
	if m.embedder == nil {
		return courses, nil
	}
	m.embedder.Reset()
	for _, w := range m.open {
		w.Reset()
	}
	const n = audio.FrameSize // as an appliance gets it
	for at := n; at <= len(sound); at += n {
		if !m.embedder.Write(sound[at-n : at]) {
			continue
		}
		for i, w := range m.open {
			if !w.Write(m.embedder.Embedding()) {
				continue
			}
			if err := add(m.openWords[i], w.Score(), w.Heard(), at); err != nil {
				return nil, err
			}
		}
	}
	return courses, nil
}

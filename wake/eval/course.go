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
	names  []string
	fronts []*front
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
		d, err := wake.NewDetector(model, Floor)
		if err != nil {
			return nil, err
		}
		m.names = append(m.names, model.Name)
		f := m.front(model.Step)
		f.detectors, f.words = append(f.detectors, d), append(f.words, i)
	}
	return m, nil
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
	for _, f := range m.fronts {
		frontend := wake.NewFrontend(f.step)
		for _, d := range f.detectors {
			d.Reset()
		}
		n := int(f.step * time.Duration(audio.SampleRate) / time.Second)
		var features wake.Features
		for at := 0; at+n <= len(sound); at += n {
			if !frontend.Write(sound[at:at+n], &features) {
				continue
			}
			for i, d := range f.detectors {
				if !d.Write(&features) {
					continue
				}
				score, word := d.Score(), f.words[i]
				if math.IsNaN(score) || math.IsInf(score, 0) {
					return nil, fmt.Errorf("model %q: its score is %v at %v: it is broken, get it again", m.names[word],
						score, lengthOf(at+n))
				}
				if d.Heard() { // above the floor, and the first second is over
					courses[word] = append(courses[word], Point{lengthOf(at + n), score})
				}
			}
		}
	}
	return courses, nil
}

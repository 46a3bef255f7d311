package wake

import (
	"fmt"
	"time"

	"bellbird/audio"
)

// A Chooser tells which channel of a capture hears a wake word best: the one to listen to then. It runs a frontend and a
// detector for each, so it costs so many times what one does. Averaging channels or picking one is audio.Mixdown's.
type Chooser struct {
	ears    []chooserEar
	bar     float64
	best    int
	highest float64 // score of the best one while a word is on
}

type chooserEar struct {
	front    *Frontend
	detector *Detector
	features Features
}

// mostChannels is how many channels a Chooser takes. More cost more than they are worth.
const mostChannels = 4

// NewChooser returns one for that many channels, which begins with the first.
func NewChooser(m *Model, channels int) (*Chooser, error) {
	if channels < 1 || channels > mostChannels {
		return nil, fmt.Errorf("%d channels to choose from: 1 to %d are possible; pick one or average them", channels, mostChannels)
	}
	c := &Chooser{bar: nearShare * m.Cutoff}
	for range channels {
		d, err := NewDetector(m, 0)
		if err != nil {
			return nil, err
		}
		c.ears = append(c.ears, chooserEar{front: NewFrontend(m.Step), detector: d})
	}
	return c, nil
}

// Write takes the next frame of each channel, and returns the number of the one that heard the last word best, be it a
// call or a near miss. While a word is on, that may change with every frame; in between it doesn't.
func (c *Chooser) Write(frames []audio.Frame) (best int) {
	on := false
	for i := range c.ears {
		e := &c.ears[i]
		step := int(e.detector.model.Step * sampleRate / time.Second)
		for at := 0; at < audio.FrameSize; at += step {
			if e.front.Write(frames[i][at:at+step], &e.features) {
				e.detector.Write(&e.features)
			}
		}
		if s := e.detector.Score(); e.detector.ready() && s > c.bar {
			on = true
			if s > c.highest {
				c.highest, c.best = s, i
			}
		}
	}
	if !on {
		c.highest = 0
	}
	return c.best
}

package wake

import (
	"math"
	"time"

	"bellbird/audio"
)

// A NearMiss tells that a word was nearly heard: how sure its model became, and how that went. It helps to choose a
// cutoff. What was said is not in it.
type NearMiss struct {
	Word     string
	Peak     float64 // the highest score
	Bar      float64 // what it had to exceed at that time
	Frame    uint64  // of the peak
	Duration time.Duration
	Course   []float64 // the scores from first to last, at most nearCourse of them, each the highest of its time
	Untold   int       // near misses of this word since the last one that was told
}

const (
	// nearShare is the share of its bar that a score must exceed to be a near miss. Other words than the wake word hardly
	// ever come so far.
	nearShare = 0.6

	// nearOver is the share below which it is over.
	nearOver = nearShare / 2

	// nearCourse is how many scores are told.
	nearCourse = 10

	// nearRest is how long near misses of a word are counted only, after one was told: a television must not fill the log.
	nearRest = 10 * time.Second
)

// near follows the scores of one word.
type near struct {
	on          bool
	began, peak uint64 // frames
	best, bar   float64
	course      [nearCourse]float64
	scores      int // so far
	each        int // how many of them a value of course stands for
	told        moment
	untold      int
}

// write takes the score of frame n. When a near miss is over it reports that.
func (e *near) write(score, bar float64, n uint64) (over bool) {
	switch {
	case !e.on && score > nearShare*bar:
		e.on, e.began, e.best, e.scores, e.each = true, n, 0, 0, 1
		e.add(score, bar, n)
	case e.on && score > nearOver*bar:
		e.add(score, bar, n)
	case e.on:
		e.on = false
		return true
	}
	return false
}

func (e *near) add(score, bar float64, n uint64) {
	if score > e.best {
		e.best, e.bar, e.peak = score, bar, n
	}
	if e.scores == nearCourse*e.each { // full: from now on a value stands for twice as many
		for i := range nearCourse / 2 {
			e.course[i] = max(e.course[2*i], e.course[2*i+1])
		}
		e.each *= 2
	}
	i := e.scores / e.each
	if e.scores%e.each == 0 {
		e.course[i] = 0
	}
	e.course[i] = max(e.course[i], score)
	e.scores++
}

// drop forgets what goes on: it was no miss.
func (e *near) drop() { e.on = false }

// tell makes a NearMiss of what is over, in frame n, unless it has to be left untold.
func (e *near) tell(word string, n uint64) (m NearMiss, ok bool) {
	if e.told.within(nearRest, n) {
		e.untold++
		return m, false
	}
	m = NearMiss{
		Word: word, Peak: e.best, Bar: e.bar, Frame: e.peak, Untold: e.untold,
		Duration: time.Duration(n-e.began) * audio.FrameDuration,
	}
	for _, s := range e.course[:(e.scores+e.each-1)/e.each] {
		m.Course = append(m.Course, math.Round(100*s)/100)
	}
	e.told, e.untold = moment{n, true}, 0
	return m, true
}

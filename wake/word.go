package wake

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"bellbird/audio"
)

// A Word is a word to listen for, and what it leads to.
type Word struct {
	Name    string  `toml:"name"`    // the model's
	Cutoff  float64 `toml:"cutoff"`  // the mean probability above which the word was said; 0: the model's own
	Window  int     `toml:"window"`  // how many probabilities the mean is of; 0: the model's own
	Action  Action  `toml:"action"`  // default Listen, or Stop for a word named "stop"
	Routine string  `toml:"routine"` // what is done as if the user had said it, if that is the action: "good night"
}

// An Action is what a word leads to. The ears only pass it on, but they listen for words that stop only while there is
// something to be stopped, which is while the loudspeaker makes a sound.
type Action string

// The actions.
const (
	Listen          Action = "listen"           // to an order
	ListenPrivately Action = "listen_privately" // to an order that isn't to be remembered
	Stop            Action = "stop"             // what sounds, be it speech or the ring of a timer
	RunRoutine      Action = "routine"          // do what is given as its words, as if they had been said
)

var actions = []Action{Listen, ListenPrivately, Stop, RunRoutine}

// stopWord is the name of the model that stops what sounds without being configured.
const stopWord = "stop"

// mostWindow is the widest window, 3 s. More is a slip of the pen.
const mostWindow = 100

// mostRoutine is how long a routine may be, in bytes: as what somebody says in one breath, and more.
const mostRoutine = 1000

func (w *Word) check() error {
	switch {
	case w.Name == "":
		return fmt.Errorf("a wake word has no name: give the one of its model")
	case !(w.Cutoff >= 0 && w.Cutoff < 1):
		return fmt.Errorf("cutoff of %q is %v, not between 0 and 1", w.Name, w.Cutoff)
	case w.Window < 0 || w.Window > mostWindow:
		return fmt.Errorf("window of %q is %d, not 1 to %d", w.Name, w.Window, mostWindow)
	case !slices.Contains(actions, w.Action):
		return fmt.Errorf("action of %q is %q, not one of %q", w.Name, w.Action, actions)
	case len(w.Routine) > mostRoutine:
		return fmt.Errorf("routine of %q has %d bytes, not at most %d", w.Name, len(w.Routine), mostRoutine)
	case (w.Action == RunRoutine) != (strings.TrimSpace(w.Routine) != ""):
		return fmt.Errorf("wake word %q: action = %q and routine = %q: a routine needs both, nothing else a routine", w.Name, w.Action, w.Routine)
	}
	return nil
}

// A Call tells that a word was heard.
type Call struct {
	Word    string  // the model's name
	Score   float64 // its mean probability
	Frame   uint64  // the one where the word ended, as well as that can be told
	Action  Action
	Routine string // if that is the action: its words
}

// A word is one that is listened for. It belongs to Run's goroutine, but for the cutoff.
type word struct {
	Word
	model  *Model
	micro  *Detector     // one of these two, as the model is; neither in tests of the rules
	open   *OpenWakeWord // runs on the embedder's embeddings
	cutoff atomic.Uint64
	above  int // windows in a row that were above the bar
	near   near
}

// newWord loads the model.
func newWord(w Word, dirs []string) (*word, error) {
	m, err := FindModel(w.Name, dirs)
	if err != nil {
		return nil, err
	}
	if w.Window != 0 {
		wider := *m
		wider.Window = w.Window
		m = &wider
	}
	heard := &word{Word: w, model: m}
	if m.IsOpenWakeWord() {
		heard.open, err = NewOpenWakeWord(m, w.Cutoff)
	} else {
		heard.micro, err = NewDetector(m, w.Cutoff)
	}
	if err != nil {
		return nil, err
	}
	heard.setCutoff(cmp.Or(w.Cutoff, m.Cutoff))
	return heard, nil
}

func (w *word) setCutoff(c float64) { w.cutoff.Store(math.Float64bits(c)) }

// What interrupts must be surer than what is said into the quiet: the loudspeaker is nearer to the microphone than
// anybody, and something of it is left by any canceller. A wake word's score must then be above the middle between its cutoff and
// 1, in two windows, one after the other. A word that stops keeps its cutoff, for it is never listened for but then, but
// needs two windows as well.
const bargeInWindows = 2

// bar is what the score must exceed, and in how many windows in a row. No score exceeds a bar of 1.
func (w *word) bar(sounding bool) (bar float64, windows int) {
	cutoff := math.Float64frombits(w.cutoff.Load())
	switch {
	case w.Action == Stop && !sounding:
		return 1, 1
	case w.Action == Stop:
		return cutoff, bargeInWindows
	case sounding:
		return (cutoff + 1) / 2, bargeInWindows
	}
	return cutoff, 1
}

// said decides from the score of the next window whether the word has been said just now.
func (w *word) said(score float64, sounding bool) bool {
	bar, windows := w.bar(sounding)
	if !(score > bar) {
		w.above = 0
		return false
	}
	w.above++
	return w.above >= windows
}

// A moment is a frame in which something was, if it was.
type moment struct {
	frame uint64
	was   bool
}

// within reports whether it was less than d before frame n.
func (m moment) within(d time.Duration, n uint64) bool {
	return m.was && n-m.frame < uint64(audio.Frames(d))
}

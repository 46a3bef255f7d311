// Package wake hears: frames of sound go in, and out come the news that the user called and the utterance that he said
// then. It has the features that wake word models are trained on, the models, a voice activity detector, the end of an
// utterance, and a memory of the last seconds, so that no first syllable is lost. It opens no devices, understands no
// words but the wake words, and doesn't decide what a call leads to.
package wake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"bellbird/audio"
)

// What becomes of a frame, in the order of the functions below:
//
//  1. Run takes it from the channel. It may be split in two then: what words are heard in, and what is kept for who
//     listens, of the same sound.
//  2. hear: the frontend turns it into two slices of features. The detectors run on them; the voice activity detector
//     says whether it is speech. Both go into the ring. If there are words of openWakeWord's, their embedder takes the
//     frame too, and they run on its embeddings.
//  3. judge: from the scores of each word it is decided whether it was said, or nearly (word.go, nearmiss.go).
//  4. woke: if a word was heard, where it ended is looked up in the ring, and OnWake is called.
//  5. pass: the listener, if there is one, gets the frame, through a queue that has room for the longest utterance.
//  6. Listen hands it on, on its own goroutine, and returns when the endpoint was found.
//
// Now and then Run is also asked to look whether frames come at all (deaf.go).

// What ends a Listen other than the end of the utterance and its context.
var (
	ErrStopped    = errors.New("the ears have stopped")             // Run is over, or frames ended
	ErrSuperseded = errors.New("another Listen began in its place") // there is one listener at a time
)

// Ears hear wake words and collect utterances.
type Ears struct {
	refused bool // the last frame was not admitted

	o       Options
	heard   atomic.Uint64 // frames so far
	begin   chan *listener
	looks   chan look
	hints   chan hinted
	stopped chan struct{}
	words   []*word

	// The rest belongs to Run's goroutine.
	fronts     []front
	embedder   *Embedder // of openWakeWord's models, nil if there are none
	embedded   []*word   // that share it
	microphone microphone
	voice      voice
	second     *Detector // the model "vad", nil if there is none
	sinceYes   int       // frames since it heard a voice
	ring       []remembered
	listener   *listener
	tail       int    // frames after the last call in which its word may still be heard
	call, stop moment // in which the last call was detected, and the last word that stops
}

// A front is a frontend with the detectors that share it.
type front struct {
	*Frontend
	step     int // samples
	words    []*word
	second   *Detector // if this is its frontend
	features Features
}

// remembered is a frame in the ring.
type remembered struct {
	frame audio.Frame
	sound sound
}

// New loads the models. Nothing runs before Run is called.
func New(o Options) (*Ears, error) {
	e, err := newEars(o)
	if err != nil {
		return nil, err
	}
	for _, w := range e.o.All() {
		if err := e.add(w); err != nil {
			return nil, err
		}
	}
	if err := e.addStopWord(); err != nil {
		return nil, err
	}
	if err := e.secondOpinion(); err != nil {
		return nil, err
	}
	return e, nil
}

// add loads the model of a word.
func (e *Ears) add(w Word) error {
	heard, err := newWord(w, e.o.ModelDirs)
	if err != nil {
		return err
	}
	if heard.open != nil {
		if e.embedder == nil {
			if e.embedder, err = heard.model.FindEmbedder(); err != nil {
				return fmt.Errorf("wake word %q: %w", w.Name, err)
			}
		}
		e.embedded = append(e.embedded, heard)
	} else {
		f := e.front(heard.model.Step)
		f.words = append(f.words, heard)
	}
	e.words = append(e.words, heard)
	return nil
}

// addStopWord adds the word that stops what sounds, if it is wanted and not configured already.
func (e *Ears) addStopWord() error {
	wanted := e.o.StopWord
	if wanted != nil && !*wanted || slices.ContainsFunc(e.words, func(w *word) bool { return w.Name == stopWord }) {
		return nil
	}
	err := e.add(Word{Name: stopWord, Action: Stop})
	if nf := (*NotFound)(nil); wanted == nil && errors.As(err, &nf) {
		e.o.Logger.Info("no stop word: there is no model for it", "model", stopWord+".json", "dirs", e.o.ModelDirs)
		return nil
	}
	return err
}

// newEars is New without the models.
func newEars(o Options) (*Ears, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Ears{
		o:       o,
		begin:   make(chan *listener),
		looks:   make(chan look),
		hints:   make(chan hinted, 12), // full: new ones are dropped
		stopped: make(chan struct{}),
		ring:    make([]remembered, audio.Frames(max(o.Preroll, wordSearch))),
		// The voice activity detector needs the first, whether a model does or not.
		fronts: []front{{Frontend: NewFrontend(sliceStep), step: sliceSamples}},
	}, nil
}

// secondOpinion looks for the model that knows voices from noise. It is not among those that come with the appliance.
func (e *Ears) secondOpinion() error {
	m, err := FindModel("vad", e.o.ModelDirs)
	if nf := (*NotFound)(nil); errors.As(err, &nf) {
		return nil
	} else if err != nil {
		return err
	}
	e.second, err = NewDetector(m, 0)
	if err == nil {
		e.front(m.Step).second = e.second
	}
	return err
}

const (
	sliceStep    = 10 * time.Millisecond
	sliceSamples = audio.FrameSize / 2
)

// front is the one with the given step.
func (e *Ears) front(step time.Duration) *front {
	samples := int(step * sampleRate / time.Second)
	i := slices.IndexFunc(e.fronts, func(f front) bool { return f.step == samples })
	if i < 0 {
		e.fronts = append(e.fronts, front{Frontend: NewFrontend(step), step: samples})
		i = len(e.fronts) - 1
	}
	return &e.fronts[i]
}

// Heard is the number of frames that were heard so far, which is the number of the next one.
func (e *Ears) Heard() uint64 { return e.heard.Load() }

// SetCutoff changes the probability above which a word counts as said. It may be called at any time from any goroutine.
func (e *Ears) SetCutoff(name string, cutoff float64) error {
	if !(cutoff > 0 && cutoff < 1) {
		return fmt.Errorf("cutoff of %q is %v, not between 0 and 1", name, cutoff)
	}
	var names []string
	for _, w := range e.words {
		if w.Name == name {
			w.setCutoff(cutoff)
			return nil
		}
		names = append(names, w.Name)
	}
	return fmt.Errorf("cutoff of %q, which is none of the words %q", name, names)
}

// Run hears until ctx is done or frames is closed. It may be called once.
func (e *Ears) Run(ctx context.Context, frames <-chan audio.Frame) error {
	defer close(e.stopped)
	defer func() { e.end(ErrStopped) }()
	defer e.watch()()
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return nil
			}
			e.take(f)
		case l := <-e.begin:
			e.end(ErrSuperseded)
			e.listen(l)
		case h := <-e.hints:
			if e.listener != nil {
				e.listener.endpoint.hint = h
			}
		case l := <-e.looks:
			if !e.refused && e.microphone.look(e.heard.Load()) {
				e.tellMicrophone()
			}
			l.done()
		case <-ctx.Done():
			return nil
		}
	}
}

// take lets a frame in, or silence in its place.
func (e *Ears) take(f audio.Frame) {
	if e.refused = !e.o.Admit(&f); e.refused {
		f = audio.Frame{}
	}
	words, order := e.o.Split(f) // always, to keep up
	if e.refused {
		words, order = audio.Frame{}, audio.Frame{} // nothing of it is kept, and what was begun before ends in silence
	}
	e.hear(&words, order)
}

// hear takes one frame through the engines. It is kept as order.
func (e *Ears) hear(f *audio.Frame, order audio.Frame) {
	n := e.heard.Add(1) - 1
	if !e.refused && e.microphone.hear(f) {
		e.tellMicrophone()
	}
	r := e.at(n)
	*r = remembered{frame: order}
	var said *word
	best := 0.0 // its score
	speaking, sounding := false, e.o.Sounding()
	judge := func(w *word, score float64) {
		if e.judge(w, score, n, sounding) && (said == nil || score > best) {
			said, best = w, score
		}
	}
	for i := range e.fronts {
		front := &e.fronts[i]
		for at := 0; at < len(f); at += front.step {
			if !front.Write(f[at:at+front.step], &front.features) {
				continue
			}
			if i == 0 && e.voice.write(&front.bands, front.log) {
				speaking = true
			}
			if front.second != nil {
				front.second.Write(&front.features)
			}
			for _, w := range front.words {
				// All of them run, also those that nobody asks: they must keep up with the stream.
				if w.micro.Write(&front.features) && w.micro.ready() {
					judge(w, w.micro.Score())
				}
			}
		}
	}
	if e.embedder != nil && e.embedder.Write(f[:]) {
		for _, w := range e.embedded {
			if w.open.Write(e.embedder.Embedding()) {
				judge(w, w.open.Score())
			}
		}
	}
	r.sound = e.voice.frame(f, speaking, e.opinion())
	if said != nil {
		e.woke(said, best, n)
	}
	e.pass(n)
}

// judge decides about a word's new score in frame n: whether it was said, and if not, whether it was nearly.
func (e *Ears) judge(w *word, score float64, n uint64, sounding bool) (said bool) {
	said = w.said(score, sounding)
	last := e.call
	if w.Action == Stop {
		last = e.stop
	}
	switch {
	case last.within(e.o.Refractory, n):
		w.near.drop()
		return false // it is the same one still, or its echo
	case w.Action == Stop && (!sounding || e.listener != nil):
		w.near.drop()
		return false // there is nothing to be stopped, or it is part of an order
	case w.Action == RunRoutine && e.listener != nil:
		w.near.drop()
		return false // part of an order: others that listen are let through, for whoever listens already to ignore
	}
	if said && sounding && e.o.Alone() {
		w.near.drop()
		return false // it says so itself
	}
	bar, _ := w.bar(sounding)
	if w.near.write(score, bar, n) {
		e.tellNearMiss(w, n)
	}
	return said
}

func (e *Ears) tellNearMiss(w *word, n uint64) {
	m, ok := w.near.tell(w.Name, n)
	if !ok {
		return
	}
	e.o.Logger.Info("near miss", "word", m.Word, "peak", m.Peak, "bar", m.Bar, "took", m.Duration, "scores", m.Course, "untold", m.Untold)
	e.o.OnNearMiss(m)
}

// opinion is that of the model "vad", if there is one: it knows better what is a voice, but not when it begins and ends.
func (e *Ears) opinion() opinion {
	if e.second == nil {
		return none
	}
	e.sinceYes++
	if e.second.Score() > e.second.cutoff {
		e.sinceYes = 0
	}
	switch p := e.second.Raw(); {
	case e.sinceYes > confirmedFor:
		return denies
	case p >= sureFrom:
		return sure
	case p < doubtsBelow:
		return doubts
	}
	return none
}

// confirmedFor is how many frames the word of the model "vad" holds: as long as a pause between words. The others are
// of its output, from 0 to 255. All three were chosen by the endpoint table (endpoint_test.go).
const (
	confirmedFor = 20
	sureFrom     = 200
	doubtsBelow  = 100
)

// at is the place of frame n in the ring.
func (e *Ears) at(n uint64) *remembered { return &e.ring[n%uint64(len(e.ring))] }

// oldest is the first frame that the ring still has.
func (e *Ears) oldest() uint64 {
	n := e.heard.Load()
	return n - min(n, uint64(len(e.ring)))
}

// woke tells about a word that was detected in frame n.
func (e *Ears) woke(w *word, score float64, n uint64) {
	lag, tail := wordLag, wordTail
	if w.open != nil {
		lag, tail = openWordLag, openWordTail
	}
	if w.Action == Stop {
		e.stop = moment{n, true}
	} else {
		e.call, e.tail = moment{n, true}, audio.Frames(tail)
	}
	for _, other := range e.words {
		other.near.drop() // one that resembles it
	}
	end := e.wordEnd(n, lag)
	e.o.Logger.Debug("wake word", "word", w.Name, "score", score, "frame", n, "end", end)
	e.o.OnWake(Call{w.Name, score, end, w.Action, w.Routine})
}

const (
	// wordSearch is how far back the end of a word is looked for. The models detect it 50 to 280 ms after it ended.
	wordSearch = 320 * time.Millisecond

	// wordLag is how long ago a word ended that was followed by others in the same breath: rather too long, for a
	// recogniser can do with the rest of the wake word, but not without the first syllable of the order.
	wordLag = 280 * time.Millisecond

	// wordTail is how long after its detection a word may still be heard.
	wordTail = 60 * time.Millisecond

	// The same for openWakeWord's models, which know a word about 200 ms earlier than the others, and so mostly before it
	// ends.
	openWordLag  = 100 * time.Millisecond
	openWordTail = 240 * time.Millisecond
)

// wordEnd is the frame after the last one of a word that was detected in frame n. If it has been quiet since, that is
// where the quiet began. If not, or not for long, it is a fixed time ago: a gap may as well be one in the order.
func (e *Ears) wordEnd(n uint64, lag time.Duration) uint64 {
	first := max(e.oldest(), n-min(n, uint64(audio.Frames(wordSearch))))
	end := n + 1
	for end > first && e.at(end-1).sound == quiet {
		end--
	}
	if n+1-end >= gapFrames {
		return end
	}
	return max(first, n-min(n, uint64(audio.Frames(lag))))
}

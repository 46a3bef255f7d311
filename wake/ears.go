// Package wake hears: frames of sound go in, and out come the news that the user called and the utterance that he said
// then. It has the features that wake word models are trained on, the models, a voice activity detector, the end of an
// utterance, and a memory of the last seconds, so that no first syllable is lost. It opens no devices, understands no
// words but the wake words, and doesn't decide what a call leads to.
package wake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"bellbird/audio"
)

// What becomes of a frame, in the order of the functions below:
//
//  1. Run takes it from the channel.
//  2. hear: the frontend turns it into two slices of features. The detectors run on them; the voice activity detector
//     says whether it is speech. Both go into the ring.
//  3. woke: if a word was heard, where it ended is looked up in the ring, and OnWake is called.
//  4. pass: the listener, if there is one, gets the frame, through a queue that has room for the longest utterance.
//  5. Listen hands it on, on its own goroutine, and returns when the endpoint was found.

// Options configure Ears. The zero value is usable where there is a directory with models.
type Options struct {
	// Words are the names of the wake word models; default "okay_nabu". Their manifests are looked for as
	// "okay_nabu.json" in each of ModelDirs. A model named "vad" that is found there helps to tell voices from noise.
	Words     []string `toml:"words"`
	ModelDirs []string `toml:"model_dirs"`

	// Cutoff overrides, by name, the probability above which a word counts as said.
	Cutoff map[string]float64 `toml:"cutoff"`

	// Refractory is for how long after a call no other is heard; default 2 s.
	Refractory time.Duration `toml:"refractory"`

	// Preroll is how much sound is remembered, for utterances that began before Listen was called; default 2 s.
	Preroll time.Duration `toml:"preroll"`

	// Silence is how long it must be quiet for an utterance to be over; default 600 ms.
	Silence time.Duration `toml:"silence"`

	// NoSpeech is how long to wait for an utterance to begin; default 5 s.
	NoSpeech time.Duration `toml:"no_speech"`

	// MaxUtterance is how long an utterance may be; default 15 s.
	MaxUtterance time.Duration `toml:"max_utterance"`

	// OnWake is called when a wake word was heard: with the model's name, its mean probability, and the number of the
	// frame where the word ended, as well as that can be told. It runs on Run's goroutine and must not wait.
	OnWake func(word string, score float64, frame uint64) `toml:"-"`

	// Work is called when something goes to a listener, and what it returns when that has been taken in: it keeps a
	// virtual clock from running ahead. Nil on a real one.
	Work func() (done func()) `toml:"-"`

	Logger *slog.Logger `toml:"-"` // nil: discard
}

// defaults fills in what is zero.
func (o *Options) defaults() {
	orElse := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if len(o.Words) == 0 {
		o.Words = []string{"okay_nabu"}
	}
	orElse(&o.Refractory, 2*time.Second)
	orElse(&o.Preroll, 2*time.Second)
	orElse(&o.Silence, 600*time.Millisecond)
	orElse(&o.NoSpeech, 5*time.Second)
	orElse(&o.MaxUtterance, 15*time.Second)
	if o.OnWake == nil {
		o.OnWake = func(string, float64, uint64) {}
	}
	if o.Work == nil {
		o.Work = func() func() { return func() {} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Bounds of the options in time: what is outside is a slip of the pen.
const (
	leastTime = 100 * time.Millisecond
	mostTime  = 2 * time.Minute
)

func (o *Options) check() error {
	for _, t := range []struct {
		name string
		d    time.Duration
	}{
		{"refractory", o.Refractory}, {"preroll", o.Preroll}, {"silence", o.Silence},
		{"no_speech", o.NoSpeech}, {"max_utterance", o.MaxUtterance},
	} {
		if t.d < leastTime || t.d > mostTime {
			return fmt.Errorf("%s is %v, not %v to %v", t.name, t.d, leastTime, mostTime)
		}
	}
	for name, c := range o.Cutoff {
		if !slices.Contains(o.Words, name) {
			return fmt.Errorf("cutoff of %q, which is none of the words %q", name, o.Words)
		}
		if !(c > 0 && c < 1) {
			return fmt.Errorf("cutoff of %q is %v, not between 0 and 1", name, c)
		}
	}
	return nil
}

// What ends a Listen other than the end of the utterance and its context.
var (
	ErrStopped    = errors.New("the ears have stopped")             // Run is over, or frames ended
	ErrSuperseded = errors.New("another Listen began in its place") // there is one listener at a time
)

// Ears hear wake words and collect utterances.
type Ears struct {
	o       Options
	heard   atomic.Uint64 // frames so far
	begin   chan *listener
	stopped chan struct{}

	// The rest belongs to Run's goroutine.
	fronts   []front
	voice    voice
	second   *Detector // the model "vad", nil if there is none
	sinceYes int       // frames since it heard a voice
	ring     []remembered
	listener *listener
	lastCall uint64 // the frame in which the last call was detected
	called   bool
}

// A front is a frontend with the detectors that share it.
type front struct {
	*Frontend
	step      int // samples
	detectors []*Detector
	features  Features
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
	for i, word := range e.o.Words {
		if slices.Contains(e.o.Words[:i], word) {
			return nil, fmt.Errorf("wake word %q is given twice", word)
		}
		m, err := FindModel(word, e.o.ModelDirs)
		if err != nil {
			return nil, err
		}
		d, err := NewDetector(m, e.o.Cutoff[word])
		if err != nil {
			return nil, err
		}
		e.front(m.Step).detectors = append(e.front(m.Step).detectors, d)
	}
	if err := e.secondOpinion(); err != nil {
		return nil, err
	}
	return e, nil
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
		f := e.front(m.Step)
		f.detectors = append(f.detectors, e.second)
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

// Run hears until ctx is done or frames is closed. It may be called once.
func (e *Ears) Run(ctx context.Context, frames <-chan audio.Frame) error {
	defer close(e.stopped)
	defer func() { e.end(ErrStopped) }()
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return nil
			}
			e.hear(&f)
		case l := <-e.begin:
			e.end(ErrSuperseded)
			e.listen(l)
		case <-ctx.Done():
			return nil
		}
	}
}

// hear takes one frame through the engines.
func (e *Ears) hear(f *audio.Frame) {
	n := e.heard.Add(1) - 1
	r := e.at(n)
	*r = remembered{frame: *f}
	var word *Detector
	speaking := false
	for i := range e.fronts {
		front := &e.fronts[i]
		for at := 0; at < len(f); at += front.step {
			if !front.Write(f[at:at+front.step], &front.features) {
				continue
			}
			if i == 0 && e.voice.write(&front.bands, front.log) {
				speaking = true
			}
			for _, d := range front.detectors {
				// All of them run, also those that nobody asks: they must keep up with the stream.
				if d.Write(&front.features) && d.Heard() && d != e.second && (word == nil || d.Score() > word.Score()) {
					word = d
				}
			}
		}
	}
	r.sound = e.voice.frame(f, e.confirmed() && speaking)
	if word != nil && !(e.called && n-e.lastCall < uint64(audio.Frames(e.o.Refractory))) {
		e.woke(word, n)
	}
	e.pass(n)
}

// confirmed tells whether the model "vad", if there is one, has heard a voice of late: it knows better what is one, but
// not when it begins and ends.
func (e *Ears) confirmed() bool {
	if e.second == nil {
		return true
	}
	e.sinceYes++
	if e.second.Score() > e.second.cutoff {
		e.sinceYes = 0
	}
	return e.sinceYes <= confirmedFor
}

// confirmedFor is how many frames the word of the model "vad" holds: as long as a pause between words.
const confirmedFor = 20

// at is the place of frame n in the ring.
func (e *Ears) at(n uint64) *remembered { return &e.ring[n%uint64(len(e.ring))] }

// oldest is the first frame that the ring still has.
func (e *Ears) oldest() uint64 {
	n := e.heard.Load()
	return n - min(n, uint64(len(e.ring)))
}

// woke tells about a call that was detected in frame n.
func (e *Ears) woke(d *Detector, n uint64) {
	e.lastCall, e.called = n, true
	end := e.wordEnd(n)
	e.o.Logger.Debug("wake word", "word", d.model.Name, "score", d.Score(), "frame", n, "end", end)
	e.o.OnWake(d.model.Name, d.Score(), end)
}

const (
	// wordSearch is how far back the end of a word is looked for. The models detect it 50 to 280 ms after it ended.
	wordSearch = 320 * time.Millisecond

	// wordLag is how long ago a word ended that was followed by others in the same breath: rather too long, for a
	// recogniser can do with the rest of the wake word, but not without the first syllable of the order.
	wordLag = 280 * time.Millisecond

	// wordTail is how long after its detection a word may still be heard.
	wordTail = 60 * time.Millisecond
)

// wordEnd is the frame after the last one of a word that was detected in frame n. If it has been quiet since, that is
// where the quiet began. If not, or not for long, it is a fixed time ago: a gap may as well be one in the order.
func (e *Ears) wordEnd(n uint64) uint64 {
	first := max(e.oldest(), n-min(n, uint64(audio.Frames(wordSearch))))
	end := n + 1
	for end > first && e.at(end-1).sound == quiet {
		end--
	}
	if n+1-end >= gapFrames {
		return end
	}
	return max(first, n-min(n, uint64(audio.Frames(wordLag))))
}

package wake

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"bellbird/audio"
)

// Options configure Ears. The zero value is usable where there is a directory with models.
type Options struct {
	// Words are the names of the wake word models; default "okay_nabu" if Word is empty as well. Their manifests are
	// looked for as "okay_nabu.json" in each of ModelDirs; a "okay_nabu.tflite" without one is taken for openWakeWord's,
	// which needs melspectrogram.tflite and embedding_model.tflite as well, beside it or in another of ModelDirs. A model
	// named "vad" that is found there helps to tell voices from noise, and one named "stop" is the stop word.
	Words     []string `toml:"words"`
	ModelDirs []string `toml:"model_dirs"`

	// Cutoff overrides, by name, the probability above which one of Words counts as said.
	Cutoff map[string]float64 `toml:"cutoff"`

	// Word has those words, besides Words, about which there is more to say than their names.
	Word []Word `toml:"word"`

	// StopWord is whether "stop" stops what sounds, without a call before it; default is yes if there is a model of that
	// name. One of Word with this name says more about it.
	StopWord *bool `toml:"stop_word"`

	// Refractory is for how long after a call no other is heard; default 2 s.
	Refractory time.Duration `toml:"refractory"`

	// Preroll is how much sound is remembered, for utterances that began before Listen was called; default 2 s.
	Preroll time.Duration `toml:"preroll"`

	// Silence is how long it must be quiet for an utterance to be over; default 500 ms. It is less after a Hint that it is
	// complete, and more after one that it isn't.
	Silence time.Duration `toml:"silence"`

	// NoSpeech is how long to wait for an utterance to begin; default 5 s.
	NoSpeech time.Duration `toml:"no_speech"`

	// MaxUtterance is how long an utterance may be; default 15 s.
	MaxUtterance time.Duration `toml:"max_utterance"`

	// OnWake is called when a word was heard, OnNearMiss when one nearly was, OnMicrophone when the microphone became
	// deaf, or is well again. All run on Run's goroutine and must not wait.
	OnWake       func(Call)     `toml:"-"`
	OnNearMiss   func(NearMiss) `toml:"-"`
	OnMicrophone func(Fault)    `toml:"-"`

	// Admit reports whether a frame may be heard. Nothing is kept of one that may not, nor is the microphone taken for
	// deaf while none may. It must not wait. Nil: all may.
	Admit func(*audio.Frame) bool `toml:"-"`

	// Split makes two of a frame that was admitted, or of silence in the place of one that was not: words is what wake
	// words and speech are found in, order what Listen passes on. With a canceller in it these are what it leaves of the
	// microphone without suppressing anything, and what is left of that with the echo turned down. order may be a frame
	// late. It must not wait. Nil: both are the frame.
	Split func(mic audio.Frame) (words, order audio.Frame) `toml:"-"`

	// Alone reports, while the loudspeaker sounds, whether nothing else is heard: then no word is said but by the
	// loudspeaker, and none is heard. Nil: that is not known.
	Alone func() bool `toml:"-"`

	// OnPause is called when the speaker pauses, while there is a listener. It is the moment to call Hint. It runs on Run's
	// goroutine and must not wait.
	OnPause func() `toml:"-"`

	// Sounding tells whether the loudspeaker makes any sound. Then a wake word must be surer than otherwise, and words
	// that stop are listened for. It is called for every frame. Nil: never.
	Sounding func() bool `toml:"-"`

	// AfterFunc calls f in a goroutine of its own once d has passed, unless it is stopped before. Nil: time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool) `toml:"-"`

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
	orElse(&o.Refractory, 2*time.Second)
	orElse(&o.Preroll, 2*time.Second)
	orElse(&o.Silence, 500*time.Millisecond)
	orElse(&o.NoSpeech, 5*time.Second)
	orElse(&o.MaxUtterance, 15*time.Second)
	if o.OnWake == nil {
		o.OnWake = func(Call) {}
	}
	if o.OnNearMiss == nil {
		o.OnNearMiss = func(NearMiss) {}
	}
	if o.Admit == nil {
		o.Admit = func(*audio.Frame) bool { return true }
	}
	if o.Split == nil {
		o.Split = func(f audio.Frame) (words, order audio.Frame) { return f, f }
	}
	if o.Alone == nil {
		o.Alone = func() bool { return false }
	}
	if o.OnMicrophone == nil {
		o.OnMicrophone = func(Fault) {}
	}
	if o.OnPause == nil {
		o.OnPause = func() {}
	}
	if o.Sounding == nil {
		o.Sounding = func() bool { return false }
	}
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if o.Work == nil {
		o.Work = func() func() { return func() {} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// All are the words that are listened for, the stop word excepted unless it is among Word: Words with their Cutoff, then
// Word, each with an action.
func (o *Options) All() []Word {
	names := o.Words
	if len(names) == 0 && len(o.Word) == 0 {
		names = []string{"okay_nabu"}
	}
	var all []Word
	for _, name := range names {
		all = append(all, Word{Name: name, Cutoff: o.Cutoff[name], Action: Listen})
	}
	for _, w := range o.Word {
		if w.Action == "" {
			w.Action = Listen
			if w.Name == stopWord {
				w.Action = Stop
			}
		}
		all = append(all, w)
	}
	return all
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
	all := o.All()
	var names []string
	for _, w := range all {
		if slices.Contains(names, w.Name) {
			return fmt.Errorf("wake word %q is given twice", w.Name)
		}
		names = append(names, w.Name)
		if err := w.check(); err != nil {
			return err
		}
	}
	for name, c := range o.Cutoff {
		if !slices.Contains(o.Words, name) && !(len(o.Words) == 0 && slices.Contains(names, name)) {
			return fmt.Errorf("cutoff of %q, which is none of the words %q", name, names)
		}
		if !(c > 0 && c < 1) {
			return fmt.Errorf("cutoff of %q is %v, not between 0 and 1", name, c)
		}
	}
	return nil
}

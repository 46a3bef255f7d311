package pipeline

import (
	"log/slog"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/ghost"
	"bellbird/hooks"
)

// Options are what a pipeline is made of and how long it waits. Everything but the time-outs, the sounds and the logger
// must be set; Ears and Recognizer only if Wake is going to be called.
type Options struct {
	Ears       Ears          `toml:"-"`
	Recognizer Recognizer    `toml:"-"`
	Model      Model         `toml:"-"`
	Tools      Tools         `toml:"-"`
	Voice      Voice         `toml:"-"`
	Chats      Chats         `toml:"-"`
	Output     *audio.Output `toml:"-"`
	Hooks      *hooks.Runner `toml:"-"` // nil: there are none
	Bus        *event.Bus    `toml:"-"`
	Clock      clock.Clock   `toml:"-"` // nil: clock.System
	Logger     *slog.Logger  `toml:"-"` // nil: none

	// Contend finds out whether this appliance is the one to answer, when several heard the same word: tell is called with
	// that, soon, while the appliance listens already. It must not wait. Nil: it answers.
	Contend func(word string, score float64, tell func(goOn bool)) `toml:"-"`

	WakeSound  func() []audio.Frame `toml:"-"` // what is played when the appliance begins to listen, if anything; nil: nothing
	DoneSound  []audio.Frame        `toml:"-"` // played when a plugin did what was said, and has nothing to say to it
	ErrorSound []audio.Frame        `toml:"-"` // played when there is no voice to say what is wrong

	// Prompt makes the system prompt of a turn in chat c, with the parts that plugins contribute; "" is none. Nil: the
	// parts are all there is.
	Prompt func(c Chat, parts []string) string `toml:"-"`

	// Ghost makes the ghost message of a turn in chat c, from what plugins contribute; "" is none. Nil: there never is one.
	Ghost func(c Chat, run uint64, contributions []hooks.Contribution) ghost.Message `toml:"-"`

	// Withheld reports whether a tool must not be offered in private chats. Nil: all may.
	Withheld func(tool string) bool `toml:"-"`

	// Confirmations ask the user before a tool runs. Nil: he can't be asked, and a tool for which he would have to be
	// doesn't run.
	Confirmations *Confirmations `toml:"-"`

	// VoiceFor is the voice of a turn in chat c. Nil, or a nil voice: Voice.
	VoiceFor func(c Chat) Voice `toml:"-"`

	// Streaming is whether the answer is spoken while it is being written; default true.
	Streaming *bool `toml:"streaming"`

	// Follow says after which answers the microphone opens without a call; default FollowQuestions. FollowUpTime is how
	// long it waits then for somebody to speak, up to 30 s; default 5 s. Settling is how long the end of the answer must be
	// past before; default 400 ms.
	Follow       Follow        `toml:"follow_up"`
	FollowUpTime time.Duration `toml:"follow_up_time"`
	Settling     time.Duration `toml:"settling"`

	// MayFollowUp reports whether the microphone may be opened without a call: not while it is muted, say. It must not
	// wait. Nil: it may.
	MayFollowUp func() bool `toml:"-"`

	// The deadlines of the phases. Each bounds a single wait, so that no state can last for ever.
	ListenTimeout    time.Duration `toml:"listen_timeout"`    // for an utterance, in case frames stop coming; default 20 s
	RecognizeTimeout time.Duration `toml:"recognize_timeout"` // from the endpoint to the text; default 10 s
	ModelTimeout     time.Duration `toml:"model_timeout"`     // for the next piece of the answer; default 30 s
	ToolTimeout      time.Duration `toml:"tool_timeout"`      // for one tool; default 10 s
	VoiceTimeout     time.Duration `toml:"voice_timeout"`     // for the next frame of speech; default 10 s
	TurnTimeout      time.Duration `toml:"turn_timeout"`      // for a whole turn, whatever its engines do; default 10 min
	ErrorShown       time.Duration `toml:"error_shown"`       // how long a failed turn is shown; default 2 s

	// ToolRounds is how often a model may ask for tools within one turn; default 8.
	ToolRounds int `toml:"tool_rounds"`
}

func (o *Options) setDefaults() {
	orElse := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orElse(&o.ListenTimeout, 20*time.Second)
	orElse(&o.RecognizeTimeout, 10*time.Second)
	orElse(&o.ModelTimeout, 30*time.Second)
	orElse(&o.ToolTimeout, 10*time.Second)
	orElse(&o.VoiceTimeout, 10*time.Second)
	orElse(&o.TurnTimeout, 10*time.Minute)
	orElse(&o.ErrorShown, 2*time.Second)
	orElse(&o.FollowUpTime, 5*time.Second)
	orElse(&o.Settling, 400*time.Millisecond)
	if o.Follow == "" {
		o.Follow = FollowQuestions
	}
	if o.MayFollowUp == nil {
		o.MayFollowUp = func() bool { return true }
	}
	if o.ToolRounds <= 0 {
		o.ToolRounds = 8
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) streams() bool { return o.Streaming == nil || *o.Streaming }

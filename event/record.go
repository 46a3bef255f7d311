package event

import (
	"math"
	"strconv"
	"time"
)

// An Outcome is how a turn ended.
type Outcome string

// The outcomes of a turn.
const (
	Completed     Outcome = "completed"
	NotUnderstood Outcome = "not_understood" // heard, but outside what is understood; said so
	NothingHeard  Outcome = "nothing_heard"  // nobody spoke after the wake word; ends in silence
	Yielded       Outcome = "yielded"        // another appliance heard the call better, and answers
	Handled       Outcome = "handled"        // a plugin took it out of the appliance's hands
	Interrupted   Outcome = "interrupted"    // barge-in, or stopped
	FailedTurn    Outcome = "failed"         // see Record.Error
)

// A Record is what is kept of a turn. Heard and Answer are speech; the record of a turn in a private chat is only for the
// one who asked.
type Record struct {
	Run      uint64    `json:"run"`
	Began    time.Time `json:"began"`
	Outcome  Outcome   `json:"outcome"`
	Error    ErrorKind `json:"error,omitempty"`
	WakeWord string    `json:"wake_word,omitempty"`
	Heard    string    `json:"heard,omitempty"`
	Answer   string    `json:"answer,omitempty"` // what was spoken: less than what was written, if interrupted
	Stages   Stages    `json:"stages"`
	Gaps     uint64    `json:"gaps,omitempty"` // holes in the speech
	Chat     string    `json:"chat,omitempty"` // empty if it is private
	Private  bool      `json:"private,omitempty"`

	// Model is what the model had to do with it: what its requests took in tokens, all together, and why it failed.
	Model *ModelUse `json:"model,omitempty"`

	// Hooks are the calls of plugins' handlers, in the order in which they ended.
	Hooks []HookCall `json:"hooks,omitempty"`
}

// A ModelUse is what the model's requests of a turn took, in its tokens.
type ModelUse struct {
	Requests   int    `json:"requests"`
	Input      int    `json:"input"`      // with what was cached
	CacheRead  int    `json:"cache_read"` // the part of it that the server remembered
	CacheWrite int    `json:"cache_write"`
	Output     int    `json:"output"`
	Error      string `json:"error,omitempty"` // the kind, as package dialog names them
}

// A HookCall is one handler at one hook point.
type HookCall struct {
	Point   string `json:"point"`
	Plugin  string `json:"plugin"`
	Outcome string `json:"outcome"`  // as package hooks names them
	Began   Millis `json:"began_ms"` // since the turn began
	Took    Millis `json:"took_ms"`
	Error   string `json:"error,omitempty"` // of one that failed
}

// An ErrorKind says what failed a turn. It chooses the sentence that is spoken.
type ErrorKind string

// The kinds of errors.
const (
	RecognizerFailed ErrorKind = "recognizer" // speech to text
	ModelFailed      ErrorKind = "model"
	VoiceFailed      ErrorKind = "voice" // text to speech: shown, with a tone instead of words
	MicrophoneFailed ErrorKind = "microphone"
	TurnTooLong      ErrorKind = "deadline"
	ChatLocked       ErrorKind = "locked"  // it is private, and the vault is locked
	ChatUnknown      ErrorKind = "no chat" // there is none of that name, or it can't be read
)

// Stages are the times at which a turn reached its stages, in milliseconds since it began; zero if it never did.
type Stages struct {
	Voiced     Millis `json:"voiced_ms"`      // last voiced frame of the utterance
	Endpoint   Millis `json:"endpoint_ms"`    // the utterance was found to have ended
	Recognised Millis `json:"recognised_ms"`  // its text was known
	FirstWord  Millis `json:"first_word_ms"`  // the model wrote its first word
	FirstSound Millis `json:"first_sound_ms"` // the speaker consumed the first frame of speech
	End        Millis `json:"end_ms"`         // the turn was over
}

// Millis is a duration that is written in JSON as a number of milliseconds.
type Millis time.Duration

// MarshalJSON writes whole microseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	ms := float64(time.Duration(m).Round(time.Microsecond).Microseconds()) / 1000
	return strconv.AppendFloat(nil, ms, 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Millis) UnmarshalJSON(text []byte) error {
	ms, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return err
	}
	*m = Millis(time.Duration(math.Round(ms*1000)) * time.Microsecond)
	return nil
}

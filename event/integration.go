package event

import (
	"encoding/json"
	"time"
)

// ViewShown tells what an integration has to show of a turn that it handled, for dashboards: a speaker has no screen. The
// blocks are as the integration made them, 32 at most and 16 KB all together.
type ViewShown struct {
	At          time.Time
	Integration string
	Blocks      []json.RawMessage
	Private     bool
}

// ConfirmationAsked tells that a tool waits for its user's yes. Text is what he is asked.
type ConfirmationAsked struct {
	At      time.Time
	Run     uint64
	Tool    string
	Text    string
	Private bool
}

// ConfirmationEnded tells what became of that.
type ConfirmationEnded struct {
	At        time.Time
	Run       uint64
	Tool      string
	Confirmed bool
	By        string // "voice" or "button"; "": nobody answered in time
}

// Dictated tells what became of a dictation. What was dictated is not in it.
type Dictated struct {
	At      time.Time
	App     string
	Outcome Dictation
}

// A Dictation is how a dictation ended.
type Dictation string

// How dictations end.
const (
	DictationDelivered Dictation = "delivered"
	DictationConsumed  Dictation = "consumed"  // by a hook
	DictationFailed    Dictation = "failed"    // it could not be delivered
	DictationAbandoned Dictation = "abandoned" // nothing was said, or not understood
)

// OfPrivateChat reports whether the fact may not leave the appliance, nor be kept.
func (f ViewShown) OfPrivateChat() bool         { return f.Private }
func (f ConfirmationAsked) OfPrivateChat() bool { return f.Private }

func (ViewShown) fact()         {}
func (ConfirmationAsked) fact() {}
func (ConfirmationEnded) fact() {}
func (Dictated) fact()          {}

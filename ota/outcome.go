package ota

import (
	"fmt"
	"strings"
	"time"
)

// A Result is how an update ended.
type Result string

// The results of an update.
const (
	Committed  Result = "committed"
	RolledBack Result = "rolled_back"
	Kept       Result = "kept"   // it is faulty, but there is nothing that could be gone back to
	Failed     Result = "failed" // before anything was changed
)

// An Outcome is what became of an update.
type Outcome struct {
	Result  Result    `json:"result"`
	Version string    `json:"version"`
	From    string    `json:"from,omitempty"` // the version before it
	Reason  *Reason   `json:"reason,omitempty"`
	At      time.Time `json:"at"`
	Asked   bool      `json:"asked,omitempty"` // somebody wanted it, and waits for it
	Told    bool      `json:"told,omitempty"`  // Report knows of it
}

// A Reason is why an update did not stay.
type Reason struct {
	Kind   ReasonKind `json:"kind"`
	Parts  []string   `json:"parts,omitempty"`  // of the health that were missing, by their names
	Detail string     `json:"detail,omitempty"` // for who looks after the device
}

// A ReasonKind chooses the sentence that people are told.
type ReasonKind string

// The kinds of reasons.
const (
	Unhealthy   ReasonKind = "unhealthy"     // something of the health was missing at the deadline
	DidNotStart ReasonKind = "did_not_start" // the boot loader went back by itself
	Stopped     ReasonKind = "stopped"       // it ran, and was cut off before it was proved good
	Crashed     ReasonKind = "crashed"       // it ended again and again
	NotMarked   ReasonKind = "not_marked"    // the boot loader didn't take it that it is good
	ByHand      ReasonKind = "by_hand"       // somebody wanted it
	BadBundle   ReasonKind = "bundle"        // it could not be installed
	Interrupted ReasonKind = "interrupted"   // the power was cut, and what was being installed is gone
)

// String is the reason for the one who looks after the device, "" if there is none.
func (r *Reason) String() string {
	if r == nil {
		return ""
	}
	s := r.clause()
	if r.Detail != "" {
		s += " (" + r.Detail + ")"
	}
	return s
}

func (r *Reason) clause() string {
	switch r.Kind {
	case Unhealthy:
		verb := " didn't work"
		return "the " + join(r.Parts) + verb
	case DidNotStart:
		return "it didn't start"
	case Stopped:
		return "it was cut off before it had proved itself"
	case Crashed:
		return "it crashed several times"
	case NotMarked:
		return "the boot loader didn't accept it"
	case ByHand:
		return "you asked for it"
	case BadBundle:
		return "it couldn't be installed"
	case Interrupted:
		return "the power was cut"
	}
	return "something went wrong"
}

func join(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", the ") + " and the " + parts[len(parts)-1]
}

// Sentence is what the device says of it; "" if that is nothing.
func (o Outcome) Sentence() string {
	version := func(v string) string {
		if v == "" {
			return "the former version"
		}
		return "version " + spokenVersion(v)
	}
	switch o.Result {
	case Committed:
		return fmt.Sprintf("I was updated, and have %s now.", version(o.Version))
	case RolledBack:
		if o.Reason != nil && o.Reason.Kind == ByHand {
			return fmt.Sprintf("I went back to %s.", version(o.From))
		}
		return fmt.Sprintf("I tried %s, but %s. So I went back to %s.", version(o.Version), o.Reason.clause(), version(o.From))
	case Kept:
		return fmt.Sprintf("I have %s now, but %s, and there is no other version that I could go back to.", version(o.Version), o.Reason.clause())
	}
	return "" // nothing has changed, and who asked for it was told
}

// spokenVersion leaves out what comes after the numbers.
func spokenVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if i := strings.IndexFunc(v, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i > 0 {
		v = strings.Trim(v[:i], ".")
	}
	return v
}

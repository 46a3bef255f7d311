package hooks

import "time"

// A Trace says what became of each handler in a fire, in the order in which they stand.
type Trace []Call

// A Call is one line of a trace.
type Call struct {
	Plugin  string
	Point   string
	Outcome Outcome
	Took    time.Duration
	Err     error // of one that failed
	Private bool  // it was about a private chat, and so is what Err says
}

// An Outcome is what became of a handler in a fire.
type Outcome string

// The outcomes.
const (
	Committed       Outcome = "committed" // it returned in time, and its changes count
	Failed          Outcome = "failed"    // it returned an error, or panicked
	Missed          Outcome = "missed"    // it was running at the deadline
	NotReached      Outcome = "not reached"
	Abandoned       Outcome = "abandoned" // the turn ended while it was running
	WithheldPrivate Outcome = "withheld: private"
	WithheldSurface Outcome = "withheld: surface"
	NoMatch         Outcome = "no match" // of a voice command
	BreakerOpen     Outcome = "breaker open"
)

package event

import "time"

// HookFired tells what became of the handlers of one fire, as it happens. Began is zero in its calls.
type HookFired struct {
	At    time.Time
	Calls []HookCall
}

func (HookFired) fact() {}

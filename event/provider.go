package event

import "time"

// ProviderSwitched tells that another engine does a part of the work from now on.
type ProviderSwitched struct {
	At   time.Time
	Kind string // of the work: "llm", "stt" or "tts"
	Name string // of the engine
	// Instead is set if it stands in for one that can't be reached.
	Instead bool
}

func (ProviderSwitched) fact() {}

package event

import "time"

// PluginPublished tells what a plugin wants others to know.
type PluginPublished struct {
	At     time.Time
	Plugin string
	Kind   string
	Data   any // as JSON has it
}

func (PluginPublished) fact() {}

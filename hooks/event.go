package hooks

import (
	"maps"
	"slices"
)

// An Event is what a handler gets to see and may change. Its fields and their meaning are those of the hook contract;
// a nil pointer is the contract's "none". Which of the changes have an effect is said by the table of points.
type Event struct {
	Input         string   `json:"input"`
	SkipLLM       bool     `json:"skip_llm,omitempty"`
	Response      *string  `json:"response,omitempty"`
	Ephemeral     bool     `json:"ephemeral,omitempty"`
	ContextParts  []string `json:"context_parts,omitempty"`
	StopPropagate bool     `json:"stop_propagation,omitempty"` // no later handler of this fire is called

	FunctionName *string          `json:"function_name,omitempty"`
	Arguments    map[string]any   `json:"arguments,omitempty"` // as decoded from JSON
	Result       *string          `json:"result,omitempty"`
	Confirm      *string          `json:"require_confirmation,omitempty"` // why the user must be asked first; may be set, never removed
	Tools        []map[string]any `json:"tools,omitempty"`                // schemas, as decoded from JSON

	TTSText *string `json:"tts_text,omitempty"`
	SkipTTS bool    `json:"skip_tts,omitempty"`

	GhostText *string `json:"ghost_text,omitempty"`
	// GhostContributions is what the handlers of ghost_inject contributed, in order. The runner makes it.
	GhostContributions []Contribution `json:"ghost_contributions,omitempty"`

	// Metadata is free for handlers to leave something for those after them. Its values are nil, booleans, numbers,
	// strings, []byte, []any and map[string]any; and under "system", where the point has it, what the plugin may use.
	Metadata map[string]any `json:"metadata,omitempty"`

	// Stamped by the runner, or by who fires; what a handler writes here is overwritten.
	Config      any     `json:"config,omitempty"`
	ChatName    *string `json:"chat_name,omitempty"`
	ChatPrivate *bool   `json:"chat_private,omitempty"` // nil before the fire: not resolved yet
	Surface     *string `json:"surface,omitempty"`
}

// A Contribution is one plugin's line of a ghost message.
type Contribution struct {
	Plugin string `json:"plugin"`
	Text   string `json:"text"`
}

// The keys of Metadata that the runner knows.
const (
	systemKey   = "system"
	capturesKey = "captures" // of a voice command's regular expression: []any of strings, the whole match first
)

// clone is a copy that shares nothing which a handler could change in place.
func (e *Event) clone() *Event {
	// One piece of memory for the event and for what its stamps point to, since nearly every event has them.
	var own struct {
		Event
		private                     bool
		name, surface, functionName string
	}
	c := &own.Event
	*c = *e
	c.ChatPrivate = into(&own.private, e.ChatPrivate)
	c.ChatName = into(&own.name, e.ChatName)
	c.Surface = into(&own.surface, e.Surface)
	c.FunctionName = into(&own.functionName, e.FunctionName)
	c.Response, c.Result, c.Confirm = same(e.Response), same(e.Result), same(e.Confirm)
	c.TTSText, c.GhostText = same(e.TTSText), same(e.GhostText)
	c.ContextParts = slices.Clone(e.ContextParts)
	c.GhostContributions = slices.Clone(e.GhostContributions)
	c.Arguments = cloneMap(e.Arguments)
	c.Metadata = cloneMap(e.Metadata)
	if e.Tools != nil {
		c.Tools = make([]map[string]any, len(e.Tools))
		for i, t := range e.Tools {
			c.Tools[i] = cloneMap(t)
		}
	}
	return c
}

// into copies what p points to into *to.
func into[T any](to, p *T) *T {
	if p == nil {
		return nil
	}
	*to = *p
	return to
}

// same copies what p points to.
func same[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneMap(m map[string]any) map[string]any {
	if len(m) == 0 {
		return maps.Clone(m)
	}
	c := make(map[string]any, len(m))
	for k, v := range m {
		c[k] = cloneValue(v)
	}
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		c := make([]any, len(v))
		for i, x := range v {
			c[i] = cloneValue(x)
		}
		return c
	case []byte:
		return slices.Clone(v)
	}
	return v
}

// plain reports whether there is nothing in e that could have been changed in place, besides what sameScalars compares.
func (e *Event) plain() bool {
	if e.ContextParts != nil || e.Arguments != nil || e.Tools != nil || e.GhostContributions != nil || len(e.Metadata) > 1 {
		return false
	}
	if len(e.Metadata) == 0 {
		return true
	}
	_, system := e.Metadata[systemKey]
	return system
}

// sameScalars compares the fields that a handler may set and that are no containers.
func (e *Event) sameScalars(o *Event) bool {
	return e.Input == o.Input && e.SkipLLM == o.SkipLLM && e.Ephemeral == o.Ephemeral && e.StopPropagate == o.StopPropagate &&
		e.SkipTTS == o.SkipTTS && equal(e.Response, o.Response) && equal(e.Result, o.Result) && equal(e.Confirm, o.Confirm) &&
		equal(e.TTSText, o.TTSText) && equal(e.FunctionName, o.FunctionName) && e.GhostText == nil &&
		equal(e.ChatName, o.ChatName) && equal(e.Surface, o.Surface) && equal(e.ChatPrivate, o.ChatPrivate)
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// String returns a pointer to s, for the fields that may be none.
func String(s string) *string { return &s }

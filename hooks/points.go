package hooks

import (
	"slices"
	"time"
)

// A Point is a place at which hooks are fired. The table below is all that the runner knows of them: it has no code for
// one point in particular.
type Point struct {
	Name string

	// Waits is whether who fires waits for the handlers. If not, they are called one fire after the other by a
	// goroutine of the runner's.
	Waits bool

	// Budget is what all handlers of one fire have together.
	Budget time.Duration

	// Honours are the fields of the event in which changes have an effect.
	Honours fields

	// System and Config are whether the event has them.
	System, Config bool

	// Private is what becomes of a fire in a private chat.
	Private delivery

	// Presence is whether the fire is withheld from plugins that are at home on other surfaces.
	Presence bool
}

type delivery int

const (
	awareInPrivate delivery = iota // in private chats, only to plugins that are aware of privacy
	always                         // to all: there is nothing private in it, or it must not be missed
	awareOnly                      // only to aware plugins, since the event itself is a secret
)

// fields is a set of fields of an Event.
type fields int

const (
	input fields = 1 << iota
	skipLLM
	response
	responseNotBlank
	ephemeral
	contextParts
	ghostText
	toolsSubtract
	arguments
	result
	confirm
	ttsText
	skipTTS
	audioCarrier
)

// Later is the budget of those who are not waited for.
const later = 5 * time.Second

// Unknown points may be fired too: plugins fire their own. This is how they are treated.
var unknownPoint = Point{Waits: true, Budget: 250 * time.Millisecond, Honours: ^fields(0) &^ (responseNotBlank | toolsSubtract)}

var points = []Point{
	{Name: "on_wake", Waits: true, Budget: 30 * time.Millisecond, Config: true, Private: always},
	{Name: "post_stt", Waits: true, Budget: 150 * time.Millisecond, Honours: input, System: true, Config: true},
	{Name: "pre_chat", Waits: true, Budget: 500 * time.Millisecond, Honours: input | skipLLM | response | ephemeral | contextParts, System: true, Config: true},
	{Name: "dictation", Waits: true, Budget: 250 * time.Millisecond, Honours: input | skipLLM, System: true, Config: true},
	{Name: "prompt_inject", Waits: true, Budget: 250 * time.Millisecond, Honours: contextParts, Config: true, Presence: true},
	{Name: "ghost_inject", Waits: true, Budget: 250 * time.Millisecond, Honours: ghostText, System: true, Presence: true},
	{Name: "tools_filter", Waits: true, Budget: 100 * time.Millisecond, Honours: toolsSubtract},
	{Name: "pre_execute", Waits: true, Budget: 2 * time.Second, Honours: arguments | skipLLM | result | confirm, System: true, Config: true},
	{Name: "post_execute", Waits: true, Budget: 2 * time.Second, Honours: result, Config: true},
	{Name: "post_llm", Waits: true, Budget: 250 * time.Millisecond, Honours: responseNotBlank, System: true, Config: true},
	{Name: "post_chat", Budget: later, System: true, Config: true},
	{Name: "tts_stream_start", Waits: true, Budget: 50 * time.Millisecond, Honours: skipTTS, System: true, Config: true},
	{Name: "tts_chunk_text", Waits: true, Budget: 50 * time.Millisecond, Honours: ttsText | skipTTS, System: true, Config: true},
	{Name: "tts_chunk_audio", Waits: true, Budget: 50 * time.Millisecond, Honours: audioCarrier, System: true, Config: true},
	{Name: "tts_stream_end", Budget: later, System: true, Config: true},
	{Name: "pre_tts", Waits: true, Budget: 100 * time.Millisecond, Honours: ttsText | skipTTS, Config: true},
	{Name: "post_tts", Budget: later, Config: true},

	{Name: "plugins_ready", Budget: later, Private: always},
	{Name: "provider_switched", Budget: later, Private: always},
	{Name: "chat_renamed", Budget: later, Private: always},
	{Name: "chat_deleted", Budget: later, Private: always},
	{Name: "chat_cleared", Budget: later, Private: always},
	{Name: "chat_vaulted", Budget: later, Private: awareOnly},
	{Name: "vault_locked", Budget: later},
	{Name: "vault_unlocked", Budget: later},
}

// Points is the table, for documentation and for checks of manifests.
func Points() []Point { return slices.Clone(points) }

// PointNamed is a row of the table; ok is false if there is none, and then p is how an unknown point is treated.
func PointNamed(name string) (p Point, ok bool) {
	for i := range points {
		if points[i].Name == name {
			return points[i], true
		}
	}
	p = unknownPoint
	p.Name = name
	return p, false
}

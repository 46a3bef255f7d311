// Package dialog has the words that the parts of a conversation share: messages, what is asked of a model, and what
// comes back. They are plain values; nothing here acts.
package dialog

import (
	"encoding/json"
	"errors"
	"time"
)

// ErrNotUnderstood is what a model yields, with no text before it, when the user said something outside of what it
// understands. It is an answer rather than a fault: the user is told so, and nothing is retried.
var ErrNotUnderstood = errors.New("not understood")

// A Role says who a message is from.
type Role string

// The roles, named as in the chat-completion APIs.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// A Message is one entry of a conversation.
type Message struct {
	Role    Role
	Content string
	Time    time.Time

	// Calls are what an assistant's message asks to be done.
	Calls []ToolCall

	// CallID and Name say which call a tool's message answers.
	CallID string
	Name   string

	// PerTurn is whether the message belongs to this turn's request only: it follows the history, and will not be there
	// the next time. What a server remembers of a request for the next one ends before the first such message.
	PerTurn bool
}

// A Request is what a model is asked.
type Request struct {
	Messages []Message
	Tools    []ToolSpec

	// NoCalls is whether the model must answer with what it knows. Tools then only tell what the calls so far meant.
	NoCalls bool
}

// A Delta is a piece of a model's answer: text, a whole tool call, what the answer cost, or several of these. One with
// nothing in it tells that the model is at work.
type Delta struct {
	Text  string
	Call  *ToolCall
	Usage *Usage // comes once, at the end, if at all
}

// Usage is what a request took, in the model's tokens. A figure that the server doesn't tell is 0.
type Usage struct {
	Input        int // all of the request, with what was cached
	CacheRead    int // the part of Input that the server remembered
	CacheWritten int // the part of Input that it remembers from now on, where that has a price
	Output       int
}

// A ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON schema; nil means none
}

// A ToolCall is a model's wish to have a tool run.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object

	// Invalid says for the model to read why its arguments made no sense; Arguments is then empty, {}, and the call must
	// be refused. "" is the usual case.
	Invalid string
}

// A ToolResult is what came of a call. Content is written for the model to read, and short enough to be spoken.
type ToolResult struct {
	CallID  string
	Content string
}

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
}

// A Request is what a model is asked.
type Request struct {
	Messages []Message
	Tools    []ToolSpec
}

// A Delta is a piece of a model's answer: text, a whole tool call, or both.
type Delta struct {
	Text string
	Call *ToolCall
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
}

// A ToolResult is what came of a call. Content is written for the model to read, and short enough to be spoken.
type ToolResult struct {
	CallID  string
	Content string
}

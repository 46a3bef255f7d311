package openai

import (
	"encoding/json"

	"bellbird/dialog"
	"bellbird/llm"
)

// A request is one in the words of the API. The order of the fields is that of the bytes.
type request struct {
	Messages            []message      `json:"messages"`
	Model               string         `json:"model"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitzero"`
	MaxTokens           int            `json:"max_tokens,omitzero"`
	Temperature         *float64       `json:"temperature,omitzero"`
	ToolChoice          string         `json:"tool_choice,omitzero"`
	Tools               []tool         `json:"tools,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitzero"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Content    string      `json:"content,omitzero"` // only an assistant's that calls has none
	Role       dialog.Role `json:"role"`
	ToolCallID string      `json:"tool_call_id,omitzero"`
	ToolCalls  []call      `json:"tool_calls,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Function called `json:"function"`
	Type     string `json:"type"` // "function", the only one that there is
}

type called struct {
	Arguments string `json:"arguments"` // JSON
	Name      string `json:"name"`
}

type tool struct {
	Function definition `json:"function"`
	Type     string     `json:"type"` // "function"
}

type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters"`
}

// request is the same, byte for byte, for the same request.
func (m *Model) request(req dialog.Request) request {
	r := request{Messages: m.messages(req.Messages), Model: m.o.Model, Temperature: m.o.Temperature, Stream: true}
	if !m.noUsage.Load() {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if m.newMaxTokens.Load() {
		r.MaxCompletionTokens = m.o.MaxTokens
	} else {
		r.MaxTokens = m.o.MaxTokens
	}
	for _, t := range llm.Tools(req.Tools) {
		f := definition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
		r.Tools = append(r.Tools, tool{Function: f, Type: "function"})
	}
	if req.NoCalls && len(r.Tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

func (m *Model) messages(messages []dialog.Message) []message {
	messages = llm.Tidy(messages)
	if m.o.Alternate {
		messages = alternate(messages)
	}
	var out []message
	for _, msg := range messages {
		to := message{Content: msg.Content, Role: msg.Role}
		switch msg.Role {
		case dialog.Tool:
			to.ToolCallID = msg.CallID
		case dialog.Assistant:
			for _, c := range msg.Calls {
				f := called{Name: c.Name, Arguments: string(c.Arguments)}
				to.ToolCalls = append(to.ToolCalls, call{ID: c.ID, Function: f, Type: "function"})
			}
		}
		out = append(out, to)
	}
	return out
}

// alternate joins the texts of a role that follow each other.
func alternate(messages []dialog.Message) []dialog.Message {
	var out []dialog.Message
	for _, m := range messages {
		if n := len(out) - 1; n >= 0 && m.Role == out[n].Role && m.Role != dialog.Tool && len(m.Calls)+len(out[n].Calls) == 0 {
			out[n].Content += "\n\n" + m.Content
			continue
		}
		out = append(out, m)
	}
	return out
}

package anthropic

import (
	"encoding/json"
	"slices"

	"bellbird/dialog"
	"bellbird/llm"
)

// A request is one in the words of the API. The order of the fields is that of the bytes.
type request struct {
	MaxTokens   int         `json:"max_tokens"`
	Messages    []message   `json:"messages,omitempty"`
	Model       string      `json:"model"`
	Temperature *float64    `json:"temperature,omitzero"`
	System      []block     `json:"system,omitempty"`
	ToolChoice  *toolChoice `json:"tool_choice,omitzero"`
	Tools       []tool      `json:"tools,omitempty"`
	Stream      bool        `json:"stream"`
}

type message struct {
	Content []block     `json:"content"`
	Role    dialog.Role `json:"role"` // user or assistant
}

// A block is a piece of a message or of the system's text: a text, a call or the result of one.
type block struct {
	ID           string          `json:"id,omitzero"`    // of a call
	Input        json.RawMessage `json:"input,omitzero"` // of a call
	Name         string          `json:"name,omitzero"`  // of a call
	ToolUseID    string          `json:"tool_use_id,omitzero"`
	Text         string          `json:"text,omitzero"`
	CacheControl *mark           `json:"cache_control,omitzero"`
	Content      []block         `json:"content,omitempty"` // of a result
	Type         string          `json:"type"`              // "text", "tool_use" or "tool_result"
}

type tool struct {
	InputSchema  json.RawMessage `json:"input_schema"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitzero"`
	CacheControl *mark           `json:"cache_control,omitzero"`
}

type toolChoice struct {
	Type string `json:"type"` // "none"
}

// A mark says that the request is to be remembered up to here.
type mark struct {
	TTL  string `json:"ttl,omitzero"` // "1h", or nothing for five minutes
	Type string `json:"type"`         // "ephemeral", the only one that there is
}

// request is the same, byte for byte, for the same request, and so is what lies before its first message of the turn when
// the next turn's is built.
//
// The server remembers a request up to each mark, of which there may be four, and compares the next one with what it
// remembers. The order is tools, system, messages. Marked are the last of the tools, the last of the system's texts, and
// the last block that will be there in the next turn. While tools are being called the end is marked, too, for the next
// round.
func (m *Model) request(req dialog.Request) request {
	messages := llm.Tidy(req.Messages)
	r := request{
		Model: m.o.Model, MaxTokens: m.o.MaxTokens, Temperature: m.o.Temperature, Stream: true,
		Tools: tools(req.Tools),
	}
	for len(messages) > 0 && messages[0].Role == dialog.System && !messages[0].PerTurn {
		r.System = append(r.System, text(messages[0].Content))
		messages = messages[1:]
	}
	if len(r.Tools) == 0 {
		r.Tools = called(messages)
		req.NoCalls = true
	}
	if req.NoCalls && len(r.Tools) > 0 {
		r.ToolChoice = &toolChoice{Type: "none"}
	}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].CacheControl = m.mark()
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = m.mark()
	}
	r.Messages = m.messages(messages)
	return r
}

func (m *Model) mark() *mark {
	if m.o.CacheTTL == "1h" {
		return &mark{TTL: "1h", Type: "ephemeral"}
	}
	return &mark{Type: "ephemeral"}
}

func tools(specs []dialog.ToolSpec) (out []tool) {
	for _, t := range llm.Tools(specs) {
		out = append(out, tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
	}
	return out
}

// called are the tools that were called in messages, in name only: the API wants them to be declared.
func called(messages []dialog.Message) []tool {
	var specs []dialog.ToolSpec
	for _, m := range messages {
		for _, c := range m.Calls {
			if !slices.ContainsFunc(specs, func(t dialog.ToolSpec) bool { return t.Name == c.Name }) {
				specs = append(specs, dialog.ToolSpec{Name: c.Name})
			}
		}
	}
	return tools(specs)
}

// messages are the messages, those of a role that follow each other joined, as the API wants them, with their marks.
func (m *Model) messages(messages []dialog.Message) []message {
	var out []message
	add := func(role dialog.Role, blocks ...block) {
		if n := len(out) - 1; n >= 0 && out[n].Role == role {
			out[n].Content = append(out[n].Content, blocks...)
			return
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	var perTurn bool
	for i, msg := range messages {
		if msg.PerTurn && !perTurn {
			perTurn = true
			m.markEnd(out)
		}
		if i == 0 && msg.Role == dialog.Assistant {
			add(dialog.User, text("(The conversation began earlier.)"))
		}
		switch msg.Role {
		case dialog.User, dialog.System:
			add(dialog.User, text(msg.Content))
		case dialog.Tool:
			add(dialog.User, block{Type: "tool_result", ToolUseID: msg.CallID, Content: []block{text(msg.Content)}})
		case dialog.Assistant:
			var blocks []block
			if msg.Content != "" {
				blocks = append(blocks, text(msg.Content))
			}
			for _, c := range msg.Calls {
				blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: c.Arguments})
			}
			add(dialog.Assistant, blocks...)
		}
	}
	if n := len(messages); n > 0 && (!perTurn || messages[n-1].Role == dialog.Tool) {
		m.markEnd(out)
	}
	return out
}

func text(text string) block { return block{Type: "text", Text: text} }

// markEnd marks the last block so far.
func (m *Model) markEnd(messages []message) {
	if len(messages) == 0 {
		return
	}
	blocks := messages[len(messages)-1].Content
	blocks[len(blocks)-1].CacheControl = m.mark()
}

package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bellbird/dialog"
	"bellbird/llm"
)

// params is the request in the words of the API. It is the same, byte for byte, for the same request, and so is what lies
// before its first message of the turn when the next turn's is built.
//
// The server remembers a request up to each mark, of which there may be four, and compares the next one with what it
// remembers. The order is tools, system, messages. Marked are the last of the tools, the last of the system's texts, and
// the last block that will be there in the next turn. While tools are being called the end is marked, too, for the next
// round.
func (m *Model) params(req dialog.Request) anthropic.MessageNewParams {
	messages := llm.Tidy(req.Messages)
	p := anthropic.MessageNewParams{
		Model: anthropic.Model(m.o.Model), MaxTokens: int64(m.o.MaxTokens),
		Tools: tools(req.Tools),
	}
	if m.o.Temperature != nil {
		p.Temperature = param.NewOpt(*m.o.Temperature)
	}
	for len(messages) > 0 && messages[0].Role == dialog.System && !messages[0].PerTurn {
		p.System = append(p.System, anthropic.TextBlockParam{Text: messages[0].Content})
		messages = messages[1:]
	}
	if len(p.Tools) == 0 {
		p.Tools = called(messages)
		req.NoCalls = true
	}
	if req.NoCalls && len(p.Tools) > 0 {
		p.ToolChoice.OfNone = &anthropic.ToolChoiceNoneParam{}
	}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = m.mark()
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = m.mark()
	}
	p.Messages = m.messageParams(messages)
	return p
}

func (m *Model) mark() anthropic.CacheControlEphemeralParam {
	mark := anthropic.NewCacheControlEphemeralParam()
	if m.o.CacheTTL == "1h" {
		mark.TTL = anthropic.CacheControlEphemeralTTLTTL1h
	}
	return mark
}

func tools(specs []dialog.ToolSpec) (out []anthropic.ToolUnionParam) {
	for _, t := range llm.Tools(specs) {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: schema(t.Parameters)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		out = append(out, anthropic.ToolUnionParam{OfTool: &tool})
	}
	return out
}

// called are the tools that were called in messages, in name only: the API wants them to be declared.
func called(messages []dialog.Message) []anthropic.ToolUnionParam {
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

// schema is a schema as the SDK takes it, with its numbers as they are written. The SDK puts the keys that it doesn't know
// in order.
func schema(raw json.RawMessage) anthropic.ToolInputSchemaParam {
	return param.Override[anthropic.ToolInputSchemaParam](raw)
}

// messageParams are the messages, those of a role that follow each other joined, as the API wants them, with their marks.
func (m *Model) messageParams(messages []dialog.Message) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	add := func(role anthropic.MessageParamRole, blocks ...anthropic.ContentBlockParamUnion) {
		if n := len(out) - 1; n >= 0 && out[n].Role == role {
			out[n].Content = append(out[n].Content, blocks...)
			return
		}
		out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
	}
	var perTurn bool
	for i, msg := range messages {
		if msg.PerTurn && !perTurn {
			perTurn = true
			m.markEnd(out)
		}
		if i == 0 && msg.Role == dialog.Assistant {
			add(anthropic.MessageParamRoleUser, anthropic.NewTextBlock("(The conversation began earlier.)"))
		}
		switch msg.Role {
		case dialog.User, dialog.System:
			add(anthropic.MessageParamRoleUser, anthropic.NewTextBlock(msg.Content))
		case dialog.Tool:
			add(anthropic.MessageParamRoleUser, result(msg))
		case dialog.Assistant:
			var blocks []anthropic.ContentBlockParamUnion
			if msg.Content != "" {
				blocks = append(blocks, anthropic.NewTextBlock(msg.Content))
			}
			for _, c := range msg.Calls {
				blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.Arguments, c.Name))
			}
			add(anthropic.MessageParamRoleAssistant, blocks...)
		}
	}
	if n := len(messages); n > 0 && (!perTurn || messages[n-1].Role == dialog.Tool) {
		m.markEnd(out)
	}
	return out
}

func result(msg dialog.Message) anthropic.ContentBlockParamUnion {
	return anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{
		ToolUseID: msg.CallID,
		Content:   []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: msg.Content}}},
	}}
}

// markEnd marks the last block so far.
func (m *Model) markEnd(messages []anthropic.MessageParam) {
	if len(messages) == 0 {
		return
	}
	blocks := messages[len(messages)-1].Content
	switch b := blocks[len(blocks)-1]; {
	case b.OfText != nil:
		b.OfText.CacheControl = m.mark()
	case b.OfToolResult != nil:
		b.OfToolResult.CacheControl = m.mark()
	case b.OfToolUse != nil:
		b.OfToolUse.CacheControl = m.mark()
	}
}

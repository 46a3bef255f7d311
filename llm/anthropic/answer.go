package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"bellbird/dialog"
	"bellbird/llm"
)

// An answer is what has come of one so far.
type answer struct {
	attempt *llm.Attempt
	req     dialog.Request

	spoke bool // there was text
	calls int
	call  *partial // nil: none is being written
	stop  anthropic.StopReason
	usage dialog.Usage
}

// A partial is a tool call that is still being written.
type partial struct {
	id, name  string
	input     string // what came with the beginning; the API sends an empty object there
	arguments strings.Builder
}

// add takes in an event. It reports false when the answer has ended or nobody wants more.
func (a *answer) add(e anthropic.MessageStreamEventUnion) (more bool, err error) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "content_block_start":
		b := e.ContentBlock
		if b.Type == "tool_use" {
			a.call = &partial{id: b.ID, name: b.Name}
			if input, err := json.Marshal(b.Input); err == nil {
				a.call.input = string(input)
			}
		}
		return a.text(b.Text), nil
	case "content_block_delta":
		if a.call != nil && a.call.arguments.Len() <= llm.MaxArguments {
			part := e.Delta.PartialJSON
			a.call.arguments.WriteString(part[:min(len(part), llm.MaxArguments+1)])
		}
		return a.text(e.Delta.Text), nil
	case "content_block_stop":
		return a.called()
	case "message_delta":
		a.stop = e.Delta.StopReason
		u := e.Usage
		a.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "message_stop":
		return false, a.end()
	}
	return a.text(""), nil
}

// text passes on a text, or "" to tell that the model is at work.
func (a *answer) text(text string) bool {
	a.spoke = a.spoke || text != ""
	return a.attempt.Yield(dialog.Delta{Text: text})
}

// called passes on the call that has been written, if there is one.
func (a *answer) called() (more bool, err error) {
	p := a.call
	if p == nil {
		return a.text(""), nil
	}
	a.call = nil
	arguments := p.arguments.String()
	if arguments == "" {
		arguments = p.input
	}
	call, err := llm.Call(a.req, a.calls, p.id, p.name, arguments)
	if err != nil {
		return false, err
	}
	a.calls++
	return a.attempt.Yield(dialog.Delta{Call: call}), nil
}

// count takes in figures, of which the later are the more complete. The API counts what was cached beside the input.
func (a *answer) count(input, read, written, output int64) {
	a.usage.CacheRead = max(a.usage.CacheRead, int(read))
	a.usage.CacheWritten = max(a.usage.CacheWritten, int(written))
	a.usage.Input = max(a.usage.Input, int(input+read+written))
	a.usage.Output = max(a.usage.Output, int(output))
}

func (a *answer) end() error {
	switch {
	case a.stop == anthropic.StopReasonRefusal:
		return &dialog.ModelError{Kind: dialog.Refused, Err: errors.New("the model refuses")}
	case a.stop == anthropic.StopReasonModelContextWindowExceeded && !a.spoke && a.calls == 0:
		return &dialog.ModelError{Kind: dialog.ContextTooLong, Err: errors.New("the context window is full")}
	case a.stop == anthropic.StopReasonMaxTokens && !a.spoke && a.calls == 0:
		return &dialog.ModelError{Kind: dialog.CutOff, Err: errors.New("max_tokens went into thoughts: raise it")}
	}
	a.attempt.Yield(dialog.Delta{Usage: &a.usage})
	return nil
}

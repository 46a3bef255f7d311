package anthropic

import (
	"errors"
	"strings"

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
	stop  string   // why the model ended; "" not yet
	usage dialog.Usage
}

// A partial is a tool call that is still being written.
type partial struct {
	id, name  string
	input     string // what came with the beginning; the API sends an empty object there
	arguments strings.Builder
}

// add takes in an event. It reports false when the answer has ended or nobody wants more.
func (a *answer) add(e event) (more bool, err error) {
	switch e.Type {
	case "ping": // it is of the connection, not of the model
		return true, nil
	case "message_start":
		a.count(e.Message.Usage)
	case "content_block_start":
		b := e.ContentBlock
		if b.Type == "tool_use" {
			a.call = &partial{id: b.ID, name: b.Name, input: string(b.Input)}
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
		a.count(e.Usage)
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
func (a *answer) count(u usage) {
	a.usage.CacheRead = max(a.usage.CacheRead, u.CacheRead)
	a.usage.CacheWritten = max(a.usage.CacheWritten, u.CacheWritten)
	a.usage.Input = max(a.usage.Input, u.Input+u.CacheRead+u.CacheWritten)
	a.usage.Output = max(a.usage.Output, u.Output)
}

func (a *answer) end() error {
	switch {
	case a.stop == "refusal":
		return &dialog.ModelError{Kind: dialog.Refused, Err: errors.New("the model refuses")}
	case a.stop == "model_context_window_exceeded" && !a.spoke && a.calls == 0:
		return &dialog.ModelError{Kind: dialog.ContextTooLong, Err: errors.New("the context window is full")}
	case a.stop == "max_tokens" && !a.spoke && a.calls == 0:
		return &dialog.ModelError{Kind: dialog.CutOff, Err: errors.New("max_tokens went into thoughts: raise it")}
	}
	a.attempt.Yield(dialog.Delta{Usage: &a.usage})
	return nil
}

package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"bellbird/dialog"
	"bellbird/llm"
)

// An answer is what has come of one so far.
type answer struct {
	attempt *llm.Attempt
	req     dialog.Request

	thoughts thoughts
	spoke    bool // there was text
	calls    []*partial
	finish   string // why the model ended; "" not yet
	done     bool   // [DONE] came, with which a stream ends
	usage    *dialog.Usage
}

// A partial is a tool call that is still being written.
type partial struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// add takes in a chunk. It reports false when nobody wants more.
func (a *answer) add(c chunk) bool {
	if u := c.Usage; u != nil {
		a.usage = &dialog.Usage{
			Input: u.PromptTokens, Output: u.CompletionTokens,
			CacheRead: u.PromptTokensDetails.CachedTokens, CacheWritten: u.PromptTokensDetails.CacheWriteTokens,
		}
	}
	var text string
	if len(c.Choices) > 0 {
		first := c.Choices[0]
		text = a.thoughts.cut(first.Delta.Content + first.Delta.Refusal)
		for _, t := range first.Delta.ToolCalls {
			a.call(t)
		}
		if first.FinishReason != "" {
			a.finish = first.FinishReason
		}
	}
	return a.text(text)
}

// text passes on a text, or "" to tell that the model is at work.
func (a *answer) text(text string) bool {
	a.spoke = a.spoke || text != ""
	return a.attempt.Yield(dialog.Delta{Text: text})
}

// call takes in a piece of a tool call. The index says to which it belongs; but some servers give all calls the same one,
// and then another id, or another name after whole arguments, begins the next.
func (a *answer) call(t toolCall) {
	arguments := string(t.Function.Arguments)
	var p *partial
	for _, c := range a.calls {
		if c.index == t.Index {
			p = c // the newest with the index
		}
	}
	switch {
	case p == nil,
		t.ID != "" && p.id != "" && t.ID != p.id,
		t.ID == "" && t.Function.Name != "" && arguments != "" && json.Valid([]byte(p.arguments.String())):
		if len(a.calls) > llm.MaxCalls {
			return // one more than allowed is enough to tell
		}
		p = &partial{index: t.Index}
		a.calls = append(a.calls, p)
	}
	if t.ID != "" {
		p.id = t.ID
	}
	if t.Function.Name != "" {
		p.name = t.Function.Name
	}
	if p.arguments.Len() <= llm.MaxArguments {
		p.arguments.WriteString(arguments[:min(len(arguments), llm.MaxArguments+1)])
	}
}

// end passes on what there is when the stream has ended: the rest of the text, the calls, the usage.
func (a *answer) end() error {
	if a.finish == "" && !a.done {
		return llm.ErrCutOff
	}
	if rest := a.thoughts.rest(); rest != "" && !a.text(rest) {
		return nil
	}
	switch {
	case a.finish == "content_filter":
		return &dialog.ModelError{Kind: dialog.Refused, Err: errors.New("the content filter ended the answer")}
	case a.finish == "error":
		return &dialog.ModelError{Kind: dialog.ServerFault, Err: errors.New("the server ended the answer with an error")}
	case a.finish == "length" && !a.spoke && len(a.calls) == 0:
		return &dialog.ModelError{Kind: dialog.CutOff, Err: errors.New("max_tokens went into thoughts: raise it")}
	}
	for n, p := range a.calls {
		call, err := llm.Call(a.req, n, p.id, p.name, p.arguments.String())
		if err != nil {
			return err
		}
		if !a.attempt.Yield(dialog.Delta{Call: call}) {
			return nil
		}
	}
	if a.usage != nil {
		a.attempt.Yield(dialog.Delta{Usage: a.usage})
	}
	return nil
}

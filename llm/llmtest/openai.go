package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"bellbird/dialog"
)

// NewOpenAI starts a server with OpenAI's chat completions. It must be closed. The base URL of its API is its URL with
// /v1. It remembers the beginnings of requests in steps of 128 tokens, from 1,024 on.
func NewOpenAI(replies ...Reply) *Server { return newServer(&openAI{}, replies) }

type openAI struct{ seen [][]byte }

const (
	openAIStep    = 128
	openAIMinimum = 1024
	openAISeen    = 16 // requests that are remembered
)

func (o *openAI) usage(body []byte, output int) (dialog.Usage, error) {
	var req struct{ Tools, Messages json.RawMessage }
	if err := json.Unmarshal(body, &req); err != nil {
		return dialog.Usage{}, err
	}
	if len(req.Messages) == 0 {
		return dialog.Usage{}, fmt.Errorf("messages: missing")
	}
	prompt := slices.Concat(req.Tools, req.Messages)
	u := dialog.Usage{Input: tokens(string(prompt)), Output: output}
	for _, old := range o.seen {
		n := 0
		for n < len(old) && n < len(prompt) && old[n] == prompt[n] {
			n++
		}
		if n := n / 4 / openAIStep * openAIStep; n >= openAIMinimum {
			u.CacheRead = max(u.CacheRead, n)
		}
	}
	o.seen = append(o.seen, bytes.Clone(prompt))
	o.seen = o.seen[max(0, len(o.seen)-openAISeen):]
	return u, nil
}

func (o *openAI) events(r Reply, u dialog.Usage) (out []event) {
	chunk := func(delta map[string]any, finish any) {
		out = append(out, event{data: quote(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "test",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})})
	}
	if len(r.Events) > 0 {
		for _, e := range r.Events {
			out = append(out, event{data: e})
		}
		return out
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, text := range r.Text {
		chunk(map[string]any{"content": text}, nil)
	}
	for i, c := range r.Calls {
		call := func(id, name, arguments string) {
			f := map[string]any{"arguments": arguments}
			t := map[string]any{"index": i, "function": f}
			if id != "" {
				t["id"], t["type"], f["name"] = id, "function", name
			}
			chunk(map[string]any{"tool_calls": []any{t}}, nil)
		}
		half := len(c.Arguments) / 2
		call(c.ID, c.Name, "")
		call("", "", string(c.Arguments[:half]))
		call("", "", string(c.Arguments[half:]))
	}
	if r.CutOff || r.Stall {
		return out
	}
	finish := r.Finish
	if finish == "" {
		finish = "stop"
		if len(r.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	chunk(map[string]any{}, finish)
	out = append(out, event{data: quote(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "test", "choices": []any{},
		"usage": map[string]any{
			"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"prompt_tokens_details": map[string]any{"cached_tokens": u.CacheRead},
		},
	})})
	return append(out, event{data: "[DONE]"})
}

func (o *openAI) fault(status int, message string) string {
	return quote(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "code": nil}})
}

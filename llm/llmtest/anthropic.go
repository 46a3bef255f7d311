package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	"bellbird/dialog"
)

// NewAnthropic starts a server with Anthropic's Messages API. It must be closed. The base URL of its API is its URL. It
// remembers what lies before each cache mark, of which a request may have four, and finds it again when a mark of a later
// request is no more than 20 blocks behind.
func NewAnthropic(replies ...Reply) *Server {
	return newServer(&anthropicAPI{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}, replies)
}

type anthropicAPI struct {
	seed maphash.Seed
	seen map[uint64]bool // beginnings of requests that are remembered
}

const (
	maxMarks = 4
	lookBack = 20
)

// A block is a tool, or a part of the system's text or of a message.
type block struct {
	text   string
	marked bool
}

// blocks are those of a request, in the order in which they are remembered.
func blocks(body []byte) ([]block, error) {
	var req struct {
		Tools, System []map[string]any
		Messages      []struct {
			Role    string
			Content []map[string]any
		}
		MaxTokens int `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	if req.MaxTokens == 0 {
		return nil, errors.New("max_tokens: Field required")
	}
	var out []block
	add := func(role string, b map[string]any) {
		_, marked := b["cache_control"]
		delete(b, "cache_control")
		out = append(out, block{role + quote(b), marked})
	}
	for _, t := range req.Tools {
		add("tool", t)
	}
	for _, s := range req.System {
		add("system", s)
	}
	open := map[any]bool{} // calls without a result
	for i, m := range req.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return nil, fmt.Errorf("messages.%d: role %q where %q was expected", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return nil, fmt.Errorf("messages.%d: no content", i)
		}
		for _, b := range m.Content {
			switch b["type"] {
			case "text":
				if len(open) > 0 && m.Role == "user" {
					return nil, fmt.Errorf("messages.%d: a call has no result", i)
				}
				if b["text"] == "" {
					return nil, fmt.Errorf("messages.%d: text content blocks must be non-empty", i)
				}
			case "tool_use":
				if len(req.Tools) == 0 {
					return nil, errors.New("tools: must be defined")
				}
				open[b["id"]] = true
			case "tool_result":
				if !open[b["tool_use_id"]] {
					return nil, fmt.Errorf("messages.%d: a result has no call", i)
				}
				delete(open, b["tool_use_id"])
			}
			add(m.Role, b)
		}
	}
	return out, nil
}

func (a *anthropicAPI) usage(body []byte, output int) (dialog.Usage, error) {
	list, err := blocks(body)
	if err != nil {
		return dialog.Usage{}, err
	}
	var h maphash.Hash
	h.SetSeed(a.seed)
	sums := make([]uint64, len(list)) // of the request up to and with each block
	upTo := make([]int, len(list))    // tokens
	marks := []int{}
	total := 0
	for i, b := range list {
		h.WriteString(b.text)
		total += tokens(b.text)
		sums[i], upTo[i] = h.Sum64(), total
		if b.marked {
			marks = append(marks, i)
		}
	}
	if len(marks) > maxMarks {
		return dialog.Usage{}, fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, len(marks))
	}
	u := dialog.Usage{Input: total, Output: output}
	for _, mark := range marks {
		for i := mark; i >= 0 && i > mark-lookBack; i-- {
			if a.seen[sums[i]] {
				u.CacheRead = max(u.CacheRead, upTo[i])
				break
			}
		}
	}
	for _, mark := range marks {
		a.seen[sums[mark]] = true
		u.CacheWritten = max(u.CacheWritten, upTo[mark]-u.CacheRead)
	}
	return u, nil
}

func (a *anthropicAPI) events(r Reply, u dialog.Usage) (out []event) {
	add := func(name string, fields map[string]any) {
		fields["type"] = name
		out = append(out, event{name, quote(fields)})
	}
	if len(r.Events) > 0 {
		for _, e := range r.Events {
			var t struct{ Type string }
			json.Unmarshal([]byte(e), &t) // a test may send what is no JSON
			out = append(out, event{t.Type, e})
		}
		return out
	}
	add("message_start", map[string]any{"message": map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "test", "content": []any{},
		"usage": map[string]any{
			"input_tokens": u.Input - u.CacheRead - u.CacheWritten, "output_tokens": 1,
			"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWritten,
		},
	}})
	index := 0
	if len(r.Text) > 0 {
		add("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		add("ping", map[string]any{})
		for _, text := range r.Text {
			add("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": text}})
		}
		if !r.CutOff && !r.Stall {
			add("content_block_stop", map[string]any{"index": 0})
		}
		index++
	}
	stop := "end_turn"
	for i, c := range r.Calls {
		stop = "tool_use"
		add("content_block_start", map[string]any{"index": index + i, "content_block": map[string]any{
			"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}})
		half := len(c.Arguments) / 2
		for _, part := range []string{"", string(c.Arguments[:half]), string(c.Arguments[half:])} {
			add("content_block_delta", map[string]any{"index": index + i,
				"delta": map[string]any{"type": "input_json_delta", "partial_json": part}})
		}
		if !r.CutOff && !r.Stall {
			add("content_block_stop", map[string]any{"index": index + i})
		}
	}
	if r.CutOff || r.Stall {
		return out
	}
	if r.Finish != "" {
		stop = r.Finish
	}
	add("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": u.Output},
	})
	add("message_stop", map[string]any{})
	return out
}

func (a *anthropicAPI) fault(status int, message string) string {
	kind := map[int]string{401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}[status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	return quote(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

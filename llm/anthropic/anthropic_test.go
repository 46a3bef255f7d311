package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/anthropic"
	"bellbird/llm/llmtest"
)

func model(t *testing.T, o anthropic.Options, replies ...llmtest.Reply) (*llmtest.Server, *anthropic.Model) {
	t.Helper()
	server := llmtest.NewAnthropic(replies...)
	t.Cleanup(server.Close)
	o.BaseURL, o.Model = server.URL, "test"
	m, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return server, m
}

func ask(t *testing.T, m llm.Model, req dialog.Request) (text string, err error) {
	t.Helper()
	for d, e := range m.Generate(t.Context(), req) {
		text += d.Text
		err = e
	}
	return text, err
}

// TestMarks looks for the blocks that are marked.
func TestMarks(t *testing.T) {
	msg := func(role dialog.Role, text string) dialog.Message { return dialog.Message{Role: role, Content: text} }
	now := func(text string) dialog.Message {
		return dialog.Message{Role: dialog.User, Content: text, PerTurn: true}
	}
	calls := dialog.Message{Role: dialog.Assistant, Calls: []dialog.ToolCall{{ID: "1", Name: "b"}}}
	result := dialog.Message{Role: dialog.Tool, CallID: "1", Name: "b", Content: "result"}
	sys, q, a, new := msg(dialog.System, "sys"), msg(dialog.User, "old"), msg(dialog.Assistant, "answer"), msg(dialog.User, "new")
	tools := []dialog.ToolSpec{{Name: "b"}, {Name: "a"}}
	tests := []struct {
		name string
		req  dialog.Request
		want string
	}{
		{"the first turn", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, now("ghost"), new}}, "b sys"},
		{"a later turn", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, q, a, now("ghost"), new}}, "b sys answer"},
		{"more that belongs to the turn", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, q, a, now("ghost"), now("document"), new}}, "b sys answer"},
		{"the history ends with the user", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, q, now("ghost"), new}}, "b sys old"},
		{"a tool cycle", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, q, a, now("ghost"), new, calls, result}}, "b sys answer result"},
		{"no ghost", dialog.Request{Tools: tools, Messages: []dialog.Message{sys, q, a, new}}, "b sys new"},
		{"two system texts", dialog.Request{Messages: []dialog.Message{sys, msg(dialog.System, "more"), now("ghost"), new}}, "more"},
		{"nothing before the ghost", dialog.Request{Messages: []dialog.Message{now("ghost"), new}}, ""},
		{"results without tools", dialog.Request{Messages: []dialog.Message{sys, now("ghost"), new, calls, result}}, "b sys result"},
		{"a history that begins in mid-conversation", dialog.Request{Messages: []dialog.Message{sys, a, now("ghost"), new}}, "sys answer"},
	}
	for _, ttl := range []string{"", "1h"} {
		server, m := model(t, anthropic.Options{CacheTTL: ttl})
		for i, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				if _, err := ask(t, m, test.req); err != nil {
					t.Fatal(err)
				}
				body := server.Requests()[i].Body
				if got := marked(t, body, ttl); got != test.want {
					t.Errorf("marked %q, want %q: %s", got, test.want, body)
				}
			})
		}
	}
}

// marked are the names and texts of the blocks with a mark.
func marked(t *testing.T, body []byte, ttl string) string {
	t.Helper()
	type block struct {
		Name, Text, Content any
		CacheControl        *struct{ Type, TTL string } `json:"cache_control"`
	}
	var req struct {
		Tools, System []block
		Messages      []struct{ Content []block }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	blocks := append(req.Tools, req.System...)
	for _, m := range req.Messages {
		blocks = append(blocks, m.Content...)
	}
	var out []string
	for _, b := range blocks {
		if b.CacheControl == nil {
			continue
		}
		if b.CacheControl.Type != "ephemeral" || b.CacheControl.TTL != ttl {
			t.Errorf("the mark is %+v", *b.CacheControl)
		}
		for _, text := range []any{b.Name, b.Text} {
			if text, ok := text.(string); ok {
				out = append(out, text)
			}
		}
		if parts, ok := b.Content.([]any); ok {
			out = append(out, parts[0].(map[string]any)["text"].(string))
		}
	}
	return strings.Join(out, " ")
}

func TestStops(t *testing.T) {
	tests := []struct {
		finish string
		text   []string
		kind   dialog.ModelErrorKind
	}{
		{"refusal", []string{"Well "}, dialog.Refused},
		{"max_tokens", []string{"Well "}, ""},
		{"max_tokens", nil, dialog.CutOff},
		{"model_context_window_exceeded", []string{"Well "}, ""},
		{"model_context_window_exceeded", nil, dialog.ContextTooLong},
		{"stop_sequence", []string{"Well "}, ""},
	}
	for _, test := range tests {
		_, m := model(t, anthropic.Options{Server: llm.Server{Retries: -1}}, llmtest.Reply{Text: test.text, Finish: test.finish})
		_, err := ask(t, m, dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}})
		var e *dialog.ModelError
		if errors.As(err, &e); (e == nil) != (test.kind == "") || e != nil && e.Kind != test.kind {
			t.Errorf("%s after %q: %v, want %q", test.finish, test.text, err, test.kind)
		}
	}
}

func TestThoughtsAreNotSpoken(t *testing.T) {
	_, m := model(t, anthropic.Options{}, llmtest.Reply{Events: []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"something_new","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"No"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"on."}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
		`{"type":"message_stop"}`,
	}})
	text, err := ask(t, m, dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}})
	if text != "Noon." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCacheTTL(t *testing.T) {
	if _, err := anthropic.New(anthropic.Options{Server: llm.Server{Model: "m"}, CacheTTL: "2h"}); err == nil {
		t.Error("2h is accepted")
	}
}

func Example() {
	server := llmtest.NewAnthropic(llmtest.Reply{Text: []string{"It is ", "noon."}}) // stands for the real one
	defer server.Close()
	m, err := anthropic.New(anthropic.Options{Server: llm.Server{BaseURL: server.URL, Model: "claude-haiku-4-5"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "What time is it?"}}}
	for d, err := range m.Generate(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Text)
	}
	// Output: It is noon.
}

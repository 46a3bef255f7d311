package llmtest_test

import (
	"fmt"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/llmtest"
)

func TestInvalidCalls(t *testing.T) {
	tests := []struct{ name, arguments, want string }{
		{"none", "", "{}"},
		{"null", "null", "{}"},
		{"within a string", `"{\"a\": 1}"`, `{"a":1}`},
		{"space", " { \"a\" : [1, 2] } ", `{"a":[1,2]}`},
		{"big number", `{"a":12345678901234567890}`, `{"a":12345678901234567890}`},
		{"cut", `{"a": "b`, ""},
		{"no object", `[1]`, ""},
		{"prose", `turn it on`, ""},
		{"long", `{"a":"` + strings.Repeat("x", llm.MaxArguments) + `"}`, ""},
	}
	each(t, func(t *testing.T, a api) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				_, m := a.start(t, llm.Server{}, llmtest.Reply{Calls: []dialog.ToolCall{call("a", "set_timer", test.arguments)}}, llmtest.Reply{Text: []string{"Sorry."}})
				req := hello()
				req.Tools = []dialog.ToolSpec{{Name: "set_timer"}}
				got := generate(t.Context(), t, m, req)
				if got.err != nil || len(got.calls) != 1 {
					t.Fatalf("got %+v", got)
				}
				c := got.calls[0]
				if c.Invalid != "" == (test.want != "") || len(c.Invalid) > 200 || test.want != "" && string(c.Arguments) != test.want ||
					test.want == "" && string(c.Arguments) != "{}" {
					t.Errorf("got %s, invalid because %q, want %s", c.Arguments, c.Invalid, test.want)
				}
				req.Messages = append(req.Messages, dialog.Message{Role: dialog.Assistant, Calls: got.calls},
					dialog.Message{Role: dialog.Tool, CallID: c.ID, Name: c.Name, Content: c.Invalid})
				if got := generate(t.Context(), t, m, req); got.text != "Sorry." || got.err != nil {
					t.Errorf("the next round: %+v", got)
				}
			})
		}
	})
}

func TestTooMuch(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		t.Run("calls", func(t *testing.T) {
			var calls []dialog.ToolCall
			for i := range llm.MaxCalls + 8 {
				calls = append(calls, call(fmt.Sprint("c", i), "get_time", "{}"))
			}
			_, m := a.start(t, llm.Server{}, llmtest.Reply{Calls: calls})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.ServerFault || len(got.calls) > llm.MaxCalls {
				t.Errorf("%d calls, %v", len(got.calls), got.err)
			}
		})
		t.Run("text", func(t *testing.T) {
			text := strings.Repeat("and so on ", 10000)
			var parts []string
			for range 100 {
				parts = append(parts, text)
			}
			_, m := a.start(t, llm.Server{}, llmtest.Reply{Text: parts})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.ServerFault || len(got.text) > 9<<20 {
				t.Errorf("%d bytes, %v", len(got.text), got.err)
			}
		})
		t.Run("one line", func(t *testing.T) {
			_, m := a.start(t, llm.Server{Retries: -1}, llmtest.Reply{Text: []string{strings.Repeat("x", 40<<20)}})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.ServerFault {
				t.Errorf("%d bytes, %v", len(got.text), got.err)
			}
		})
		t.Run("headers", func(t *testing.T) {
			_, m := a.start(t, llm.Server{Retries: -1}, llmtest.Reply{Header: map[string]string{"X-Much": strings.Repeat("x", 100<<10)}})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.Unreachable {
				t.Errorf("got %v", got.err)
			}
		})
		t.Run("garbage", func(t *testing.T) {
			_, m := a.start(t, llm.Server{Retries: -1}, llmtest.Reply{Events: []string{`{"type":"message_start","choices":[`}})
			if got := generate(t.Context(), t, m, hello()); got.err == nil {
				t.Errorf("got %+v", got)
			}
		})
	})
}

func TestOptions(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		for _, bad := range []llm.Server{
			{}, {BaseURL: "localhost:11434", Model: "m"}, {BaseURL: "ftp://localhost", Model: "m"}, {BaseURL: "http://%zz", Model: "m"},
		} {
			if _, err := a.model(bad); err == nil {
				t.Errorf("%+v is accepted", bad)
			}
		}
	})
}

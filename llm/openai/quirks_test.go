package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/llmtest"
	"bellbird/llm/openai"
)

func model(t *testing.T, o openai.Options, replies ...llmtest.Reply) (*llmtest.Server, *openai.Model) {
	t.Helper()
	server := llmtest.NewOpenAI(replies...)
	t.Cleanup(server.Close)
	o.BaseURL, o.Model = server.URL+"/v1", "test"
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return server, m
}

func ask(t *testing.T, m llm.Model, messages ...dialog.Message) (text string, calls []dialog.ToolCall, err error) {
	t.Helper()
	if len(messages) == 0 {
		messages = []dialog.Message{{Role: dialog.User, Content: "Well?"}}
	}
	for d, e := range m.Generate(t.Context(), dialog.Request{Messages: messages}) {
		text += d.Text
		if d.Call != nil {
			calls = append(calls, *d.Call)
		}
		err = e
	}
	return text, calls, err
}

// delta is an event with one delta, and end one with a finish reason.
func delta(fields string) string {
	return `{"choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}]}`
}

func end(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}`
}

func TestCallsOfOtherServers(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   string // id:name arguments, …
	}{
		{"whole arguments, all with index 0", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]`), end(`"tool_calls"`)},
			`a:f {"x":1}, b:g {"y":2}`},
		{"both in one delta", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]`), end(`"tool_calls"`)},
			`a:f {}, b:g {}`},
		{"no ids, no index", []string{
			delta(`"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]`),
			delta(`"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":2}"}}]`), end(`"stop"`)},
			`call_1_0:f {"x":1}, call_1_1:f {"x":2}`},
		{"the name repeated", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]`),
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`), end(`"tool_calls"`)},
			`a:f {"x":1}`},
		{"interleaved", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`),
			delta(`"tool_calls":[{"index":1,"function":{"arguments":"{\"y\":2}"}},{"index":0,"function":{"arguments":"{\"x\":1}"}}]`), end(`"tool_calls"`)},
			`a:f {"x":1}, b:g {"y":2}`},
		{"an object for arguments", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]`), end(`"tool_calls"`)},
			`a:f {"x":1}`},
		{"null before the arguments", []string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]`),
			delta(`"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"x\":1}"}}]`), end(`"tool_calls"`)},
			`a:f {"x":1}`},
		{"no arguments", []string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]`), end(`"tool_calls"`)}, `a:f {}`},
		{"stop beside a call", []string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), end(`"stop"`)}, `a:f {}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, m := model(t, openai.Options{}, llmtest.Reply{Events: test.events})
			_, calls, err := ask(t, m)
			var got []string
			for _, c := range calls {
				got = append(got, fmt.Sprintf("%s:%s %s", c.ID, c.Name, c.Arguments))
			}
			if s := strings.Join(got, ", "); s != test.want || err != nil {
				t.Errorf("got %s, %v, want %s", s, err, test.want)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	hi := delta(`"content":"Hi."`)
	tests := []struct {
		name   string
		events []string
		text   string
		kind   dialog.ModelErrorKind
	}{
		{"nothing but [DONE]", []string{hi, "[DONE]"}, "Hi.", ""},
		{"an empty reason and [DONE]", []string{hi, end(`""`), "[DONE]"}, "Hi.", ""},
		{"no [DONE]", []string{hi, end(`"stop"`)}, "Hi.", ""},
		{"a reason of its own", []string{hi, end(`"eos"`), "[DONE]"}, "Hi.", ""},
		{"too long", []string{hi, end(`"length"`), "[DONE]"}, "Hi.", ""},
		{"neither", []string{hi}, "Hi.", dialog.CutOff},
		{"content filter", []string{hi, end(`"content_filter"`), "[DONE]"}, "Hi.", dialog.Refused},
		{"an error for a reason", []string{end(`"error"`), "[DONE]"}, "", dialog.ServerFault},
		{"thoughts without an end", []string{delta(`"content":"<think>Hm."`), end(`"length"`), "[DONE]"}, "", dialog.CutOff},
		{"a refusal is spoken", []string{delta(`"refusal":"I can't."`), end(`"stop"`)}, "I can't.", ""},
		{"reasoning beside the content", []string{delta(`"reasoning_content":"Hm."`), delta(`"reasoning":"Hm."`), hi, end(`"stop"`)}, "Hi.", ""},
		{"no choices", []string{`{"choices":[]}`, `{"choices":null}`, `{}`, hi, end(`"stop"`)}, "Hi.", ""},
		{"usage null", []string{`{"choices":[],"usage":null}`, hi, end(`"stop"`)}, "Hi.", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, m := model(t, openai.Options{Server: llm.Server{Retries: -1}}, llmtest.Reply{Events: test.events})
			text, _, err := ask(t, m)
			var e *dialog.ModelError
			if errors.As(err, &e); text != test.text || (e == nil) != (test.kind == "") || e != nil && e.Kind != test.kind {
				t.Errorf("got %q, %v, want %q, %q", text, err, test.text, test.kind)
			}
		})
	}
}

// TestThoughts cuts each text in two and in bytes.
func TestThoughts(t *testing.T) {
	tests := []struct{ text, want string }{
		{"It is noon.", "It is noon."},
		{"<think>Well.</think>It is noon.", "It is noon."},
		{"<think>\nWell.\n</think>\n\nIt is noon.", "It is noon."},
		{"<think></think>\n\nNoon.", "Noon."},
		{"<thinking>a < b <think></thinking> Noon.", "Noon."},
		{"Now: <think>x</think> noon.", "Now: noon."},
		{"<think>x</think><think>y</think>Noon.", "Noon."},
		{"It is <b>noon</b>.", "It is <b>noon</b>."},
		{"2 <", "2 <"},
		{"<thin", "<thin"},
		{"<think>x</thin", ""},
		{"</think>Noon.", "</think>Noon."},
	}
	for _, test := range tests {
		var replies []llmtest.Reply
		for i := range len(test.text) + 1 {
			replies = append(replies, llmtest.Reply{Text: []string{test.text[:i], test.text[i:]}})
		}
		replies = append(replies, llmtest.Reply{Text: strings.Split(test.text, "")})
		_, m := model(t, openai.Options{}, replies...)
		for i := range replies {
			if text, _, err := ask(t, m); text != test.want || err != nil {
				t.Errorf("%q: %q, %v, want %q", replies[i].Text, text, err, test.want)
			}
		}
	}
}

// TestRefusedFields is about servers that refuse what others need.
func TestRefusedFields(t *testing.T) {
	refuse := func(status int, message string) llmtest.Reply {
		return llmtest.Reply{Status: status, Body: `{"error":{"message":"` + message + `","type":"invalid_request_error"}}`}
	}
	fine := llmtest.Reply{Text: []string{"Fine."}}
	server, m := model(t, openai.Options{},
		refuse(422, "Extra inputs are not permitted: stream_options"),
		refuse(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), fine)
	for range 2 {
		if text, _, err := ask(t, m); text != "Fine." || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	type sent struct {
		StreamOptions       json.RawMessage `json:"stream_options"`
		MaxTokens           int             `json:"max_tokens"`
		MaxCompletionTokens int             `json:"max_completion_tokens"`
	}
	var got []string
	for _, r := range server.Requests() {
		var s sent
		if err := json.Unmarshal(r.Body, &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(string(s.StreamOptions), s.MaxTokens, s.MaxCompletionTokens))
	}
	want := `{"include_usage":true} 1024 0; 1024 0; 0 1024; 0 1024`
	if s := strings.Join(got, ";"); strings.ReplaceAll(s, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("sent %s, want %s", s, want)
	}

	server, m = model(t, openai.Options{}, refuse(400, "bad stream_options"))
	if _, _, err := ask(t, m); err == nil || len(server.Requests()) != 2 {
		t.Errorf("a server that always refuses: %v after %d requests", err, len(server.Requests()))
	}
}

func TestAlternate(t *testing.T) {
	server, m := model(t, openai.Options{Alternate: true})
	user := func(text string) dialog.Message { return dialog.Message{Role: dialog.User, Content: text} }
	if _, _, err := ask(t, m, user("[note]"), user("Well?")); err != nil {
		t.Fatal(err)
	}
	if body := string(server.Requests()[0].Body); !strings.Contains(body, `"messages":[{"content":"[note]\n\nWell?","role":"user"}]`) {
		t.Errorf("sent %s", body)
	}
}

func Example() {
	server := llmtest.NewOpenAI(llmtest.Reply{Text: []string{"It is ", "noon."}}) // stands for Ollama
	defer server.Close()
	m, err := openai.New(openai.Options{Server: llm.Server{BaseURL: server.URL + "/v1", Model: "qwen3:8b"}})
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

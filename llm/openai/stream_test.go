package openai_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/llmtest"
	"bellbird/llm/openai"
)

func behind(r http.RoundTripper) (llm.Model, error) {
	return openai.New(openai.Options{Server: llm.Server{BaseURL: "http://server/v1", Model: "test", Retries: -1, Transport: r}})
}

// read is what comes of a stream, as llmtest.Read writes it.
func read(t *testing.T, r io.Reader) string {
	t.Helper()
	return llmtest.Read(t, behind, r)
}

func TestStream(t *testing.T) {
	hi, end, done := "data: "+delta(`"content":"Hi."`)+"\n\n", "data: "+end(`"stop"`)+"\n\n", "data: [DONE]\n\n"
	usage := `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}` + "\n\n"
	tests := []struct{ name, stream, want string }{
		{"as written down", hi + end + usage + done, "Hi. 7+2"},
		{"CRLF", strings.ReplaceAll(hi+end+usage+done, "\n", "\r\n"), "Hi. 7+2"},
		{"no space", strings.ReplaceAll(hi+end+usage+done, "data: ", "data:"), "Hi. 7+2"},
		{"comments", ":\n\n" + hi + ": at work\n\n:\n" + end + done, "Hi."},
		{"other fields", "event: chunk\nid: 1\nretry: 1000\ndata\n\n" + hi + "event: end\n" + end + done, "Hi."},
		{"several lines", "data: {\"choices\":\ndata:[{\"delta\":\n: at work\ndata: {\"content\":\"Hi.\"}}]}\n\n" + done, "Hi."},
		{"empty events", "\n\n\ndata\n\ndata:\n\ndata: \n\n" + hi + "\n\n\n" + end, "Hi."},
		{"nothing after [DONE] counts", hi + done + hi + `data: {"error":"late"}` + "\n\n", "Hi."},
		{"more on its line", hi + "data: [DONE] as everybody knows by now, and as was to be expected\n\n", "Hi."},
		{"no line end after [DONE]", hi + "data: [DONE]", "Hi."},
		{"no line end after the last chunk", hi + strings.TrimSpace(end), "Hi."},
		{"the end is spoken of", "data: " + delta(`"content":"Say [DONE]"`) + "\n\n", "Say [DONE] (cut off)"},
		{"cut off between events", hi, "Hi. (cut off)"},
		{"cut off within an event", hi + end[:len(end)/2], "Hi. (cut off)"},
		{"cut off after the end", hi + end + usage[:len(usage)/2], "Hi."},
		{"nothing", "", " (cut off)"},
		{"no JSON", hi + "data: Hi.\n\n" + end, "Hi. (server fault)"},
		{"no object", "data: 1\n\ndata: [1]\n\ndata: \"x\"\n\ndata: null\n\n" + hi + end, "Hi."},
		{"a content of parts", "data: " + delta(`"content":[{"type":"thinking","thinking":"Hm."}]`) + "\n\n" + hi + end, "Hi."},
		{"other types", `data: {"choices":[{"delta":{"content":5,"refusal":"Hi."}},5],"usage":{"prompt_tokens":"7"}}` + "\n\n" + end, "Hi. 0+0"},
		{"no error", `data: {"error":null,"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}` + "\n\n", "Hi."},
		{"an error", hi + `data: {"error":{"message":"slow down","type":"rate_limit_error"}}` + "\n\n" + end + done, "Hi. (rate limited)"},
		{"an error of several lines", hi + "data: {\"error\":\ndata: \"context length exceeded\"}\n\n", "Hi. (context too long)"},
		{"an error without a line end", hi + `data: {"error":"loading model"}`, "Hi. (server fault)"},
		{"an event as large as may be", "data: " + delta(`"x":"`+strings.Repeat("x", 1<<20-100)+`"`) + "\n\n" + hi + end, "Hi."},
		{"a larger line", hi + ":" + strings.Repeat("x", 1<<20) + "\n\n" + end, "Hi. (server fault)"},
		{"a larger event", hi + "data: [1\n" + strings.Repeat("data: ,1"+strings.Repeat(" ", 1<<10)+"\n", 1<<10) + "data: ]\n\n" + end, "Hi. (server fault)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := read(t, strings.NewReader(test.stream)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("broken", func(t *testing.T) {
		broken := iotest.ErrReader(errors.New("connection reset"))
		for stream, want := range map[string]string{
			hi: "Hi. (cut off)", hi + strings.TrimSpace(hi): "Hi. (cut off)", hi + done: "Hi.",
		} {
			if got := read(t, io.MultiReader(strings.NewReader(stream), broken)); got != want {
				t.Errorf("%q: got %q, want %q", stream, got, want)
			}
		}
	})
}

// TestDoneEnds is about a server that leaves the connection open.
func TestDoneEnds(t *testing.T) {
	server, m := model(t, openai.Options{}, llmtest.Reply{Events: []string{delta(`"content":"Hi."`), "[DONE]"}, Stall: true})
	if text, _, err := ask(t, m); text != "Hi." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	<-server.Gone
}

func FuzzStream(f *testing.F) {
	hi, end := "data: "+delta(`"content":"<think>Hm.</think>Hi."`)+"\n\n", "data: "+end(`"stop"`)+"\n\n"
	calls := "data: " + delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"index":0,"function":{"arguments":"1}"}},`+
		`{"id":"b","function":{"name":"g","arguments":{"y":2}}}]`) + "\n\n"
	f.Add([]byte(hi + calls + end + `data: {"usage":{"prompt_tokens":7}}` + "\n\ndata: [DONE]\n\n"))
	f.Add([]byte(": at work\r\n\r\nevent: x\r\ndata:{\"choices\":\r\ndata:[]}\r\n\r\n" + hi))
	f.Add([]byte(hi + `data: {"error":{"message":"overloaded"}}` + "\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) { llmtest.ReadInPieces(t, behind, stream) })
}

func TestRequest(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	server := llmtest.NewOpenAI()
	t.Cleanup(server.Close)
	for _, base := range []string{"", "/", "/v1", "/v1/", "/openai/v1?api-version=1"} {
		m, err := openai.New(openai.Options{Server: llm.Server{BaseURL: server.URL + base, Model: "test", KeyEnv: "TEST_KEY"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t, m); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, r := range server.Requests() {
		paths = append(paths, r.Path)
		if kind := r.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("sent as %s", kind)
		}
		if key := r.Header.Get("Authorization"); key != "Bearer sk-test" {
			t.Errorf("sent with %s", key)
		}
	}
	if got := strings.Join(paths, " "); got != "/chat/completions /chat/completions /v1/chat/completions /v1/chat/completions /openai/v1/chat/completions" {
		t.Errorf("sent to %s", got)
	}
	none := math.NaN()
	_, m := model(t, openai.Options{Server: llm.Server{Temperature: &none}})
	_, _, err := ask(t, m)
	if e := new(dialog.ModelError); !errors.As(err, &e) || e.Kind != dialog.BadRequest {
		t.Errorf("a temperature that is no number: %v", err)
	}
}

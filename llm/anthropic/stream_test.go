package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/anthropic"
	"bellbird/llm/llmtest"
)

func behind(r http.RoundTripper) (llm.Model, error) {
	return anthropic.New(anthropic.Options{Server: llm.Server{BaseURL: "http://server", Model: "test", Retries: -1, Transport: r}})
}

// read is what comes of a stream, as llmtest.Read writes it.
func read(t *testing.T, r io.Reader) string {
	t.Helper()
	return llmtest.Read(t, behind, r)
}

// event is an event as the API writes it; fields are those beside its type.
func event(name, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + fields + "}\n\n"
}

// The events of an answer.
var (
	start = event("message_start", `"message":{"id":"msg_1","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}`)
	words = event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
		event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"Hi."}`) + stopped
	stopped = event("content_block_stop", `"index":0`)
	finish  = event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}`) + last
	last    = event("message_stop", "")
)

// calling is a call whose arguments come in parts, which stand within a JSON string.
func calling(begin string, parts ...string) string {
	out := event("content_block_start", `"index":1,"content_block":{"type":"tool_use",`+begin+`}`)
	for _, p := range parts {
		out += event("content_block_delta", `"index":1,"delta":{"type":"input_json_delta","partial_json":"`+p+`"}`)
	}
	return out + stopped
}

func TestStream(t *testing.T) {
	tests := []struct{ name, stream, want string }{
		{"as written down", start + event("ping", "") + words + finish, "Hi. 7+3"},
		{"CRLF", strings.ReplaceAll(start+words+finish, "\n", "\r\n"), "Hi. 7+3"},
		{"no space", strings.ReplaceAll(start+words+finish, ": ", ":"), "Hi. 7+3"},
		{"no names of events", strings.ReplaceAll(start+words+finish, "event: ", "x: "), "Hi. 7+3"},
		{"comments", ":\n\n" + start + ": at work\n\n" + words + finish, "Hi. 7+3"},
		{"several lines", "data: {\"type\":\"content_block_delta\",\ndata: \"delta\":{\"text\":\"Hi.\"}}\n\n" + finish, "Hi. 0+3"},
		{"nothing after the end counts", start + words + finish + words, "Hi. 7+3"},
		{"no empty line after the end", start + words + strings.TrimSpace(finish), "Hi. 7+3"},
		{"an empty answer", start + finish, " 7+3"},

		{"arguments in parts", start + calling(`"id":"a","name":"f","input":{}`, ``, `{\"x\"`, `: [1, `, `2]}`) + finish, " [a:f {\"x\":[1,2]}] 7+3"},
		{"arguments with the beginning", start + calling(`"id":"a","name":"f","input":{"x":1}`) + finish, " [a:f {\"x\":1}] 7+3"},
		{"no arguments", start + calling(`"id":"a","name":"f"`) + finish, " [a:f {}] 7+3"},
		{"arguments null", start + calling(`"id":"a","name":"f","input":null`, ``) + finish, " [a:f {}] 7+3"},
		{"arguments that are cut", start + calling(`"id":"a","name":"f","input":{}`, `{\"x\":`) + finish, " [a:f {}] 7+3"},
		{"words before and after", start + words + calling(`"id":"a","name":"f"`, `{}`) + words + finish, "Hi. [a:f {}]Hi. 7+3"},
		{"no id", start + calling(`"name":"f"`) + calling(`"name":"f"`) + finish, " [call_1_0:f {}] [call_1_1:f {}] 7+3"},
		{"a tool of the server's", start + event("content_block_start", `"content_block":{"type":"server_tool_use","id":"s","name":"search","input":{}}`) +
			event("content_block_delta", `"delta":{"type":"input_json_delta","partial_json":"{}"}`) + stopped +
			event("content_block_start", `"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`) + stopped + words + finish, "Hi. 7+3"},

		{"cut off between events", start + words, "Hi. (cut off)"},
		{"cut off within an event", start + words + finish[:len(finish)-len(last)-20], "Hi. (cut off)"},
		{"cut off within a call", start + strings.TrimSuffix(calling(`"id":"a","name":"f"`, `{\"x\":`), stopped), " (cut off)"},
		{"nothing", "", " (cut off)"},
		{"another API", "data: [DONE]\n\n", " (server fault)"},
		{"no JSON", start + "event: ping\ndata: Hi.\n\n" + words + finish, " (server fault)"},
		{"no object", "data: 1\n\ndata: [1]\n\ndata: \"x\"\n\ndata: null\n\n" + start + words + finish, "Hi. 7+3"},
		{"other types", event("content_block_delta", `"delta":[1]`) + event("content_block_delta", `"delta":{"text":["x"]},"usage":7`) + words + finish, "Hi. 0+3"},
		{"no error", start + event("ping", `"error":null`) + words + finish, "Hi. 7+3"},
		{"overloaded", start + words + event("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`) + finish, "Hi. (server fault)"},
		{"rate limit", start + event("error", `"error":{"type":"rate_limit_error","message":"slow down"}`), " (rate limited)"},
		{"an error of no kind", start + event("error", ""), " (server fault)"},
		{"a gateway's error", start + `data: {"error":"prompt is too long"}` + "\n\n", " (context too long)"},

		{"an event as large as may be", start + event("ping", `"x":"`+strings.Repeat("x", 1<<20-100)+`"`) + words + finish, "Hi. 7+3"},
		{"a larger line", start + words + ":" + strings.Repeat("x", 1<<20) + "\n\n" + finish, "Hi. (server fault)"},
		{"a larger event", start + words + "data: [1\n" + strings.Repeat("data: ,1"+strings.Repeat(" ", 1<<10)+"\n", 1<<10) + "data: ]\n\n" + finish, "Hi. (server fault)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := read(t, strings.NewReader(test.stream)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("too many calls", func(t *testing.T) {
		var calls, want strings.Builder
		for i := range llm.MaxCalls + 1 {
			calls.WriteString(calling(fmt.Sprintf(`"id":"c%d","name":"f"`, i)))
			if i < llm.MaxCalls {
				fmt.Fprintf(&want, " [c%d:f {}]", i)
			}
		}
		if got := read(t, strings.NewReader(start+calls.String()+finish)); got != want.String()+" (server fault)" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("broken", func(t *testing.T) {
		broken := iotest.ErrReader(errors.New("connection reset"))
		for stream, want := range map[string]string{
			start + words: "Hi. (cut off)", start + strings.TrimSpace(words): "Hi. (cut off)", start + words + finish: "Hi. 7+3",
		} {
			if got := read(t, io.MultiReader(strings.NewReader(stream), broken)); got != want {
				t.Errorf("%q: got %q, want %q", stream, got, want)
			}
		}
	})
}

// TestStopEnds is about a server that leaves the connection open.
func TestStopEnds(t *testing.T) {
	server, m := model(t, anthropic.Options{}, llmtest.Reply{Events: []string{
		`{"type":"content_block_delta","delta":{"text":"Hi."}}`, `{"type":"message_stop"}`}, Stall: true})
	text, err := ask(t, m, dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}})
	if text != "Hi." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	<-server.Gone
}

// pings is the transport to a server that is there while its model says nothing.
type pings struct {
	ctx context.Context // of the request
}

func (pings) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(pings{r.Context()}), Request: r}, nil
}

func (p pings) Read(b []byte) (int, error) {
	t := time.NewTimer(10 * time.Second)
	defer t.Stop()
	select {
	case <-t.C:
		return copy(b, event("ping", "")), nil
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
}

func TestPingsAreNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := behind(pings{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = ask(t, m, dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}})
		if e := new(dialog.ModelError); !errors.As(err, &e) || e.Kind != dialog.Stalled || time.Since(began) != 25*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(start + event("ping", "") + words + finish))
	f.Add([]byte(start + words + calling(`"id":"a","name":"f","input":{}`, `{\"x\":`, `1}`) + calling(`"name":"g","input":{"y":2}`) + finish))
	f.Add([]byte(start + event("content_block_start", `"content_block":{"type":"thinking","thinking":""}`) +
		event("content_block_delta", `"delta":{"type":"signature_delta","signature":"x"}`) + stopped + words + strings.TrimSpace(finish)))
	f.Add([]byte(start + words + event("error", `"error":{"type":"overloaded_error","message":"Overloaded"}`)))
	f.Add([]byte(": at work\r\n\r\ndata:{\"type\":\"message_delta\",\r\ndata:\"delta\":{\"stop_reason\":\"refusal\"}}\r\n\r\n" + last))
	f.Fuzz(func(t *testing.T, stream []byte) { llmtest.ReadInPieces(t, behind, stream) })
}

func TestRequest(t *testing.T) {
	t.Setenv("TEST_KEY", "sk-test")
	server := llmtest.NewAnthropic()
	t.Cleanup(server.Close)
	req := dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Well?"}}}
	for _, base := range []string{"", "/", "/proxy", "/proxy/"} {
		m, err := anthropic.New(anthropic.Options{Server: llm.Server{BaseURL: server.URL + base, Model: "test", KeyEnv: "TEST_KEY"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, m, req); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, r := range server.Requests() {
		paths = append(paths, r.Path)
		for name, want := range map[string]string{
			"Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "X-Api-Key": "sk-test", "Authorization": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	if got := strings.Join(paths, " "); got != "/v1/messages /v1/messages /proxy/v1/messages /proxy/v1/messages" {
		t.Errorf("sent to %s", got)
	}
	none := math.NaN()
	_, m := model(t, anthropic.Options{Server: llm.Server{Temperature: &none}})
	_, err := ask(t, m, req)
	if e := new(dialog.ModelError); !errors.As(err, &e) || e.Kind != dialog.BadRequest {
		t.Errorf("a temperature that is no number: %v", err)
	}
}

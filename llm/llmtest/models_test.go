package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/llm"
	"bellbird/llm/anthropic"
	"bellbird/llm/llmtest"
	"bellbird/llm/openai"
)

// What every API's package must do.

type api struct {
	name  string
	serve func(...llmtest.Reply) *llmtest.Server
	path  string // of the base URL
	model func(llm.Server) (llm.Model, error)

	// The form of an error within an answer.
	within string
}

var apis = []api{
	{"openai", llmtest.NewOpenAI, "/v1",
		func(s llm.Server) (llm.Model, error) { return openai.New(openai.Options{Server: s}) },
		`{"error":{"message":"overloaded","type":"server_error","code":null}}`},
	{"anthropic", llmtest.NewAnthropic, "",
		func(s llm.Server) (llm.Model, error) { return anthropic.New(anthropic.Options{Server: s}) },
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
}

// start starts a server and a model that asks it.
func (a api) start(t *testing.T, o llm.Server, replies ...llmtest.Reply) (*llmtest.Server, llm.Model) {
	t.Helper()
	server := a.serve(replies...)
	t.Cleanup(server.Close)
	if o.BaseURL == "" {
		o.BaseURL = server.URL + a.path
	}
	o.Model = "test"
	model, err := a.model(o)
	if err != nil {
		t.Fatal(err)
	}
	return server, model
}

func each(t *testing.T, test func(*testing.T, api)) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) { test(t, a) })
	}
}

// An outcome is all that came of a request.
type outcome struct {
	text   string
	pieces int // of text
	calls  []dialog.ToolCall
	usage  *dialog.Usage
	err    error
}

func (o outcome) kind() dialog.ModelErrorKind {
	var e *dialog.ModelError
	if errors.As(o.err, &e) {
		return e.Kind
	}
	return ""
}

func generate(ctx context.Context, t *testing.T, m llm.Model, req dialog.Request) (o outcome) {
	t.Helper()
	for d, err := range m.Generate(ctx, req) {
		if o.err != nil {
			t.Error("something came after an error")
		}
		if o.err = err; err != nil {
			continue
		}
		if d.Text != "" {
			o.pieces++
		}
		o.text += d.Text
		if d.Call != nil {
			o.calls = append(o.calls, *d.Call)
		}
		if d.Usage != nil {
			o.usage = d.Usage
		}
	}
	return o
}

func hello() dialog.Request {
	return dialog.Request{Messages: []dialog.Message{
		{Role: dialog.System, Content: "You are a speaker."}, {Role: dialog.User, Content: "Is the kettle whistling?"},
	}}
}

func call(id, name, arguments string) dialog.ToolCall {
	return dialog.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

func TestAnswer(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		server, m := a.start(t, llm.Server{}, llmtest.Reply{
			Text:  []string{"It ", "is."},
			Calls: []dialog.ToolCall{call("a", "get_time", `{}`), call("b", "set_timer", `{"seconds":60,"name":"tea"}`)},
		})
		got := generate(t.Context(), t, m, hello())
		if got.err != nil || got.text != "It is." || got.pieces != 2 || len(got.calls) != 2 {
			t.Fatalf("got %+v", got)
		}
		if c := got.calls[1]; c.ID != "b" || c.Name != "set_timer" || string(c.Arguments) != `{"seconds":60,"name":"tea"}` || c.Invalid != "" {
			t.Errorf("the second call is %+v", c)
		}
		if want := server.Requests()[0].Usage; got.usage == nil || *got.usage != want || want.Input == 0 || want.Output == 0 {
			t.Errorf("usage is %+v, the server counted %+v", got.usage, want)
		}
		if h := server.Requests()[0].Header; h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" {
			t.Errorf("a key was sent where none is configured: %v", h)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-elsewhere") // what the makers' own programs would take
	t.Setenv("ANTHROPIC_API_KEY", "sk-elsewhere")
	t.Setenv("TEST_KEY", "sk-env")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	file := write("key", "sk-file\n")
	tests := []struct {
		name string
		o    llm.Server
		want string // "" is NoKey
	}{
		{"file", llm.Server{KeyFile: file}, "sk-file"},
		{"credential", llm.Server{KeyFile: "key"}, "sk-file"},
		{"environment", llm.Server{KeyEnv: "TEST_KEY"}, "sk-env"},
		{"file before environment", llm.Server{KeyFile: file, KeyEnv: "TEST_KEY"}, "sk-file"},
		{"no file", llm.Server{KeyFile: filepath.Join(dir, "none")}, ""},
		{"empty file", llm.Server{KeyFile: write("empty", "\n")}, ""},
		{"two lines", llm.Server{KeyFile: write("two", "sk-1\nsk-2\n")}, ""},
		{"long file", llm.Server{KeyFile: write("long", strings.Repeat("k", 5000))}, ""},
		{"unset environment", llm.Server{KeyEnv: "TEST_NO_KEY"}, ""},
	}
	each(t, func(t *testing.T, a api) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				server, m := a.start(t, test.o)
				got := generate(t.Context(), t, m, hello())
				if test.want == "" {
					if got.kind() != dialog.NoKey || len(server.Requests()) > 0 || strings.Contains(got.err.Error(), "sk-") {
						t.Errorf("got %+v after %d requests, want no key and none", got, len(server.Requests()))
					}
					return
				}
				h := server.Requests()[0].Header
				if sent := strings.TrimPrefix(h.Get("Authorization"), "Bearer ") + h.Get("X-Api-Key"); got.err != nil || sent != test.want {
					t.Errorf("sent %q, %v, want %q", sent, got.err, test.want)
				}
			})
		}
		t.Run("hosted", func(t *testing.T) {
			m, err := a.model(llm.Server{Model: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.NoKey {
				t.Errorf("the makers' own server without a key: %v", got.err)
			}
		})
		t.Run("new key", func(t *testing.T) {
			path := write("rotated", "sk-old")
			server, m := a.start(t, llm.Server{KeyFile: path})
			generate(t.Context(), t, m, hello())
			write("rotated", "sk-new")
			generate(t.Context(), t, m, hello())
			if h := server.Requests()[1].Header; !strings.HasSuffix(h.Get("Authorization")+h.Get("X-Api-Key"), "sk-new") {
				t.Errorf("sent %v", h)
			}
		})
	})
}

func TestFaults(t *testing.T) {
	body := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	tests := []struct {
		name   string
		status int
		body   string
		want   dialog.ModelErrorKind
	}{
		{"wrong key", 401, "", dialog.WrongKey},
		{"forbidden", 403, "", dialog.WrongKey},
		{"unknown model", 404, "", dialog.UnknownModel},
		{"unknown model, as Ollama says it", 404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}`, dialog.UnknownModel},
		{"rate limit", 429, "", dialog.RateLimited},
		{"quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, dialog.NoCredit},
		{"credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, dialog.NoCredit},
		{"context, as OpenAI says it", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, dialog.ContextTooLong},
		{"context, as Anthropic says it", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, dialog.ContextTooLong},
		{"context, as llama.cpp says it", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, dialog.ContextTooLong},
		{"too large", 413, "", dialog.ContextTooLong},
		{"no tools", 400, `{"error":{"message":"gemma does not support tools","type":"api_error"}}`, dialog.BadRequest},
		{"content filter", 400, `{"error":{"message":"…","code":"content_filter"}}`, dialog.Refused},
		{"server error", 500, "", dialog.ServerFault},
		{"overloaded", 529, "", dialog.ServerFault},
		{"gateway", 502, "<html>Bad Gateway</html>", dialog.ServerFault},
		{"as text", 503, `{"error":"loading model"}`, dialog.ServerFault},
		{"huge", 500, body(`{"error":"%s"}`, strings.Repeat("x", 1<<20)), dialog.ServerFault},
		{"moved", 302, "", dialog.ServerFault},
	}
	t.Setenv("TEST_KEY", "sk-env")
	each(t, func(t *testing.T, a api) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				bad := llmtest.Reply{Status: test.status, Body: test.body, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}
				_, m := a.start(t, llm.Server{KeyEnv: "TEST_KEY", Retries: -1}, bad, llmtest.Reply{Text: []string{"Fine."}})
				got := generate(t.Context(), t, m, hello())
				if got.kind() != test.want || len(got.err.Error()) > 600 || strings.Contains(got.err.Error(), "sk-") {
					t.Errorf("got %q: %.200v, want %q", got.kind(), got.err, test.want)
				}
				if got := generate(t.Context(), t, m, hello()); got.text != "Fine." || got.err != nil {
					t.Errorf("the next turn: %+v", got)
				}
			})
		}
		t.Run("no key", func(t *testing.T) {
			_, m := a.start(t, llm.Server{}, llmtest.Reply{Status: 401})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.NoKey {
				t.Errorf("got %v", got.err)
			}
		})
		t.Run("page", func(t *testing.T) {
			_, m := a.start(t, llm.Server{}, llmtest.Reply{Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.ServerFault || !strings.Contains(got.err.Error(), "text/html") {
				t.Errorf("got %v", got.err)
			}
		})
		t.Run("unreachable", func(t *testing.T) {
			_, m := a.start(t, llm.Server{BaseURL: "http://127.0.0.1:1" + a.path, Retries: -1})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.Unreachable {
				t.Errorf("got %v", got.err)
			}
		})
		t.Run("speech is not for the log", func(t *testing.T) {
			_, m := a.start(t, llm.Server{}, llmtest.Reply{Status: 400, Body: `{"error":{"message":"bad input: Is the kettle whistling?"}}`})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.BadRequest || strings.Contains(got.err.Error(), "kettle") {
				t.Errorf("got %v", got.err)
			}
		})
	})
}

func TestRetries(t *testing.T) {
	soon := map[string]string{"Retry-After-Ms": "1"}
	fine := llmtest.Reply{Text: []string{"Fine."}}
	tests := []struct {
		name     string
		o        llm.Server
		replies  []llmtest.Reply
		want     dialog.ModelErrorKind // "" is an answer
		requests int
	}{
		{"rate limit", llm.Server{}, []llmtest.Reply{{Status: 429, Header: soon}, fine}, "", 2},
		{"twice", llm.Server{}, []llmtest.Reply{{Status: 500, Header: soon}, {Status: 529, Header: soon}, fine}, "", 3},
		{"too often", llm.Server{}, []llmtest.Reply{{Status: 500, Header: soon}}, dialog.ServerFault, 3},
		{"cut off before anything", llm.Server{}, []llmtest.Reply{{CutOff: true}, fine}, "", 2},
		{"not within the deadline", llm.Server{}, []llmtest.Reply{{Status: 429, Header: map[string]string{"Retry-After": "60"}}, fine}, dialog.RateLimited, 1},
		{"never", llm.Server{Retries: -1}, []llmtest.Reply{{Status: 500, Header: soon}, fine}, dialog.ServerFault, 1},
		{"not the key", llm.Server{}, []llmtest.Reply{{Status: 401, Header: soon}, fine}, dialog.NoKey, 1},
		{"not in mid-sentence", llm.Server{}, []llmtest.Reply{{Text: []string{"So "}, CutOff: true}, fine}, dialog.CutOff, 1},
	}
	each(t, func(t *testing.T, a api) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				server, m := a.start(t, test.o, test.replies...)
				got := generate(t.Context(), t, m, hello())
				if n := len(server.Requests()); got.kind() != test.want || (got.err == nil) != (test.want == "") || n != test.requests {
					t.Errorf("got %+v after %d requests, want %q after %d", got, n, test.want, test.requests)
				}
			})
		}
		t.Run("error within the answer", func(t *testing.T) {
			server, m := a.start(t, llm.Server{Retries: 1}, llmtest.Reply{Events: []string{a.within}}, fine)
			if got := generate(t.Context(), t, m, hello()); got.text != "Fine." || len(server.Requests()) != 2 {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("error within the answer, for good", func(t *testing.T) {
			_, m := a.start(t, llm.Server{Retries: -1}, llmtest.Reply{Events: []string{a.within}})
			if got := generate(t.Context(), t, m, hello()); got.kind() != dialog.ServerFault {
				t.Errorf("got %+v", got)
			}
		})
	})
}

// inBubble runs a test on the time of testing/synctest.
func (a api) inBubble(t *testing.T, o llm.Server, replies []llmtest.Reply, test func(*testing.T, *llmtest.Server, llm.Model)) {
	server := a.serve(replies...)
	t.Cleanup(server.Close)
	synctest.Test(t, func(t *testing.T) {
		o.BaseURL, o.Model, o.Transport = server.URL+a.path, "test", llmtest.Direct(server)
		m, err := a.model(o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, server, m)
	})
}

func TestStall(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		replies := []llmtest.Reply{{Text: []string{"So "}, Stall: true}, {Text: []string{"Fine."}}}
		a.inBubble(t, llm.Server{}, replies, func(t *testing.T, server *llmtest.Server, m llm.Model) {
			began := time.Now()
			got := generate(t.Context(), t, m, hello())
			if took := time.Since(began); got.kind() != dialog.Stalled || got.text != "So " || took != 15*time.Second {
				t.Errorf("got %+v after %v", got, took)
			}
			synctest.Wait()
			if len(server.Gone) != 1 {
				t.Error("the stream is still open")
			}
			if got := generate(t.Context(), t, m, hello()); got.text != "Fine." {
				t.Errorf("the next turn: %+v", got)
			}
		})
	})
}

func TestNoBeginning(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		replies := []llmtest.Reply{{Events: []string{""}, Stall: true}}
		a.inBubble(t, llm.Server{}, replies, func(t *testing.T, server *llmtest.Server, m llm.Model) {
			began := time.Now()
			got := generate(t.Context(), t, m, hello())
			if took := time.Since(began); got.kind() != dialog.Stalled || took != 25*time.Second {
				t.Errorf("got %+v after %v", got, took)
			}
			synctest.Wait()
			if len(server.Gone) != 1 {
				t.Error("the stream is still open")
			}
		})
	})
}

// TestSlowListener is about a voice that can't keep up: that is no stall.
func TestSlowListener(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		replies := []llmtest.Reply{{Text: []string{"So ", "it ", "is."}}}
		a.inBubble(t, llm.Server{}, replies, func(t *testing.T, _ *llmtest.Server, m llm.Model) {
			var text string
			for d, err := range m.Generate(t.Context(), hello()) {
				if err != nil {
					t.Fatal(err)
				}
				text += d.Text
				time.Sleep(time.Minute)
			}
			if text != "So it is." {
				t.Errorf("got %q", text)
			}
		})
	})
}

func TestRetryAfter(t *testing.T) {
	after := func(h, v string) llmtest.Reply {
		return llmtest.Reply{Status: 429, Header: map[string]string{h: v}}
	}
	fine := llmtest.Reply{Text: []string{"Fine."}}
	tests := []struct {
		name    string
		replies []llmtest.Reply
		text    string
		took    time.Duration
	}{
		{"in seconds", []llmtest.Reply{after("Retry-After", "7"), fine}, "Fine.", 7 * time.Second},
		{"in milliseconds", []llmtest.Reply{after("Retry-After-Ms", "1500"), after("Retry-After", "2"), fine}, "Fine.", 3500 * time.Millisecond},
		{"too late, all together", []llmtest.Reply{after("Retry-After", "20"), after("Retry-After", "6"), fine}, "", 20 * time.Second},
		{"too late", []llmtest.Reply{after("Retry-After", "26"), fine}, "", 0},
	}
	each(t, func(t *testing.T, a api) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				a.inBubble(t, llm.Server{}, test.replies, func(t *testing.T, _ *llmtest.Server, m llm.Model) {
					began := time.Now()
					got := generate(t.Context(), t, m, hello())
					if took := time.Since(began); got.text != test.text || took != test.took || test.text == "" && got.kind() != dialog.RateLimited {
						t.Errorf("got %+v after %v, want %q after %v", got, took, test.text, test.took)
					}
				})
			})
		}
	})
}

func TestCancel(t *testing.T) {
	why := errors.New("barge-in")
	each(t, func(t *testing.T, a api) {
		t.Run("context", func(t *testing.T) {
			server, m := a.start(t, llm.Server{}, llmtest.Reply{Text: []string{"So "}, Stall: true})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var last error
			for d, err := range m.Generate(ctx, hello()) {
				if last = err; d.Text != "" {
					cancel(why)
				}
			}
			if !errors.Is(last, why) {
				t.Errorf("got %v", last)
			}
			<-server.Gone // the stream is closed
		})
		t.Run("nobody wants more", func(t *testing.T) {
			server, m := a.start(t, llm.Server{}, llmtest.Reply{Text: []string{"So "}, Stall: true})
			for d := range m.Generate(t.Context(), hello()) {
				if d.Text != "" {
					break
				}
			}
			<-server.Gone
		})
		t.Run("before", func(t *testing.T) {
			server, m := a.start(t, llm.Server{})
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			if got := generate(ctx, t, m, hello()); !errors.Is(got.err, why) || len(server.Requests()) > 0 {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("while waiting to try again", func(t *testing.T) {
			server, m := a.start(t, llm.Server{}, llmtest.Reply{Status: 429, Header: map[string]string{"Retry-After": "20"}})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-server.Asked
				cancel(why)
			}()
			if got := generate(ctx, t, m, hello()); !errors.Is(got.err, why) {
				t.Errorf("got %+v", got)
			}
		})
	})
}

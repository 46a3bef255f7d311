// Package openai is a language model behind a server that speaks OpenAI's chat completions, as most do: Ollama, llama.cpp,
// vLLM, and the hosted ones. It copes with what they do differently. It keeps nothing between requests.
//
// It is not a client of the whole API: it knows one endpoint, always as a stream, and the fields that Bellbird uses.
// OpenAI's own module would do the same, but is too large for a speaker. With openai-go v3.99 on amd64 a program that
// does nothing else had 24.7 MB instead of 6.3 MB, the whole firmware 41.8 MB instead of 21.8 MB, and 6 MB more of it
// were resident before the first request; and to compile it took 76 s and 2.5 GB.
package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"bellbird/dialog"
	"bellbird/llm"
)

// DefaultURL is the address of OpenAI's own server, the only one that always wants a key.
const DefaultURL = "https://api.openai.com/v1"

// Options say which model to ask. Model must be set; an empty BaseURL is DefaultURL. Local servers need no key.
type Options struct {
	llm.Server

	// Alternate joins the messages of a role that follow each other into one. Some chat templates refuse a conversation
	// in which the user speaks twice in a row.
	Alternate bool `toml:"alternate"`
}

// A Model asks a server. It is safe for use by several goroutines.
type Model struct {
	o      Options
	own    bool // OpenAI's own server
	client *http.Client
	url    string // of the chat completions

	// What the server turned out not to know.
	noUsage, newMaxTokens atomic.Bool
}

// New returns a model. It connects to nothing.
func New(o Options) (*Model, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultURL
	}
	u, err := o.Check("http://localhost:11434/v1")
	if err != nil {
		return nil, err
	}
	o.SetDefaults()
	m := &Model{o: o, own: u.Hostname() == "api.openai.com", client: o.Client(), url: u.JoinPath("chat/completions").String()}
	m.newMaxTokens.Store(m.own)
	return m, nil
}

// Generate asks the server and yields the answer as it comes, thoughts left out, tool calls whole and at its end. The
// error is the context's own as soon as that is done, and otherwise a *dialog.ModelError.
func (m *Model) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		key, err := m.o.Key(m.own)
		if err != nil {
			yield(dialog.Delta{}, err)
			return
		}
		m.o.Ask(ctx, req, key != "", yield, func(ctx context.Context, a *llm.Attempt) error {
			for {
				err := m.attempt(ctx, a, req, key)
				if !m.adapt(err) {
					return err
				}
			}
		})
	}
}

func (m *Model) attempt(ctx context.Context, a *llm.Attempt, req dialog.Request, key string) error {
	post, err := llm.NewRequest(ctx, m.url, m.request(req))
	if err != nil {
		return err
	}
	if key != "" {
		post.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := a.Do(m.client, post)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	ans := answer{attempt: a, req: req}
	for s := llm.NewStream(res.Body); ; {
		data, err := s.Next()
		if err == nil && bytes.HasPrefix(data, []byte("[DONE]")) {
			ans.done = true
			return ans.end()
		}
		var c chunk
		if err == nil {
			err = s.Decode(&c)
		}
		switch {
		case err == io.EOF:
			return ans.end()
		case err != nil:
			return err
		case c.Error != nil:
			return llm.ParseFault(data)
		case !ans.add(c):
			return nil
		}
	}
}

// adapt looks for a field that the server refuses and reports whether the request is worth another try without it.
func (m *Model) adapt(err error) bool {
	var f *llm.Fault
	if !errors.As(err, &f) || f.Status != 400 && f.Status != 422 {
		return false
	}
	text := f.Code + " " + f.Message
	switch {
	case strings.Contains(text, "stream_options"):
		return !m.noUsage.Swap(true)
	case strings.Contains(text, "max_completion_tokens"): // "use it instead", or "I don't know it"
		return m.newMaxTokens.Swap(!m.own) == m.own
	}
	return false
}

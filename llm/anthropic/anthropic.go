// Package anthropic is a language model behind Anthropic's Messages API. It marks what stays the same from turn to turn,
// so that the server reads it from its prompt cache. It keeps nothing between requests.
//
// It is not a client of the whole API: it knows one endpoint, always as a stream, and the fields that Bellbird uses.
// Anthropic's own module would do the same, but is too large for a speaker. With anthropic-sdk-go v1.84 on amd64 the whole
// firmware had 23.4 MB instead of 18.3 MB, and to compile it took 78 s of processor time instead of less than one.
package anthropic

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"

	"bellbird/dialog"
	"bellbird/llm"
)

// DefaultURL is the address of Anthropic's own server, the only one that always wants a key.
const DefaultURL = "https://api.anthropic.com"

// version is that of the API. Every request must name it.
const version = "2023-06-01"

// Options say which model to ask. Model must be set; an empty BaseURL is DefaultURL.
type Options struct {
	llm.Server

	// CacheTTL is how long the server remembers a conversation after its last turn: "5m", the default, or "1h", which
	// costs more to begin with.
	CacheTTL string `toml:"cache_ttl"`
}

// A Model asks a server. It is safe for use by several goroutines.
type Model struct {
	o      Options
	own    bool // Anthropic's own server
	client *http.Client
	url    string // of the messages
}

// New returns a model. It connects to nothing.
func New(o Options) (*Model, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultURL
	}
	u, err := o.Check(DefaultURL)
	if err != nil {
		return nil, err
	}
	if o.CacheTTL != "" && o.CacheTTL != "5m" && o.CacheTTL != "1h" {
		return nil, fmt.Errorf("cache_ttl = %q: it is 5m or 1h", o.CacheTTL)
	}
	o.SetDefaults()
	return &Model{o: o, own: u.Hostname() == "api.anthropic.com", client: o.Client(), url: u.JoinPath("v1/messages").String()}, nil
}

// Generate asks the server and yields the answer as it comes, thoughts left out and tool calls whole. The error is the
// context's own as soon as that is done, and otherwise a *dialog.ModelError.
func (m *Model) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		key, err := m.o.Key(m.own)
		if err != nil {
			yield(dialog.Delta{}, err)
			return
		}
		m.o.Ask(ctx, req, key != "", yield, func(ctx context.Context, a *llm.Attempt) error {
			return m.attempt(ctx, a, req, key)
		})
	}
}

func (m *Model) attempt(ctx context.Context, a *llm.Attempt, req dialog.Request, key string) error {
	post, err := llm.NewRequest(ctx, m.url, m.request(req))
	if err != nil {
		return err
	}
	post.Header.Set("Anthropic-Version", version)
	if key != "" {
		post.Header.Set("X-Api-Key", key)
	}
	res, err := a.Do(m.client, post)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	ans := answer{attempt: a, req: req}
	for s := llm.NewStream(res.Body); ; {
		data, err := s.Next()
		var e event
		if err == nil {
			err = s.Decode(&e)
		}
		switch {
		case err == io.EOF:
			return llm.ErrCutOff // the end of an answer is an event
		case err != nil:
			return err
		case e.Type == "error", e.Error != nil:
			return llm.ParseFault(data)
		}
		if more, err := ans.add(e); err != nil || !more {
			return err
		}
	}
}

// Package anthropic is a language model behind Anthropic's Messages API. It marks what stays the same from turn to turn,
// so that the server reads it from its prompt cache. It keeps nothing between requests.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"bellbird/dialog"
	"bellbird/llm"
)

// DefaultURL is the address of Anthropic's own server, the only one that always wants a key.
const DefaultURL = "https://api.anthropic.com"

// Options say which model to ask. Model must be set; an empty BaseURL is DefaultURL.
type Options struct {
	llm.Server

	// CacheTTL is how long the server remembers a conversation after its last turn: "5m", the default, or "1h", which
	// costs more to begin with.
	CacheTTL string `toml:"cache_ttl"`
}

// A Model asks a server. It is safe for use by several goroutines.
type Model struct {
	o        Options
	own      bool // Anthropic's own server
	messages anthropic.MessageService
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
	m := &Model{o: o, own: u.Hostname() == "api.anthropic.com"}
	// Not anthropic.NewClient: it takes keys and addresses from the environment.
	m.messages = anthropic.NewMessageService(option.WithBaseURL(o.BaseURL), option.WithHTTPClient(o.Client()),
		option.WithMaxRetries(0), option.WithoutOpenTelemetry())
	return m, nil
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
	opts := []option.RequestOption{option.WithMiddleware(a.Do)}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	stream := m.messages.NewStreaming(ctx, m.params(req), opts...)
	ans := answer{attempt: a, req: req}
	if stream.Err() == nil {
		defer stream.Close() // there is none after an error
	}
	for stream.Next() {
		if more, err := ans.add(stream.Current()); err != nil || !more {
			return err
		}
	}
	var within *anthropic.Error
	switch err := stream.Err(); {
	case errors.As(err, &within):
		return llm.ParseFault([]byte(within.RawJSON()))
	case err != nil:
		return err
	}
	return llm.ErrCutOff // the end of an answer is an event
}

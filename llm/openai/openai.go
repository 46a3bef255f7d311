// Package openai is a language model behind a server that speaks OpenAI's chat completions, as most do: Ollama, llama.cpp,
// vLLM, and the hosted ones. It copes with what they do differently. It keeps nothing between requests.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

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
	o    Options
	own  bool // OpenAI's own server
	chat openai.ChatCompletionService

	// What the server turned out not to know.
	noUsage, newMaxTokens atomic.Bool
}

// New returns a model. It connects to nothing.
func New(o Options) (*Model, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultURL
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base_url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("base_url = %q: it must be like http://localhost:11434/v1", o.BaseURL)
	case o.Model == "":
		return nil, errors.New("no model is set: name one that the server has")
	}
	o.SetDefaults()
	m := &Model{o: o, own: u.Hostname() == "api.openai.com"}
	m.newMaxTokens.Store(m.own)
	// Not openai.NewClient: it takes keys and addresses from the environment, and would send them to any server.
	m.chat = openai.NewChatCompletionService(
		option.WithBaseURL(o.BaseURL), option.WithHTTPClient(o.Client()), option.WithMaxRetries(0))
	return m, nil
}

// Generate asks the server and yields the answer as it comes, thoughts left out, tool calls whole and at its end. The
// error is the context's own as soon as that is done, and otherwise a *dialog.ModelError.
func (m *Model) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		key, err := m.o.Key()
		if err == nil && key == "" && m.own {
			err = &dialog.ModelError{Kind: dialog.NoKey, Err: llm.ErrNoKey}
		}
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
	opts := []option.RequestOption{option.WithMiddleware(a.Do)}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	stream := m.chat.NewStreaming(ctx, m.params(req), opts...)
	defer stream.Close()
	ans := answer{attempt: a, req: req}
	for stream.Next() {
		if !ans.add(stream.Current()) {
			return nil
		}
	}
	var within *ssestream.StreamError
	switch err := stream.Err(); {
	case errors.As(err, &within):
		return llm.ParseFault(within.Event.Data)
	case err != nil:
		return err
	}
	return ans.end()
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

// params is the request in the words of the API. It is the same, byte for byte, for the same request.
func (m *Model) params(req dialog.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: m.o.Model, Messages: m.messages(req.Messages)}
	if !m.noUsage.Load() {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if m.newMaxTokens.Load() {
		p.MaxCompletionTokens = param.NewOpt(int64(m.o.MaxTokens))
	} else {
		p.MaxTokens = param.NewOpt(int64(m.o.MaxTokens))
	}
	if m.o.Temperature != nil {
		p.Temperature = param.NewOpt(*m.o.Temperature)
	}
	for _, t := range llm.Tools(req.Tools) {
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: parameters(t.Parameters)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	if req.NoCalls && len(p.Tools) > 0 {
		p.ToolChoice.OfAuto = param.NewOpt("none")
	}
	return p
}

// parameters is a schema as the SDK takes it. Its parts stay as they are written: the SDK makes texts of json.Numbers.
func parameters(schema json.RawMessage) shared.FunctionParameters {
	var parts map[string]json.RawMessage
	if json.Unmarshal(schema, &parts) != nil {
		return nil // llm.Tools returns objects only
	}
	p := shared.FunctionParameters{}
	for k, v := range parts {
		p[k] = v
	}
	return p
}

func (m *Model) messages(messages []dialog.Message) []openai.ChatCompletionMessageParamUnion {
	messages = llm.Tidy(messages)
	if m.o.Alternate {
		messages = alternate(messages)
	}
	var out []openai.ChatCompletionMessageParamUnion
	for _, msg := range messages {
		switch msg.Role {
		case dialog.System:
			out = append(out, openai.SystemMessage(msg.Content))
		case dialog.User:
			out = append(out, openai.UserMessage(msg.Content))
		case dialog.Tool:
			out = append(out, openai.ToolMessage(msg.Content, msg.CallID))
		case dialog.Assistant:
			var a openai.ChatCompletionAssistantMessageParam
			if msg.Content != "" {
				a.Content.OfString = param.NewOpt(msg.Content)
			}
			for _, c := range msg.Calls {
				a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
					OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
						ID: c.ID,
						Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
							Name: c.Name, Arguments: string(c.Arguments),
						},
					},
				})
			}
			out = append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &a})
		}
	}
	return out
}

// alternate joins the texts of a role that follow each other.
func alternate(messages []dialog.Message) []dialog.Message {
	var out []dialog.Message
	for _, m := range messages {
		if n := len(out) - 1; n >= 0 && m.Role == out[n].Role && m.Role != dialog.Tool && len(m.Calls)+len(out[n].Calls) == 0 {
			out[n].Content += "\n\n" + m.Content
			continue
		}
		out = append(out, m)
	}
	return out
}

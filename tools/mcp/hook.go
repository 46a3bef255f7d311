package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The reserved tools of a server, for whoever treats it as an integration. No model can get here: they are in no Set.

// Hooks are the names of the reserved tools that the server has at the moment: none, while it isn't connected.
func (s *Server) Hooks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed.hooks
}

// OwnName is the server's own name of a tool that is offered, which may differ from the one that models accept.
func (s *Server) OwnName(offered string) (name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, ok = s.listed.own[offered]
	return name, ok
}

// Connected is whether the server is there, and if not, why.
func (s *Server) Connected() (bool, error) {
	status := s.Status()
	return status.Connected, status.Err
}

// CallHook calls a reserved tool with one object, and returns what it answers as JSON, nil if that is nothing. It returns
// when ctx ends, whatever the server does. An error may have words of the server's in it.
func (s *Server) CallHook(ctx context.Context, tool string, input any) (json.RawMessage, error) {
	s.mu.Lock()
	c, hooks := s.session, s.listed.hooks
	s.mu.Unlock()
	if c == nil || !slices.Contains(hooks, tool) {
		return nil, fmt.Errorf("%s has no %s at the moment", s.o.Name, tool)
	}
	answered := make(chan *sdk.CallToolResult, 1)
	err := within(ctx, s.o.Timeout, func(ctx context.Context) error {
		r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: input})
		answered <- r
		return err
	})
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.ask() // is it still there?
		}
		return nil, err
	}
	r := <-answered
	if r.IsError {
		return nil, errors.New(cmp.Or(cut(flatten(r), maxDescription), "it failed, and doesn't say why"))
	}
	return object(r)
}

// object is what a result says as JSON: its structured content, or else the first of its texts.
func object(r *sdk.CallToolResult) (json.RawMessage, error) {
	if r.StructuredContent != nil {
		return json.Marshal(r.StructuredContent)
	}
	for _, content := range r.Content {
		if t, ok := content.(*sdk.TextContent); ok {
			text := bytes.TrimSpace([]byte(t.Text))
			if len(text) > 0 && !json.Valid(text) {
				return nil, errors.New("it answers with something that is no JSON")
			}
			return text, nil
		}
	}
	return nil, nil
}

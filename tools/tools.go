// Package tools is what a model may do: a set of named tools, and the ones that the appliance itself has. It decides
// nothing about when a tool runs; that is the pipeline's.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"bellbird/dialog"
)

// A Tool is something that a model may have done. Run gets the arguments as a JSON object, which it must check, and
// returns what came of it in words that can be spoken as they are. An empty result means that there is nothing to say.
// An error is for the log, unless it is a Refusal.
type Tool struct {
	Spec dialog.ToolSpec
	Run  func(ctx context.Context, args json.RawMessage) (string, error)
}

// A Refusal is an error that is told to the model, and so to the user.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Set is a set of tools, none of which share a name. It does not change, and may be used by several goroutines.
type Set struct {
	tools map[string]Tool
	specs []dialog.ToolSpec
	log   *slog.Logger
}

// NewSet returns the set of the given tools, in that order. log may be nil.
func NewSet(log *slog.Logger, all ...Tool) (*Set, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Set{tools: make(map[string]Tool), log: log}
	for _, t := range all {
		if _, taken := s.tools[t.Spec.Name]; taken {
			return nil, fmt.Errorf("tool %q: there are two of that name", t.Spec.Name)
		}
		s.tools[t.Spec.Name] = t
		s.specs = append(s.specs, t.Spec)
	}
	return s, nil
}

// Specs describes the tools to a model.
func (s *Set) Specs() []dialog.ToolSpec { return s.specs }

// Call runs a tool. It has a result in any case.
func (s *Set) Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult {
	result := dialog.ToolResult{CallID: call.ID}
	t, known := s.tools[call.Name]
	if !known {
		result.Content = fmt.Sprintf("There is no tool %q.", call.Name)
		return result
	}
	content, err := t.Run(ctx, call.Arguments)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		content = string(refusal)
	case err != nil:
		s.log.Error("tool", "tool", call.Name, "err", err)
		content = "Sorry, that didn't work."
	}
	result.Content = content
	return result
}

// decode reads the arguments of a call into dst.
func decode(args json.RawMessage, dst any) error {
	if len(args) == 0 {
		return nil
	}
	if err := json.Unmarshal(args, dst); err != nil {
		return Refusal("The arguments don't fit: " + err.Error())
	}
	return nil
}

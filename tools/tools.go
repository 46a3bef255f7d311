// Package tools is what a model may do: a set of named tools, and the ones that the appliance itself has. It decides
// nothing about when a tool runs; that is the pipeline's.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"bellbird/dialog"
)

// A Tool is something that a model may have done. Run returns what came of it in words that can be spoken as they are.
// An empty result means that there is nothing to say. An error is for the log, unless it is a Refusal.
type Tool struct {
	Spec dialog.ToolSpec

	// Run gets the arguments as a JSON object that fits the tool's schema, unless Checks is set.
	Run func(ctx context.Context, args json.RawMessage) (string, error)

	// Checks says that Run itself refuses arguments which don't fit, in words made for it. It gets them converted to
	// the types of the schema as far as that was possible.
	Checks bool

	// Timeout ends Run's context; 0: only that of who calls does.
	Timeout time.Duration
}

// A Refusal is an error that is told to the model, and so to the user.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// MaxResult bounds what a model gets to read of a result, in bytes. What is longer is cut, and says so.
const MaxResult = 16 << 10

// Prepare returns the call with its arguments converted to the types of the tool's schema: "2" to 2, "true" to true. It
// is what a hook before the call should see. The error is a Refusal: there is no such tool, or the arguments don't fit.
func (s *Set) Prepare(call dialog.ToolCall) (dialog.ToolCall, error) {
	_, call, err := s.prepare(call)
	return call, err
}

func (s *Set) prepare(call dialog.ToolCall) (*entry, dialog.ToolCall, error) {
	e, known := s.table.Load().tools[call.Name]
	if !known {
		return nil, call, Refusal(fmt.Sprintf("There is no tool %q.", call.Name))
	}
	if call.Invalid != "" {
		return e, call, Refusal(call.Invalid)
	}
	args, err := e.schema.fit(call.Arguments)
	if err != nil && !e.Checks {
		return e, call, Refusal("The arguments don't fit: " + err.Error() + ".")
	}
	if args != nil {
		call.Arguments = args
	}
	return e, call, nil
}

// Timeout is how long the named tool may take by its own account; 0: it has no opinion, or there is none of that name.
func (s *Set) Timeout(name string) time.Duration {
	if e, ok := s.table.Load().tools[name]; ok {
		return e.Timeout
	}
	return 0
}

// Call runs a tool, with its arguments prepared. It has a result in any case.
func (s *Set) Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult {
	result := dialog.ToolResult{CallID: call.ID}
	e, call, err := s.prepare(call)
	if err == nil {
		if e.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, e.Timeout)
			defer cancel()
		}
		result.Content, err = s.run(ctx, e, call)
	}
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		result.Content = string(refusal)
	case errors.Is(err, context.DeadlineExceeded):
		s.log.Warn("tool", "tool", call.Name, "owner", e.owner, "err", err)
		result.Content = "Sorry, that took too long."
	case err != nil:
		s.log.Error("tool", "tool", call.Name, "owner", e.owner, "err", err)
		result.Content = "Sorry, that didn't work."
	}
	result.Content = Bound(result.Content)
	return result
}

// run is the tool's Run, of which a panic is an error like any other.
func (s *Set) run(ctx context.Context, e *entry, call dialog.ToolCall) (content string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return e.Run(ctx, call.Arguments)
}

// Bound cuts text that is longer than MaxResult, at a character's border, and says so at its end.
func Bound(text string) string {
	if len(text) <= MaxResult {
		return text
	}
	note := fmt.Sprintf("\n[cut here: this is the beginning of %d bytes]", len(text))
	n := MaxResult - len(note)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + note
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

// orDiscard is log, or a logger for who wants none.
func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

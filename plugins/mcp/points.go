package mcp

import (
	"context"
	"slices"
	"strings"

	"bellbird/hooks"
	"bellbird/tools"
)

// What integrations may do at each point, and how several answers are combined. Whatever they say, the only way they have
// about a confirmation is to ask for one.

// handlers are the functions of the points, each for all integrations together.
func (s *Set) handlers() map[string]hooks.Func {
	return map[string]hooks.Func{
		"transcript": s.transcript, "dictation": s.dictation, "preToolUse": s.preToolUse, "postToolUse": s.postToolUse, "turnComplete": s.turnComplete,
	}
}

// front is what is in front for a fire.
func (s *Set) front(e *hooks.Event) string {
	if app, ok := e.Metadata["app"].(string); ok && app != "" {
		return app // of dictation
	}
	if e.Surface != nil {
		return *e.Surface
	}
	if s.o.Front != nil {
		return s.o.Front()
	}
	return "chat"
}

// transcript is what was said, before anything is made of it. One who blocks goes before one who answers, and then the
// first in order does. Of those who rewrite only the first is heard, since the others rewrote something else. Context
// comes from all of them.
func (s *Set) transcript(ctx context.Context, e *hooks.Event) error {
	if e.SkipLLM {
		return nil // it has been answered: no agent is asked
	}
	front, text := s.front(e), e.Input
	replies := s.ask(ctx, "transcript", s.subscribed("transcript", front, e), func(*integration) any {
		return transcriptInput{text, front}
	}, isPrivate(e))
	if r := ending(replies); r != nil {
		e.SkipLLM = true
		said := strings.TrimSpace(r.result.ResponseText)
		if said == "" && r.result.Decision == "block" {
			said = "That was stopped by " + r.Name + "."
		}
		if e.Response = nil; said != "" {
			e.Response = &said
		}
		if v := r.result.View; r.result.Decision == "handled" && v != nil && len(v.Blocks) > 0 && s.o.OnView != nil {
			s.o.OnView(r.Name, *v, isPrivate(e))
		}
		return nil
	}
	if r := rewriting(replies); r != nil {
		e.Input = r.result.UpdatedText
	}
	for _, r := range replies {
		if r.result == nil {
			continue
		}
		if more := strings.TrimSpace(r.result.AdditionalContext); more != "" {
			// Indented, so that no line of it looks like another's.
			e.ContextParts = append(e.ContextParts, "From "+r.Name+": "+strings.ReplaceAll(more, "\n", "\n  "))
		}
	}
	return nil
}

// dictation is a text about to be delivered. One who blocks or handles it keeps it from that; else the first who rewrites
// it does.
func (s *Set) dictation(ctx context.Context, e *hooks.Event) error {
	if e.SkipLLM {
		return nil
	}
	front, text := s.front(e), e.Input
	replies := s.ask(ctx, "dictation", s.subscribed("dictation", front, e), func(*integration) any {
		return dictationInput{text, front}
	}, isPrivate(e))
	if ending(replies) != nil {
		e.SkipLLM = true
	} else if r := rewriting(replies); r != nil {
		e.Input = r.result.UpdatedText
	}
	return nil
}

// owner is the one among the subscribed whose tool it is, and the tool's name at its server.
func (s *Set) owner(hook, front string, e *hooks.Event) (who []*integration, tool string) {
	if e.FunctionName == nil {
		return nil, ""
	}
	for _, i := range s.subscribed(hook, front, e) {
		if name, ok := s.own(i, *e.FunctionName); ok {
			return []*integration{i}, name
		}
	}
	return nil, ""
}

func (s *Set) own(i *integration, offered string) (name string, ok bool) {
	if s.o.Owns == nil || !s.o.Owns(i.Name, offered) {
		return "", false
	}
	return i.server.OwnName(offered)
}

// preToolUse is a tool of the integration itself, before it runs.
func (s *Set) preToolUse(ctx context.Context, e *hooks.Event) error {
	if e.SkipLLM {
		return nil
	}
	front, args := s.front(e), e.Arguments
	who, tool := s.owner("preToolUse", front, e)
	for _, r := range s.ask(ctx, "preToolUse", who, func(*integration) any {
		return preToolUseInput{tool, filled(args), front}
	}, isPrivate(e)) {
		if r.result == nil {
			continue
		}
		if r.result.ends() {
			text := strings.TrimSpace(r.result.ResponseText)
			if text == "" {
				text = r.Name + " doesn't allow that now."
			}
			e.SkipLLM, e.Result = true, &text
			return nil
		}
		if r.result.UpdatedArgs != nil {
			e.Arguments = r.result.UpdatedArgs
		}
		if r.result.RequireConfirmation && e.Confirm == nil { // a question that is asked already stays
			e.Confirm = hooks.String(r.result.Reason)
		}
	}
	return nil
}

// postToolUse is the result of a tool of the integration itself, before the model reads it.
func (s *Set) postToolUse(ctx context.Context, e *hooks.Event) error {
	if e.Result == nil {
		return nil
	}
	front, args, result := s.front(e), e.Arguments, *e.Result
	who, tool := s.owner("postToolUse", front, e)
	for _, r := range s.ask(ctx, "postToolUse", who, func(*integration) any {
		return postToolUseInput{tool, filled(args), result, front}
	}, isPrivate(e)) {
		if r.result != nil && len(r.result.UpdatedResult) > 0 {
			e.Result = hooks.String(tools.Bound(r.result.result()))
		}
	}
	return nil
}

// turnComplete is a receipt, of which nobody waits for what they make of it: not even the next receipt.
func (s *Set) turnComplete(ctx context.Context, e *hooks.Event) error {
	front := s.front(e)
	who := s.subscribed("turnComplete", front, e)
	if len(who) == 0 {
		return nil
	}
	text, response, private := e.Input, "", isPrivate(e)
	if e.Response != nil {
		response = *e.Response
	}
	used, _ := e.Metadata["tools_used"].([]any)
	receipt := func(ctx context.Context) {
		s.ask(ctx, "turnComplete", who, func(i *integration) any {
			own := []string{}
			for _, u := range used {
				offered, _ := u.(string)
				if name, ok := s.own(i, offered); ok && !slices.Contains(own, name) {
					own = append(own, name)
				}
			}
			return turnCompleteInput{text, response, own, front}
		}, private)
	}
	select {
	case s.receipts <- receipt:
	default:
		s.o.Logger.Warn("integrations: too many receipts wait, one is dropped")
	}
	return nil
}

// ending is the reply that ends it all: the first that blocks, or else the first that handles; nil if none does.
func ending(replies []reply) (first *reply) {
	for n := range replies {
		switch r := &replies[n]; {
		case r.result == nil:
		case r.result.Decision == "block":
			return r
		case r.result.Decision == "handled" && first == nil:
			first = r
		}
	}
	return first
}

// rewriting is the first reply with another text; nil if there is none.
func rewriting(replies []reply) *reply {
	for n := range replies {
		if r := &replies[n]; r.result != nil && r.result.rewrites() {
			return r
		}
	}
	return nil
}

// filled is an object, also of no arguments.
func filled(args map[string]any) map[string]any {
	if args == nil {
		return map[string]any{}
	}
	return args
}

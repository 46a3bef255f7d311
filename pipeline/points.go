package pipeline

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"bellbird/dialog"
	"bellbird/event"
	"bellbird/hooks"
)

// This file is where a turn fires its hooks, one method for each point that changes something, in the order in which
// they come. What a handler may do at a point, and for how long, is in the table of package hooks.

// fire calls the handlers of a point on e, and keeps the trace. budget 0 is the point's own.
func (t *turn) fire(ctx context.Context, point string, e *hooks.Event, budget time.Duration) {
	h := t.p.o.Hooks
	if h == nil || !h.Has(point) {
		return
	}
	if e.Metadata == nil {
		e.Metadata = make(map[string]any)
	}
	t.stamp(point, e)
	trace := h.FireWithin(ctx, point, e, budget)
	t.traceMu.Lock()
	defer t.traceMu.Unlock()
	for _, c := range trace {
		call := HookCall(c)
		call.Began = t.since() - call.Took
		t.trace = append(t.trace, call)
	}
}

// HookCall is the fact of a handler's call. Began is zero. What a handler said of a private chat is left out.
func HookCall(c hooks.Call) event.HookCall {
	call := event.HookCall{Point: c.Point, Plugin: c.Plugin, Outcome: string(c.Outcome), Took: event.Millis(c.Took)}
	if c.Err != nil && !c.Private {
		call.Error = c.Err.Error()
	}
	return call
}

// stamp says which chat a fire is about. The runner finds out whether that is private, each time, since it may become so
// during a turn. on_wake tells of no chat: every plugin gets it.
func (t *turn) stamp(point string, e *hooks.Event) {
	switch {
	case point == "on_wake":
	case t.chat == nil || t.chat.Name() == "":
		e.ChatPrivate = new(true)
	default:
		e.ChatName = hooks.String(t.chat.Name())
	}
}

// has reports whether a fire of the point would call anybody.
func (t *turn) has(point string) bool { return t.p.o.Hooks != nil && t.p.o.Hooks.Has(point) }

func (t *turn) onWake(ctx context.Context) { t.fire(ctx, "on_wake", new(hooks.Event), 0) }

// postSTT is what the plugins make of what was recognised.
func (t *turn) postSTT(ctx context.Context, text string) string {
	e := &hooks.Event{Input: text}
	t.fire(ctx, "post_stt", e, 0)
	return e.Input
}

// preChat lets plugins change the input, or answer in the model's place.
func (t *turn) preChat(ctx context.Context) *hooks.Event {
	e := &hooks.Event{Input: t.record.Heard}
	t.fire(ctx, "pre_chat", e, 0)
	return e
}

// promptInject is the system prompt with the parts of pre_chat and of prompt_inject.
func (t *turn) promptInject(ctx context.Context, parts []string) string {
	e := &hooks.Event{ContextParts: parts, Surface: t.surface()}
	t.fire(ctx, "prompt_inject", e, 0)
	if t.p.o.Prompt == nil {
		return strings.Join(e.ContextParts, "\n")
	}
	return t.p.o.Prompt(t.chat, e.ContextParts)
}

// ghostInject is what the plugins contribute to the ghost message of this turn.
func (t *turn) ghostInject(ctx context.Context, input string) []hooks.Contribution {
	e := &hooks.Event{Input: input, Surface: t.surface()}
	t.fire(ctx, "ghost_inject", e, 0)
	return e.GhostContributions
}

// toolsFilter is what the plugins leave of the tools.
func (t *turn) toolsFilter(ctx context.Context, specs []dialog.ToolSpec) []dialog.ToolSpec {
	if withheld := t.p.o.Withheld; withheld != nil && t.chat.Private() {
		specs = slices.DeleteFunc(slices.Clone(specs), func(s dialog.ToolSpec) bool { return withheld(s.Name) })
	}
	if !t.has("tools_filter") {
		return specs
	}
	e := new(hooks.Event)
	for _, s := range specs {
		f := map[string]any{"name": s.Name, "description": s.Description}
		var parameters any
		if json.Unmarshal(s.Parameters, &parameters) == nil {
			f["parameters"] = parameters
		}
		e.Tools = append(e.Tools, map[string]any{"type": "function", "function": f})
	}
	t.fire(ctx, "tools_filter", e, 0)
	left := make(map[string]bool)
	for _, tool := range e.Tools {
		if f, ok := tool["function"].(map[string]any); ok {
			if name, ok := f["name"].(string); ok {
				left[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(specs), func(s dialog.ToolSpec) bool { return !left[s.Name] })
}

const blockedResult = "Execution skipped by plugin."

// execute runs a tool between pre_execute and post_execute. A tool that is not among those offered is refused.
func (t *turn) execute(ctx context.Context, call dialog.ToolCall, offered []dialog.ToolSpec) (dialog.ToolResult, error) {
	switch {
	case !slices.ContainsFunc(offered, func(s dialog.ToolSpec) bool { return s.Name == call.Name }):
		return dialog.ToolResult{CallID: call.ID, Content: "There is no tool " + call.Name + "."}, nil
	case call.Invalid != "":
		return dialog.ToolResult{CallID: call.ID, Content: call.Invalid}, nil
	}
	call, err := t.p.o.Tools.Prepare(call)
	if err != nil {
		return dialog.ToolResult{CallID: call.ID, Content: err.Error()}, nil
	}
	var arguments map[string]any
	if t.has("pre_execute") || t.has("post_execute") {
		if err := json.Unmarshal(call.Arguments, &arguments); err != nil && len(call.Arguments) > 0 {
			return dialog.ToolResult{CallID: call.ID, Content: "The arguments are no JSON object."}, nil
		}
	}
	var reason *string // to ask the user
	if t.has("pre_execute") {
		e := &hooks.Event{FunctionName: hooks.String(call.Name), Arguments: arguments}
		t.fire(ctx, "pre_execute", e, 0)
		if e.SkipLLM {
			content := blockedResult
			if e.Result != nil {
				content = *e.Result
			}
			return dialog.ToolResult{CallID: call.ID, Content: content}, nil
		}
		changed, err := json.Marshal(e.Arguments)
		if err == nil {
			call.Arguments, arguments = changed, e.Arguments
		}
		reason = e.Confirm
	}
	if refusal, err := t.p.o.Confirmations.confirm(ctx, t, call, reason); err != nil || refusal != "" {
		return dialog.ToolResult{CallID: call.ID, Content: refusal}, err
	}
	result, err := t.callTool(ctx, call)
	if err != nil || !t.has("post_execute") {
		return result, err
	}
	e := &hooks.Event{FunctionName: hooks.String(call.Name), Arguments: arguments, Result: hooks.String(result.Content)}
	t.fire(ctx, "post_execute", e, 0)
	if e.Result != nil {
		result.Content = *e.Result
	}
	return result, nil
}

// postLLM is what the plugins make of the whole answer; what was spoken of it already stays as it was.
func (t *turn) postLLM(ctx context.Context, input, answer string) string {
	e := &hooks.Event{Input: input, Response: hooks.String(answer)}
	t.fire(ctx, "post_llm", e, 0)
	if e.Response == nil {
		return answer
	}
	return *e.Response
}

func (t *turn) postChat(ctx context.Context, input, answer string) {
	t.fire(ctx, "post_chat", &hooks.Event{
		Input: input, Response: hooks.String(answer), Metadata: map[string]any{"tools_used": t.usedTools},
	}, 0)
}

// surface is where the chat is shown.
func (t *turn) surface() *string { return hooks.String(t.chat.Surface()) }

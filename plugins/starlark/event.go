package starlark

import (
	"fmt"

	"go.starlark.net/starlark"

	"bellbird/hooks"
)

// An event is a hooks.Event as scripts see it: with the contract's names, attributes that can be set, and lists and
// dicts that can be changed in place. Containers are converted when they are first looked at, and back by flush.
type event struct {
	e     *hooks.Event
	grant func(system any) Powers
	boxes map[string]starlark.Value // nil: nothing was looked at
}

var _ starlark.HasSetField = (*event)(nil)

func (s *Script) newEvent(e *hooks.Event) *event { return &event{e: e, grant: s.o.Grant} }

func (v *event) String() string        { return "<event>" }
func (v *event) Type() string          { return "event" }
func (v *event) Freeze()               {}
func (v *event) Truth() starlark.Bool  { return true }
func (v *event) Hash() (uint32, error) { return 0, fmt.Errorf("an event is not hashable") }

var fieldNames = []string{
	"arguments", "chat_name", "chat_private", "config", "context_parts", "ephemeral", "function_name", "ghost_text", "input", "metadata",
	"require_confirmation", "response", "result", "skip_llm", "skip_tts", "stop_propagation", "surface", "tools", "tts_text",
}

func (v *event) AttrNames() []string { return fieldNames }

// optional is a string or None.
func optional(s *string) starlark.Value {
	if s == nil {
		return starlark.None
	}
	return starlark.String(*s)
}

func (v *event) Attr(name string) (starlark.Value, error) {
	e := v.e
	switch name {
	case "input":
		return starlark.String(e.Input), nil
	case "skip_llm":
		return starlark.Bool(e.SkipLLM), nil
	case "response":
		return optional(e.Response), nil
	case "ephemeral":
		return starlark.Bool(e.Ephemeral), nil
	case "stop_propagation":
		return starlark.Bool(e.StopPropagate), nil
	case "function_name":
		return optional(e.FunctionName), nil
	case "result":
		return optional(e.Result), nil
	case "require_confirmation":
		return optional(e.Confirm), nil
	case "tts_text":
		return optional(e.TTSText), nil
	case "skip_tts":
		return starlark.Bool(e.SkipTTS), nil
	case "ghost_text":
		return optional(e.GhostText), nil
	case "chat_name":
		return optional(e.ChatName), nil
	case "surface":
		return optional(e.Surface), nil
	case "chat_private":
		if e.ChatPrivate == nil {
			return starlark.None, nil
		}
		return starlark.Bool(*e.ChatPrivate), nil
	case "context_parts":
		return v.box(name, e.ContextParts)
	case "metadata":
		return v.metadata()
	case "config":
		return v.box(name, e.Config)
	case "arguments":
		if e.Arguments == nil && v.boxes[name] == nil {
			return starlark.None, nil
		}
		return v.box(name, e.Arguments)
	case "tools":
		if e.Tools == nil && v.boxes[name] == nil {
			return starlark.None, nil
		}
		tools := make([]any, len(e.Tools))
		for i, t := range e.Tools {
			tools[i] = t
		}
		return v.box(name, tools)
	}
	return nil, nil // Starlark says that there is no such field
}

func (v *event) box(name string, value any) (starlark.Value, error) {
	if b := v.boxes[name]; b != nil {
		return b, nil
	}
	b, err := toStarlark(value)
	if err != nil {
		return nil, err
	}
	v.keep(name, b)
	return b, nil
}

func (v *event) keep(name string, b starlark.Value) {
	if v.boxes == nil {
		v.boxes = make(map[string]starlark.Value)
	}
	v.boxes[name] = b
}

// metadata has the powers under "system", and what those are not, None.
func (v *event) metadata() (starlark.Value, error) {
	if b := v.boxes["metadata"]; b != nil {
		return b, nil
	}
	values := make(map[string]any, len(v.e.Metadata))
	for k, x := range v.e.Metadata {
		values[k] = x
	}
	if s, ok := values[systemKey]; ok {
		values[systemKey] = nil
		if v.grant != nil {
			if p := v.grant(s); p != nil {
				values[systemKey] = &system{powers: p}
			}
		}
	}
	return v.box("metadata", values)
}

func (v *event) SetField(name string, value starlark.Value) error {
	e := v.e
	text := func(to *string) error {
		s, ok := starlark.AsString(value)
		if !ok {
			return fmt.Errorf("event.%s is a string, not a %s", name, value.Type())
		}
		*to = s
		return nil
	}
	maybe := func(to **string) error {
		if value == starlark.None {
			*to = nil
			return nil
		}
		var s string
		if err := text(&s); err != nil {
			return err
		}
		*to = &s
		return nil
	}
	flag := func(to *bool) error { *to = bool(value.Truth()); return nil }
	switch name {
	case "input":
		return text(&e.Input)
	case "skip_llm":
		return flag(&e.SkipLLM)
	case "response":
		return maybe(&e.Response)
	case "ephemeral":
		return flag(&e.Ephemeral)
	case "stop_propagation":
		return flag(&e.StopPropagate)
	case "result":
		return maybe(&e.Result)
	case "require_confirmation":
		return maybe(&e.Confirm)
	case "tts_text":
		return maybe(&e.TTSText)
	case "skip_tts":
		return flag(&e.SkipTTS)
	case "ghost_text":
		// Anything is taken here, as its text; what is false is nothing.
		e.GhostText = nil
		if value.Truth() {
			s, ok := starlark.AsString(value)
			if !ok {
				s = value.String()
			}
			e.GhostText = &s
		}
		return nil
	case "context_parts", "arguments", "tools", "metadata":
		v.keep(name, value)
		return nil
	case "chat_name", "chat_private", "surface", "config", "function_name":
		return nil // stamped: what is written here has no effect, as in the contract
	}
	return starlark.NoSuchAttrError(fmt.Sprintf("event has no field %s; it has %v", name, fieldNames))
}

// flush takes the containers back into the event.
func (v *event) flush() error {
	for name, box := range v.boxes {
		value, err := fromStarlark(unpower(name, box))
		if err != nil {
			return fmt.Errorf("event.%s: %w", name, err)
		}
		switch name {
		case "context_parts":
			list, _ := value.([]any)
			v.e.ContextParts = nil
			for _, x := range list {
				s, ok := x.(string)
				if !ok {
					return fmt.Errorf("event.context_parts: its parts are strings, not %v", x)
				}
				v.e.ContextParts = append(v.e.ContextParts, s)
			}
		case "metadata":
			v.e.Metadata, _ = value.(map[string]any)
		case "arguments":
			v.e.Arguments, _ = value.(map[string]any)
		case "tools":
			list, _ := value.([]any)
			v.e.Tools = nil
			for _, x := range list {
				if t, ok := x.(map[string]any); ok {
					v.e.Tools = append(v.e.Tools, t)
				}
			}
		}
	}
	return nil
}

// unpower leaves out of the metadata what is no value but a power, which the runner puts there anew for each handler.
func unpower(name string, box starlark.Value) starlark.Value {
	dict, ok := box.(*starlark.Dict)
	if name != "metadata" || !ok {
		return box
	}
	plain := starlark.NewDict(dict.Len())
	for _, item := range dict.Items() {
		if k, _ := starlark.AsString(item[0]); k != systemKey && k != "captures" {
			_ = plain.SetKey(item[0], item[1]) // fresh, not frozen
		}
	}
	return plain
}

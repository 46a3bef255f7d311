package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bellbird/hooks"
)

// do does one action of handler h on its event.
func (v *vector) do(ctx context.Context, h vectorHandler, a action, e *hooks.Event) error {
	for path, value := range a.Set {
		if err := set(e, path, value); err != nil {
			return err
		}
	}
	for field, text := range a.Append {
		value := any(text)
		switch old := look(e, field).(type) {
		case string:
			value = old + text
		case []any:
			value = append(old, text)
		case nil:
			if field == "context_parts" {
				value = []string{text}
			}
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := set(e, field, raw); err != nil {
			return err
		}
	}
	for _, path := range a.Note {
		text, err := json.Marshal(look(e, path))
		if err != nil {
			return err
		}
		v.note("%s at %s: %s is %s", h.Plugin, h.Point, path, text)
	}
	switch {
	case a.Stop:
		e.StopPropagate = true
	case a.Sleep == "deadline":
		<-ctx.Done()
	case a.Sleep != "":
		d, err := time.ParseDuration(a.Sleep)
		if err != nil {
			return err
		}
		time.Sleep(d)
	case a.Error != "":
		return errors.New(a.Error)
	case a.Panic != "":
		panic(a.Panic)
	case a.Kill:
		return hooks.ErrKilled
	}
	return nil
}

// look is the value at a path in the event as JSON has it; nil if there is none. "event" is all of it.
func look(e *hooks.Event, path string) any {
	text, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	var at any
	if err := json.Unmarshal(text, &at); err != nil {
		return err.Error()
	}
	if path == "event" {
		return at
	}
	for _, key := range strings.Split(path, ".") {
		switch in := at.(type) {
		case map[string]any:
			at = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return nil
			}
			at = in[i]
		default:
			return nil
		}
	}
	return at
}

// set changes a field, or what is at a path within a field, in place: that is how a handler could spoil what others have.
func set(e *hooks.Event, path string, raw json.RawMessage) error {
	keys := strings.Split(path, ".")
	if len(keys) == 1 {
		return json.Unmarshal(fmt.Appendf(nil, "{%q: %s}", path, raw), e)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	var at any
	switch keys[0] {
	case "metadata":
		if e.Metadata == nil {
			e.Metadata = make(map[string]any)
		}
		at = e.Metadata
	case "arguments":
		at = e.Arguments
	case "tools":
		i, err := strconv.Atoi(keys[1])
		if err != nil || i >= len(e.Tools) || len(keys) < 3 {
			return fmt.Errorf("there is no %s", path)
		}
		at, keys = e.Tools[i], keys[1:]
	}
	for _, key := range keys[1 : len(keys)-1] {
		in, _ := at.(map[string]any)
		at = in[key]
	}
	in, ok := at.(map[string]any)
	if !ok || in == nil {
		return fmt.Errorf("there is no %s", path)
	}
	in[keys[len(keys)-1]] = value
	return nil
}

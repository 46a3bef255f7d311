package starlark

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"bellbird/plugins"
)

// systemKey is where an event's metadata have the powers.
const systemKey = "system"

// A system is what scripts see of the powers: an object with an attribute for each part and for each power that belongs
// to none. A part is such an object too.
type system struct {
	powers Powers
	part   string // with a dot at its end; "" for the whole
}

var _ starlark.HasAttrs = (*system)(nil)

func (s *system) String() string        { return "<system" + strings.TrimSuffix("."+s.part, ".") + ">" }
func (s *system) Type() string          { return "system" }
func (s *system) Freeze()               {}
func (s *system) Truth() starlark.Bool  { return true }
func (s *system) Hash() (uint32, error) { return 0, fmt.Errorf("a system is not hashable") }

// Attr returns a power as a function, a part, None for a part that is not there, or nothing.
func (s *system) Attr(attr string) (starlark.Value, error) {
	name := s.part + attr
	names := s.powers.Names()
	at, found := slices.BinarySearch(names, name)
	if found {
		return starlark.NewBuiltin("system."+name, s.call), nil
	}
	// What begins with name and a dot comes after what begins with name and one of the few characters before the dot.
	for ; at < len(names) && strings.HasPrefix(names[at], name); at++ {
		if strings.HasPrefix(names[at], name+".") {
			return &system{s.powers, name + "."}, nil
		}
	}
	if s.part == "" && slices.Contains(plugins.Parts, name) {
		return starlark.None, nil
	}
	return nil, nil // Starlark says that there is no such attribute
}

func (s *system) AttrNames() []string {
	var attrs []string
	if s.part == "" {
		attrs = slices.Clone(plugins.Parts)
	}
	for _, name := range s.powers.Names() {
		if rest, ok := strings.CutPrefix(name, s.part); ok {
			attr, _, _ := strings.Cut(rest, ".")
			attrs = append(attrs, attr)
		}
	}
	slices.Sort(attrs)
	return slices.Compact(attrs)
}

func (s *system) call(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := mayAct(thread); err != nil {
		return nil, err
	}
	values, named, err := arguments(b.Name(), args, kwargs)
	if err != nil {
		return nil, err
	}
	result, err := s.powers.Call(callContext(thread), strings.TrimPrefix(b.Name(), "system."), values, named)
	if err != nil {
		return nil, err
	}
	return toStarlark(result)
}

// arguments are those of a call that the appliance does.
func arguments(name string, args starlark.Tuple, kwargs []starlark.Tuple) (values []any, named map[string]any, err error) {
	values = make([]any, len(args))
	for i, a := range args {
		if values[i], err = argument(a); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, kw := range kwargs {
		v, err := argument(kw[1])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		if named == nil {
			named = make(map[string]any, len(kwargs))
		}
		named[string(kw[0].(starlark.String))] = v
	}
	return values, named, nil
}

// argument is a value that JSON can say.
func argument(v starlark.Value) (any, error) {
	x, err := fromStarlark(v)
	if err == nil && hasBytes(x) {
		return nil, fmt.Errorf("bytes can't be kept or sent here, a string can")
	}
	return x, err
}

func hasBytes(v any) bool {
	switch v := v.(type) {
	case []byte:
		return true
	case []any:
		return slices.ContainsFunc(v, hasBytes)
	case map[string]any:
		for _, x := range v {
			if hasBytes(x) {
				return true
			}
		}
	}
	return false
}

// callContext is the context of the call that a thread runs.
func callContext(thread *starlark.Thread) context.Context {
	ctx, _ := thread.Local(contextKey).(context.Context)
	return ctx
}

package starlark

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"bellbird/plugins"
)

var _ plugins.Toolbox = (*Script)(nil)

// Tools returns the schemas that the file has in TOOLS, if it has a function execute; with AVAILABLE_FUNCTIONS, only those
// that are named there.
func (s *Script) Tools(context.Context) ([]map[string]any, error) {
	if _, ok := s.globals["execute"].(starlark.Callable); !ok {
		return nil, fmt.Errorf("%s: there is no function execute(name, arguments)", s.name)
	}
	list, err := s.global("TOOLS")
	if err != nil {
		return nil, err
	}
	var only []any
	if s.globals["AVAILABLE_FUNCTIONS"] != nil {
		if only, err = s.global("AVAILABLE_FUNCTIONS"); err != nil {
			return nil, err
		}
	}
	var schemas []map[string]any
	for i, v := range list {
		schema, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: TOOLS[%d] is no dict", s.name, i)
		}
		f, ok := schema["function"].(map[string]any)
		if !ok {
			f = schema
		}
		if only == nil || slices.Contains(only, f["name"]) {
			schemas = append(schemas, schema)
		}
	}
	return schemas, nil
}

// global is a global that must be a list of values.
func (s *Script) global(name string) ([]any, error) {
	if s.globals[name] == nil {
		return nil, fmt.Errorf("%s: there is no list %s", s.name, name)
	}
	v, err := fromStarlark(s.globals[name])
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.name, name, err)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: %s is no list", s.name, name)
	}
	return list, nil
}

// Execute calls execute(name, arguments). What it returns is the result, or a pair: that, and whether it is one; else it
// says why the tool refused.
func (s *Script) Execute(ctx context.Context, name string, args map[string]any) (text string, ok bool, err error) {
	f, callable := s.globals["execute"].(starlark.Callable)
	if !callable {
		return "", false, fmt.Errorf("%s: there is no function execute(name, arguments)", s.name)
	}
	if args == nil {
		args = map[string]any{}
	}
	arguments, err := toStarlark(args)
	if err != nil {
		return "", false, err
	}
	thread := s.thread(ctx)
	v, err := protect(func() (starlark.Value, error) {
		return starlark.Call(thread, f, starlark.Tuple{starlark.String(name), arguments}, nil)
	})
	if err != nil {
		return "", false, explain(ctx, err)
	}
	ok = true
	if pair, is := v.(starlark.Tuple); is && len(pair) == 2 {
		if good, is := pair[1].(starlark.Bool); is {
			v, ok = pair[0], bool(good)
		}
	}
	if text, err = resultText(v); err != nil {
		return "", false, fmt.Errorf("%s: the result of %s: %w", s.name, name, err)
	}
	return text, ok, nil
}

// resultText is what a model reads of a result: a text, nothing for None, and JSON for the rest.
func resultText(v starlark.Value) (string, error) {
	if s, ok := starlark.AsString(v); ok {
		return s, nil
	}
	value, err := fromStarlark(v)
	if err != nil || value == nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A schema is what a tool's arguments must look like, as decoded from JSON. Schemas come from servers that nobody knows,
// so what it costs to use one is bounded, whatever is in it: what isn't understood of it, and what is too deep, refuses
// nothing, since the tool checks its arguments itself.
type schema map[string]any

// Bounds: the parameters of a tool, in bytes, which a model reads with every request; how deep is looked into arguments,
// and how many values are compared with a schema in all.
const (
	maxSchema  = 32 << 10
	maxNesting = 32
	maxSteps   = 10000
)

func newSchema(parameters json.RawMessage) (schema, error) {
	if len(parameters) == 0 {
		return nil, nil
	}
	if len(parameters) > maxSchema {
		return nil, fmt.Errorf("they have %d bytes, %d is the most", len(parameters), maxSchema)
	}
	v, err := decodeValue(parameters)
	if err != nil {
		return nil, err
	}
	s, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("they are no JSON schema of an object")
	}
	return s, nil
}

// fit converts arguments to the types that the schema names and holds them against it. With an error that tells what
// doesn't fit, it still returns what it could convert; nil means that there is no object at all.
func (s schema) fit(args json.RawMessage) (json.RawMessage, error) {
	object, err := decodeObject(args)
	if err != nil {
		return nil, err
	}
	f := &fitting{root: s}
	v, problems := f.fit(object, s, 0)
	fitted, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.String())
		}
		return fitted, errors.New(strings.Join(texts, "; "))
	}
	return fitted, nil
}

// decodeObject reads a JSON object; nothing, null and an object written as a string are taken for one too.
func decodeObject(args json.RawMessage) (map[string]any, error) {
	v, err := decodeValue(args)
	if text, ok := v.(string); ok && err == nil {
		v, err = decodeValue([]byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("they are no JSON: %w", err)
	}
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, errors.New("they are no JSON object")
}

// decodeValue reads a single JSON value and keeps its numbers as they are written. Nothing is nil.
func decodeValue(text []byte) (v any, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

// A fitting compares one call's arguments with their schema.
type fitting struct {
	root  schema
	steps int
}

// maxProblems is how much of what is wrong is told.
const maxProblems = 5

// fit is v converted, and what is still wrong with it. v itself stays as it is.
func (f *fitting) fit(v any, s schema, depth int) (fitted any, problems []problem) {
	f.steps++
	if s == nil || depth > maxNesting || f.steps > maxSteps {
		return v, nil
	}
	s = f.deref(s)
	if choices := append(s.list("anyOf"), s.list("oneOf")...); len(choices) > 0 {
		v, problems = f.choose(v, choices, depth)
		if len(problems) > 0 {
			return v, problems
		}
	}
	for _, all := range s.list("allOf") {
		v, problems = f.fit(v, all, depth+1)
		if len(problems) > 0 {
			return v, problems
		}
	}
	v = convert(v, s)
	if p := check(v, s); p != "" {
		return v, []problem{{"", p}}
	}
	switch v := v.(type) {
	case map[string]any:
		return f.object(v, s, depth)
	case []any:
		return f.array(v, s, depth)
	}
	return v, nil
}

// choose fits v to the first choice that it fits; where it needs converting, null is not what is meant.
func (f *fitting) choose(v any, choices []schema, depth int) (any, []problem) {
	var problems []problem
	for _, converting := range []bool{false, true} {
		for _, one := range choices {
			one = f.deref(one)
			types := one.types()
			if converting == isOneOf(v, types) || converting && slices.Equal(types, []string{"null"}) {
				continue
			}
			fitted, p := f.fit(v, one, depth+1)
			if len(p) == 0 {
				return fitted, nil
			}
			if problems == nil {
				problems = p
			}
		}
	}
	return v, problems
}

func (f *fitting) object(o map[string]any, s schema, depth int) (any, []problem) {
	o = maps.Clone(o)
	properties, _ := s["properties"].(map[string]any)
	required := s.names("required")
	var problems []problem
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := f.deref(sub(properties[name]))
		v, given := o[name]
		must := slices.Contains(required, name)
		if given && !must && f.absent(v, property) {
			delete(o, name)
			continue
		}
		if !given {
			standard, ok := property["default"]
			if !must || !ok {
				continue
			}
			v = standard
		}
		fitted, p := f.fit(v, property, depth+1)
		o[name] = fitted
		for _, p := range p {
			problems = append(problems, p.below(name))
		}
	}
	for _, name := range required {
		if _, given := o[name]; !given {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		problems = append(problems, problem{"", "missing: " + strings.Join(missing, ", ")})
	}
	if more, ok := s["additionalProperties"].(bool); ok && !more && s["patternProperties"] == nil {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if _, known := properties[name]; !known {
				problems = append(problems, problem{"", "there is no argument " + name})
			}
		}
	}
	return o, problems[:min(len(problems), maxProblems)]
}

func (f *fitting) array(list []any, s schema, depth int) (any, []problem) {
	items := sub(s["items"])
	if items == nil {
		return list, nil
	}
	list = slices.Clone(list)
	var problems []problem
	for i := range list {
		fitted, p := f.fit(list[i], items, depth+1)
		list[i] = fitted
		for _, p := range p {
			problems = append(problems, p.below(fmt.Sprintf("[%d]", i)))
		}
		if len(problems) >= maxProblems {
			break
		}
	}
	return list, problems
}

// A problem is what is wrong with a value, and which one it is: a path of names, empty for the arguments as a whole.
type problem struct{ place, text string }

func (p problem) String() string {
	if p.place == "" {
		return p.text
	}
	return p.place + ": " + p.text
}

// below is the problem seen from the object or list that holds the value under the name.
func (p problem) below(name string) problem {
	if p.place != "" && p.place[0] != '[' {
		name += "."
	}
	return problem{name + p.place, p.text}
}

// absent reports whether v stands for an optional value that wasn't given.
func (f *fitting) absent(v any, s schema) bool {
	types := s.types()
	for _, one := range append(s.list("anyOf"), s.list("oneOf")...) {
		types = append(types, f.deref(one).types()...)
	}
	switch v := v.(type) {
	case nil:
		return len(types) > 0 && !slices.Contains(types, "null")
	case string:
		return len(types) > 0 && strings.TrimSpace(v) == "" && !slices.Contains(types, "string")
	}
	return false
}

// deref follows references to definitions within the same schema. One that leads nowhere stands for anything.
func (f *fitting) deref(s schema) schema {
	for range maxNesting {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		at := f.root
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
			if part != "" {
				at = sub(at[part])
			}
		}
		s = at
	}
	return nil
}

// sub is a schema inside of another; nil, which stands for anything, if v is none.
func sub(v any) schema {
	s, _ := v.(map[string]any)
	return s
}

func (s schema) list(key string) []schema {
	var all []schema
	list, _ := s[key].([]any)
	for _, v := range list {
		all = append(all, sub(v))
	}
	return all
}

func (s schema) names(key string) []string {
	var all []string
	list, _ := s[key].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			all = append(all, name)
		}
	}
	return all
}

// types are the JSON types that a schema accepts; none: any.
func (s schema) types() []string {
	if t, ok := s["type"].(string); ok {
		return []string{t}
	}
	return s.names("type")
}

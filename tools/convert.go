package tools

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// convert is v as one of the types that s accepts, since models write numbers as strings and the like. A value that it
// can't convert stays as it is.
func convert(v any, s schema) any {
	enum, _ := s["enum"].([]any)
	v = enumerated(v, enum)
	types := s.types()
	if isOneOf(v, types) {
		return v
	}
	for _, t := range types {
		switch t {
		case "integer", "number":
			if n, ok := number(v, t == "integer"); ok {
				return n
			}
		case "boolean":
			if b, ok := boolean(v); ok {
				return b
			}
		case "string":
			switch v := v.(type) {
			case json.Number:
				return v.String()
			case bool:
				return strconv.FormatBool(v)
			}
		case "array":
			if list, ok := array(v); ok {
				return list
			}
		case "object":
			if text, ok := v.(string); ok {
				if o, err := decodeValue([]byte(text)); err == nil && jsonType(o) == "object" {
					return o
				}
			}
		}
	}
	return v
}

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	}
	return "object"
}

// isOneOf reports whether v is of one of the types; of any, if there are none.
func isOneOf(v any, types []string) bool {
	t := jsonType(v)
	return len(types) == 0 || slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// enumerated is the value of the enumeration that v is but for case and space, or v itself.
func enumerated(v any, enum []any) any {
	text, ok := v.(string)
	if !ok || contains(enum, v) {
		return v
	}
	var found []any
	for _, e := range enum {
		if s, ok := e.(string); ok && strings.EqualFold(s, strings.TrimSpace(text)) {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		return v
	}
	return found[0]
}

// contains reports whether v is among the values, of which only scalars count.
func contains(values []any, v any) bool {
	return slices.ContainsFunc(values, func(e any) bool {
		switch e.(type) {
		case nil, bool, string, json.Number:
			return jsonType(v) != "array" && jsonType(v) != "object" && e == v
		}
		return false
	})
}

// maxNumber is how long a number may be written, since to read it takes longer than linear time.
const maxNumber = 64

func number(v any, whole bool) (json.Number, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSuffix(strings.TrimSpace(v), "%")
		text = strings.TrimPrefix(text, "+")
	default:
		return "", false
	}
	r, ok := rational(text)
	if !ok || whole && !r.IsInt() {
		return "", false
	}
	if whole {
		text = r.Num().String()
	}
	return json.Number(text), true
}

// rational reads what is a number in JSON: no hexadecimals, no fractions, nothing beyond a float's range.
func rational(text string) (*big.Rat, bool) {
	if len(text) > maxNumber || !json.Valid([]byte(text)) {
		return nil, false
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func boolean(v any) (b, ok bool) {
	var text string
	switch v := v.(type) {
	case string:
		text = strings.ToLower(strings.TrimSpace(v))
	case json.Number:
		text = v.String()
	}
	switch text {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}

// array is v as a list: one that is written as a string, in JSON or with commas, or a single value.
func array(v any) ([]any, bool) {
	switch v := v.(type) {
	case nil, map[string]any:
		return nil, false
	case string:
		if list, err := decodeValue([]byte(v)); err == nil && jsonType(list) == "array" {
			return list.([]any), true
		}
		list := []any{}
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, true
	}
	return []any{v}, true
}

// check says what is wrong with v itself; "" is nothing.
func check(v any, s schema) string {
	if types := s.types(); !isOneOf(v, types) {
		return fmt.Sprintf("it must be of type %s, not %s", strings.Join(types, " or "), show(v))
	}
	if enum, ok := s["enum"].([]any); ok && len(enum) > 0 && !contains(enum, v) && !slices.ContainsFunc(enum, nested) {
		var all []string
		for _, e := range enum {
			all = append(all, show(e))
		}
		return fmt.Sprintf("it must be one of %s, not %s", strings.Join(all, ", "), show(v))
	}
	switch v := v.(type) {
	case json.Number:
		n, ok := rational(v.String())
		if !ok {
			return fmt.Sprintf("%s is out of range", show(v))
		}
		for _, bound := range []struct {
			key, text string
			bad       func(cmp int) bool
		}{
			{"minimum", "at least", func(c int) bool { return c < 0 }},
			{"maximum", "at most", func(c int) bool { return c > 0 }},
			{"exclusiveMinimum", "more than", func(c int) bool { return c <= 0 }},
			{"exclusiveMaximum", "less than", func(c int) bool { return c >= 0 }},
		} {
			limit, _ := s[bound.key].(json.Number)
			if l, ok := rational(limit.String()); ok && bound.bad(n.Cmp(l)) {
				return fmt.Sprintf("it must be %s %s, not %s", bound.text, limit, v)
			}
		}
	case string:
		return checkLength(s, "Length", utf8.RuneCountInString(v), "characters")
	case []any:
		return checkLength(s, "Items", len(v), "items")
	}
	return ""
}

func checkLength(s schema, key string, n int, unit string) string {
	if limit, ok := s["min"+key].(json.Number); ok {
		if l, err := strconv.Atoi(limit.String()); err == nil && n < l {
			return fmt.Sprintf("it must have at least %d %s, not %d", l, unit, n)
		}
	}
	if limit, ok := s["max"+key].(json.Number); ok {
		if l, err := strconv.Atoi(limit.String()); err == nil && n > l {
			return fmt.Sprintf("it must have at most %d %s, not %d", l, unit, n)
		}
	}
	return ""
}

func nested(v any) bool { return jsonType(v) == "array" || jsonType(v) == "object" }

// show writes a value for a model to recognise, and no more than that of it.
func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "this"
	}
	const most = 80
	if len(text) > most {
		n := most
		for !utf8.RuneStart(text[n]) {
			n--
		}
		return string(text[:n]) + "…"
	}
	return string(text)
}

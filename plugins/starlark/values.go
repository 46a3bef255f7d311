package starlark

import (
	"fmt"
	"math"
	"sort"

	"go.starlark.net/starlark"
)

// maxDepth bounds how deep values may be nested.
const maxDepth = 32

// toStarlark converts what JSON can say, and bytes.
func toStarlark(v any) (starlark.Value, error) { return toStarlarkDeep(v, 0) }

func toStarlarkDeep(v any, depth int) (starlark.Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested too deeply")
	}
	switch v := v.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(v), nil
	case int:
		return starlark.MakeInt(v), nil
	case int64:
		return starlark.MakeInt64(v), nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // JSON doesn't tell 2 from 2.0; scripts mostly count
			return starlark.MakeInt64(int64(v)), nil
		}
		return starlark.Float(v), nil
	case string:
		return starlark.String(v), nil
	case []byte:
		return starlark.Bytes(v), nil
	case []string:
		list := make([]starlark.Value, len(v))
		for i, s := range v {
			list[i] = starlark.String(s)
		}
		return starlark.NewList(list), nil
	case []any:
		list := make([]starlark.Value, len(v))
		for i, x := range v {
			s, err := toStarlarkDeep(x, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = s
		}
		return starlark.NewList(list), nil
	case map[string]any:
		dict := starlark.NewDict(len(v))
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			s, err := toStarlarkDeep(v[k], depth+1)
			if err != nil {
				return nil, err
			}
			if err := dict.SetKey(starlark.String(k), s); err != nil {
				return nil, err
			}
		}
		return dict, nil
	case starlark.Value:
		return v, nil
	}
	return starlark.None, nil // a power that this runtime doesn't know is not there
}

// fromStarlark is the way back.
func fromStarlark(v starlark.Value) (any, error) { return fromStarlarkDeep(v, 0) }

func fromStarlarkDeep(v starlark.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested too deeply")
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		if n, ok := v.Int64(); ok && n > -1<<53 && n < 1<<53 {
			return float64(n), nil
		}
		return nil, fmt.Errorf("the number %v is too large", v)
	case starlark.Float:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, fmt.Errorf("%v is no number that can be kept", v)
	case starlark.String:
		return string(v), nil
	case starlark.Bytes:
		return []byte(v), nil
	case starlark.IterableMapping: // dicts, and settings
		items := v.Items()
		m := make(map[string]any, len(items))
		for _, item := range items {
			k, ok := starlark.AsString(item[0])
			if !ok {
				return nil, fmt.Errorf("a dict's keys must be strings, not %s", item[0].Type())
			}
			x, err := fromStarlarkDeep(item[1], depth+1)
			if err != nil {
				return nil, err
			}
			m[k] = x
		}
		return m, nil
	case starlark.Iterable: // lists, tuples, sets
		list := []any{}
		it := v.Iterate()
		defer it.Done()
		var x starlark.Value
		for it.Next(&x) {
			y, err := fromStarlarkDeep(x, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, y)
		}
		return list, nil
	}
	return nil, fmt.Errorf("a %s can't be kept", v.Type())
}

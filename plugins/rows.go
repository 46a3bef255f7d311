package plugins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// rowCalls is the table of what scripts may do with rows, by the names of the contract.
var rowCalls = map[string]rowCall{
	"get": {[]param{chatParam, keyParam}, func(r Rows, a *rowArgs) (any, error) {
		v, _ := r.Get(a.chat, a.key)
		return decoded(v), nil
	}},
	"put": {[]param{chatParam, keyParam, {name: "value", kind: anything}}, func(r Rows, a *rowArgs) (any, error) {
		return nil, r.Put(a.chat, a.key, a.value)
	}},
	"append": {[]param{chatParam, keyParam, {name: "value", kind: anything}}, func(r Rows, a *rowArgs) (any, error) {
		seq, err := r.Append(a.chat, a.key, a.value)
		return float64(seq), err
	}},
	"append_many": {[]param{chatParam, keyParam, {name: "values", kind: list}}, func(r Rows, a *rowArgs) (any, error) {
		seqs, err := r.AppendMany(a.chat, a.key, a.values)
		numbers := make([]any, len(seqs))
		for i, n := range seqs {
			numbers[i] = float64(n)
		}
		return numbers, err
	}},
	"read_all": {[]param{chatParam, keyParam}, func(r Rows, a *rowArgs) (any, error) {
		values := []any{}
		for _, v := range r.ReadAll(a.chat, a.key) {
			values = append(values, decoded(v))
		}
		return values, nil
	}},
	"replace": {[]param{chatParam, keyParam, {name: "values", kind: list}}, func(r Rows, a *rowArgs) (any, error) {
		return nil, r.Replace(a.chat, a.key, a.values)
	}},
	"delete": {[]param{chatParam, {name: "key", kind: text, most: 256, optional: true}}, func(r Rows, a *rowArgs) (any, error) {
		if !a.hasKey {
			return nil, r.DeleteAll(a.chat)
		}
		return nil, r.Delete(a.chat, a.key)
	}},
	"keys": {[]param{chatParam}, func(r Rows, a *rowArgs) (any, error) {
		keys := []any{}
		for _, k := range r.Keys(a.chat) {
			keys = append(keys, k)
		}
		return keys, nil
	}},
	"get_all_chats": {[]param{keyParam}, func(r Rows, a *rowArgs) (any, error) {
		all := make(map[string]any)
		for chat, v := range r.AllChats(a.key) {
			all[chat] = decoded(v)
		}
		return all, nil
	}},
	"meta": {[]param{chatParam, keyParam}, func(r Rows, a *rowArgs) (any, error) {
		m, ok := r.Meta(a.chat, a.key)
		if !ok {
			return nil, nil
		}
		return map[string]any{"rows": float64(m.Rows), "updated_at": m.Updated.UTC().Format(time.RFC3339Nano)}, nil
	}},
}

type rowCall struct {
	params []param
	do     func(Rows, *rowArgs) (any, error)
}

var (
	chatParam = param{name: "chat", kind: text, most: 400} // bytes of the longest name
	keyParam  = param{name: "key", kind: text, most: 256}
)

// rowArgs are the arguments of a call, those that it takes.
type rowArgs struct {
	chat, key string
	hasKey    bool
	value     json.RawMessage
	values    []json.RawMessage
}

// RowCalls are the names of what CallRows can do, sorted.
func RowCalls() []string { return slices.Sorted(maps.Keys(rowCalls)) }

// CallRows does what a script asks for of its plugin's rows, by name, with arguments that it checks. Values are what JSON
// can say. It returns nil for a value that is not there.
func CallRows(r Rows, name string, args []any, kwargs map[string]any) (any, error) {
	call, ok := rowCalls[name]
	if !ok {
		return nil, fmt.Errorf("chat_state has no function %.50q", name)
	}
	bound, err := bind(call.params, args, kwargs)
	if err != nil {
		return nil, fmt.Errorf("chat_state.%s: %w", name, err)
	}
	var a rowArgs
	a.chat, _ = bound["chat"].(string)
	a.key, a.hasKey = bound["key"].(string)
	if a.value, err = json.Marshal(bound["value"]); err != nil {
		return nil, fmt.Errorf("chat_state.%s: value: %w", name, err)
	}
	values, _ := bound["values"].([]any)
	for i, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("chat_state.%s: values[%d]: %w", name, i, err)
		}
		a.values = append(a.values, text)
	}
	result, err := call.do(r, &a)
	if err != nil {
		return nil, fmt.Errorf("chat_state.%s: %w", name, err)
	}
	return result, nil
}

// decoded is a value that was encoded here.
func decoded(v json.RawMessage) (value any) {
	_ = json.Unmarshal(v, &value) // nil for nothing
	return value
}

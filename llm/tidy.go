package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bellbird/dialog"
)

// Tidy returns the messages as the APIs demand them: none is empty, every call has an id of its own and is answered
// right after it, and no answer is without its call. A history that was cut short, or a turn that was, leaves such things
// behind. The messages themselves stay as they are, and what was returned once for the beginning of a conversation is
// returned again when it has grown.
func Tidy(messages []dialog.Message) []dialog.Message {
	var out []dialog.Message
	used := map[string]bool{} // ids
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		switch {
		case m.Role == dialog.Tool: // without its call
		case m.Role == dialog.Assistant && len(m.Calls) > 0:
			n := 0
			for i+1+n < len(messages) && messages[i+1+n].Role == dialog.Tool {
				n++
			}
			m.Calls = slices.Clone(m.Calls)
			out = append(append(out, m), answers(m.Calls, messages[i+1:i+1+n], i, used)...)
			i += n
		case strings.TrimSpace(m.Content) != "":
			out = append(out, m)
		}
	}
	return out
}

// answers gives each call an id, and returns the results in the order of the calls. Those that have no id, or not that of
// a call, answer the calls that are left over, in turn.
// place is that of the message with the calls.
func answers(calls []dialog.ToolCall, results []dialog.Message, place int, used map[string]bool) []dialog.Message {
	out := make([]dialog.Message, len(calls))
	rest := slices.Clone(results)
	take := func(i int, match func(dialog.Message) bool) {
		if j := slices.IndexFunc(rest, match); j >= 0 && out[i].Role == "" {
			out[i] = rest[j]
			rest = slices.Delete(rest, j, j+1)
		}
	}
	for i, c := range calls {
		take(i, func(m dialog.Message) bool { return c.ID != "" && m.CallID == c.ID })
	}
	for i := range calls {
		c := &calls[i]
		take(i, func(m dialog.Message) bool { return m.Name == c.Name && m.CallID == "" })
		id := clean(c.ID)
		c.Name = cmp.Or(clean(c.Name), "unnamed")
		for n := 0; id == "" || used[id]; n++ {
			id = fmt.Sprintf("call_%d_%d_%d", place, i, n)
		}
		used[id], c.ID = true, id
		if out[i].Role == "" {
			out[i] = dialog.Message{Role: dialog.Tool, Name: c.Name, Content: "There is no result."}
		}
		out[i].CallID, out[i].Name = id, c.Name
		if strings.TrimSpace(out[i].Content) == "" {
			out[i].Content = "Done."
		}
		c.Arguments, _ = parseArguments(string(c.Arguments)) // what is broken becomes {}
	}
	return out
}

// maxName is how long the name of a tool may be. For ids it is long enough.
const maxName = 64

// clean replaces what the APIs don't take in names and ids.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// Tools returns the tools in an order and with schemas that depend on nothing but what they are, so that the same tools
// are the same bytes in every request.
func Tools(tools []dialog.ToolSpec) []dialog.ToolSpec {
	out := slices.Clone(tools)
	slices.SortStableFunc(out, func(a, b dialog.ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		out[i].Parameters = schema(out[i].Parameters)
	}
	return out
}

var noParameters = json.RawMessage(`{"properties":{},"type":"object"}`)

// schema is a schema with its keys in order. The APIs take objects only.
func schema(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var s map[string]any
	if d.Decode(&s) != nil || s == nil {
		return noParameters
	}
	s["type"] = "object"
	if _, ok := s["properties"]; !ok {
		s["properties"] = map[string]any{}
	}
	delete(s, "$schema") // says nothing, and some servers refuse it
	out, err := json.Marshal(s)
	if err != nil {
		return noParameters
	}
	return out
}

// Bounds of what a model may ask for in one answer.
const (
	MaxCalls     = 32
	MaxArguments = 64 << 10 // bytes, of one call
)

// errTooManyCalls ends an answer that asks for more than MaxCalls.
var errTooManyCalls = &dialog.ModelError{
	Kind: dialog.ServerFault, Err: fmt.Errorf("the model asks for more than %d tools at once", MaxCalls),
}

// Call makes the call number n of an answer from what the model wrote. Arguments that are no JSON object make it invalid.
func Call(req dialog.Request, n int, id, name, arguments string) (*dialog.ToolCall, error) {
	if n >= MaxCalls {
		return nil, errTooManyCalls
	}
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", len(req.Messages), n) // some servers give none
	}
	c := &dialog.ToolCall{ID: id, Name: name}
	args, err := parseArguments(arguments)
	switch {
	case name == "":
		c.Name, c.Invalid = "unnamed", "The call names no tool."
	case err != nil:
		c.Invalid = "The arguments are not valid: " + err.Error()
	}
	c.Arguments = args
	return c, nil
}

// parseArguments reads arguments as models write them: an object, nothing or null for none, or an object within a string.
func parseArguments(text string) (json.RawMessage, error) {
	none := json.RawMessage("{}")
	if len(text) > MaxArguments {
		return none, fmt.Errorf("they are longer than %d bytes", MaxArguments)
	}
	text = strings.TrimSpace(text)
	var within string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &within) == nil {
		text = strings.TrimSpace(within)
	}
	if text == "" || text == "null" {
		return none, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return none, err
	}
	if !isObject(b.Bytes()) {
		return none, errors.New("they must be a JSON object")
	}
	return b.Bytes(), nil
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' && json.Valid(text) }

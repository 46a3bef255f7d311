package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/tools"
)

// everything is a schema as they come from people and from generators.
const everything = `{
	"type": "object",
	"properties": {
		"n": {"type": "integer", "minimum": 0, "maximum": 100},
		"x": {"type": "number"},
		"on": {"type": "boolean"},
		"room": {"type": "string", "enum": ["Kitchen", "Hall"]},
		"text": {"type": "string", "maxLength": 20},
		"list": {"type": "array", "items": {"type": "integer"}},
		"maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
		"either": {"type": ["integer", "string"]},
		"place": {"$ref": "#/$defs/Place"},
		"kind": {"type": "string", "default": "usual"},
		"level": {"type": "integer", "enum": [1, 2]}
	},
	"required": ["kind"],
	"$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}, "exact": {"properties": {"to": {"type": "number"}}}}, "required": ["lat"], "additionalProperties": false}}
}`

func TestCoercion(t *testing.T) {
	s, err := tools.NewSet(nil, echo("t", everything))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{``, `{"kind":"usual"}`},
		{`null`, `{"kind":"usual"}`},
		{`{}`, `{"kind":"usual"}`},
		{`"{\"n\":\"2\"}"`, `{"kind":"usual","n":2}`},
		{`{"n":"2"}`, `{"kind":"usual","n":2}`},
		{`{"n":" 50% "}`, `{"kind":"usual","n":50}`},
		{`{"n":2.0}`, `{"kind":"usual","n":2}`},
		{`{"n":"2e1"}`, `{"kind":"usual","n":20}`},
		{`{"n":null}`, `{"kind":"usual"}`},
		{`{"n":""}`, `{"kind":"usual"}`},
		{`{"x":"-1.50"}`, `{"kind":"usual","x":-1.50}`},
		{`{"x":123456789012345678901234567890}`, `{"kind":"usual","x":123456789012345678901234567890}`},
		{`{"on":"True"}`, `{"kind":"usual","on":true}`},
		{`{"on":"off"}`, `{"kind":"usual","on":false}`},
		{`{"on":1}`, `{"kind":"usual","on":true}`},
		{`{"room":"kitchen "}`, `{"kind":"usual","room":"Kitchen"}`},
		{`{"text":7}`, `{"kind":"usual","text":"7"}`},
		{`{"text":""}`, `{"kind":"usual","text":""}`},
		{`{"text":true}`, `{"kind":"usual","text":"true"}`},
		{`{"list":"1, 2,3"}`, `{"kind":"usual","list":[1,2,3]}`},
		{`{"list":"[1,\"2\"]"}`, `{"kind":"usual","list":[1,2]}`},
		{`{"list":5}`, `{"kind":"usual","list":[5]}`},
		{`{"list":["1"]}`, `{"kind":"usual","list":[1]}`},
		{`{"maybe":"4"}`, `{"kind":"usual","maybe":4}`},
		{`{"maybe":null}`, `{"kind":"usual","maybe":null}`},
		{`{"either":"4"}`, `{"either":"4","kind":"usual"}`},
		{`{"place":{"lat":"47.1"}}`, `{"kind":"usual","place":{"lat":47.1}}`},
		{`{"place":"{\"lat\":\"47.1\"}"}`, `{"kind":"usual","place":{"lat":47.1}}`},
		{`{"level":"2"}`, `{"kind":"usual","level":2}`},
		{`{"kind":"rare","else":"1"}`, `{"else":"1","kind":"rare"}`},

		{`[]`, "The arguments don't fit: they are no JSON object."},
		{`{"n":`, "The arguments don't fit: they are no JSON: unexpected EOF."},
		{`{} {}`, "The arguments don't fit: they are no JSON: something follows the value."},
		{`{"n":"two"}`, `The arguments don't fit: n: it must be of type integer, not "two".`},
		{`{"n":"0x10"}`, `The arguments don't fit: n: it must be of type integer, not "0x10".`},
		{`{"n":2.5}`, `The arguments don't fit: n: it must be of type integer, not 2.5.`},
		{`{"n":"180","x":[1]}`, "The arguments don't fit: n: it must be at most 100, not 180; x: it must be of type number, not [1]."},
		{`{"n":"1e999999999"}`, `The arguments don't fit: n: it must be of type integer, not "1e999999999".`},
		{`{"x":1e999999999}`, `The arguments don't fit: x: 1e999999999 is out of range.`},
		{`{"room":"attic"}`, `The arguments don't fit: room: it must be one of "Kitchen", "Hall", not "attic".`},
		{`{"text":"123456789012345678901"}`, `The arguments don't fit: text: it must have at most 20 characters, not 21.`},
		{`{"list":[1,"x"]}`, `The arguments don't fit: list[1]: it must be of type integer, not "x".`},
		{`{"place":{"lat":1,"x":2}}`, `The arguments don't fit: place: there is no argument x.`},
		{`{"place":{}}`, `The arguments don't fit: place: missing: lat.`},
		{`{"place":{"lat":1,"exact":{"to":"m"}}}`, `The arguments don't fit: place.exact.to: it must be of type number, not "m".`},
		{`{"maybe":"many"}`, `The arguments don't fit: maybe: it must be of type integer, not "many".`},
	} {
		got := s.Call(t.Context(), dialog.ToolCall{Name: "t", Arguments: json.RawMessage(test.args)}).Content
		if got != test.want {
			t.Errorf("%s: %s\nwant %s", test.args, got, test.want)
		}
		// What a hook gets to see is what the tool gets.
		call, err := s.Prepare(dialog.ToolCall{Name: "t", Arguments: json.RawMessage(test.args)})
		if err != nil && err.Error() != test.want || err == nil && string(call.Arguments) != test.want {
			t.Errorf("%s: prepared %s, %v", test.args, call.Arguments, err)
		}
	}
	if _, err := s.Prepare(dialog.ToolCall{Name: "u"}); err == nil {
		t.Error("prepared a call of no tool")
	}
}

// A schema from elsewhere may be made to cost something.
func TestHostileSchemas(t *testing.T) {
	bomb := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 200 {
		bomb += fmt.Sprintf(`"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	bomb += `"a200":{"type":"null"}}}`
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, bomb,
		`{"type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}}}`,
		`{"type":7,"properties":[],"required":{},"enum":3,"anyOf":"x","$ref":1}`,
		`{"properties":{"n":7,"next":true},"required":[1]}`,
	} {
		s, err := tools.NewSet(nil, echo("t", schema))
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		deep := strings.Repeat(`{"n":"1","next":`, 500) + "{}" + strings.Repeat("}", 500)
		if got := s.Call(t.Context(), dialog.ToolCall{Name: "t", Arguments: json.RawMessage(deep)}).Content; got == "" {
			t.Error("no result")
		}
	}
}

func FuzzCoercion(f *testing.F) {
	f.Add(everything, `{"n":"2","place":{"lat":"1"}}`)
	f.Add(`{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`)
	f.Add(`{"properties":{"a":{"type":"array","items":{"type":"boolean"}}}}`, `{"a":"yes,no"}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := tools.NewSet(nil, echo("t", schema))
		if err != nil {
			return
		}
		call, err := s.Prepare(dialog.ToolCall{Name: "t", Arguments: json.RawMessage(args)})
		if err != nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(call.Arguments, &object); err != nil {
			t.Fatalf("%q became %q: %v", args, call.Arguments, err)
		}
		again, err := s.Prepare(call)
		if err != nil || string(again.Arguments) != string(call.Arguments) {
			t.Fatalf("%s, prepared again: %s, %v", call.Arguments, again.Arguments, err)
		}
	})
}

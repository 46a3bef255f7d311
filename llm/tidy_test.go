package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/dialog"
	"bellbird/llm"
)

func msg(role dialog.Role, content string, calls ...dialog.ToolCall) dialog.Message {
	return dialog.Message{Role: role, Content: content, Calls: calls}
}

func result(id, name, content string) dialog.Message {
	return dialog.Message{Role: dialog.Tool, CallID: id, Name: name, Content: content}
}

func toolCall(id, name string) dialog.ToolCall {
	return dialog.ToolCall{ID: id, Name: name, Arguments: json.RawMessage("{}")}
}

func TestTidy(t *testing.T) {
	const u, a = dialog.User, dialog.Assistant
	tests := []struct {
		name     string
		in, want []dialog.Message
	}{
		{"nothing", nil, nil},
		{"empty ones", []dialog.Message{msg(u, "a"), msg(a, " \n"), msg(u, "b")}, []dialog.Message{msg(u, "a"), msg(u, "b")}},
		{"as it should be",
			[]dialog.Message{msg(u, "a"), msg(a, "", toolCall("1", "x"), toolCall("2", "y")), result("1", "x", "X"), result("2", "y", "Y")},
			[]dialog.Message{msg(u, "a"), msg(a, "", toolCall("1", "x"), toolCall("2", "y")), result("1", "x", "X"), result("2", "y", "Y")}},
		{"out of order",
			[]dialog.Message{msg(a, "", toolCall("1", "x"), toolCall("2", "y")), result("2", "y", "Y"), result("1", "x", "X")},
			[]dialog.Message{msg(a, "", toolCall("1", "x"), toolCall("2", "y")), result("1", "x", "X"), result("2", "y", "Y")}},
		{"no result",
			[]dialog.Message{msg(a, "", toolCall("1", "x")), msg(u, "b")},
			[]dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "There is no result."), msg(u, "b")}},
		{"no words", []dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "")},
			[]dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "Done.")}},
		{"no call", []dialog.Message{result("1", "x", "X"), msg(u, "b")}, []dialog.Message{msg(u, "b")}},
		{"another's result", []dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "X"), result("9", "z", "Z")},
			[]dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "X")}},
		{"no ids", []dialog.Message{msg(a, "", toolCall("", "x"), toolCall("", "x")), result("", "x", "1st"), result("", "x", "2nd")},
			[]dialog.Message{msg(a, "", toolCall("call_0_0_0", "x"), toolCall("call_0_1_0", "x")), result("call_0_0_0", "x", "1st"), result("call_0_1_0", "x", "2nd")}},
		{"the same id twice", []dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "X"), msg(a, "", toolCall("1", "x")), result("1", "x", "Y")},
			[]dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "X"), msg(a, "", toolCall("call_2_0_0", "x")), result("call_2_0_0", "x", "Y")}},
		{"odd names", []dialog.Message{msg(a, "", toolCall("f.x:0", "f.x")), result("f.x:0", "f.x", "X")},
			[]dialog.Message{msg(a, "", toolCall("f_x_0", "f_x")), result("f_x_0", "f_x", "X")}},
		{"broken arguments", []dialog.Message{msg(a, "", dialog.ToolCall{ID: "1", Name: "x", Arguments: json.RawMessage(`{"a`)}), result("1", "x", "X")},
			[]dialog.Message{msg(a, "", toolCall("1", "x")), result("1", "x", "X")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := cmp.Diff(test.in, nil)
			if diff := cmp.Diff(test.want, llm.Tidy(test.in)); diff != "" {
				t.Error(diff)
			}
			if cmp.Diff(test.in, nil) != before {
				t.Error("the messages were changed")
			}
		})
	}
}

func TestTools(t *testing.T) {
	got := llm.Tools([]dialog.ToolSpec{
		{Name: "b", Parameters: json.RawMessage(`{"type":"object", "$schema":"x", "properties":{"z":{"maximum":1e2},"a":{"const":12345678901234567890}}}`)},
		{Name: "a"},
		{Name: "c", Parameters: json.RawMessage(`[]`)},
	})
	want := []string{
		`a {"properties":{},"type":"object"}`,
		`b {"properties":{"a":{"const":12345678901234567890},"z":{"maximum":1e2}},"type":"object"}`,
		`c {"properties":{},"type":"object"}`,
	}
	for i, spec := range got {
		if s := spec.Name + " " + string(spec.Parameters); s != want[i] {
			t.Errorf("got  %s\nwant %s", s, want[i])
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add(`{"error":{"type":"a","code":404,"message":"b"}}`)
	f.Add(`{"error":"a"}`)
	f.Add(`{"detail":[{"loc":1}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		if got := llm.ParseFault([]byte(body)); len(got.Error()) > 600 || strings.Contains(got.Error(), "\n") {
			t.Errorf("%q", got.Error())
		}
	})
}

func FuzzCall(f *testing.F) {
	f.Add("1", "x", `{"a":1}`)
	f.Add("", "", `"{}"`)
	f.Add("", "x y", `{"a`)
	f.Fuzz(func(t *testing.T, id, name, arguments string) {
		c, err := llm.Call(dialog.Request{}, 0, id, name, arguments)
		if err != nil || c.ID == "" || c.Name == "" || !json.Valid(c.Arguments) || c.Arguments[0] != '{' {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

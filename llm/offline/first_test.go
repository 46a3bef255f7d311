package offline_test

import (
	"context"
	"iter"
	"testing"

	"bellbird/dialog"
	"bellbird/intents"
	"bellbird/llm/offline"
)

type other struct{ asked int }

func (o *other) Generate(context.Context, dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		o.asked++
		yield(dialog.Delta{Text: "I have read about it."}, nil)
	}
}

func TestFirst(t *testing.T) {
	grammar, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	big := new(other)
	f := offline.First{Grammar: grammar, Local: offline.New(grammar), Other: big}
	for _, test := range []struct {
		messages []dialog.Message
		local    bool
	}{
		{[]dialog.Message{{Role: dialog.User, Content: "what time is it"}}, true},
		{[]dialog.Message{{Role: dialog.User, Content: "why is the sky blue"}}, false},
		{[]dialog.Message{{Role: dialog.User, Content: "what time is it", PerTurn: true}, {Role: dialog.User, Content: "why is the sky blue"}}, false},
		{[]dialog.Message{{Role: dialog.User, Content: "why"}, {Role: dialog.User, Content: "what time is it"},
			{Role: dialog.Assistant, Calls: []dialog.ToolCall{{ID: "1", Name: "get_time"}}}, {Role: dialog.Tool, CallID: "1", Content: "It's noon."}}, true},
		{[]dialog.Message{{Role: dialog.User, Content: "what time is it"}, {Role: dialog.User, Content: "and why"},
			{Role: dialog.Assistant, Calls: []dialog.ToolCall{{ID: "1", Name: "search"}}}, {Role: dialog.Tool, CallID: "1", Content: "Because."}}, false},
	} {
		before := big.asked
		for _, err := range f.Generate(t.Context(), dialog.Request{Messages: test.messages, Tools: []dialog.ToolSpec{{Name: "get_time"}}}) {
			if err != nil {
				t.Error(err)
			}
		}
		if local := big.asked == before; local != test.local {
			t.Errorf("%+v: answered locally %v", test.messages, local)
		}
	}
}

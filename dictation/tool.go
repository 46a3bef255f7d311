package dictation

import (
	"context"
	"encoding/json"
	"fmt"

	"bellbird/dialog"
	"bellbird/tools"
)

// Tool is what a model begins a dictation with. It takes the id of an app, or none.
func (d *Dictation) Tool() tools.Tool {
	parameters, err := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"app": map[string]any{"type": "string", "enum": d.Apps(), "description": "Where the text goes; by default the first."},
		},
	})
	if err != nil {
		panic(err) // texts and maps: cannot happen
	}
	return tools.Tool{
		Spec: dialog.ToolSpec{
			Name:        "take_note",
			Description: "Takes down what the user says next, word by word, for one of his apps. Say the result to him as it is.",
			Parameters:  parameters,
		},
		Run: func(_ context.Context, args json.RawMessage) (string, error) {
			var a struct {
				App string `json:"app"`
			}
			if len(args) > 0 {
				if err := json.Unmarshal(args, &a); err != nil {
					return "", tools.Refusal("The arguments don't fit.")
				}
			}
			question, err := d.Expect(a.App)
			if err != nil {
				return "", tools.Refusal(fmt.Sprintf("Sorry, %v.", err))
			}
			return question, nil
		},
	}
}

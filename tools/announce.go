package tools

import (
	"context"
	"encoding/json"
	"strings"

	"bellbird/dialog"
)

// Announce returns the tool announce, with which a model has something said on the speaker beside its answer. say must
// not wait until it has been said. Its error is for the log, unless it is a Refusal.
func Announce(say func(ctx context.Context, text string) error) Tool {
	return Tool{
		Spec: dialog.ToolSpec{
			Name: "announce", Description: "Says something aloud to everybody in the room, after the answer. What is said to the user belongs into the answer itself.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":500}},"required":["text"]}`),
		},
		Run: func(ctx context.Context, args json.RawMessage) (string, error) {
			var a struct{ Text string }
			if err := decode(args, &a); err != nil {
				return "", err
			}
			text := strings.TrimSpace(a.Text)
			if text == "" {
				return "", Refusal("There is nothing to announce.")
			}
			if err := say(ctx, text); err != nil {
				return "", err
			}
			return "It will be announced.", nil
		},
	}
}

package offline_test

import (
	"context"
	"fmt"

	"bellbird/dialog"
	"bellbird/intents"
	"bellbird/llm/offline"
)

func ExampleAgent_Generate() {
	sentences, err := intents.English()
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := offline.New(sentences)
	req := dialog.Request{
		Messages: []dialog.Message{{Role: dialog.User, Content: "Set a timer for 10 minutes."}},
		Tools:    []dialog.ToolSpec{{Name: "set_timer"}},
	}
	for delta, err := range agent.Generate(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(delta.Call.Name, string(delta.Call.Arguments))
	}
	// Output: set_timer {"seconds":600}
}

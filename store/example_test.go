package store_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"bellbird/dialog"
	"bellbird/store"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	s, err := store.Open(filepath.Join(dir, "bellbird.db"), store.Options{
		After: func(c store.Change) { fmt.Println("then:", c.Kind, c.Name) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	chat, _ := s.Active()
	chat.Append(dialog.Message{Role: dialog.User, Content: "good morning"})

	rows := s.Rows("greeter")
	rows.Append("default", "greetings", json.RawMessage(`"good morning"`))
	s.Rename("default", "kitchen")

	fmt.Printf("%s: %d messages, rows %s\n", chat.Name(), len(chat.Messages()), rows.ReadAll("kitchen", "greetings"))
	// Output:
	// then: renamed kitchen
	// kitchen: 1 messages, rows ["good morning"]
}

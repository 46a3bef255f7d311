package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bellbird/dialog"
)

// Chats are the conversations that the appliance keeps. What is locked is not among them. An error that is a Refusal is
// told to the user.
type Chats interface {
	Names() ([]string, error) // in the order in which they are told
	Active() string
	Create(name string) error
	Activate(name string) error
	Clear(name string) error // empties it
}

// Conversations returns the tools list_chats, create_chat, switch_chat and clear_chat.
func Conversations(c Chats) []Tool {
	named := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	return []Tool{
		{
			Spec: dialog.ToolSpec{Name: "list_chats", Description: "Tells which chats there are, and which one is active."},
			Run: func(context.Context, json.RawMessage) (string, error) {
				names, err := c.Names()
				if err != nil {
					return "", err
				}
				return tellChats(names, c.Active()), nil
			},
		},
		{
			Spec:   dialog.ToolSpec{Name: "create_chat", Description: "Begins a new chat and switches to it.", Parameters: named},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				name, err := chatName(args)
				if err != nil {
					return "", err
				}
				if name == "" {
					return "", Refusal("The new chat needs a name.")
				}
				names, err := c.Names()
				if err != nil {
					return "", err
				}
				if known, ok := findChat(names, name); ok {
					return "", Refusal(fmt.Sprintf("There is a chat called %s already.", known))
				}
				if err := c.Create(name); err != nil {
					return "", err
				}
				if err := c.Activate(name); err != nil {
					return "", err
				}
				return fmt.Sprintf("This is the new chat %s.", name), nil
			},
		},
		{
			Spec:   dialog.ToolSpec{Name: "switch_chat", Description: "Switches to another chat.", Parameters: named},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				name, err := existingChat(c, args)
				if err != nil {
					return "", err
				}
				if err := c.Activate(name); err != nil {
					return "", err
				}
				return fmt.Sprintf("This is the chat %s.", name), nil
			},
		},
		{
			Spec: dialog.ToolSpec{
				Name: "clear_chat", Description: "Forgets all that was said in a chat. It can't be undone: only if the user asked for just that.",
				Parameters: named,
			},
			Checks: true,
			Run: func(_ context.Context, args json.RawMessage) (string, error) {
				name, err := existingChat(c, args)
				if err != nil {
					return "", err
				}
				if err := c.Clear(name); err != nil {
					return "", err
				}
				return fmt.Sprintf("The chat %s is empty.", name), nil
			},
		},
	}
}

func tellChats(names []string, active string) string {
	switch len(names) {
	case 0:
		return "There are no chats."
	case 1:
		return fmt.Sprintf("There is one chat, %s.", names[0])
	}
	text := fmt.Sprintf("There are %d chats: %s and %s.", len(names), strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	if active != "" {
		text += fmt.Sprintf(" This is %s.", active)
	}
	return text
}

// chatName reads a chat's name as it was said.
func chatName(args json.RawMessage) (string, error) {
	var a struct{ Name string }
	if err := decode(args, &a); err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(a.Name), " "), nil
}

// existingChat is the name, as it is written, of the chat that was asked for.
func existingChat(c Chats, args json.RawMessage) (string, error) {
	name, err := chatName(args)
	if err != nil {
		return "", err
	}
	names, err := c.Names()
	if err != nil {
		return "", err
	}
	known, ok := findChat(names, name)
	switch {
	case ok:
		return known, nil
	case name == "":
		return "", Refusal("It has to be said which chat.")
	}
	return "", Refusal(fmt.Sprintf("There is no chat called %s.", name))
}

func findChat(names []string, name string) (string, bool) {
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

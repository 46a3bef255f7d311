package tools_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"bellbird/tools"
)

type chatList struct {
	names   []string
	active  string
	cleared string
}

func (l *chatList) Names() ([]string, error) { return l.names, nil }
func (l *chatList) Active() string           { return l.active }
func (l *chatList) Activate(name string) error {
	if !slices.Contains(l.names, name) {
		return errors.New("no such chat")
	}
	l.active = name
	return nil
}
func (l *chatList) Create(name string) error {
	if name == "full" {
		return tools.Refusal("There are too many chats.")
	}
	l.names = append(l.names, name)
	return nil
}
func (l *chatList) Clear(name string) error { l.cleared = name; return nil }

func TestConversations(t *testing.T) {
	l := new(chatList)
	all := tools.Conversations(l)
	for _, step := range []struct{ tool, args, want, active string }{
		{"list_chats", `{}`, "There are no chats.", ""},
		{"create_chat", `{"name":" Shopping  list "}`, "This is the new chat Shopping list.", "Shopping list"},
		{"list_chats", `{}`, "There is one chat, Shopping list.", "Shopping list"},
		{"create_chat", `{"name":"work"}`, "This is the new chat work.", "work"},
		{"create_chat", `{"name":"WORK"}`, "There is a chat called work already.", "work"},
		{"create_chat", `{"name":"full"}`, "There are too many chats.", "work"},
		{"create_chat", `{}`, "The new chat needs a name.", "work"},
		{"switch_chat", `{"name":"shopping list"}`, "This is the chat Shopping list.", "Shopping list"},
		{"switch_chat", `{"name":"holidays"}`, "There is no chat called holidays.", "Shopping list"},
		{"switch_chat", `{}`, "It has to be said which chat.", "Shopping list"},
		{"create_chat", `{"name":2026}`, "This is the new chat 2026.", "2026"},
		{"list_chats", ``, "There are 3 chats: Shopping list, work and 2026. This is 2026.", "2026"},
		{"clear_chat", `{"name":"Work"}`, "The chat work is empty.", "2026"},
	} {
		if got := call(t, all, step.tool, step.args); got != step.want || l.active != step.active {
			t.Errorf("%s %s: %q in %q, want %q in %q", step.tool, step.args, got, l.active, step.want, step.active)
		}
	}
	if l.cleared != "work" {
		t.Errorf("cleared %q", l.cleared)
	}
}

func TestAnnounce(t *testing.T) {
	var said string
	all := []tools.Tool{tools.Announce(func(_ context.Context, text string) error { said = text; return nil })}
	if got := call(t, all, "announce", `{"text":" Dinner is ready. "}`); got != "It will be announced." || said != "Dinner is ready." {
		t.Errorf("%q, said %q", got, said)
	}
	for args, want := range map[string]string{
		`{"text":" "}`: "There is nothing to announce.",
		`{}`:           "The arguments don't fit: missing: text.",
	} {
		if got := call(t, all, "announce", args); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

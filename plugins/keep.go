package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A State is what one plugin keeps between runs, whatever the chat: JSON values by key, durable when a call returns. It
// may be used by several goroutines.
type State interface {
	// Get returns a value, or def if there is none.
	Get(key string, def any) any
	// All returns the values. The map is the caller's; what is in it must not be changed.
	All() map[string]any
	Save(key string, value any) error
	Delete(key string) error
	Clear() error
	// Update replaces a value by what f makes of it, def if there is none, while nobody else changes the plugin's state,
	// and returns it.
	Update(key string, def any, f func(any) (any, error)) (any, error)
}

// Rows are what one plugin keeps in chats: JSON values, under a key in slot 0, and numbered from 1 on as they are
// appended. They follow their chat when it gets another name, go with it when it is deleted, and stay when it is
// cleared. They may be used by several goroutines.
//
// Reading what is not there, or is in a locked vault, finds nothing. Writing to a chat that is not there, or is in a locked
// vault, is an error; only deleting from a chat that is not there is none.
type Rows interface {
	// Get returns the value in slot 0. A null counts as none.
	Get(chat, key string) (v json.RawMessage, ok bool)
	Put(chat, key string, v json.RawMessage) error
	// Append returns the number of what was added. AppendMany adds all or none.
	Append(chat, key string, v json.RawMessage) (uint64, error)
	AppendMany(chat, key string, values []json.RawMessage) ([]uint64, error)
	// ReadAll returns all values in the order of their numbers.
	ReadAll(chat, key string) []json.RawMessage
	// Replace makes the values, numbered from 1, all that there is under the key. With none it deletes.
	Replace(chat, key string, values []json.RawMessage) error
	Delete(chat, key string) error
	DeleteAll(chat string) error
	// Keys are sorted.
	Keys(chat string) []string
	// AllChats returns the values in slot 0 of the key, by the names of the chats.
	AllChats(key string) map[string]json.RawMessage
	Meta(chat, key string) (m RowsMeta, ok bool)
}

// A RowsMeta describes what is under a key of a chat.
type RowsMeta struct {
	Rows    int
	Updated time.Time // of the newest
}

// ErrNoChat is returned for writes to a chat that is not there, or that must look so.
var ErrNoChat = errors.New("no such chat")

// surfacesKey is the key of a plugin's state under which the user's choice of its surfaces lies.
const surfacesKey = "surfaces"

// ownState is a plugin's state as its scripts have it: what the user chose is not theirs to change.
type ownState struct{ State }

func reserved(key string) error {
	if key == surfacesKey {
		return fmt.Errorf("state: %q is where the user's choice is kept, use another key", key)
	}
	return nil
}

func (s ownState) Save(key string, value any) error {
	if err := reserved(key); err != nil {
		return err
	}
	return s.State.Save(key, value)
}

func (s ownState) Delete(key string) error {
	if err := reserved(key); err != nil {
		return err
	}
	return s.State.Delete(key)
}

func (s ownState) Update(key string, def any, f func(any) (any, error)) (any, error) {
	if err := reserved(key); err != nil {
		return nil, err
	}
	return s.State.Update(key, def, f)
}

func (s ownState) Clear() error {
	for key := range s.State.All() {
		if key == surfacesKey {
			continue
		}
		if err := s.State.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// publicRows are the rows of a plugin that isn't aware of privacy: private chats look as if they were not there. What it
// left in a chat before that became private, it may still delete: it is told, like every plugin, when a chat is cleared.
type publicRows struct {
	Rows
	private func(chat string) bool
}

func (r publicRows) Get(chat, key string) (json.RawMessage, bool) {
	if r.private(chat) {
		return nil, false
	}
	return r.Rows.Get(chat, key)
}

func (r publicRows) Put(chat, key string, v json.RawMessage) error {
	if r.private(chat) {
		return ErrNoChat
	}
	return r.Rows.Put(chat, key, v)
}

func (r publicRows) Append(chat, key string, v json.RawMessage) (uint64, error) {
	if r.private(chat) {
		return 0, ErrNoChat
	}
	return r.Rows.Append(chat, key, v)
}

func (r publicRows) AppendMany(chat, key string, values []json.RawMessage) ([]uint64, error) {
	if r.private(chat) {
		return nil, ErrNoChat
	}
	return r.Rows.AppendMany(chat, key, values)
}

func (r publicRows) ReadAll(chat, key string) []json.RawMessage {
	if r.private(chat) {
		return nil
	}
	return r.Rows.ReadAll(chat, key)
}

func (r publicRows) Replace(chat, key string, values []json.RawMessage) error {
	if r.private(chat) {
		return ErrNoChat
	}
	return r.Rows.Replace(chat, key, values)
}

func (r publicRows) Keys(chat string) []string {
	if r.private(chat) {
		return nil
	}
	return r.Rows.Keys(chat)
}

func (r publicRows) AllChats(key string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	for chat, v := range r.Rows.AllChats(key) {
		if !r.private(chat) {
			all[chat] = v
		}
	}
	return all
}

func (r publicRows) Meta(chat, key string) (RowsMeta, bool) {
	if r.private(chat) {
		return RowsMeta{}, false
	}
	return r.Rows.Meta(chat, key)
}

// state is what a plugin keeps whatever the chat.
func (o *Options) state(plugin string) State {
	if o.State == nil {
		return new(MemoryState)
	}
	return o.State(plugin)
}

// rows are what a plugin keeps in chats, as much of it as it may see.
func (o *Options) rows(m *Manifest) Rows {
	if o.Rows == nil {
		return new(MemoryRows)
	}
	rows := o.Rows(m.Name)
	if m.PrivacyAware || o.Private == nil {
		return rows
	}
	return publicRows{rows, func(chat string) bool {
		_, private, err := o.Private(context.Background(), &chat)
		return private || err != nil
	}}
}

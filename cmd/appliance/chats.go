package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"bellbird/api"
	"bellbird/dialog"
	"bellbird/hooks"
	"bellbird/pipeline"
	"bellbird/store"
)

// How the store's chats look to the turn, to the hooks and to the local socket.

// conversations are the store's chats as the turn sees them.
type conversations struct{ *store.Store }

func (c conversations) Active() (pipeline.Chat, error) { return conversation(c.Store.Active()) }

func (c conversations) Named(name string) (pipeline.Chat, error) {
	if name == privateChat {
		if err := c.openPrivate(); err != nil {
			return nil, err
		}
	}
	return conversation(c.Store.Chat(name))
}

// privateChat is where what is said to a wake word that listens privately is kept.
const privateChat = "private"

// openPrivate makes that chat, if it isn't there.
func (c conversations) openPrivate() error {
	if there, open := c.Vault(); there && !open {
		return pipeline.ErrLocked
	}
	_, err := c.Chat(privateChat)
	if errors.Is(err, store.ErrNoChat) {
		if err = c.Create(privateChat); err == nil {
			_, err = c.Set(privateChat, map[string]any{"private_chat": true})
		}
	}
	return err
}

func conversation(c *store.Chat, err error) (pipeline.Chat, error) {
	switch {
	case errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrNoChat):
		return nil, pipeline.ErrLocked
	case err != nil:
		return nil, err
	}
	return c, nil
}

// lifecycle makes a hook of what was done to a chat.
func lifecycle(c store.Change) (point string, e *hooks.Event) {
	e = &hooks.Event{Metadata: make(map[string]any)}
	switch c.Kind {
	case store.Renamed:
		point, e.Metadata["old"], e.Metadata["new"] = "chat_renamed", c.Old, c.Name
	case store.Deleted:
		point, e.Metadata["name"] = "chat_deleted", c.Name
	case store.Cleared:
		point, e.Metadata["chat"] = "chat_cleared", c.Name
	case store.Vaulted:
		point, e.Metadata["name"] = "chat_vaulted", c.Name
	case store.Locked:
		return "vault_locked", e
	case store.Unlocked:
		return "vault_unlocked", e
	}
	// Known already; and a chat that is gone could not be looked up.
	e.ChatName, e.ChatPrivate = hooks.String(c.Name), new(c.Private)
	return point, e
}

// chatControl shows the store's chats to the local socket.
type chatControl struct {
	store *store.Store
	turns *pipeline.Pipeline
}

func (c chatControl) List() ([]api.Chat, error) {
	all, err := c.store.Chats()
	list := []api.Chat{}
	for _, i := range all {
		list = append(list, api.Chat(i))
	}
	return list, storeRefusal(err)
}

func (c chatControl) Create(name string) error     { return storeRefusal(c.store.Create(name)) }
func (c chatControl) Activate(name string) error   { return storeRefusal(c.store.Activate(name)) }
func (c chatControl) Rename(name, to string) error { return storeRefusal(c.store.Rename(name, to)) }
func (c chatControl) Clear(name string) error      { return storeRefusal(c.store.Clear(name)) }
func (c chatControl) Delete(name string) error     { return storeRefusal(c.store.Delete(name)) }

func (c chatControl) Export(name string) (json.RawMessage, error) {
	var b bytes.Buffer
	err := c.store.Export(name, &b)
	return b.Bytes(), storeRefusal(err)
}

func (c chatControl) Settings(name string) (any, error) {
	s, err := c.store.Settings(name)
	return s, storeRefusal(err)
}

func (c chatControl) Set(name string, settings map[string]any) (any, error) {
	s, err := c.store.Set(name, settings)
	return s, storeRefusal(err)
}

func (c chatControl) Preview(ctx context.Context, name, input string) (api.Preview, error) {
	req, calls, err := c.turns.Preview(ctx, name, input)
	if err != nil {
		return api.Preview{}, storeRefusal(err)
	}
	p := api.Preview{Hooks: calls}
	for _, m := range req.Messages {
		p.Messages = append(p.Messages, api.PreviewMessage{Role: string(m.Role), Content: previewText(m), Ghost: m.PerTurn})
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, t.Name)
	}
	return p, nil
}

// previewText is what a message says, or which tools it calls.
func previewText(m dialog.Message) string {
	text := m.Content
	for _, c := range m.Calls {
		text += "\n[" + c.Name + " " + string(c.Arguments) + "]"
	}
	return text
}

// vaultControl shows the store's vault to the local socket.
type vaultControl struct{ store *store.Store }

func (v vaultControl) State() string {
	switch there, open := v.store.Vault(); {
	case !there:
		return "none"
	case !open:
		return "locked"
	}
	return "open"
}

func (v vaultControl) SetUp(passphrase string) error { return storeRefusal(v.store.SetUp(passphrase)) }
func (v vaultControl) Unlock(passphrase string) error {
	return storeRefusal(v.store.Unlock(passphrase))
}
func (v vaultControl) Lock() error                  { return storeRefusal(v.store.Lock()) }
func (v vaultControl) Change(from, to string) error { return storeRefusal(v.store.Change(from, to)) }

// storeRefusal gives an error of the store the status that belongs to it.
func storeRefusal(err error) error {
	status := http.StatusBadRequest
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoChat):
		status = http.StatusNotFound
	case errors.Is(err, store.ErrPassphrase), errors.Is(err, store.ErrTooSoon):
		status = http.StatusForbidden
	case errors.Is(err, store.ErrLocked), errors.Is(err, pipeline.ErrLocked):
		status = http.StatusLocked
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNoVault), errors.Is(err, store.ErrVaultThere):
		status = http.StatusConflict
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrFull):
		status = http.StatusInsufficientStorage
	}
	return api.Errorf(status, "%v", err)
}

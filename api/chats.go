package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"bellbird/event"
)

// Chats are the appliance's conversations. Those that are sealed are not there while the vault is locked.
type Chats interface {
	List() ([]Chat, error) // by name
	Create(name string) error
	Activate(name string) error
	Rename(name, to string) error
	Clear(name string) error
	Delete(name string) error
	// Export is the whole chat, in the form that docs/store.md describes.
	Export(name string) (json.RawMessage, error)
	// Settings are all of a chat, also those that have their defaults.
	Settings(name string) (any, error)
	// Set changes the named settings and leaves the others, and returns all. null is the default.
	Set(name string, settings map[string]any) (any, error)
	// Preview is what a model would be asked next in this chat.
	Preview(ctx context.Context, name, input string) (Preview, error)
}

// A Chat is a line of the list.
type Chat struct {
	Name    string    `json:"name"`
	Active  bool      `json:"active"`
	Private bool      `json:"private"`
	Sealed  bool      `json:"sealed"` // its file is unreadable without the passphrase
	Pinned  bool      `json:"pinned"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"` // the time of its last message
}

// A Preview is a request to a model that is not sent.
type Preview struct {
	Messages []PreviewMessage `json:"messages"`
	Tools    []string         `json:"tools"` // by name
	Hooks    []event.HookCall `json:"hooks"` // what the plugins did
}

// A PreviewMessage is one message of a preview. Ghost marks the one that is in this request only.
type PreviewMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Ghost   bool   `json:"ghost,omitempty"`
}

func (o *Options) chatRoutes(t *table) {
	c := o.Chats
	name := func(f func(string) error) http.HandlerFunc {
		return o.serve(func(r *http.Request) (any, error) { return nil, f(r.PathValue("name")) })
	}
	t.handle("GET /api/chats", o.serve(func(*http.Request) (any, error) { return c.List() }))
	t.handle("POST /api/chats", o.serve(func(r *http.Request) (any, error) {
		var body struct{ Name string }
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return nil, c.Create(body.Name)
	}))
	t.handle("POST /api/chats/{name}/activate", name(c.Activate))
	t.handle("POST /api/chats/{name}/clear", name(c.Clear))
	t.handle("DELETE /api/chats/{name}", name(c.Delete))
	t.handle("POST /api/chats/{name}/rename", o.serve(func(r *http.Request) (any, error) {
		var body struct{ Name string }
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return nil, c.Rename(r.PathValue("name"), body.Name)
	}))
	t.handle("GET /api/chats/{name}/export", o.serve(func(r *http.Request) (any, error) { return c.Export(r.PathValue("name")) }))
	t.handle("GET /api/chats/{name}/settings", o.serve(func(r *http.Request) (any, error) { return c.Settings(r.PathValue("name")) }))
	t.handle("PUT /api/chats/{name}/settings", o.serve(func(r *http.Request) (any, error) {
		var settings map[string]any
		if err := read(r, &settings); err != nil {
			return nil, err
		}
		// They may also be wrapped: no setting has that name.
		if inner, ok := settings["settings"].(map[string]any); ok && len(settings) == 1 {
			settings = inner
		}
		return c.Set(r.PathValue("name"), settings)
	}))
	t.handle("GET /api/chats/{name}/prompt-preview", o.serve(func(r *http.Request) (any, error) {
		return c.Preview(r.Context(), r.PathValue("name"), r.URL.Query().Get("input"))
	}))
}

// A Vault keeps the key of the private chats.
type Vault interface {
	State() string // "none": not set up; "locked"; "open"
	SetUp(passphrase string) error
	Unlock(passphrase string) error
	Lock() error
	Change(from, to string) error
}

func (o *Options) vaultRoutes(t *table) {
	v := o.Vault
	secret := func(f func(string) error) http.HandlerFunc {
		return o.serve(func(r *http.Request) (any, error) {
			var body struct{ Passphrase string }
			if err := read(r, &body); err != nil {
				return nil, err
			}
			return nil, f(body.Passphrase)
		})
	}
	t.handle("GET /api/vault", o.serve(func(*http.Request) (any, error) { return map[string]string{"state": v.State()}, nil }))
	t.handle("POST /api/vault/setup", secret(v.SetUp))
	t.handle("POST /api/vault/unlock", secret(v.Unlock))
	t.handle("POST /api/vault/lock", o.serve(func(*http.Request) (any, error) { return nil, v.Lock() }))
	t.handle("POST /api/vault/passphrase", o.serve(func(r *http.Request) (any, error) {
		var body struct{ From, To string }
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return nil, v.Change(body.From, body.To)
	}))
}

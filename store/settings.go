package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// Settings are the settings of a chat, with the names of the hook contract in JSON.
type Settings struct {
	InjectDatetime bool   // whether the model is told the time with each turn
	SpiceEnabled   bool   // whether it gets a suggestion that changes from turn to turn; default true
	GhostContext   string // told to the model with each turn, unseen by the user
	CustomContext  string // part of the system prompt
	PrivateChat    bool
	Surface        string // where the chat is shown; empty: by its mode, see ShownOn
	Mode           string // "game" for a game or a story
	Voice          string // empty: the configured one
	Pinned         bool   // its messages are never removed to make room

	// More are settings that the store doesn't know, such as those of plugins.
	More map[string]json.RawMessage
}

// Bounds of settings.
const (
	maxSetting  = 16 << 10 // a string
	maxSettings = 64 << 10 // all of a chat, as JSON
)

// DefaultSettings are those of a new chat.
func DefaultSettings() Settings { return Settings{SpiceEnabled: true} }

// ShownOn is the surface of the chat: the setting, or else "game" for the mode "game", or else "chat".
func (s Settings) ShownOn() string {
	switch {
	case s.Surface != "":
		return s.Surface
	case s.Mode == "game":
		return "game"
	default:
		return "chat"
	}
}

// known are the settings that the store knows, by their names.
func (s *Settings) known() map[string]any {
	return map[string]any{
		"inject_datetime": &s.InjectDatetime,
		"spice_enabled":   &s.SpiceEnabled,
		"ghost_context":   &s.GhostContext,
		"custom_context":  &s.CustomContext,
		"private_chat":    &s.PrivateChat,
		"surface":         &s.Surface,
		"mode":            &s.Mode,
		"voice":           &s.Voice,
		"pinned":          &s.Pinned,
	}
}

// MarshalJSON makes one object of the known settings and the others.
func (s Settings) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, 16)
	for name, value := range s.More {
		all[name] = value
	}
	maps.Copy(all, s.known())
	return json.Marshal(all)
}

// UnmarshalJSON changes the settings that the object has. A null is the default.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	return s.change(all)
}

// change applies some settings. A null is the default.
func (s *Settings) change(some map[string]json.RawMessage) error {
	known, defaults := s.known(), DefaultSettings()
	reset := defaults.known()
	more := maps.Clone(s.More)
	if more == nil {
		more = make(map[string]json.RawMessage)
	}
	for name, value := range some {
		null := bytes.Equal(bytes.TrimSpace(value), []byte("null"))
		target, ok := known[name]
		switch {
		case ok && null:
			value, _ = json.Marshal(reset[name])
			fallthrough
		case ok:
			if err := json.Unmarshal(value, target); err != nil {
				return fmt.Errorf("setting %s: %w", name, err)
			}
			if text, ok := target.(*string); ok && len(*text) > maxSetting {
				return fmt.Errorf("setting %s: %w, at most %d bytes", name, ErrTooLarge, maxSetting)
			}
		case null:
			delete(more, name)
		default:
			more[name] = value
		}
	}
	s.More = more
	return nil
}

// Settings returns the settings of a chat.
func (s *Store) Settings(chat string) (Settings, error) {
	c, err := s.Chat(chat)
	if err != nil {
		return Settings{}, err
	}
	return c.Settings()
}

// Set changes some settings of a chat and returns all. A value is what encodes to JSON; nil is the default.
//
// With a vault, which must be unlocked, private_chat seals the chat and erases what was readable of it, or unseals it; a
// chat that can't be read completely stays sealed. If only the erasing fails, the error says so, and it is done when the
// store is opened next.
func (s *Store) Set(chat string, some map[string]any) (Settings, error) {
	c, err := s.Chat(chat)
	if err != nil {
		return Settings{}, err
	}
	return c.Set(some)
}

// Settings returns the chat's settings.
func (c *Chat) Settings() (settings Settings, err error) {
	err = c.read(func(r *record) error {
		settings, err = r.settings()
		return err
	})
	return settings, err
}

// Set changes some settings, as Store.Set.
func (c *Chat) Set(some map[string]any) (settings Settings, err error) {
	raw := make(map[string]json.RawMessage, len(some))
	for name, v := range some {
		if raw[name], err = json.Marshal(v); err != nil {
			return Settings{}, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	defer c.s.deliver()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err := c.announceUnseal(raw["private_chat"]); err != nil {
		return Settings{}, err
	}
	err = c.s.writeLocked(alone, func(t *txn) error {
		r, err := c.s.open(t.Tx, c.id)
		if err != nil {
			return err
		}
		if settings, err = r.settings(); err != nil && !errors.Is(err, errUnreadable) {
			return err
		}
		if err := settings.change(raw); err != nil {
			return err
		}
		if text, err := json.Marshal(settings); err != nil {
			return err
		} else if len(text) > maxSettings {
			return fmt.Errorf("settings: %w, at most %d bytes", ErrTooLarge, maxSettings)
		}
		switch {
		case settings.PrivateChat && !r.Sealed && hasVault(t.Tx):
			if c.s.keys == nil {
				return ErrLocked
			}
			if err := c.s.sealChat(t, r); err != nil {
				return err
			}
		case !settings.PrivateChat && r.Sealed:
			if err := c.s.unsealChat(t, r); err != nil {
				return err
			}
		}
		r.Pinned = settings.Pinned
		t.chats = true
		if err := r.putHead(); err != nil {
			return err
		}
		return r.putSettings(settings)
	})
	return settings, err
}

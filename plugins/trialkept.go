package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"bellbird/hooks"
	"bellbird/tools"
)

// trialKept is what a plugin keeps in a trial.
type trialKept struct {
	state   *MemoryState
	rows    *MemoryRows
	secrets []string // the private chats
}

// kept has what the trial says that the plugin kept before its event.
func (s *stage) kept(e *hooks.Event) (*trialKept, error) {
	k := &trialKept{state: new(MemoryState), rows: new(MemoryRows), secrets: slices.Clone(s.trial.Private)}
	for key, value := range s.trial.State {
		if err := k.state.Save(key, value); err != nil {
			return nil, fmt.Errorf("state: %s: %w", key, err)
		}
	}
	if e.ChatName != nil {
		k.rows.AddChat(*e.ChatName)
		if e.ChatPrivate != nil && *e.ChatPrivate {
			k.secrets = append(k.secrets, *e.ChatName)
		}
	}
	for chat, keys := range s.trial.Rows {
		k.rows.AddChat(chat)
		for key, x := range keys {
			if err := k.put(chat, key, x); err != nil {
				return nil, fmt.Errorf("rows: %s: %s: %w", chat, key, err)
			}
		}
	}
	return k, nil
}

func (k *trialKept) put(chat, key string, x TrialValue) error {
	if x.Value != nil {
		if _, err := CallRows(k.rows, "put", []any{chat, key, x.Value}, nil); err != nil {
			return err
		}
	}
	if len(x.Rows) == 0 {
		return nil
	}
	_, err := CallRows(k.rows, "append_many", []any{chat, key, x.Rows}, nil)
	return err
}

// private resolves a chat's privacy as an appliance does.
func (k *trialKept) private(_ context.Context, chat *string) (string, bool, error) {
	return *chat, slices.Contains(k.secrets, *chat), nil
}

// in is what is kept in a chat, by key.
func (k *trialKept) in(chat string) map[string]any {
	all := make(map[string]any)
	for _, key := range k.rows.Keys(chat) {
		rows := k.rows.ReadAll(chat, key)
		var x TrialValue
		if v, ok := k.rows.Get(chat, key); ok {
			x.Value, rows = decoded(v), rows[1:]
		}
		for _, v := range rows {
			x.Rows = append(x.Rows, decoded(v))
		}
		all[key] = x
	}
	return all
}

// checkChosen holds the settings of a trial against the manifest.
func checkChosen(m *Manifest, chosen map[string]any) error {
	for key, v := range chosen {
		i := slices.IndexFunc(m.Capabilities.Settings, func(s Setting) bool { return s.Key == key })
		if i < 0 {
			return fmt.Errorf("settings: the manifest has no %q", key)
		}
		if err := m.Capabilities.Settings[i].check(v); err != nil {
			return fmt.Errorf("settings: %s: %w", key, err)
		}
	}
	return nil
}

// watchTool notes the errors of a tool, which a model is told of only in general.
func (s *stage) watchTool(run func(context.Context, json.RawMessage) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		text, err := run(ctx, args)
		var refusal tools.Refusal
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && !errors.As(err, &refusal) && len(s.faults) == 0 {
			s.faults = append(s.faults, err.Error())
		}
		return text, err
	}
}

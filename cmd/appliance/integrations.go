package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"bellbird/dialog"
	"bellbird/dictation"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/internal/run"
	"bellbird/pipeline"
	integrations "bellbird/plugins/mcp"
	"bellbird/store"
	"bellbird/tools/mcp"
)

// Integrations, what their user is asked, and dictation.

// Integrations says where they are.
type Integrations struct {
	Dir string `toml:"dir"` // default /var/lib/bellbird/integrations
}

// Ask says what is asked before.
type Ask struct {
	Before []string `toml:"before"` // tools, such as "orders_cancel" or "orders_*"
}

// DictationTarget is where the text for an app goes: one of chat, topic and plugin.
type DictationTarget struct {
	App    string `toml:"app"`
	Chat   string `toml:"chat"`   // it becomes a message there
	Topic  string `toml:"topic"`  // below the appliance's own on MQTT
	Plugin bool   `toml:"plugin"` // plugins with the hook "dictated" get it
}

// mcpOwner is how package tools/mcp calls a server among those that bring tools.
func mcpOwner(name string) string { return "the MCP server " + name }

// integrate makes the set of integrations, whose servers share the tools. names are taken already.
func (a *appliance) integrate(c Config, names map[string]bool, log *slog.Logger) {
	a.integrations = integrations.New(integrations.Options{
		Dir: c.Integrations.Dir, Ledger: ledger(c.Plugins), Runner: a.hooks, Logger: log.With("part", "integrations"),
		Connect: func(m *integrations.Manifest, dir string) (integrations.Server, error) {
			if names[m.Name] {
				return nil, fmt.Errorf("an MCP server of the configuration is called %q too", m.Name)
			}
			o := mcp.Options{Name: m.Name, Command: m.Server.Command, URL: m.Server.URL, Dir: dir, Put: a.tools.Put, Version: version, Logger: log.With("part", "mcp")}
			if token := filepath.Join(dir, "token"); o.URL != "" {
				o.Dir = ""
				if _, err := os.Stat(token); err == nil {
					o.TokenFile = token
				} else if !errors.Is(err, fs.ErrNotExist) {
					return nil, err
				}
			}
			return mcp.New(o)
		},
		Owns:  func(integration, tool string) bool { return a.tools.Owner(tool) == mcpOwner(integration) },
		Front: a.front,
		OnView: func(name string, v integrations.View, private bool) {
			a.bus.Publish(event.ViewShown{At: a.clock.Now(), Integration: name, Blocks: v.Blocks, Private: private})
			a.publishView(name, v, private, log)
		},
		OnBreaker: func(name, point string, d time.Duration) {
			a.bus.Publish(event.HookMissed{At: a.clock.Now(), Plugin: name, Point: point, For: d})
		},
		OnTrace: a.told,
	})
	a.more = append(a.more, run.Part{Name: "integrations", Run: a.integrations.Run}, a.watchIntegrations(c, log))
}

// publishView shows a view to whoever listens on MQTT. One of a private chat is shown to nobody.
func (a *appliance) publishView(name string, v integrations.View, private bool, log *slog.Logger) {
	if a.publish == nil || private {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = a.publish(name, "view", string(text))
	}
	if err != nil {
		log.Warn("a view is not published", "integration", name, "err", err)
	}
}

// front is what is in front: the app that is dictated to, or the surface of the active chat.
func (a *appliance) front() string {
	if app := a.dictation.Front(); app != "" {
		return app
	}
	if c, err := a.store.Active(); err == nil {
		return c.Surface()
	}
	return "chat"
}

// confirmations asks before the tools that the user has locked.
func confirmations(c Ask) (*pipeline.Confirmations, error) {
	for _, p := range c.Before {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("ask: before: %q: %w", p, err)
		}
	}
	answers, err := intents.Answers()
	if err != nil {
		return nil, err
	}
	return &pipeline.Confirmations{
		Means: intents.Means(answers),
		Locked: func(tool string) bool {
			for _, p := range c.Before {
				if ok, _ := path.Match(p, tool); ok {
					return true
				}
			}
			return false
		},
	}, nil
}

// takeDown makes the dictation, and its tool.
func (a *appliance) takeDown(targets []DictationTarget, log *slog.Logger) (err error) {
	if targets == nil {
		targets = []DictationTarget{{App: "notes", Chat: "notes"}}
	}
	o := dictation.Options{
		Runner: a.hooks, Bus: a.bus, Clock: a.clock, Free: func() bool { return a.hearsAnything }, Logger: log.With("part", "dictation"),
		Listen: func() {
			if a.ears != nil {
				a.turns.Wake("dictation", 1, a.ears.Heard())
			}
		},
		Say: func(ctx context.Context, text string) error { _, err := a.turns.Say(ctx, text); return err },
	}
	for _, t := range targets {
		deliver, err := a.deliverTo(t)
		if err != nil {
			return fmt.Errorf("dictation %q: %w", t.App, err)
		}
		o.Targets = append(o.Targets, dictation.Target{App: t.App, Deliver: deliver})
	}
	if a.dictation, err = dictation.New(o); err != nil {
		return err
	}
	a.more = append(a.more, run.Part{Name: "dictation", Run: a.dictation.Run})
	return a.tools.Put("dictation", a.dictation.Tool())
}

func (a *appliance) deliverTo(t DictationTarget) (func(context.Context, dictation.Text) error, error) {
	switch {
	case t.Chat != "" && t.Topic == "" && !t.Plugin:
		return func(_ context.Context, text dictation.Text) error {
			c, err := a.store.Chat(t.Chat)
			if errors.Is(err, store.ErrNoChat) {
				if err = a.store.Create(t.Chat); err == nil {
					c, err = a.store.Chat(t.Chat)
				}
			}
			if err != nil {
				return err
			}
			return c.Append(dialog.Message{Role: dialog.User, Content: text.Text, Time: a.clock.Now()})
		}, nil
	case t.Topic != "" && t.Chat == "" && !t.Plugin:
		return func(_ context.Context, text dictation.Text) error {
			if a.publish == nil {
				return errors.New("there is no MQTT")
			}
			return a.publish("dictation", strings.Trim(t.Topic, "/"), text.Text)
		}, nil
	case t.Plugin && t.Chat == "" && t.Topic == "":
		return func(ctx context.Context, text dictation.Text) error {
			a.hooks.Fire(ctx, "dictated", &hooks.Event{
				Input: text.Text, ChatName: text.Chat, ChatPrivate: &text.Private, Metadata: map[string]any{"app": text.App},
			})
			return nil
		}, nil
	}
	return nil, errors.New("it needs one of chat, topic and plugin")
}

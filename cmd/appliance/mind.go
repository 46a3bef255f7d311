package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/ghost"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/llm"
	"bellbird/llm/anthropic"
	"bellbird/llm/offline"
	"bellbird/llm/openai"
	"bellbird/pipeline"
	"bellbird/prompt"
	"bellbird/store"
	"bellbird/tools"
	"bellbird/tools/mcp"
	"bellbird/tts"
)

// What the appliance thinks with: a model, its tools, and what the model is told besides the conversation.

// Model says which model answers.
type Model struct {
	Kind          string            `toml:"kind"`           // "offline", "openai" or "anthropic"; default "offline"
	LocalFirst    *bool             `toml:"local_first"`    // what is understood with certainty is answered without the model; default true
	FallbackAfter time.Duration     `toml:"fallback_after"` // when the offline agent answers in its place; default 8 s
	OpenAI        openai.Options    `toml:"openai"`
	Anthropic     anthropic.Options `toml:"anthropic"`
}

// think makes the model that turns ask.
func (a *appliance) think(c Model, grammar *intents.Set, log *slog.Logger) (pipeline.Model, error) {
	local := offline.New(grammar)
	var remote llm.Model
	var err error
	switch c.Kind {
	case "", "offline":
		return local, nil
	case "openai":
		remote, err = openai.New(c.OpenAI)
	case "anthropic":
		remote, err = anthropic.New(c.Anthropic)
	default:
		return nil, fmt.Errorf(`model: kind = %q: it is "offline", "openai" or "anthropic"`, c.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	both := llm.NewFallback(llm.FallbackOptions{
		Primary: remote, PrimaryName: c.Kind, Second: local, SecondName: "offline", Deadline: c.FallbackAfter,
		OnSwitch: func(name string) {
			log.Warn("another model answers now", "model", name)
			a.bus.Publish(event.ProviderSwitched{At: time.Now(), Kind: "llm", Name: name, Instead: name == "offline"})
			a.hooks.Fire(context.Background(), "provider_switched", &hooks.Event{Metadata: map[string]any{"kind": "llm", "provider": name}})
		},
	})
	if c.LocalFirst != nil && !*c.LocalFirst {
		return both, nil
	}
	return offline.First{Grammar: grammar, Local: local, Other: both}, nil
}

// equip gives the appliance its tools, and returns the names of the servers that bring some.
func (a *appliance) equip(c Config, s senses, log *slog.Logger) (servers map[string]bool, err error) {
	all := tools.Time(a.localTime)
	all = append(all, tools.Sound(loudness{a.output, a.bus, a.clock})...)
	all = append(all, tools.Stop(func() { a.timers.Silence() }))
	if s.timers {
		all = append(all, tools.Timing(timekeeper{a.timers})...)
		all = append(all, tools.Waking(alarmkeeper{a.timers})...)
	}
	all = append(all, tools.Conversations(talker{storedChats{a.store}})...)
	all = append(all, tools.Announce(a.announce))
	if a.tools, err = tools.NewSet(log.With("part", "tools"), all...); err != nil {
		return nil, err
	}
	servers = make(map[string]bool)
	for _, o := range c.MCP {
		if servers[o.Name] {
			return nil, fmt.Errorf("mcp: there are two servers named %q", o.Name)
		}
		servers[o.Name] = true
		o.Put, o.Version, o.Logger = a.tools.Put, version, log.With("part", "mcp")
		server, err := mcp.New(o)
		if err != nil {
			return nil, err
		}
		a.mcp = append(a.mcp, server)
	}
	return servers, nil
}

// maxAnnouncements is how many may wait to be said.
const maxAnnouncements = 4

// announce has a text said when the turn that wants it is over.
func (a *appliance) announce(_ context.Context, text string) error {
	if a.announcing.Add(1) > maxAnnouncements {
		a.announcing.Add(-1)
		return tools.Refusal("Too many announcements are waiting already.")
	}
	go func() {
		defer a.announcing.Add(-1)
		_, _ = a.turns.Say(context.Background(), text) // ends with the appliance; the turn tells what went wrong
	}()
	return nil
}

// userZone tells where the user is: as the system is set, also when that is changed while the appliance runs.
func userZone() func() *time.Location {
	if os.Getenv("TZ") != "" {
		return func() *time.Location { return time.Local }
	}
	return clock.NewZone("/etc/localtime").Location
}

// localTime is the time of day where the user is.
func (a *appliance) localTime() time.Time { return a.clock.Now().In(a.zone()) }

// settingsOf are the settings of a turn's chat.
func settingsOf(c pipeline.Chat) store.Settings {
	chat, ok := c.(*store.Chat)
	if !ok {
		return store.DefaultSettings()
	}
	s, err := chat.Settings()
	if err != nil {
		return store.DefaultSettings() // it is gone, or locked meanwhile
	}
	return s
}

// systemPrompt makes the system prompt of a chat.
func systemPrompt(o prompt.Options) func(pipeline.Chat, []string) string {
	return func(c pipeline.Chat, parts []string) string {
		return o.System(append(prompt.Parts(settingsOf(c).CustomContext), parts...))
	}
}

// Ghost is what the ghost rail has of its own.
type Ghost struct {
	Spices string `toml:"spices"` // a file with a line for each; none if empty
}

func (g Ghost) rail(log *slog.Logger) (*ghost.Rail, error) {
	r := &ghost.Rail{Logger: log.With("part", "ghost")}
	if g.Spices == "" {
		return r, nil
	}
	var err error
	r.Spices, err = ghost.ReadSpices(g.Spices)
	return r, err
}

// ghosts makes the ghost message of a chat's turn.
func ghosts(rail *ghost.Rail, now func() time.Time) func(pipeline.Chat, uint64, []hooks.Contribution) ghost.Message {
	return func(c pipeline.Chat, run uint64, contributions []hooks.Contribution) ghost.Message {
		s := settingsOf(c)
		return rail.Message(ghost.Turn{
			Now: now(), Number: int(run), Contributions: contributions,
			Settings: ghost.Settings{InjectDatetime: s.InjectDatetime, SpiceEnabled: s.SpiceEnabled, GhostContext: s.GhostContext},
		})
	}
}

// voices gives each chat the voice that it is set to. One that isn't there is logged, and the usual one speaks.
func voices(usual tts.Voice, log *slog.Logger) func(pipeline.Chat) pipeline.Voice {
	var mu sync.Mutex
	missing := make(map[string]bool)
	return func(c pipeline.Chat) pipeline.Voice {
		name := strings.TrimSpace(settingsOf(c).Voice)
		mu.Lock()
		defer mu.Unlock()
		if name == "" || missing[name] {
			return nil
		}
		v, err := usual.Named(name)
		if err != nil {
			log.Error("a chat's voice", "err", err)
			if len(missing) < 100 {
				missing[name] = true
			}
			return nil
		}
		return v
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"bellbird/api"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/pipeline"
	"bellbird/stt"
	sttopenai "bellbird/stt/openai"
	"bellbird/stt/pocketsphinx"
	sttwyoming "bellbird/stt/wyoming"
	"bellbird/tts"
	"bellbird/tts/espeak"
	ttsopenai "bellbird/tts/openai"
	ttswyoming "bellbird/tts/wyoming"
)

// What the appliance understands with and speaks with. Those that are built in stand in for those on the network.

// STT says what understands. The keys of the table itself are those of the built-in recogniser.
type STT struct {
	pocketsphinx.Options
	Engine        string             `toml:"engine"`         // "pocketsphinx", "wyoming" or "openai"; default "pocketsphinx"
	FallbackAfter time.Duration      `toml:"fallback_after"` // when pocketsphinx understands in its place; default 6 s
	Wyoming       sttwyoming.Options `toml:"wyoming"`
	OpenAI        sttopenai.Options  `toml:"openai"`
}

// TTS says what speaks. The keys of the table itself are those of the built-in voice.
type TTS struct {
	espeak.Options
	Engine        string             `toml:"engine"`         // "espeak-ng", "wyoming" or "openai"; default "espeak-ng"
	FallbackAfter time.Duration      `toml:"fallback_after"` // when espeak-ng speaks in its place; default 4 s
	Wyoming       ttswyoming.Options `toml:"wyoming"`
	OpenAI        ttsopenai.Options  `toml:"openai"`
}

// A remote is an engine on the network, which tells where it is and whether it works.
type remote interface {
	Check(ctx context.Context) (string, error)
}

type remoteRecognizer interface {
	pipeline.Recognizer
	remote
}

// remote is the configured recogniser on the network; nil: there is none.
func (c STT) remote() (remoteRecognizer, error) {
	switch c.Engine {
	case "", "pocketsphinx":
		return nil, nil
	case "wyoming":
		return sttwyoming.New(c.Wyoming)
	case "openai":
		return sttopenai.New(c.OpenAI)
	}
	return nil, fmt.Errorf(`stt: engine = %q: it is "pocketsphinx", "wyoming" or "openai"`, c.Engine)
}

type remoteVoice interface {
	tts.Voice
	remote
}

// remote is the configured voice on the network; nil: there is none.
func (c TTS) remote() (remoteVoice, error) {
	switch c.Engine {
	case "", "espeak-ng":
		return nil, nil
	case "wyoming":
		return ttswyoming.New(c.Wyoming)
	case "openai":
		return ttsopenai.New(c.OpenAI)
	}
	return nil, fmt.Errorf(`tts: engine = %q: it is "espeak-ng", "wyoming" or "openai"`, c.Engine)
}

// understand makes the recogniser of the turns. local stands in for what is on the network.
func (a *appliance) understand(c STT, local *pocketsphinx.Recognizer, log *slog.Logger) (pipeline.Recognizer, error) {
	far, err := c.remote()
	if err != nil || far == nil {
		return local, err
	}
	return stt.NewFallback(stt.FallbackOptions{
		Primary: far, PrimaryName: c.Engine, Second: local, SecondName: "pocketsphinx", Deadline: c.FallbackAfter,
		OnSwitch: a.switched("stt", log),
	}), nil
}

// speak makes the voice of the turns. The built-in one stands in for what is on the network.
func (a *appliance) speak(c TTS, log *slog.Logger) (tts.Voice, error) {
	built, err := espeak.New(c.Options)
	if err != nil {
		return nil, err
	}
	local := localVoice{built, c.Command}
	far, err := c.remote()
	if err != nil || far == nil {
		return local, err
	}
	return tts.NewFallback(tts.FallbackOptions{
		Primary: far, PrimaryName: c.Engine, Second: local, SecondName: "espeak-ng", Deadline: c.FallbackAfter,
		OnSwitch: a.switched("tts", log),
	}), nil
}

// switched tells everybody that another engine does a part of the work now, and why if it stands in.
func (a *appliance) switched(kind string, log *slog.Logger) func(name string, why error) {
	return func(name string, why error) {
		log.Warn("another engine works now", "kind", kind, "engine", name, "err", why)
		a.bus.Publish(event.ProviderSwitched{At: time.Now(), Kind: kind, Name: name, Instead: why != nil})
		a.hooks.Fire(context.Background(), "provider_switched", &hooks.Event{Metadata: map[string]any{"kind": kind, "provider": name}})
	}
}

// localVoice is the built-in voice, and can be listed.
type localVoice struct {
	*espeak.Voice
	command string
}

func (v localVoice) Voices(ctx context.Context) ([]string, error) {
	return espeakVoices(ctx, v.command, "en"), nil
}

func (v localVoice) Named(name string) (tts.Voice, error) {
	other, err := v.Voice.Named(name)
	return localVoice{other, v.command}, err
}

// remotes are the engines on the network that are configured, for bellbird check.
func remotes(c Config) (all []farEngine) {
	if far, err := c.STT.remote(); err != nil || far != nil {
		all = append(all, farEngine{"recogniser", far, err})
	}
	if far, err := c.TTS.remote(); err != nil || far != nil {
		all = append(all, farEngine{"voice", far, err})
	}
	return all
}

type farEngine struct {
	what   string
	engine remote
	err    error
}

func (f farEngine) found(ctx context.Context) (string, error) {
	if f.err != nil {
		return "", f.err
	}
	return f.engine.Check(ctx)
}

// speechEngines are those that are configured, for the API.
func speechEngines(c Config) []api.Model {
	yes := true
	local := func(kind, name, model, engine string) api.Model {
		return api.Model{Kind: kind, Name: name, Model: model, Active: engine == name, Reached: &yes}
	}
	far := func(kind, engine string, models map[string]api.Model) []api.Model {
		m, ok := models[engine]
		if !ok {
			return nil
		}
		m.Kind, m.Name, m.Active = kind, engine, true
		return []api.Model{m}
	}
	hears, speaks := cmp.Or(c.STT.Engine, "pocketsphinx"), cmp.Or(c.TTS.Engine, "espeak-ng")
	list := far("stt", hears, map[string]api.Model{
		"wyoming": {Model: c.STT.Wyoming.Model, Address: c.STT.Wyoming.Address},
		"openai":  {Model: c.STT.OpenAI.Model, Address: addressOf(c.STT.OpenAI.BaseURL)},
	})
	list = append(list, local("stt", "pocketsphinx", "", hears))
	list = append(list, far("tts", speaks, map[string]api.Model{
		"wyoming": {Model: c.TTS.Wyoming.Voice, Address: c.TTS.Wyoming.Address},
		"openai":  {Model: c.TTS.OpenAI.Model, Address: addressOf(c.TTS.OpenAI.BaseURL)},
	})...)
	return append(list, local("tts", "espeak-ng", c.TTS.Voice, speaks))
}

// addressOf is the address of a server, without what is secret in it.
func addressOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

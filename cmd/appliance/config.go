package main

import (
	"bufio"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"bellbird/audio/malgo"
	"bellbird/gpio"
	"bellbird/mqtt"
	"bellbird/ota"
	"bellbird/pipeline"
	"bellbird/prompt"
	"bellbird/tools/mcp"
	"bellbird/wake"
)

const (
	defaultConfig = "/etc/bellbird/config.toml"
	defaultState  = "/var/lib/bellbird"
)

// defaultModelDirs are where wake word models are looked for, the user's own first.
var defaultModelDirs = []string{"/var/lib/bellbird/models", "/usr/share/bellbird/models"}

// Config is the configuration file. Each part of the appliance has a table in it, which decodes straight into that
// part's Options.
type Config struct {
	Sound malgo.Options    `toml:"sound"`
	Echo  Echo             `toml:"echo"`
	Wake  wake.Options     `toml:"wake"`
	STT   STT              `toml:"stt"`
	TTS   TTS              `toml:"tts"`
	Turn  pipeline.Options `toml:"turn"`

	Model  Model          `toml:"model"`
	Prompt prompt.Options `toml:"prompt"`
	Ghost  Ghost          `toml:"ghost"`
	MCP    []mcp.Options  `toml:"mcp"`

	Plugins      Plugins           `toml:"plugins"`
	Integrations Integrations      `toml:"integrations"`
	Ask          Ask               `toml:"ask"`
	Dictation    []DictationTarget `toml:"dictation"`

	API   API    `toml:"api"`
	Store Memory `toml:"store"`

	MQTT  mqtt.Options `toml:"mqtt"`
	Body  gpio.Options `toml:"body"`
	OTA   ota.Options  `toml:"ota"`
	Debug Debug        `toml:"debug"`

	// Volume is the loudness at start, 0 to 100; default 70.
	Volume *int `toml:"volume"`

	// WakeSound is whether a short sound tells that the wake word was heard; default true.
	WakeSound *bool `toml:"wake_sound"`
}

// load reads the configuration that the flags ask for. Every error is a usageError.
func (f *flags) load() (Config, error) {
	var c Config
	path := f.config
	if path == "" {
		path = defaultConfig
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.config == "":
		// No file at all is a valid configuration.
	case err != nil:
		return c, usagef("configuration: %v", err)
	default:
		if err := c.decode(path, string(text)); err != nil {
			return c, err
		}
	}
	if len(f.models) > 0 {
		c.Wake.ModelDirs = f.models
	}
	if len(c.Wake.ModelDirs) == 0 {
		c.Wake.ModelDirs = defaultModelDirs
	}
	state := defaultState
	if f.state != "" {
		state = f.state
	}
	c.Plugins.setDefaults(state)
	if c.Integrations.Dir == "" || f.state != "" {
		c.Integrations.Dir = filepath.Join(state, "integrations")
	}
	if c.Store.Path == "" || f.state != "" {
		c.Store.Path = filepath.Join(state, "bellbird.db")
	}
	if f.state != "" {
		c.Plugins.StateDir = filepath.Join(state, "plugin-state")
	}
	if f.plugins != "" {
		c.Plugins.UserDir, c.Plugins.own = f.plugins, true
	}
	if err := c.Plugins.Check(); err != nil {
		return c, usagef("%s: plugins.%v", path, err)
	}
	if c.Volume == nil {
		c.Volume = new(70)
	}
	if *c.Volume < 0 || *c.Volume > 100 {
		return c, usagef("%s: volume = %d: it goes from 0 to 100", path, *c.Volume)
	}
	if c.WakeSound == nil {
		c.WakeSound = new(true)
	}
	return c, nil
}

func (c *Config) decode(path, text string) error {
	meta, err := toml.Decode(text, c)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		if parse.LastKey != "" {
			parse.Message = parse.LastKey + ": " + parse.Message
		}
		return usagef("%s:%d: %s", path, parse.Position.Line, parse.Message)
	case err != nil:
		return usagef("%s: %v", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		key := unknown[0]
		return usagef("%s:%d: unknown key %q: is it spelled right?", path, lineOf(key, text), key)
	}
	return nil
}

// lineOf finds the line of a key, for which the decoder keeps no position.
func lineOf(key toml.Key, text string) int {
	table, line, found := "", 0, 0
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line++
		trimmed := strings.TrimSpace(s.Text())
		if name, isTable := strings.CutPrefix(trimmed, "["); isTable {
			table = strings.Trim(strings.SplitN(name, "]", 2)[0], "[ ")
			if table == key.String() {
				found = line
			}
			continue
		}
		name, _, isPair := strings.Cut(trimmed, "=")
		full := strings.TrimSpace(name)
		if table != "" {
			full = table + "." + full
		}
		if isPair && full == key.String() {
			return line
		}
	}
	return found
}

// logger logs to stderr: warnings and errors, or with --verbose all.
func (f *flags) logger(level slog.Level) *slog.Logger {
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

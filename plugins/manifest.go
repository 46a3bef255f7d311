package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bellbird/hooks"
	"bellbird/plugins/schedule"
)

// A Manifest is a plugin.json, of whose fields those that the appliance knows.
type Manifest struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Author      string `json:"author"`
	URL         string `json:"url"`

	Priority       *int     `json:"priority"` // nil: hooks.DefaultPriority
	DefaultEnabled bool     `json:"default_enabled"`
	PrivacyAware   bool     `json:"privacy_aware"`
	Surfaces       []string `json:"surfaces"`    // nil: everywhere
	FailClosed     []string `json:"fail_closed"` // points at which a failure of this plugin is a refusal
	Network        []string `json:"network"`     // hosts that it may reach, such as "ha.local:8123" or "*.example.org"

	Capabilities Capabilities `json:"capabilities"`

	// Unknown are the fields that were left out of account, sorted.
	Unknown []string `json:"-"`
}

// Capabilities are what a plugin brings.
type Capabilities struct {
	// Hooks maps points to the files of their handlers, which lie within the plugin's directory.
	Hooks map[string]string `json:"hooks"`

	VoiceCommands []VoiceCommand `json:"voice_commands"`
	Settings      []Setting      `json:"settings"`

	// Tools are files with tools for the model.
	Tools []string `json:"tools"`

	// Schedule are functions that are called at certain times.
	Schedule []schedule.Entry `json:"schedule"`
}

// A VoiceCommand is a handler of pre_chat that is called only when its triggers match.
type VoiceCommand struct {
	Triggers    []string   `json:"triggers"`
	Match       hooks.Mode `json:"match"`
	BypassLLM   bool       `json:"bypass_llm"` // it comes among the first
	Handler     string     `json:"handler"`
	Description string     `json:"description"`
}

const (
	manifestName = "plugin.json"
	maxManifest  = 256 << 10
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ReadManifest reads the manifest of the plugin in dir, and checks all that can be checked without running anything.
func ReadManifest(dir string) (*Manifest, error) {
	m, err := readManifest(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	return m, nil
}

func readManifest(files fs.FS) (*Manifest, error) {
	f, err := files.Open(manifestName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	return ParseManifest(text)
}

// ParseManifest reads a manifest, and checks all that can be checked without its plugin's files.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > maxManifest {
		return nil, fmt.Errorf("larger than %d bytes", maxManifest)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
		}
		return nil, err
	}
	if !namePattern.MatchString(m.Name) {
		return nil, fmt.Errorf("name %q: a plugin's name is made of a-z, 0-9, - and _, 64 at most", m.Name)
	}
	if err := checkHosts(m.Network); err != nil {
		return nil, fmt.Errorf("network%w", err)
	}
	for point, file := range m.Capabilities.Hooks {
		if err := checkFile(file); err != nil {
			return nil, fmt.Errorf("capabilities.hooks.%s: %w", point, err)
		}
	}
	for i, c := range m.Capabilities.VoiceCommands {
		if err := checkFile(c.Handler); err != nil {
			return nil, fmt.Errorf("capabilities.voice_commands[%d].handler: %w", i, err)
		}
		if _, err := hooks.NewMatch(c.Match, c.Triggers); err != nil {
			return nil, fmt.Errorf("capabilities.voice_commands[%d].%w", i, err)
		}
	}
	for i, file := range m.Capabilities.Tools {
		if err := checkFile(file); err != nil {
			return nil, fmt.Errorf("capabilities.tools[%d]: %w", i, err)
		}
	}
	if err := checkSettings(m.Capabilities.Settings); err != nil {
		return nil, fmt.Errorf("capabilities.settings%w", err)
	}
	if err := checkSchedules(m.Capabilities.Schedule); err != nil {
		return nil, fmt.Errorf("capabilities.schedule%w", err)
	}
	if m.Surfaces != nil {
		m.Surfaces = onlyKnown(m.Surfaces)
	}
	m.Unknown = unknownFields(text)
	return m, nil
}

// checkFile keeps a handler within its plugin's directory.
func checkFile(path string) error {
	if path == "" {
		return errors.New("no file is named")
	}
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%q is outside of the plugin's directory", path)
	}
	return nil
}

// unknownFields are the names in the manifest and its capabilities that Manifest doesn't have.
func unknownFields(text []byte) []string {
	var top, capabilities map[string]json.RawMessage
	if json.Unmarshal(text, &top) != nil {
		return nil
	}
	_ = json.Unmarshal(top["capabilities"], &capabilities) // its type was checked
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(topFields, name) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(capabilities)) {
		if !slices.Contains(capabilityFields, name) {
			unknown = append(unknown, "capabilities."+name)
		}
	}
	return unknown
}

var (
	topFields        = strings.Fields("name version description author url priority default_enabled privacy_aware surfaces fail_closed network capabilities")
	capabilityFields = strings.Fields("hooks voice_commands settings tools schedule")
)

package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bellbird/internal/atomicfile"
)

// A Setting is something of a plugin that its user may choose.
type Setting struct {
	Key     string   `json:"key"`
	Type    string   `json:"type"` // string, number, boolean or list
	Label   string   `json:"label,omitempty"`
	Help    string   `json:"help,omitempty"`
	Default any      `json:"default"`          // nil: None, until the user chooses
	Widget  string   `json:"widget,omitempty"` // "password": the value is not shown
	Options []Option `json:"options,omitempty"`
	Min     *float64 `json:"min,omitempty"` // of a number, as is Max
	Max     *float64 `json:"max,omitempty"`
}

// An Option is a value that a setting may have, if it can't have any.
type Option struct {
	Label string `json:"label,omitempty"`
	Value any    `json:"value"`
}

const (
	maxSettings    = 100 // of a plugin
	maxSettingText = 16 << 10
	maxSettingList = 1000
)

var settingKey = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// checkSettings checks the declarations of a manifest.
func checkSettings(settings []Setting) error {
	if len(settings) > maxSettings {
		return fmt.Errorf("%d settings, the most are %d", len(settings), maxSettings)
	}
	seen := make(map[string]bool)
	for i, s := range settings {
		var err error
		switch {
		case !settingKey.MatchString(s.Key):
			err = errors.New("a key is made of letters, digits, _, . and -, 64 at most")
		case seen[s.Key]:
			err = errors.New("there is another of this key")
		case s.Key == surfacesKey:
			err = errors.New("this key is the appliance's own")
		case !slices.Contains([]string{"string", "number", "boolean", "list"}, s.Type):
			err = fmt.Errorf("type %q: it is string, number, boolean or list", s.Type)
		case s.Default != nil:
			if err = s.check(s.Default); err != nil {
				err = fmt.Errorf("default: %w", err)
			}
		}
		if err != nil {
			return fmt.Errorf("[%d] %q: %w", i, s.Key, err)
		}
		seen[s.Key] = true
	}
	return nil
}

// check holds a value against the declaration.
func (s *Setting) check(v any) error {
	fits := false
	switch v := v.(type) {
	case string:
		if fits = s.Type == "string"; fits && len(v) > maxSettingText {
			return fmt.Errorf("a text of %d bytes, the most are %d", len(v), maxSettingText)
		}
	case bool:
		fits = s.Type == "boolean"
	case float64:
		if fits = s.Type == "number" && !math.IsNaN(v) && !math.IsInf(v, 0); !fits {
			break
		}
		if s.Min != nil && v < *s.Min {
			return fmt.Errorf("%v is less than %v", v, *s.Min)
		}
		if s.Max != nil && v > *s.Max {
			return fmt.Errorf("%v is more than %v", v, *s.Max)
		}
	case []any:
		if fits = s.Type == "list"; fits && len(v) > maxSettingList {
			return fmt.Errorf("a list of %d, the most are %d", len(v), maxSettingList)
		}
		if text, err := json.Marshal(v); err != nil || len(text) > maxSettingText {
			return fmt.Errorf("a list of more than %d bytes", maxSettingText)
		}
	}
	if !fits {
		return fmt.Errorf("it should be a %s", s.Type)
	}
	if len(s.Options) > 0 && s.Type != "list" && !slices.ContainsFunc(s.Options, func(c Option) bool { return c.Value == v }) {
		return fmt.Errorf("it should be one of %s", asJSON(s.Options))
	}
	return nil
}

// Parse reads a value as a person writes it: yes and no, and the parts of a list with commas between them, or as JSON.
func (s *Setting) Parse(text string) (any, error) {
	var v any = text
	switch s.Type {
	case "number":
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no number", s.Key, text)
		}
		v = n
	case "boolean":
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "yes", "on", "1":
			v = true
		case "false", "no", "off", "0":
			v = false
		default:
			return nil, fmt.Errorf("%s: write true or false, not %q", s.Key, text)
		}
	case "list":
		parts := []any{}
		if err := json.Unmarshal([]byte(text), &parts); err != nil {
			parts = []any{}
			for part := range strings.SplitSeq(text, ",") {
				if part = strings.TrimSpace(part); part != "" {
					parts = append(parts, part)
				}
			}
		}
		v = parts
	}
	if err := s.check(v); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Key, err)
	}
	return v, nil
}

// Settings are the values of a plugin's settings as they are now: the defaults, and over them what the user chose. The
// zero value has none.
type Settings struct {
	now atomic.Pointer[Values]
}

// Values are settings at one time. They must not be changed.
type Values struct{ ByKey map[string]any }

var noValues = new(Values)

// NewSettings returns settings with these values.
func NewSettings(values map[string]any) *Settings {
	s := new(Settings)
	s.Set(values)
	return s
}

// Now are the values. As long as they are the same, so is the pointer.
func (s *Settings) Now() *Values {
	if v := s.now.Load(); v != nil {
		return v
	}
	return noValues
}

// Set replaces the values. The map must not be changed any more.
func (s *Settings) Set(values map[string]any) { s.now.Store(&Values{values}) }

// A SettingValue is a setting, and what it is set to.
type SettingValue struct {
	Setting
	Value any  `json:"value"`
	Set   bool `json:"set"` // by the user
}

// overlay are the values of settings: the default, unless there is one of the user's which fits.
func overlay(settings []Setting, chosen map[string]any) (values map[string]any, misfits []string) {
	values = make(map[string]any, len(settings))
	for i := range settings {
		s := &settings[i]
		values[s.Key] = s.Default
		v, ok := chosen[s.Key]
		if !ok {
			continue
		}
		if err := s.check(v); err != nil {
			misfits = append(misfits, fmt.Sprintf("%s: %v", s.Key, err))
			continue
		}
		values[s.Key] = v
	}
	return values, misfits
}

func (l *Loader) settingsPath(plugin string) string {
	return filepath.Join(l.o.StateDir, "settings", plugin+".json")
}

// readSettings reads what the user chose of a plugin. A file that can't be read is set aside, and there are the defaults.
func (l *Loader) readSettings(plugin string) map[string]any {
	path := l.settingsPath(plugin)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var chosen map[string]any
	if err == nil {
		if err = json.Unmarshal(text, &chosen); err == nil {
			return chosen
		}
		err = errors.Join(err, os.Rename(path, path+".bad-"+time.Now().UTC().Format("20060102T150405Z")))
	}
	l.o.Logger.Error("the settings of a plugin can't be read, it has the defaults", "plugin", plugin, "err", err)
	return nil
}

// applySettings gives a plugin the values of its settings as it declares them now.
func (l *Loader) applySettings(p *plugin) {
	values, misfits := overlay(p.Manifest.Capabilities.Settings, p.chosen)
	if len(misfits) > 0 {
		l.o.Logger.Warn("settings of a plugin don't fit any more, it has the defaults", "plugin", p.Manifest.Name, "settings", misfits)
	}
	p.settings.Set(values)
}

// Settings returns the settings of a plugin in the order of its manifest. Of one that is at home on some surfaces only,
// the last is which these are.
func (l *Loader) Settings(name string) ([]SettingValue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.plugins[name]
	if p == nil {
		return nil, fmt.Errorf("plugin %q: %w", name, ErrUnknown)
	}
	l.keep(p)
	values, _ := overlay(p.Manifest.Capabilities.Settings, p.chosen)
	list := []SettingValue{}
	for _, s := range p.Manifest.Capabilities.Settings {
		_, set := p.chosen[s.Key]
		list = append(list, SettingValue{s, values[s.Key], set})
	}
	if own := p.Manifest.Surfaces; own != nil {
		s := SettingValue{Setting: surfacesSetting(own), Value: texts(effectiveSurfaces(own, p.state))}
		s.Set = p.state.Get(surfacesKey, nil) != nil
		list = append(list, s)
	}
	return list, nil
}

// SetSettings changes settings of a plugin: all of them, or with an error none. nil is the default.
func (l *Loader) SetSettings(name string, values map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.plugins[name]
	if p == nil {
		return fmt.Errorf("plugin %q: %w", name, ErrUnknown)
	}
	l.keep(p)
	declared := p.Manifest.Capabilities.Settings
	if p.Manifest.Surfaces != nil {
		declared = append(slices.Clone(declared), surfacesSetting(p.Manifest.Surfaces))
	}
	chosen := make(map[string]any)
	for k, v := range p.chosen {
		chosen[k] = v
	}
	for key, v := range values {
		i := slices.IndexFunc(declared, func(s Setting) bool { return s.Key == key })
		if i < 0 {
			return fmt.Errorf("plugin %q: there is no setting %.70q", name, key)
		}
		if v == nil {
			delete(chosen, key)
			continue
		}
		if err := declared[i].check(v); err != nil {
			return fmt.Errorf("plugin %q: setting %s: %w", name, key, err)
		}
		chosen[key] = v
	}
	delete(chosen, surfacesKey)
	if _, ok := values[surfacesKey]; ok && l.o.State == nil {
		return errors.New("where a plugin is shown can be changed only while the appliance runs")
	}
	text, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(l.settingsPath(name), text, 0o600); err != nil {
		return err
	}
	p.chosen = chosen
	l.applySettings(p)
	if v, ok := values[surfacesKey]; ok {
		return l.setSurfaces(p, v)
	}
	return nil
}

package plugins

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// choice is what the user enabled and disabled. Being in both counts as enabled.
type choice struct {
	Enabled  []string `json:"enabled"`
	Disabled []string `json:"disabled"`
}

// ChoiceName is the file in Options.StateDir that says what the user enabled and disabled. It is not in the store, so that
// it can be changed while the appliance doesn't run, and be part of an image.
const ChoiceName = "plugins.json"

func (l *Loader) enabled(m *Manifest) bool {
	return slices.Contains(l.choice.Enabled, m.Name) || m.DefaultEnabled && !slices.Contains(l.choice.Disabled, m.Name)
}

// readChoice reads which plugins are enabled. A file that can't be read is set aside, and all have their defaults.
func (l *Loader) readChoice() error {
	path := filepath.Join(l.o.StateDir, ChoiceName)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	var c choice
	if err := json.Unmarshal(text, &c); err != nil {
		l.o.Logger.Error("which plugins are enabled can't be read, all have their defaults", "file", path, "err", err)
		return os.Rename(path, path+".bad")
	}
	l.choice = c
	return nil
}

// with is the choice after a plugin was enabled or disabled.
func (c choice) with(name string, enabled bool) choice {
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
	}
	c = choice{without(c.Enabled), without(c.Disabled)}
	if enabled {
		c.Enabled = append(c.Enabled, name)
	} else {
		c.Disabled = append(c.Disabled, name)
	}
	return c
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
)

// The policy of plugins is in the configuration; a directory that is named on the command line is its developer's own.
func TestPluginPolicy(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	plugin := filepath.Join(dir, "p")
	if err := os.CopyFS(plugin, os.DirFS("../../plugins/examples/dice")); err != nil {
		t.Fatal(err)
	}
	load := func(text string, f flags) (Config, error) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.config, f.state = config, dir
		return f.load()
	}
	admit := func(c Config) error {
		_, err := c.Plugins.gate().Admit(plugins.Info{Dir: plugin, Band: hooks.User})
		return err
	}
	for _, test := range []struct {
		text, want string
		f          flags
	}{
		{"", "nobody signed it", flags{}},
		{"[plugins]\nallow_unsigned = true\n", "you have not agreed to what it may do", flags{}},
		{"", "", flags{plugins: dir}},
	} {
		c, err := load(test.text, test.f)
		if err != nil {
			t.Fatal(err)
		}
		err = admit(c)
		if got := err != nil; got != (test.want != "") || got && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
	if _, err := load("[plugins]\nofficial_key = \"12\"\n", flags{}); err == nil || !strings.Contains(err.Error(), `plugins.official_key: "12" is no public key`) {
		t.Error(err)
	}
}

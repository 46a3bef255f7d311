package plugins_test

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/starlark"
	"bellbird/plugins/system"
)

// Every example passes its own trials, and so does every plugin that comes with the program.
func TestExamples(t *testing.T) {
	examples, err := filepath.Glob("examples/*/plugin.json")
	if err != nil || len(examples) < 15 {
		t.Fatalf("examples: %v, %v", examples, err)
	}
	builtin, err := filepath.Glob("system/*/plugin.json")
	if err != nil || len(builtin) == 0 {
		t.Fatalf("builtin: %v, %v", builtin, err)
	}
	var dirs []string
	for _, manifest := range slices.Concat(examples, builtin) {
		dirs = append(dirs, filepath.Dir(manifest))
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := plugins.ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != filepath.Base(dir) || m.Version == "" || m.Description == "" || m.Author == "" || len(m.Unknown) > 0 {
				t.Errorf("manifest %+v", m)
			}
			verdicts, err := plugins.Try(t.Context(), dir, map[string]plugins.Runtime{".star": starlark.Runtime{}}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range verdicts {
				for _, fault := range v.Faults {
					t.Errorf("%s: %s", v.Name, fault)
				}
			}
		})
	}
}

// What is built in is all that lies there, and loads.
func TestSystemPlugins(t *testing.T) {
	dirs, err := filepath.Glob("system/*/plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	r := hooks.New(hooks.Options{})
	defer r.Close()
	l := plugins.New(plugins.Options{
		Builtin: system.Files, StateDir: t.TempDir(), Runner: r, SystemRuntimes: map[string]plugins.Runtime{".star": starlark.Runtime{}},
	})
	if err := l.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := l.List()
	if len(list) != len(dirs) {
		t.Errorf("%d plugins, and %d directories", len(list), len(dirs))
	}
	for _, i := range list {
		if !i.Loaded || len(i.Errors) > 0 || i.Band != hooks.System {
			t.Errorf("%+v", i)
		}
	}
}

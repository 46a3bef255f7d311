package plugins_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// Every example passes its own trials.
func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("examples/*")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("examples: %v, %v", dirs, err)
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

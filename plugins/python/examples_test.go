package python_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"bellbird/plugins"
	"bellbird/plugins/python"
)

// Every example passes its own trials.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	manifests, err := filepath.Glob("../examples/python/*/plugin.json")
	if err != nil || len(manifests) < 15 {
		t.Fatalf("examples: %v, %v", manifests, err)
	}
	for _, manifest := range manifests {
		dir := filepath.Dir(manifest)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			m, err := plugins.ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != filepath.Base(dir) || m.Version == "" || m.Description == "" || m.Author == "" || len(m.Unknown) > 0 {
				t.Errorf("manifest %+v", m)
			}
			r := newRuntime(t, python.Options{Network: func(*plugins.Manifest) python.Network { return python.Requests }})
			verdicts, err := plugins.Try(t.Context(), dir, map[string]plugins.Runtime{".py": r}, slog.New(slog.DiscardHandler))
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

package plugins_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/schedule"
	"bellbird/plugins/starlark"
)

// keeper is a runtime that keeps something for each owner.
type keeper struct {
	plugins.Runtime
	kept []*plugins.Owner
}

func (k *keeper) Load(ctx context.Context, owner *plugins.Owner, file string, source []byte) (plugins.Unit, error) {
	if !slices.Contains(k.kept, owner) {
		k.kept = append(k.kept, owner)
	}
	return k.Runtime.Load(ctx, owner, file, source)
}

func (k *keeper) Release(owner *plugins.Owner) {
	k.kept = slices.DeleteFunc(k.kept, func(o *plugins.Owner) bool { return o == owner })
}

// At any time there is one owner of a loaded plugin, and none of another; and its schedules go with it.
func TestReleaseAndSchedules(t *testing.T) {
	dir := t.TempDir()
	write := func(source string) {
		t.Helper()
		manifest := `{"name": "p", "default_enabled": true, "capabilities": {"hooks": {"post_stt": "p.star"},
			"schedule": [{"name": "nightly", "handler": "p.star", "time_setting": "at"}], "settings": [{"key": "at", "type": "string", "default": "3:00"}]}}`
		for file, text := range map[string]string{"plugin.json": manifest, "p.star": source} {
			if err := os.MkdirAll(filepath.Join(dir, "p"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "p", file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const good = "def post_stt(event):\n    pass\ndef run(event):\n    event.result = event.metadata['task']['name'] + str(event.metadata.get('system'))\n"
	write(good)
	k := &keeper{Runtime: starlark.Runtime{}}
	scheduled := make(map[string][]schedule.Job)
	r := hooks.New(hooks.Options{})
	t.Cleanup(r.Close)
	l := plugins.New(plugins.Options{
		UserDir: dir, StateDir: t.TempDir(), Runner: r, UserRuntimes: map[string]plugins.Runtime{".star": k, ".other": k},
		Schedules: func(plugin string, jobs []schedule.Job) { scheduled[plugin] = jobs },
	})
	if err := l.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.kept) != 1 || len(scheduled["p"]) != 1 || k.kept[0].Dir != filepath.Join(dir, "p") {
		t.Fatalf("loaded: %d owners, schedules %v", len(k.kept), scheduled)
	}
	first := k.kept[0]
	job := scheduled["p"][0]
	if got, err := job.Call(t.Context(), map[string]any{"name": "nightly"}); err != nil || got != "nightlyNone" {
		t.Errorf("its function: %q, %v", got, err)
	}
	if at := job.Settings()["at"]; at != "3:00" {
		t.Errorf("its setting is %v", at)
	}
	if err := l.Reload(t.Context(), "p"); err != nil || len(k.kept) != 1 || k.kept[0] == first {
		t.Errorf("reloaded: %v, %d owners", err, len(k.kept))
	}
	second := k.kept[0]
	write("def post_stt(event)\n")
	if err := l.Reload(t.Context(), "p"); err == nil || len(k.kept) != 1 || k.kept[0] != second || len(scheduled["p"]) != 1 {
		t.Errorf("a version with an error: %v, %d owners", err, len(k.kept))
	}
	if err := l.SetEnabled(t.Context(), "p", false); err != nil || len(k.kept) != 0 || len(scheduled["p"]) != 0 {
		t.Errorf("disabled: %v, %d owners, schedules %v", err, len(k.kept), scheduled)
	}
}

func TestScheduleManifest(t *testing.T) {
	for _, s := range []string{`{"name": "x", "handler": "../x.py"}`, `{"name": "x"}`, `{"name": "x", "handler": "x.py", "cron": "daily"}`, `{"handler": "x.py"}`} {
		if _, err := plugins.ParseManifest([]byte(`{"name": "p", "capabilities": {"schedule": [` + s + `]}}`)); err == nil {
			t.Errorf("%s: no error", s)
		}
	}
}

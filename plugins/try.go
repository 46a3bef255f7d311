package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bellbird/hooks"
)

// A Trial is a recorded event of a plugin's own tests: what its hooks are given, and what they should make of it. The
// files tests/*.json of a plugin have a list of them each.
type Trial struct {
	Name  string          `json:"name"`
	Point string          `json:"point"`
	Event json.RawMessage `json:"event"`
	// Want has the fields that should have this value afterwards, as in the contract: {"input": "…"}. Those that it
	// doesn't name may have any.
	Want map[string]any `json:"want"`
}

// A Verdict is what came of a trial: no faults is good.
type Verdict struct {
	Trial
	File   string
	Faults []string
	Trace  hooks.Trace
}

// Try runs the plugin in dir on its own trials, in a runner and with a state of its own.
func Try(ctx context.Context, dir string, runtimes map[string]Runtime, log *slog.Logger) ([]Verdict, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "tests", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("plugin %q: there is no %s", m.Name, filepath.Join(dir, "tests", "*.json"))
	}
	var verdicts []Verdict
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var trials []Trial
		if err := json.Unmarshal(text, &trials); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, trial := range trials {
			v, err := try(ctx, dir, m, trial, runtimes, log)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, trial.Name, err)
			}
			v.File = file
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

func try(ctx context.Context, dir string, m *Manifest, trial Trial, runtimes map[string]Runtime, log *slog.Logger) (Verdict, error) {
	v := Verdict{Trial: trial}
	state, err := os.MkdirTemp("", "bellbird-plugin-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(state)
	runner := hooks.New(hooks.Options{Logger: log})
	defer runner.Close()
	l := New(Options{StateDir: state, UserRuntimes: runtimes, Runner: runner, Logger: log})
	p := &plugin{Info: Info{Manifest: *m, Dir: dir, Band: hooks.User, Enabled: true}}
	if err := l.load(ctx, p); err != nil {
		return v, err
	}
	e := new(hooks.Event)
	d := json.NewDecoder(strings.NewReader(string(trial.Event)))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return v, fmt.Errorf("event: %w", err)
	}
	if !runner.Has(trial.Point) {
		return v, fmt.Errorf("the plugin has no hook at %q", trial.Point)
	}
	v.Trace = runner.Fire(ctx, trial.Point, e)
	for _, c := range v.Trace {
		if c.Err != nil {
			v.Faults = append(v.Faults, c.Err.Error())
		} else if c.Outcome == hooks.Missed {
			v.Faults = append(v.Faults, "missed its deadline")
		}
	}
	got, err := fields(e)
	if err != nil {
		return v, err
	}
	for _, name := range slices.Sorted(maps.Keys(trial.Want)) {
		want, is := text(trial.Want[name]), text(got[name])
		if want != is {
			v.Faults = append(v.Faults, fmt.Sprintf("%s is %s, not %s", name, is, want))
		}
	}
	return v, nil
}

// fields is an event as JSON has it.
func fields(e *hooks.Event) (map[string]any, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	return m, json.Unmarshal(text, &m)
}

func text(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(t)
}

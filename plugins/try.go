package plugins

import (
	"context"
	"encoding/json"
	"errors"
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

	// State is what the plugin kept before.
	State map[string]any `json:"state"`

	// System are the powers that it should use, in this order, and what they return. Without the field it has none; with
	// it, though it may be empty, it has all, but using another is a fault.
	System []Use `json:"system"`

	// HTTP are the requests that it should make, in any order and each as often as it likes, and what they are answered.
	HTTP []Exchange `json:"http"`

	// Want has the fields that should have this value afterwards, as in the contract: {"input": "…"}. Those that it
	// doesn't name may have any. WantState is the same for what the plugin keeps.
	Want      map[string]any `json:"want"`
	WantState map[string]any `json:"want_state"`
}

// A Verdict is what came of a trial: no faults is good.
type Verdict struct {
	Trial
	File   string
	Faults []string
	Trace  hooks.Trace // of a point that is waited for
}

// Try runs the plugin in dir on its own trials, in a runner and with a state of its own. It has no other network and no
// other powers than those that its trials describe.
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
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&trials); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, trial := range trials {
			var v Verdict
			for i := range attempts {
				var err error
				if v, err = try(ctx, dir, m, trial, runtimes, log); err != nil {
					return nil, fmt.Errorf("%s: %q: %w", file, trial.Name, err)
				}
				if i == attempts-1 || !v.missed() {
					break
				}
			}
			v.File = file
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

// attempts is how often a trial may miss its deadline, which on a busy machine needn't be the plugin's fault.
const attempts = 3

func (v Verdict) missed() bool {
	return slices.ContainsFunc(v.Trace, func(c hooks.Call) bool { return c.Outcome == hooks.Missed })
}

func try(ctx context.Context, dir string, m *Manifest, trial Trial, runtimes map[string]Runtime, log *slog.Logger) (Verdict, error) {
	v := Verdict{Trial: trial}
	stateDir, err := os.MkdirTemp("", "bellbird-plugin-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(stateDir)
	state, err := OpenState(filepath.Join(stateDir, "state.json"))
	if err != nil {
		return v, err
	}
	for key, value := range trial.State {
		if err := state.Save(key, value); err != nil {
			return v, err
		}
	}
	stage := &stage{trial: trial}
	o := hooks.Options{Logger: log}
	if trial.System != nil {
		if o.System, err = stage.system(); err != nil {
			return v, err
		}
	}
	runner := hooks.New(o)
	defer runner.Close()
	l := New(Options{StateDir: stateDir, UserRuntimes: runtimes, Runner: runner, Logger: log, Web: stage})
	p := &plugin{Info: Info{Manifest: *m, Dir: dir, Band: hooks.User, Enabled: true}, state: state}
	handlers, err := l.handlers(ctx, p)
	if err != nil {
		return v, err
	}
	if len(p.Errors) > 0 {
		return v, errors.New(p.Errors[0])
	}
	runner.SetAware(m.Name, m.PrivacyAware)
	runner.SetSurfaces(m.Name, m.Surfaces)
	for _, h := range handlers {
		h.Func = stage.watch(h.Func)
		if err := runner.Register(h); err != nil {
			return v, err
		}
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
	runner.Close() // waits for a point that is not waited for
	if v.missed() {
		v.Faults = append(v.Faults, "missed its deadline")
	}
	v.Faults = append(v.Faults, stage.end()...)
	got, err := fields(e)
	if err != nil {
		return v, err
	}
	v.Faults = append(v.Faults, differences("", trial.Want, got)...)
	v.Faults = append(v.Faults, differences("state: ", trial.WantState, state.All())...)
	return v, nil
}

// differences are those of the wanted values that are not there.
func differences(what string, want, got map[string]any) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want, is := asJSON(want[name]), asJSON(got[name]); want != is {
			faults = append(faults, fmt.Sprintf("%s%s is %s, not %s", what, name, is, want))
		}
	}
	return faults
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

func asJSON(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(t)
}

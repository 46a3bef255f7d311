package plugins

import (
	"bytes"
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
	"time"

	"bellbird/dialog"
	"bellbird/hooks"
	"bellbird/tools"
)

// A Trial is a recorded event of a plugin's own tests: what its hooks are given, and what they should make of it. The
// files tests/*.json of a plugin have a list of them each.
type Trial struct {
	Name  string          `json:"name"`
	Point string          `json:"point"`
	Event json.RawMessage `json:"event"`

	// Tool, in place of a point, is a tool of the plugin's that is called with Arguments.
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`

	// Settings are those that the user chose.
	Settings map[string]any `json:"settings"`

	// State is what the plugin kept before, and Rows what it kept in chats, by chat and key. The chats that it names are
	// there, as is that of the event; of these those in Private, and that of an event which says so, are private.
	State   map[string]any                   `json:"state"`
	Rows    map[string]map[string]TrialValue `json:"rows"`
	Private []string                         `json:"private"`

	// System are the powers that it should use, in this order, and what they return. Without the field it has none; with
	// it, though it may be empty, it has all, but using another is a fault.
	System []Use `json:"system"`

	// HTTP are the requests that it should make, in any order and each as often as it likes, and what they are answered.
	HTTP []Exchange `json:"http"`

	// Want has the fields that should have this value afterwards, as in the contract: {"input": "…"}. Those that it
	// doesn't name may have any. WantState and WantRows are the same for what the plugin keeps, and WantResult is what the
	// tool should return.
	Want       map[string]any                   `json:"want"`
	WantState  map[string]any                   `json:"want_state"`
	WantRows   map[string]map[string]TrialValue `json:"want_rows"`
	WantResult *string                          `json:"want_result"`
}

// A TrialValue is what a plugin keeps under a key of a chat: the value in slot 0, and the rows from number 1 on.
type TrialValue struct {
	Value any   `json:"value,omitempty"`
	Rows  []any `json:"rows,omitempty"`
}

// A Verdict is what came of a trial: no faults is good. Of a trial of a tool the point is "tool" and its name.
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
	stage := &stage{trial: trial}
	e := new(hooks.Event)
	if err := decodeStrictly(trial.Event, e); err != nil {
		return v, fmt.Errorf("event: %w", err)
	}
	kept, err := stage.kept(e)
	if err != nil {
		return v, err
	}
	o := hooks.Options{Logger: log}
	if trial.System != nil {
		if o.System, err = stage.system(); err != nil {
			return v, err
		}
	}
	runner := hooks.New(o)
	defer runner.Close()
	set, err := tools.NewSet(log)
	if err != nil {
		return v, err
	}
	l := New(Options{
		UserRuntimes: runtimes, Runner: runner, Logger: log, Web: stage, Private: kept.private,
		State: func(string) State { return kept.state }, Rows: func(string) Rows { return kept.rows },
	})
	p := &plugin{Info: Info{Manifest: *m, Dir: dir, Band: hooks.User, Enabled: true}, state: kept.state, settings: new(Settings), chosen: trial.Settings}
	if err := checkChosen(m, trial.Settings); err != nil {
		return v, err
	}
	l.keep(p)
	all, err := l.make(ctx, p)
	defer func() { l.release(all.owner) }()
	if err != nil {
		return v, err
	}
	if len(p.Errors) > 0 {
		return v, errors.New(p.Errors[0])
	}
	runner.SetAware(m.Name, m.PrivacyAware)
	runner.SetSurfaces(m.Name, effectiveSurfaces(m.Surfaces, kept.state))
	for _, h := range all.handlers {
		h.Func = stage.watch(h.Func)
		if err := runner.Register(h); err != nil {
			return v, err
		}
	}
	for i := range all.tools {
		all.tools[i].Run = stage.watchTool(all.tools[i].Run)
	}
	if err := set.Put(toolOwner(m.Name), all.tools...); err != nil {
		return v, err
	}
	if trial.Tool != "" {
		err = v.useTool(ctx, set)
	} else {
		err = v.fire(ctx, runner, e)
	}
	if err != nil {
		return v, err
	}
	v.Faults = append(v.Faults, stage.end()...)
	got, err := fields(e)
	if err != nil {
		return v, err
	}
	v.Faults = append(v.Faults, differences("", trial.Want, got)...)
	v.Faults = append(v.Faults, differences("state: ", trial.WantState, kept.state.All())...)
	for _, chat := range slices.Sorted(maps.Keys(trial.WantRows)) {
		want, got := make(map[string]any), kept.in(chat)
		for key, x := range trial.WantRows[chat] {
			want[key] = x
			if got[key] == nil {
				got[key] = TrialValue{}
			}
		}
		v.Faults = append(v.Faults, differences("rows of "+chat+": ", want, got)...)
	}
	return v, nil
}

// fire has the plugin's hooks called.
func (v *Verdict) fire(ctx context.Context, runner *hooks.Runner, e *hooks.Event) error {
	if v.WantResult != nil {
		return errors.New("want_result is for a tool")
	}
	if !runner.Has(v.Point) {
		return fmt.Errorf("the plugin has no hook at %q", v.Point)
	}
	v.Trace = runner.Fire(ctx, v.Point, e)
	runner.Close() // waits for a point that is not waited for
	if v.missed() {
		v.Faults = append(v.Faults, "missed its deadline")
	}
	return nil
}

// useTool has the tool called, as for a model.
func (v *Verdict) useTool(ctx context.Context, set *tools.Set) error {
	if v.Point != "" {
		return errors.New("there is a point, and a tool: a trial is of one of them")
	}
	if set.Owner(v.Tool) == "" {
		return fmt.Errorf("the plugin has no tool %q", v.Tool)
	}
	v.Point = "tool " + v.Tool // where a list of verdicts has the point
	arguments, err := json.Marshal(v.Arguments)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	got := set.Call(ctx, dialog.ToolCall{ID: "1", Name: v.Tool, Arguments: arguments}).Content
	if v.WantResult != nil && got != *v.WantResult {
		v.Faults = append(v.Faults, fmt.Sprintf("the result is %q, not %q", got, *v.WantResult))
	}
	return nil
}

// toolTime is what a tool has in a trial.
const toolTime = 30 * time.Second

// decodeStrictly decodes JSON without fields that are not known. Nothing is as good as an empty object.
func decodeStrictly(text json.RawMessage, to any) error {
	if len(text) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
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

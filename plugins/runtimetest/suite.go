// Package runtimetest holds what every runtime of plugins must do alike, as cases that are run against each of them: what
// a handler sees of an event, which of its changes count, and what happens when it fails or comes too late. It is for tests
// only, and tests nothing that is the business of one runtime alone.
package runtimetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// A Language is a runtime to be held against the cases.
type Language struct {
	Name    string
	Ext     string // of its files: that of the sources in the cases which it is given
	Runtime plugins.Runtime
}

// A testCase is a plugin in several languages, and what should come of it.
type testCase struct {
	name    string
	sources map[string]string // by extension; one that is missing leaves the language out
	golang  functions
	owner   func(o *plugins.Owner) // sets what the plugin has, besides state and rows
	check   func(t *testing.T, p *plugin)
}

// Run runs all cases. The runtime is left as it was, but for what it keeps of plugins that were loaded.
func Run(t *testing.T, l Language) {
	for _, c := range slices.Concat(eventCases, failureCases, givenCases, toolCases) {
		t.Run(c.name, func(t *testing.T) {
			source, ok := c.sources[l.Ext]
			if l.Ext == GoExt {
				source, ok = c.name, c.golang != nil
			}
			if !ok {
				t.Skip("there is no such thing in this language")
			}
			p := &plugin{language: l, source: source, owner: &plugins.Owner{
				Manifest: &plugins.Manifest{Name: "p"}, State: new(plugins.MemoryState), Rows: new(plugins.MemoryRows),
				Settings: new(plugins.Settings),
			}}
			if c.owner != nil {
				c.owner(p.owner)
			}
			if r, ok := l.Runtime.(interface{ Release(*plugins.Owner) }); ok {
				t.Cleanup(func() { r.Release(p.owner) })
			}
			c.check(t, p)
		})
	}
}

// A plugin is that of a case, in the language under test.
type plugin struct {
	language Language
	source   string
	owner    *plugins.Owner
	loaded   plugins.Unit
}

// patience is what a call has that should not end for lack of time.
const patience = 20 * time.Second

func (p *plugin) load(t *testing.T) (plugins.Unit, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return p.language.Runtime.Load(ctx, p.owner, "hooks"+p.language.Ext, []byte(p.source))
}

func (p *plugin) unit(t *testing.T) plugins.Unit {
	t.Helper()
	if p.loaded == nil {
		u, err := p.load(t)
		if err != nil {
			t.Fatal(err)
		}
		p.loaded = u
	}
	return p.loaded
}

func (p *plugin) function(t *testing.T, point string) hooks.Func {
	t.Helper()
	f, err := p.unit(t).Func(point)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// call calls the function for a point, outside of a runner.
func (p *plugin) call(t *testing.T, point string, e *hooks.Event) error {
	t.Helper()
	f := p.function(t, point)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return f(ctx, e)
}

// must is call, which should not fail.
func (p *plugin) must(t *testing.T, point string, e *hooks.Event) {
	t.Helper()
	if err := p.call(t, point, e); err != nil {
		t.Fatal(err)
	}
}

// A firing is a fire of a plugin's function, and after it of one of another plugin that takes note of what it sees.
type firing struct {
	point   string
	f       hooks.Func
	match   *hooks.Match
	aware   bool
	perhaps bool // it may be late
}

// fired is what came of it.
type fired struct {
	event hooks.Event
	trace hooks.Trace
	after []hooks.Event // as the other one saw them
}

// fire fires the event. On a machine that has other things to do a handler may miss its deadline without a fault: then it
// is fired again, with a runner that knows nothing of that.
func (f firing) fire(t *testing.T, e hooks.Event) (got fired) {
	t.Helper()
	const attempts = 20
	for range attempts {
		got = fired{event: e}
		if f.once(t, &got); f.perhaps || !slices.ContainsFunc(got.trace, late) {
			return got
		}
		time.Sleep(50 * time.Millisecond) // a worker that was killed comes back
	}
	t.Skip("the machine is too busy")
	return got
}

func late(c hooks.Call) bool {
	return c.Outcome == hooks.Missed || errors.Is(c.Err, hooks.ErrKilled) || c.Err != nil && strings.Contains(c.Err.Error(), "is being started")
}

func (f firing) once(t *testing.T, got *fired) {
	t.Helper()
	r := hooks.New(hooks.Options{})
	defer r.Close()
	var mu sync.Mutex // who is late may still be at it
	var seen []hooks.Event
	note := func(_ context.Context, e *hooks.Event) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, *e)
		return nil
	}
	for i, do := range []hooks.Func{f.f, note} {
		h := hooks.Handler{Plugin: []string{"p", "after"}[i], Point: f.point, Priority: i, Func: do}
		if i == 0 {
			h.Match = f.match
		}
		if err := r.Register(h); err != nil {
			t.Fatal(err)
		}
		r.SetAware(h.Plugin, f.aware)
	}
	got.trace = r.Fire(t.Context(), f.point, &got.event)
	mu.Lock()
	defer mu.Unlock()
	got.after = slices.Clone(seen)
}

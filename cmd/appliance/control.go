package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bellbird/api"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/internal/run"
	"bellbird/pipeline"
	"bellbird/plugins"
)

// What of the running appliance can be reached: by the command line over its local socket, by others over TCP.

// API is where the appliance can be reached.
type API struct {
	// Socket is a path; default /run/bellbird/bellbird.sock, or in a user's session bellbird.sock in its run-time directory.
	Socket string `toml:"socket"`

	api.HTTP // for everybody else
}

const systemSocket = "/run/bellbird/bellbird.sock"

// sessionSocket is where an appliance that a user began by hand has its socket; "" outside of a session.
func sessionSocket() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "bellbird.sock")
	}
	return ""
}

// listen is the socket of an appliance that begins.
func (c API) listen() string {
	switch session := sessionSocket(); {
	case c.Socket != "":
		return c.Socket
	case session != "":
		return session
	}
	return systemSocket
}

// dial is a client of the appliance that runs. The one of the user's session comes first.
func (c API) dial() *api.Client {
	path := c.listen()
	if _, err := os.Stat(path); c.Socket == "" && errors.Is(err, fs.ErrNotExist) {
		path = systemSocket
	}
	return api.Dial(path)
}

// client is a client of the running appliance, if there is one.
func (f *flags) client() (*api.Client, error) {
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	return c.API.dial(), nil
}

// control is the part that serves the socket.
func (a *appliance) control(c API, o api.Options) (run.Part, error) {
	o.Plugins, o.Bus = &pluginControl{a.loader, a.tally}, a.bus
	s, err := api.Listen(c.listen(), o)
	if err != nil {
		return run.Part{}, err
	}
	return run.Part{Name: "local socket", Run: s.Run}, nil
}

// web is the part that serves the same over TCP; none if it is off.
func (a *appliance) web(c API, o api.Options) ([]run.Part, *api.Server, error) {
	if c.Off() {
		return nil, nil, nil
	}
	o.Plugins, o.Bus = &pluginControl{a.loader, a.tally}, a.bus
	s, err := api.ListenHTTP(c.HTTP, o)
	if err != nil {
		return nil, nil, err
	}
	return []run.Part{{Name: "api", Run: s.Run}}, s, nil
}

// pluginControl shows a plugins.Loader to the socket.
type pluginControl struct {
	*plugins.Loader
	tally *tally
}

func (p *pluginControl) List() []api.Plugin {
	list := []api.Plugin{}
	for _, i := range p.Loader.List() {
		list = append(list, showPlugin(i, p.tally))
	}
	return list
}

// showPlugin says what there is to know of a plugin. t may be nil.
func showPlugin(i plugins.Info, t *tally) api.Plugin {
	m := &i.Manifest
	p := api.Plugin{
		Name: m.Name, Version: m.Version, Description: m.Description, System: i.Band == hooks.System, Enabled: i.Enabled, Loaded: i.Loaded,
		Commands: len(m.Capabilities.VoiceCommands), Network: m.Network, Origin: i.Origin, Tools: i.Tools, Errors: i.Errors,
	}
	for point := range m.Capabilities.Hooks {
		p.Hooks = append(p.Hooks, api.Hook{Point: point})
	}
	if len(m.Capabilities.VoiceCommands) > 0 && m.Capabilities.Hooks["pre_chat"] == "" {
		p.Hooks = append(p.Hooks, api.Hook{Point: "pre_chat"})
	}
	slices.SortFunc(p.Hooks, func(a, b api.Hook) int { return pointIndex(a.Point) - pointIndex(b.Point) })
	for j := range p.Hooks {
		if t != nil {
			p.Hooks[j] = t.hook(m.Name, p.Hooks[j].Point)
		}
	}
	return p
}

// pointIndex is where a point comes in a turn.
func pointIndex(name string) int {
	all := hooks.Points()
	if i := slices.IndexFunc(all, func(p hooks.Point) bool { return p.Name == name }); i >= 0 {
		return i
	}
	return len(all)
}

func (p *pluginControl) SetEnabled(ctx context.Context, name string, enabled bool) error {
	return refusal(p.Loader.SetEnabled(context.WithoutCancel(ctx), name, enabled))
}

func (p *pluginControl) Reload(ctx context.Context, name string) error {
	return refusal(p.Loader.Reload(context.WithoutCancel(ctx), name))
}

func (p *pluginControl) Rescan(ctx context.Context) error {
	return refusal(p.Scan(context.WithoutCancel(ctx)))
}

// refusal gives a loader's error the status that belongs to it. What else it says is about the plugin's files, so it
// is for the one who asked.
func refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plugins.ErrUnknown):
		return api.Errorf(http.StatusNotFound, "%v", err)
	}
	return api.Errorf(http.StatusConflict, "%v", err)
}

// A tally counts what the plugins' hooks did.
type tally struct {
	mu    sync.Mutex
	hooks map[[2]string]*counts // by plugin and point
}

type counts struct {
	calls, misses, failures uint64
	total, worst            time.Duration
	last                    error
}

// maxTally bounds the tally, since plugins may fire points of their own.
const maxTally = 4096

// count adds a trace.
func (t *tally) count(trace hooks.Trace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range trace {
		key := [2]string{c.Plugin, c.Point}
		n := t.hooks[key]
		if n == nil {
			if t.hooks == nil {
				t.hooks = make(map[[2]string]*counts)
			}
			if len(t.hooks) == maxTally {
				continue
			}
			n = new(counts)
			t.hooks[key] = n
		}
		switch c.Outcome {
		case hooks.Committed:
		case hooks.Failed:
			n.failures++
			if !c.Private {
				n.last = c.Err
			}
		case hooks.Missed:
			n.misses++
		default:
			continue
		}
		n.calls++
		n.total += c.Took
		n.worst = max(n.worst, c.Took)
	}
}

func (t *tally) hook(plugin, point string) api.Hook {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := api.Hook{Point: point}
	n := t.hooks[[2]string{plugin, point}]
	if n == nil || n.calls == 0 {
		return h
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	h.Calls, h.Misses, h.Failures = n.calls, n.misses, n.failures
	h.Mean, h.Worst = ms(n.total/time.Duration(n.calls)), ms(n.worst)
	if n.last != nil {
		h.Error = n.last.Error()
	}
	return h
}

// watchHooks has the tally and the bus told of each fire.
func (a *appliance) watchHooks() func(hooks.Trace) {
	a.tally = new(tally)
	return func(trace hooks.Trace) {
		a.tally.count(trace)
		fired := event.HookFired{At: a.clock.Now(), Calls: make([]event.HookCall, len(trace))}
		for i, c := range trace {
			fired.Calls[i] = pipeline.HookCall(c)
		}
		a.bus.Publish(fired)
	}
}

// pathf is a path of the API, with names of any characters in it.
func pathf(format string, names ...any) string {
	for i := range names {
		names[i] = url.PathEscape(fmt.Sprint(names[i]))
	}
	return fmt.Sprintf(format, names...)
}

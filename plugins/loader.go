// Package plugins finds plugins in their directories, reads their manifests, and brings their handlers into a hook
// runner. How a handler is run is the business of a runtime (plugins/starlark and others), when and for how long that
// of package hooks.
package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"bellbird/hooks"
	"bellbird/internal/atomicfile"
	"bellbird/plugins/schedule"
	"bellbird/tools"
)

// A Runtime makes functions of a handler file.
type Runtime interface {
	// Load runs the source of a file of a plugin.
	Load(ctx context.Context, owner *Owner, file string, source []byte) (Unit, error)
}

// An Owner is a plugin as its files have it.
type Owner struct {
	Manifest *Manifest
	State    State     // nil: it can't keep anything
	Rows     Rows      // nil: nor in chats
	Settings *Settings // nil: there are none
	Web      Web       // nil: it has no network
	Dir      string    // where its files are; "": it is built in
}

// A Unit is a loaded file. All its functions share one set of globals.
type Unit interface {
	// Func returns the function for a point, or an error that says what is missing in the file.
	Func(point string) (hooks.Func, error)
}

// Options say where plugins are. Directories that are not there have none.
type Options struct {
	Builtin   fs.FS  // has plugins that come with the program itself, each in a directory; nil: none does
	SystemDir string // of plugins that come with the appliance, and take the place of builtin ones
	UserDir   string // of those that its user put there
	StateDir  string // where it is kept which are enabled, and how they are set

	// State and Rows are what each plugin keeps; nil: it is forgotten, and there are no chats.
	State func(plugin string) State
	Rows  func(plugin string) Rows
	// Private resolves the privacy of a chat, as that of hooks.Options does. An error means private; nil, that none is.
	Private func(ctx context.Context, chat *string) (name string, private bool, err error)

	// Tools replaces all the tools that an owner offers, or refuses some and says why, as tools.Set.Put does. Nil: tools of
	// plugins are left out of account.
	Tools func(owner string, all ...tools.Tool) error

	// Schedules replaces all that is called of a plugin at certain times. Nil: nothing is. System is what it is given then, as
	// by hooks.Options.
	Schedules func(plugin string, jobs []schedule.Job)
	System    any

	// The runtimes of the files of either band, by extension, such as ".star".
	SystemRuntimes, UserRuntimes map[string]Runtime

	// Admit says whose a plugin is, for Info.Origin, before any code of it is run. An error is why it must not be loaded,
	// and what helps. It is asked each time that a plugin is found or loaded. Nil: all are loaded.
	Admit func(Info) (origin string, err error)

	Web    Web // nil: plugins have no network
	Runner *hooks.Runner
	Logger *slog.Logger // nil: none
}

// A Loader loads, reloads and unloads plugins. It may be used by several goroutines.
type Loader struct {
	o Options

	mu      sync.Mutex
	plugins map[string]*plugin
	choice  choice

	withheld atomic.Pointer[map[string]bool] // in private chats, by the names of tools; replaced, not changed
}

// An Info is what there is to know of a plugin.
type Info struct {
	Manifest Manifest
	Dir      string // "": it is built in
	Band     hooks.Band
	Enabled  bool
	Loaded   bool
	Origin   string   // whose it is, as Options.Admit says; "": nobody asked
	Tools    []string // that it offers, by their names
	Errors   []string // of the last attempt to load it

	builtin fs.FS // its files, if it is built in
}

type plugin struct {
	Info
	state    State // nil: keep was not called yet
	rows     Rows
	chosen   map[string]any // by the user, of its settings
	settings *Settings
	tools    []tools.Tool // that it offers
	owner    *Owner       // of the units that are called; nil: it is not loaded
}

const maxHandler = 1 << 20 // bytes of a file

// New returns a loader without plugins. Scan brings them.
func New(o Options) *Loader {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Loader{o: o, plugins: make(map[string]*plugin)}
}

// ErrUnknown is returned for the name of a plugin that isn't there.
var ErrUnknown = errors.New("there is no such plugin")

// Scan finds the plugins in both directories, in alphabetical order, and loads those that are enabled; those that are not
// there any more it unloads. What is wrong with one is in its Info, and stops no other.
func (l *Loader) Scan(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readChoice(); err != nil {
		return err
	}
	for name := range l.plugins {
		l.dropIfGone(name)
	}
	loaded := l.takeBuiltin(ctx)
	for _, band := range []hooks.Band{hooks.System, hooks.User} {
		dir := l.o.SystemDir
		if band == hooks.User {
			dir = l.o.UserDir
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && dir != "" {
			return err
		}
		for _, e := range entries {
			if l.take(ctx, filepath.Join(dir, e.Name()), band) {
				loaded++
			}
		}
	}
	l.ready(ctx, loaded, "scan")
	return nil
}

// dropIfGone unloads a plugin whose directory is not there any more, and reports whether it did.
func (l *Loader) dropIfGone(name string) bool {
	p := l.plugins[name]
	if p.Dir == "" {
		return false // it is built in
	}
	if _, err := os.Stat(filepath.Join(p.Dir, manifestName)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	l.o.Logger.Info("plugin is gone", "plugin", name)
	l.unload(p)
	delete(l.plugins, name)
	return true
}

// takeBuiltin takes in what comes with the program, and returns how many of them were loaded.
func (l *Loader) takeBuiltin(ctx context.Context) (loaded int) {
	if l.o.Builtin == nil {
		return 0
	}
	entries, err := fs.ReadDir(l.o.Builtin, ".")
	if err != nil {
		l.o.Logger.Error("the program's own plugins can't be read", "err", err)
	}
	for _, e := range entries {
		files, err := fs.Sub(l.o.Builtin, e.Name())
		if err == nil && l.takeIn(ctx, Info{builtin: files, Band: hooks.System}) {
			loaded++
		}
	}
	return loaded
}

// files are those of a plugin. What a link leads to must lie within its directory.
func (l *Loader) files(i *Info) (files fs.FS, end func(), err error) {
	if i.builtin != nil {
		return i.builtin, func() {}, nil
	}
	root, err := os.OpenRoot(i.Dir)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), func() { root.Close() }, nil
}

// manifest reads the manifest of a plugin.
func (l *Loader) manifest(i *Info) (*Manifest, error) {
	files, end, err := l.files(i)
	if err != nil {
		return nil, err
	}
	defer end()
	m, err := readManifest(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(i.Dir, manifestName), err)
	}
	return m, nil
}

// take takes in the plugin in a directory, if there is one, and reports whether it was loaded.
func (l *Loader) take(ctx context.Context, dir string, band hooks.Band) (loaded bool) {
	return l.takeIn(ctx, Info{Dir: dir, Band: band})
}

func (l *Loader) takeIn(ctx context.Context, i Info) (loaded bool) {
	m, err := l.manifest(&i)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // then there is no plugin
			l.o.Logger.Error("plugin", "err", err)
		}
		return false
	}
	if old := l.plugins[m.Name]; old != nil {
		if old.Dir == i.Dir || old.Band > i.Band || i.builtin != nil {
			return false // there already, or from a place that comes first
		}
		l.o.Logger.Warn("a plugin takes the place of another of its name", "plugin", m.Name, "dir", i.Dir, "instead of", old.Dir)
		l.unload(old)
	}
	i.Manifest, i.Enabled = *m, l.enabled(m)
	p := &plugin{Info: i}
	l.plugins[m.Name] = p
	if !p.Enabled {
		_ = l.admit(p) // only whose it is
		return false
	}
	return l.load(ctx, p) == nil
}

// List returns the plugins by name.
func (l *Loader) List() []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Info
	for _, name := range slices.Sorted(maps.Keys(l.plugins)) {
		list = append(list, l.plugins[name].Info)
	}
	return list
}

// SetEnabled enables a plugin and loads it, or disables and unloads it. The choice lasts.
func (l *Loader) SetEnabled(ctx context.Context, name string, enabled bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.plugins[name]
	if p == nil {
		return fmt.Errorf("plugin %q: %w", name, ErrUnknown)
	}
	c := l.choice.with(name, enabled)
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(l.o.StateDir, ChoiceName), text, 0o600); err != nil {
		return err
	}
	l.choice, p.Enabled = c, enabled
	if !enabled {
		l.unload(p)
		return nil
	}
	if err := l.load(ctx, p); err != nil {
		return err
	}
	l.ready(ctx, 1, "toggle")
	return nil
}

// Reload reads a plugin anew. If that fails, the version that was running goes on, but for one that is not admitted.
func (l *Loader) Reload(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.plugins[name]
	if p == nil {
		return fmt.Errorf("plugin %q: %w", name, ErrUnknown)
	}
	m, err := l.manifest(&p.Info)
	if err == nil && m.Name != name {
		err = fmt.Errorf("%s: its name is %q now", p.Dir, m.Name)
	}
	if err != nil {
		p.Errors = []string{err.Error()}
		l.o.Logger.Error("plugin", "plugin", name, "err", err)
		return err
	}
	old := p.Manifest
	p.Manifest = *m
	if p.Enabled {
		if err := l.load(ctx, p); err != nil {
			p.Manifest = old
			if p.settings != nil { // nil: it was not admitted so far
				l.applySettings(p)
			}
			return err
		}
		l.ready(ctx, 1, "reload")
	}
	return nil
}

// load makes the handlers of a plugin, and only then, if there are no errors in its files, puts them in the place of
// those that it had. A handler that is only missing is a warning.
func (l *Loader) load(ctx context.Context, p *plugin) error {
	p.Errors = nil
	fail := func(err error) error {
		p.Errors = append(p.Errors, err.Error())
		l.o.Logger.Error("plugin", "plugin", p.Manifest.Name, "err", err)
		return fmt.Errorf("plugin %q: %w", p.Manifest.Name, err)
	}
	if err := l.admit(p); err != nil {
		l.unload(p) // what it is now must not run, nor may what it was: its files are read again when a worker begins anew
		return fail(err)
	}
	l.keep(p)
	parts, err := l.make(ctx, p)
	if err == nil {
		err = l.offer(p, parts.tools, parts.local)
	}
	if err != nil {
		l.release(parts.owner)
		return fail(err)
	}
	m := &p.Manifest
	l.o.Runner.Unregister(m.Name)
	l.o.Runner.SetAware(m.Name, m.PrivacyAware)
	l.o.Runner.SetSurfaces(m.Name, effectiveSurfaces(m.Surfaces, p.state))
	for _, h := range parts.handlers {
		if err := l.o.Runner.Register(h); err != nil {
			l.unload(p)
			l.release(parts.owner)
			return fail(err)
		}
	}
	l.scheduled(m.Name, parts.jobs)
	old := p.owner
	p.Loaded, p.owner = true, parts.owner
	l.release(old)
	return nil
}

// keep gives a plugin what it kept, and the settings as it declares them now.
func (l *Loader) keep(p *plugin) {
	m := &p.Manifest
	if p.state == nil {
		p.state, p.chosen, p.settings = l.o.state(m.Name), l.readSettings(m.Name), new(Settings)
	}
	p.rows = l.o.rows(m)
	l.applySettings(p)
}

func (l *Loader) unload(p *plugin) {
	l.o.Runner.Unregister(p.Manifest.Name)
	if err := l.offer(p, nil, nil); err != nil { // there is nothing in it that could be refused
		l.o.Logger.Error("plugin", "plugin", p.Manifest.Name, "err", err)
	}
	l.scheduled(p.Manifest.Name, nil)
	l.release(p.owner)
	p.Loaded, p.owner = false, nil
}

// parts are what was made of a plugin's files.
type parts struct {
	handlers []hooks.Handler
	tools    []tools.Tool
	local    map[string]bool // of the tools, see Loader.tools
	jobs     []schedule.Job
	owner    *Owner // also after an error, if there is anything to release
}

// make makes what the plugin's manifest declares: hooks in the order of their names, then voice commands in theirs, and
// tools.
func (l *Loader) make(ctx context.Context, p *plugin) (all parts, err error) {
	files, end, err := l.files(&p.Info)
	if err != nil {
		return all, err
	}
	defer end()
	m := p.Manifest // as it is now: units keep it
	owner := &Owner{Manifest: &m, State: ownState{p.state}, Rows: p.rows, Settings: p.settings, Web: l.o.Web, Dir: p.Dir}
	all.owner = owner
	priority := hooks.DefaultPriority
	if m.Priority != nil {
		priority = *m.Priority
	}
	units := make(map[string]Unit)
	load := func(file string) (Unit, error) {
		if units[file] != nil {
			return units[file], nil
		}
		unit, err := l.unit(ctx, files, p.Band, owner, file)
		if err == nil {
			units[file] = unit
		} else if errors.Is(err, fs.ErrNotExist) {
			p.Errors = append(p.Errors, err.Error())
			l.o.Logger.Warn("plugin", "plugin", m.Name, "err", err)
		}
		return unit, err
	}
	add := func(point, file string, match *hooks.Match, priority int) error {
		unit, err := load(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		f, err := unit.Func(point)
		if err != nil {
			return err
		}
		all.handlers = append(all.handlers, hooks.Handler{
			Plugin: m.Name, Point: point, Band: p.Band, Priority: priority, Func: f, Match: match,
			FailClosed: slices.Contains(m.FailClosed, point),
		})
		return nil
	}
	for _, point := range slices.Sorted(maps.Keys(m.Capabilities.Hooks)) {
		if err := add(point, m.Capabilities.Hooks[point], nil, priority); err != nil {
			return all, err
		}
	}
	for _, c := range m.Capabilities.VoiceCommands {
		match, err := hooks.NewMatch(c.Match, c.Triggers)
		if err != nil {
			return all, err
		}
		at := priority
		if c.BypassLLM {
			at = min(at, firstPriority)
		}
		if err := add("pre_chat", c.Handler, match, at); err != nil {
			return all, err
		}
	}
	if all.tools, all.local, err = l.tools(ctx, p, load); err != nil {
		return all, err
	}
	all.jobs, err = l.jobs(p, load)
	return all, err
}

// firstPriority is the last one of those that come before everything that may change the input.
const firstPriority = 19

func (l *Loader) unit(ctx context.Context, files fs.FS, band hooks.Band, owner *Owner, file string) (Unit, error) {
	runtimes := l.o.SystemRuntimes
	if band == hooks.User {
		runtimes = l.o.UserRuntimes
	}
	runtime := runtimes[filepath.Ext(file)]
	if runtime == nil {
		return nil, fmt.Errorf("%s: handlers can be written in %v", file, slices.Sorted(maps.Keys(runtimes)))
	}
	f, err := files.Open(filepath.ToSlash(filepath.Clean(file)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, maxHandler+1))
	if err != nil {
		return nil, err
	}
	if len(source) > maxHandler {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, maxHandler)
	}
	return runtime.Load(ctx, owner, file, source)
}

func (l *Loader) ready(ctx context.Context, loaded int, reason string) {
	l.o.Runner.Fire(ctx, "plugins_ready", &hooks.Event{Metadata: map[string]any{"loaded": loaded, "reason": reason}})
}

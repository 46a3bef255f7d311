package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"bellbird/hooks"
)

// settle is how long a directory must be left alone before its plugin is loaded again: an editor writes in steps.
const settle = 300 * time.Millisecond

// A Watcher looks after the directories of a loader's plugins.
type Watcher struct {
	loader *Loader
	notify *fsnotify.Watcher
}

// Watch begins to watch the directories. Run or Close must follow; Scan may come in between, so that no change is missed.
func (l *Loader) Watch() (*Watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the directories of plugins: %w", err)
	}
	l.watchAll(n)
	return &Watcher{l, n}, nil
}

// Close ends the watching without Run, or after it.
func (w *Watcher) Close() error { return w.notify.Close() }

// Run loads a plugin again when its files change, loads one that has come, and unloads one whose directory is gone. It
// returns when ctx is done.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.notify.Close()
	l := w.loader
	changed := make(map[string]bool) // directories of plugins
	timer := time.NewTimer(settle)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.notify.Events:
			if !ok {
				return errors.New("the directories of plugins are not watched any more")
			}
			if dir := l.pluginDir(e.Name); dir != "" {
				if dir == filepath.Clean(e.Name) && !e.Has(fsnotify.Write) {
					unwatch(w.notify, dir) // it went or came, or it is a link that leads elsewhere now
				}
				changed[dir] = true
				timer.Reset(settle)
			}
		case err := <-w.notify.Errors:
			l.o.Logger.Warn("watching plugins", "err", err)
		case <-timer.C:
			l.watchAll(w.notify) // new directories
			for dir := range changed {
				l.refresh(ctx, dir)
			}
			clear(changed)
		}
	}
}

// pluginDir is the directory of the plugin to which a path belongs; "" if it belongs to none.
func (l *Loader) pluginDir(path string) string {
	for _, top := range []string{l.o.SystemDir, l.o.UserDir} {
		rel, err := filepath.Rel(top, path)
		if top == "" || err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		for filepath.Dir(rel) != "." {
			rel = filepath.Dir(rel)
		}
		return filepath.Join(top, rel)
	}
	return ""
}

// watchAll watches all directories of plugins. What can't be watched isn't there, or will be seen when it changes. A plugin
// may be a link to where it lies: then that is watched, under the link's name. Links within a plugin are not followed.
func (l *Loader) watchAll(w *fsnotify.Watcher) {
	watched := w.WatchList()
	add := func(path string) {
		if !slices.Contains(watched, path) {
			_ = w.Add(path)
		}
	}
	for _, top := range []string{l.o.SystemDir, l.o.UserDir} {
		if top == "" {
			continue
		}
		add(filepath.Clean(top))
		entries, err := os.ReadDir(top)
		if err != nil {
			continue
		}
		for _, e := range entries {
			dir := filepath.Join(top, e.Name())
			real, err := filepath.EvalSymlinks(dir)
			if err != nil {
				continue
			}
			_ = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
				if rel, relErr := filepath.Rel(real, path); err == nil && relErr == nil && d.IsDir() {
					add(filepath.Join(dir, rel))
				}
				return nil
			})
		}
	}
}

// unwatch forgets a directory and those in it.
func unwatch(w *fsnotify.Watcher, dir string) {
	for _, path := range w.WatchList() {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			_ = w.Remove(path)
		}
	}
}

// refresh does what a change in a plugin's directory asks for.
func (l *Loader) refresh(ctx context.Context, dir string) {
	l.mu.Lock()
	name := ""
	for n, p := range l.plugins {
		if p.Dir == dir {
			name = n
		}
	}
	gone := name != "" && l.dropIfGone(name)
	l.mu.Unlock()
	switch {
	case gone:
	case name == "":
		l.add(ctx, dir) // unless there is none
	default:
		if err := l.Reload(ctx, name); err == nil { // an error was logged, and the old version goes on
			l.o.Logger.Info("plugin loaded again", "plugin", name)
		}
	}
}

// add takes in a plugin that has just come.
func (l *Loader) add(ctx context.Context, dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	band := hooks.User
	if filepath.Dir(dir) == filepath.Clean(l.o.SystemDir) {
		band = hooks.System
	}
	if l.take(ctx, dir, band) {
		l.ready(ctx, 1, "rescan")
	}
}

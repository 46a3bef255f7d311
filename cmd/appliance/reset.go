package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bellbird/internal/run"
)

// The reset by a button: whoever holds it for long enough gets an appliance that knows nothing of whom it belonged to.
// It is done at the next start, before anything is open, and is asked for by a file, so that it goes on where the power
// was cut. The configuration, and models that were put beside the state, are not what the appliance has learned: they stay.

// farewell is how long the appliance may take to say that it is reset.
const farewell = 10 * time.Second

// resetMark is the file that asks for a reset.
func (c Config) resetMark() string { return filepath.Join(filepath.Dir(c.Store.Path), "reset") }

// learned are the files and directories in which the appliance keeps what it was told. What the configuration has
// elsewhere than with the database is left alone: it may be anybody's.
func (c Config) learned() ([]string, error) {
	dir := filepath.Dir(c.Store.Path)
	all, err := filepath.Glob(escapeGlob(c.Store.Path) + "*") // the database, its snapshots, what was set aside
	if err != nil {
		return nil, err
	}
	for _, d := range []string{c.Plugins.UserDir, c.Plugins.StateDir, filepath.Join(dir, "recordings")} {
		if filepath.Dir(filepath.Clean(d)) == dir {
			all = append(all, d)
		}
	}
	return all, nil
}

// escapeGlob makes a pattern that matches nothing but s.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// resetIfAsked erases what the appliance has learned, if that was asked for.
func resetIfAsked(c Config, log *slog.Logger) error {
	if _, err := os.Stat(c.resetMark()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all, err := c.learned()
	if err != nil {
		return err
	}
	for _, path := range all {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("reset: %w (it goes on at the next start)", err)
		}
	}
	if err := os.Remove(c.resetMark()); err != nil {
		return fmt.Errorf("reset: %w (all is erased, and will be once more at the next start)", err)
	}
	log.Warn("the appliance is reset", "erased", all)
	return nil
}

// resetting has the body's gesture reset the appliance. The returned part ends it, and the service manager starts it again.
func (a *appliance) resetting(c Config, log *slog.Logger) run.Part {
	asked, ask := request()
	a.body.reflexes.reset = ask
	return run.Part{Name: "reset", Run: func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-asked:
			}
			said := "I erase all that I have learned, and start again."
			err := os.WriteFile(c.resetMark(), []byte("Everything in this directory that the appliance has learned is erased when it starts.\n"), 0o600)
			if err != nil {
				log.Error("the appliance can't be reset", "err", err)
				said = "I can't be reset. My storage doesn't take it."
			}
			saying, done := context.WithTimeout(ctx, farewell)
			_, _ = a.turns.Say(saying, said) // whether or not it can be heard
			done()
			if err == nil {
				log.Warn("the appliance ends, and is reset when it is started again")
				return run.ErrFinished
			}
		}
	}}
}

// restarting returns what restarts the appliance, and the part that ends it, so that the service manager starts it again.
func restarting(log *slog.Logger) (func() error, run.Part) {
	asked, ask := request()
	return func() error { ask(); return nil }, run.Part{Name: "restart", Run: func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
			log.Info("the appliance ends, to be started again")
			return run.ErrFinished
		}
	}}
}

// request returns a channel that tells that something was asked for, and what asks. Asking again before that is seen
// changes nothing.
func request() (<-chan struct{}, func()) {
	asked := make(chan struct{}, 1)
	return asked, func() {
		select {
		case asked <- struct{}{}:
		default:
		}
	}
}

package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"bellbird/event"
	"bellbird/gpio"
)

// Whoever resets the appliance gets one that knows nothing; what it was not told stays.
func TestReset(t *testing.T) {
	if underRace {
		t.Skip("the voice takes longer under the race detector than the appliance has to end")
	}
	dir := t.TempDir()
	h := live(t, dir)
	h.does(0, "", "chat", "new", "kitchen")
	h.body.reflexes.do("button", event.ResetReleased, gpio.Reset)
	if err := <-h.ended; err != nil {
		t.Fatalf("it ended with: %v", err)
	}
	h.ended <- nil // for stop

	state := filepath.Join(dir, "state")
	stays := []string{filepath.Join(state, "models", "alexa.json"), filepath.Join(dir, "plugins", "mine.star"), h.config}
	goes := []string{filepath.Join(state, "plugins", "weather", "plugin.json"), filepath.Join(state, "recordings", "1.wav"), filepath.Join(state, "bellbird.db.snapshot-1")}
	for _, path := range append(goes, stays[:2]...) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := flags{config: h.config, state: state}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	goes = append(goes, c.Store.Path)
	log := slog.New(slog.DiscardHandler)
	if err := resetIfAsked(c, log); err != nil {
		t.Fatal(err)
	}
	for _, path := range goes {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	for _, path := range stays {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}

	// Asked for once, it is done once; and plugins that lie elsewhere are never erased.
	again := filepath.Join(state, "bellbird.db")
	if err := os.WriteFile(again, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := resetIfAsked(c, log); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(again); err != nil {
		t.Errorf("without being asked: %v", err)
	}
	c.Plugins.UserDir = filepath.Join(dir, "plugins")
	if err := os.WriteFile(c.resetMark(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := resetIfAsked(c, log); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stays[1]); err != nil {
		t.Error(err)
	}
}

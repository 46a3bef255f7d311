package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bellbird/dialog"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/plugins/worker"
	"bellbird/store"
	"bellbird/tools"
	"bellbird/tools/mcp"
)

// What bellbird check tries of the parts that remember, think and confine.

// keeps tells what is wrong with the place of the database. It doesn't open one that an appliance may be using.
func keeps(m Memory) error {
	dir := filepath.Dir(m.Path)
	for {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return err
		}
		dir = filepath.Dir(dir) // it will be made
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s: %w: run as the appliance's user, or choose another place with --state DIR", dir, err)
	}
	s, err := store.Open(m.Path, m.Options)
	if errors.Is(err, store.ErrInUse) {
		return nil // by the appliance
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if damage := s.Opening().Damage; damage != "" {
		return fmt.Errorf("%s was damaged, and is repaired as far as possible: %s", m.Path, damage)
	}
	return nil
}

// thinks asks the configured model for a word.
func thinks(ctx context.Context, c Model) (string, error) {
	if c.Kind == "" || c.Kind == "offline" {
		return "the offline agent", nil
	}
	c.LocalFirst = new(false)
	c.FallbackAfter = time.Minute // it shall answer by itself
	grammar, err := intents.English()
	if err != nil {
		return "", err
	}
	a := &appliance{hooks: hooks.New(hooks.Options{})}
	defer a.hooks.Close()
	model, err := a.think(c, grammar, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	began := time.Now()
	for _, err := range model.Generate(ctx, dialog.Request{Messages: []dialog.Message{{Role: dialog.User, Content: "Answer with the word yes."}}}) {
		if err != nil {
			return "", fmt.Errorf("%s: %w (see docs/models.md)", c.Kind, err)
		}
	}
	return fmt.Sprintf("%s, answers in %v", c.Kind, time.Since(began).Round(time.Millisecond)), nil
}

// connects waits until an MCP server has told its tools.
func connects(ctx context.Context, o mcp.Options) (string, error) {
	told := make(chan int, 1)
	o.Version = version
	o.Put = func(_ string, all ...tools.Tool) error {
		select {
		case told <- len(all):
		default:
		}
		return nil
	}
	server, err := mcp.New(o)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	select {
	case n := <-told:
		cancel()
		<-done
		return fmt.Sprintf("%d tools", n), nil
	case <-ctx.Done():
		err := server.Status().Err
		<-done
		if err == nil {
			err = errors.New("it doesn't answer")
		}
		return "", err
	}
}

// confined starts a plugin worker, which says how it is confined. A system that lacks a part is no fault of the
// appliance's, but its user should know.
func confined(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, self, workerName, "--check").Output()
	if err != nil {
		return "", fmt.Errorf("the worker of plugins doesn't start: %w", err)
	}
	var parts []worker.Part
	if err := json.Unmarshal(out, &parts); err != nil {
		return "", err
	}
	var has, lacks []string
	for _, p := range parts {
		if p.Missing == "" {
			has = append(has, p.Name)
		} else {
			lacks = append(lacks, p.String())
		}
	}
	return strings.Join(append(lacks, has...), ", "), nil
}

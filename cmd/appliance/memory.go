package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"bellbird/clock"
	"bellbird/store"
)

// What the appliance remembers, and where.

// Memory is where the database lies, and how it works.
type Memory struct {
	Path string `toml:"path"` // default bellbird.db in the state directory
	store.Options
}

// remember opens the store. An appliance that is begun for a single turn, or a demonstration, has one that is forgotten;
// and so has one whose storage is broken, since it should at least answer.
func (a *appliance) remember(m Memory, lasting bool, clk clock.Clock, log *slog.Logger) (err error) {
	o := m.Options
	o.Now, o.AfterFunc, o.Logger = clk.Now, clk.AfterFunc, log.With("part", "store")
	o.After = func(c store.Change) {
		point, e := lifecycle(c)
		a.hooks.Fire(context.Background(), point, e)
	}
	if lasting {
		a.store, err = store.Open(m.Path, o)
		switch {
		case err == nil:
			a.closeStore(log)
			return nil
		case errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrNewer), errors.Is(err, os.ErrPermission):
			return fmt.Errorf("%w (another place can be chosen with --state DIR)", err)
		}
		log.Error("the store can't be used, nothing will be remembered", "err", err)
		a.forgetful = true
	}
	dir, err := os.MkdirTemp("", "bellbird-")
	if err != nil {
		return err
	}
	a.onClose(func() { os.RemoveAll(dir) })
	if a.store, err = store.Open(filepath.Join(dir, "bellbird.db"), o); err != nil {
		return err
	}
	a.closeStore(log)
	return nil
}

// closeStore has the store closed in the end.
func (a *appliance) closeStore(log *slog.Logger) {
	a.onClose(func() {
		if err := a.store.Close(); err != nil {
			log.Error("store", "err", err)
		}
	})
}

// loss is what the user must be told of the store when the appliance begins; "" if all is well.
func (a *appliance) loss() string {
	o := a.store.Opening()
	switch {
	case a.forgetful:
		return "My storage is broken. I will forget what we talk about when I am switched off."
	case o.Damage == "":
		return ""
	case o.Reverted:
		return "My storage was damaged. The last thing that was said may be lost."
	case !o.Restored.IsZero():
		return "My storage was damaged. What we talked about since " + o.Restored.Local().Format("Monday, January 2") + " is lost."
	case o.SetAside != "":
		return "My storage was damaged, and what we talked about is lost."
	}
	return "My storage was damaged. A part of what we talked about is lost."
}

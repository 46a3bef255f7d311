package ota

import (
	"context"
	"errors"
	"fmt"
)

// Slots are the two places in which a whole system lies, of which one runs, and what puts another system into the place
// that doesn't. ota/rauc is the real one. An error says what can be done about it.
type Slots interface {
	// Slots returns those that can be started from.
	Slots(ctx context.Context) ([]Slot, error)

	// Compatible is the board that bundles must be made for.
	Compatible(ctx context.Context) (string, error)

	// Inspect checks the signature of the bundle at path and tells what is in it.
	Inspect(ctx context.Context, path string) (Bundle, error)

	// Install writes the bundle at path into the slot that doesn't run, and makes that one the primary slot. It returns
	// when this is done. progress is told the percentage of it that is. When ctx is done Install returns, but what it
	// began goes on; a further call waits until that has ended.
	Install(ctx context.Context, path string, progress func(percent int)) error

	// Mark makes a slot good, bad or the primary one.
	Mark(ctx context.Context, slot string, m Mark) error
}

// A Slot is one of the two places.
type Slot struct {
	Name    string // such as "rootfs.0"
	Boot    string // by which the boot loader knows it, such as "A"
	Version string // of the bundle that was installed into it; "" if that isn't known
	Booted  bool   // it runs
	Primary bool   // it is what the boot loader takes next
	Good    bool   // the boot loader may take it
}

// A Bundle is a file with a whole system in it.
type Bundle struct{ Compatible, Version string }

// A Mark is what a slot can be marked as.
type Mark string

// The marks. Active makes a slot the primary one.
const (
	Good   Mark = "good"
	Bad    Mark = "bad"
	Active Mark = "active"
)

// ErrNoSlots is what Slots return whose service can't be reached: the system has none, or it is broken.
var ErrNoSlots = errors.New("this system has no second slot to update")

// ErrBundle is what Slots return for a bundle that they can't read, or that the device's keyring doesn't vouch for: RAUC
// doesn't tell which.
var ErrBundle = errors.New("it isn't signed by anyone that this device trusts, or it is damaged: get it from its publisher again, or look at the keyring of RAUC")

// A pair are the two slots, as seen from the one that runs.
type pair struct{ booted, other Slot }

func (u *Updater) slots(ctx context.Context) (pair, error) {
	all, err := u.o.Slots.Slots(ctx)
	if err != nil {
		return pair{}, err
	}
	var p pair
	for _, s := range all {
		if s.Booted {
			p.booted = s
		} else {
			p.other = s
		}
	}
	switch {
	case p.booted.Name == "":
		return p, fmt.Errorf("it isn't known which slot runs: RAUC's configuration and the boot loader must agree on the boot names (see \"rauc status\")")
	case p.other.Name == "" || len(all) != 2:
		return p, fmt.Errorf("there are %d slots to start from, and there must be 2: see the configuration of RAUC", len(all))
	}
	return p, nil
}

// named returns the slot of that name.
func (p pair) named(name string) Slot {
	if p.booted.Name == name {
		return p.booted
	}
	return p.other
}

// noSlots is in the place of slots that the wiring hasn't set.
type noSlots struct{}

func (noSlots) Slots(context.Context) ([]Slot, error)            { return nil, ErrNoSlots }
func (noSlots) Compatible(context.Context) (string, error)       { return "", ErrNoSlots }
func (noSlots) Inspect(context.Context, string) (Bundle, error)  { return Bundle{}, ErrNoSlots }
func (noSlots) Install(context.Context, string, func(int)) error { return ErrNoSlots }
func (noSlots) Mark(context.Context, string, Mark) error         { return ErrNoSlots }

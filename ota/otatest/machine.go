// Package otatest has slots for tests: Machine, a pretended device with two slots and a boot loader, and the suite by which
// it is held against the real thing.
package otatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"bellbird/ota"
)

// A Machine is a device with slots A and B. Its boot loader takes a slot that has been made the primary one three times,
// unless it is marked good, and then the other one.
type Machine struct {
	Board string

	// Step is called before and after each thing that changes the machine. What it panics with, the caller gets.
	Step func()

	// Unstable makes marking a slot good go wrong without an error.
	Unstable bool

	// Broken are versions that don't start.
	Broken map[string]bool

	mu      sync.Mutex
	slots   [2]ota.Slot
	primary int
	booted  int
	left    int // starts of the primary slot; -1: any number
	boots   int
}

// NewMachine returns one that has been started in slot A, with version in it.
func NewMachine(board, version string) *Machine {
	m := &Machine{Board: board, left: -1, Step: func() {}, Broken: make(map[string]bool)}
	m.slots[0] = ota.Slot{Name: "rootfs.0", Boot: "A", Version: version, Good: true}
	m.slots[1] = ota.Slot{Name: "rootfs.1", Boot: "B", Good: true}
	return m
}

var _ ota.Slots = (*Machine)(nil)

// A bundle is what there is in a file that the machine can install.
type bundle struct {
	Compatible, Version string
	Signed              bool
}

// WriteBundle writes a bundle for a Machine.
func WriteBundle(path, compatible, version string, signed bool) error {
	text, err := json.Marshal(bundle{compatible, version, signed})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Boot is a restart, or the power going away and coming back. Versions that don't start are started until the boot loader
// gives them up.
func (m *Machine) Boot() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 10 {
		m.boots++
		switch {
		case m.left == 0:
			m.slots[m.primary].Good = false
			m.left = -1
		case m.left > 0:
			m.left--
		}
		m.booted = m.first()
		if !m.Broken[m.slots[m.booted].Version] {
			return
		}
	}
}

// BootID tells the starts of the machine apart.
func (m *Machine) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint("boot ", m.boots)
}

// Running is the version that was started.
func (m *Machine) Running() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[m.booted].Version
}

func (m *Machine) first() int {
	if !m.slots[m.primary].Good && m.slots[1-m.primary].Good {
		return 1 - m.primary
	}
	return m.primary
}

// Slots returns both.
func (m *Machine) Slots(context.Context) ([]ota.Slot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []ota.Slot{m.slots[0], m.slots[1]}
	list[m.booted].Booted = true
	list[m.first()].Primary = true
	return list, nil
}

// Compatible is the machine's board.
func (m *Machine) Compatible(context.Context) (string, error) { return m.Board, nil }

// Inspect reads a bundle.
func (m *Machine) Inspect(_ context.Context, path string) (ota.Bundle, error) {
	var b bundle
	text, err := os.ReadFile(path)
	if err == nil {
		if json.Unmarshal(text, &b) != nil || !b.Signed {
			err = ota.ErrBundle
		}
	}
	if err != nil {
		return ota.Bundle{}, fmt.Errorf("bundle %s: %w", path, err)
	}
	return ota.Bundle{Compatible: b.Compatible, Version: b.Version}, nil
}

// Install puts a bundle into the other slot.
func (m *Machine) Install(ctx context.Context, path string, progress func(percent int)) error {
	b, err := m.Inspect(ctx, path)
	if err != nil {
		return err
	}
	if b.Compatible != m.Board {
		return fmt.Errorf("bundle %s is for %q, and this is %q", path, b.Compatible, m.Board)
	}
	progress(0)
	m.change(func() {
		m.slots[1-m.booted].Good, m.slots[1-m.booted].Version = false, ""
	})
	progress(50)
	m.change(func() {
		m.slots[1-m.booted].Version = b.Version
		m.activate(1 - m.booted)
	})
	progress(100)
	return nil
}

// Mark marks a slot.
func (m *Machine) Mark(_ context.Context, slot string, mark ota.Mark) (err error) {
	m.change(func() {
		i := 0
		if m.slots[1].Name == slot {
			i = 1
		}
		if m.slots[i].Name != slot {
			err = fmt.Errorf("there is no slot %q", slot)
			return
		}
		switch mark {
		case ota.Good, ota.Bad:
			if mark == ota.Good && m.Unstable && i == 1 {
				m.slots[i].Good = false
				return
			}
			m.slots[i].Good = mark == ota.Good
			if i == m.primary {
				m.left = -1
			}
		case ota.Active:
			m.activate(i)
		default:
			err = errors.New("there is no such mark")
		}
	})
	return err
}

func (m *Machine) change(f func()) {
	m.Step()
	func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		f()
	}()
	m.Step()
}

func (m *Machine) activate(i int) { m.primary, m.left, m.slots[i].Good = i, 3, true }

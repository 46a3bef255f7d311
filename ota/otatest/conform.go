package otatest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bellbird/ota"
)

// A Rig is a device with two slots that has just been started in slot A.
type Rig struct {
	Slots ota.Slots
	Board string

	// Bundle makes a bundle and returns its path.
	Bundle func(t *testing.T, compatible, version string, signed bool) string

	// Boot restarts the device.
	Boot func(t *testing.T)
}

// Conform holds slots against what the interface promises.
func Conform(t *testing.T, rig func(t *testing.T) Rig) {
	tests := []struct {
		name string
		run  func(t *testing.T, r Rig)
	}{
		{"new", isNew}, {"inspect", inspects}, {"install", installs}, {"refuse", refuses}, {"mark", marks}, {"three starts", falls}, {"twice", twice},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, rig(t)) })
	}
}

// want fails unless the slots are so: a letter for a slot that is booted (b), primary (p) and good (g).
func want(t *testing.T, r Rig, a, b string) {
	t.Helper()
	slots, err := r.Slots.Slots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range slots {
		text := ""
		for _, flag := range []struct {
			on bool
			as string
		}{{s.Booted, "b"}, {s.Primary, "p"}, {s.Good, "g"}} {
			if flag.on {
				text += flag.as
			}
		}
		got[s.Boot] = text
	}
	if len(slots) != 2 || got["A"] != a || got["B"] != b {
		t.Errorf("slots %+v, want A %q and B %q", slots, a, b)
	}
}

func names(t *testing.T, r Rig) (a, b ota.Slot) {
	t.Helper()
	slots, err := r.Slots.Slots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slots {
		if s.Boot == "A" {
			a = s
		} else {
			b = s
		}
	}
	return a, b
}

func mark(t *testing.T, r Rig, slot string, m ota.Mark) {
	t.Helper()
	if err := r.Slots.Mark(t.Context(), slot, m); err != nil {
		t.Fatal(err)
	}
}

func install(t *testing.T, r Rig, path string) {
	t.Helper()
	last := -1
	err := r.Slots.Install(t.Context(), path, func(percent int) {
		if percent < last || percent > 100 {
			t.Errorf("progress went from %d to %d", last, percent)
		}
		last = percent
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 100 {
		t.Errorf("progress ended at %d", last)
	}
}

func isNew(t *testing.T, r Rig) {
	want(t, r, "bpg", "g")
	if c, err := r.Slots.Compatible(t.Context()); c != r.Board || err != nil {
		t.Errorf("compatible with %q, %v; want %q", c, err, r.Board)
	}
	r.Boot(t)
	want(t, r, "bpg", "g")
}

func inspects(t *testing.T, r Rig) {
	b, err := r.Slots.Inspect(t.Context(), r.Bundle(t, "another", "2.0", true))
	if err != nil || b != (ota.Bundle{Compatible: "another", Version: "2.0"}) {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := r.Slots.Inspect(t.Context(), r.Bundle(t, r.Board, "2.0", false)); !errors.Is(err, ota.ErrBundle) {
		t.Errorf("wrong signature: %v", err)
	}
	damaged := r.Bundle(t, r.Board, "2.0", true)
	if err := os.Truncate(damaged, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Slots.Inspect(t.Context(), damaged); !errors.Is(err, ota.ErrBundle) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := r.Slots.Inspect(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || errors.Is(err, ota.ErrBundle) {
		t.Errorf("no bundle: %v", err)
	}
}

func installs(t *testing.T, r Rig) {
	install(t, r, r.Bundle(t, r.Board, "2.0", true))
	want(t, r, "bg", "pg")
	if _, b := names(t, r); b.Version != "2.0" {
		t.Errorf("slot B has version %q", b.Version)
	}
	r.Boot(t)
	want(t, r, "g", "bpg")
	_, b := names(t, r)
	mark(t, r, b.Name, ota.Good)
	for range 5 {
		r.Boot(t)
	}
	want(t, r, "g", "bpg")
}

// What is refused changes nothing that can be started.
func refuses(t *testing.T, r Rig) {
	for name, path := range map[string]string{
		"signature": r.Bundle(t, r.Board, "2.0", false), "board": r.Bundle(t, "another", "2.0", true), "none": filepath.Join(t.TempDir(), "none"),
	} {
		if err := r.Slots.Install(t.Context(), path, func(int) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
		want(t, r, "bpg", "g")
	}
	if err := r.Slots.Mark(t.Context(), "rootfs.7", ota.Good); err == nil {
		t.Error("a slot that isn't there was marked")
	}
}

func marks(t *testing.T, r Rig) {
	a, b := names(t, r)
	mark(t, r, b.Name, ota.Active)
	want(t, r, "bg", "pg")
	mark(t, r, b.Name, ota.Bad)
	want(t, r, "bpg", "")
	r.Boot(t)
	want(t, r, "bpg", "")
	mark(t, r, b.Name, ota.Good)
	want(t, r, "bg", "pg")
	mark(t, r, a.Name, ota.Active)
	want(t, r, "bpg", "g")
}

// A slot that nobody marks good is given up.
func falls(t *testing.T, r Rig) {
	install(t, r, r.Bundle(t, r.Board, "2.0", true))
	for range 3 {
		r.Boot(t)
		want(t, r, "g", "bpg")
	}
	r.Boot(t)
	want(t, r, "bpg", "")
}

// What was installed may be installed again before it was tried.
func twice(t *testing.T, r Rig) {
	path := r.Bundle(t, r.Board, "2.0", true)
	install(t, r, path)
	install(t, r, path)
	install(t, r, r.Bundle(t, r.Board, "2.1", true))
	want(t, r, "bg", "pg")
	if _, b := names(t, r); b.Version != "2.1" {
		t.Errorf("slot B has version %q", b.Version)
	}
}

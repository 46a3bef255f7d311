package clock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bellbird/clock"
)

func TestZone(t *testing.T) {
	const database = "/usr/share/zoneinfo"
	dir := t.TempDir()
	file := filepath.Join(dir, "localtime")
	z := clock.NewZone(file)
	if z.Location() != time.Local {
		t.Errorf("without a file: %v", z.Location())
	}
	link := func(target string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(target, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(database, "Europe/Berlin")); err != nil {
		t.Skipf("no time zones: %v; apt install tzdata", err)
	}
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Europe/Berlin"} {
		link(filepath.Join(database, name))
		want, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2030, 7, 1, 12, 0, 0, 0, time.UTC)
		_, got := at.In(z.Location()).Zone()
		if _, offset := at.In(want).Zone(); got != offset {
			t.Errorf("%s: %d s from UTC, want %d", name, got, offset)
		}
		if first := z.Location(); z.Location() != first {
			t.Error("it is read again though nothing has changed")
		}
	}
	before := z.Location()
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, []byte("TZif, not"), 0o644); err != nil {
		t.Fatal(err)
	}
	link(damaged)
	if z.Location() != before {
		t.Errorf("with a damaged file: %v, want what it was", z.Location())
	}
}

package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bellbird/dialog"
	"bellbird/store"
)

// A disk that is full: writes are errors that name a remedy, what was written is there, and when there is room again it
// goes on.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bellbird.db")
	if out, err := child("full", path).Output(); err != nil || string(out) != "ok" {
		t.Errorf("%q %v", out, err)
	}
}

// fullChild has a disk on which no file can be larger than 1500 kB.
func fullChild(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	limit := func(n uint64) error {
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: ^uint64(0)})
	}
	if err := limit(1500 << 10); err != nil {
		return err
	}
	s, err := store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	c, err := s.Active()
	if err != nil {
		return err
	}
	written, refused := 0, 0
	for range 250 {
		switch err := c.Append(say(dialog.User, strings.Repeat(fmt.Sprintf("%08d", written), 1000))); {
		case err == nil:
			written++
		case !strings.Contains(err.Error(), "disk full"):
			return fmt.Errorf("no remedy: %w", err)
		default:
			refused++
		}
	}
	if refused == 0 || written == 0 {
		return fmt.Errorf("%d written, %d refused", written, refused)
	}
	check := func(s *store.Store) error {
		c, err := s.Active()
		if err != nil {
			return err
		}
		all, err := c.All()
		if err != nil || len(all) != written || s.Opening() != (store.Opening{}) {
			return fmt.Errorf("%d messages of %d, %v, %+v", len(all), written, err, s.Opening())
		}
		for i, m := range all {
			if m.Content != strings.Repeat(fmt.Sprintf("%08d", i), 1000) {
				return fmt.Errorf("message %d is wrong", i)
			}
		}
		return nil
	}
	if err := check(s); err != nil {
		return err
	}
	// It can still be closed and opened, and when there is room, written to.
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = store.Open(path, store.Options{}); err != nil {
		return err
	}
	if err := check(s); err != nil {
		return err
	}
	if err := limit(1 << 30); err != nil {
		return err
	}
	if c, err = s.Active(); err != nil {
		return err
	}
	for range 20 {
		if err := c.Append(say(dialog.User, strings.Repeat(fmt.Sprintf("%08d", written), 1000))); err != nil {
			return err
		}
		written++
	}
	if err := errors.Join(check(s), s.Close()); err != nil {
		return err
	}
	fmt.Print("ok")
	return nil
}

// A file that can't be written is an error that says so, and is left as it is.
func TestReadOnly(t *testing.T) {
	w := newWorld(t)
	w.must(w.Close())
	w.must(os.Chmod(w.path, 0o444))
	w.must(os.Chmod(filepath.Dir(w.path), 0o555))
	cmd := child("write", w.path)
	if os.Getuid() == 0 { // who may write everything
		// Somebody who may not, with a program and a directory that he may see.
		program, err := os.ReadFile(os.Args[0])
		w.must(err)
		cmd.Path = filepath.Join(t.TempDir(), "program")
		w.must(os.WriteFile(cmd.Path, program, 0o755))
		for _, dir := range []string{filepath.Dir(w.path), filepath.Dir(cmd.Path)} {
			for dir = filepath.Dir(dir); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
				w.must(os.Chmod(dir, 0o755))
			}
		}
		w.must(os.Chmod(filepath.Dir(cmd.Path), 0o755))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), w.path) {
		t.Errorf("%q %v", out, err)
	}
	w.must(os.Chmod(filepath.Dir(w.path), 0o755))
	w.must(os.Chmod(w.path, 0o600))
	w.open()
	if o := w.Opening(); o != (store.Opening{}) {
		t.Errorf("%+v", o)
	}
}

func writeChild(path string) error {
	s, err := store.Open(path, store.Options{})
	if err == nil {
		return errors.Join(errors.New("it opened"), s.Close())
	}
	fmt.Print(err)
	return nil
}

// Size is bounded: the oldest messages of chats that aren't pinned go first, and then nothing more is taken.
func TestRoom(t *testing.T) {
	w := newWorld(t, func(o *store.Options) { o.MaxBytes = 400 << 10 })
	w.must(w.Create("pinned"))
	w.must(w.Create("other"))
	_, err := w.Set("pinned", map[string]any{"pinned": true})
	w.must(err)
	w.private("secret")
	add := func(chat string, n int) {
		for i := range n {
			w.must(w.chat(chat).Append(say(dialog.User, fmt.Sprint(i, " ", strings.Repeat("x", 4000)))))
		}
	}
	first := func(chat string) (n, count int) {
		all, err := w.chat(chat).All()
		w.must(err)
		if len(all) > 0 {
			fmt.Sscan(all[0].Content, &n)
		}
		return n, len(all)
	}
	add("pinned", 10)
	add("other", 10)
	add("secret", 10)
	w.must(w.Lock())
	add("default", 200)
	w.must(w.Unlock(passphrase))
	if n, count := first("pinned"); n != 0 || count != 10 {
		t.Errorf("pinned: %d from %d", count, n)
	}
	if _, count := first("other"); count != 0 {
		t.Errorf("other: %d are left", count)
	}
	if _, count := first("secret"); count != 0 {
		t.Errorf("secret: %d are left", count)
	}
	if n, count := first("default"); n+count != 200 || count < 20 || count > 100 {
		t.Errorf("default: %d from %d", count, n)
	}
	if info, err := os.Stat(w.path); err != nil || info.Size() > 1<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	// Rows don't go. When they fill the file there is an end to it, and deleting helps.
	r := w.Rows("p")
	var last error
	for i := 0; i < 100 && last == nil; i++ {
		_, last = r.Append("default", "k", raw(`"`+strings.Repeat("y", 20000)+`"`))
	}
	w.wants(last, store.ErrFull)
	w.wants(w.chat("default").Append(say(dialog.User, "x")), store.ErrFull)
	w.wants(w.State("p").Save("k", 1), store.ErrFull)
	w.wants(w.Create("more"), store.ErrFull)
	w.must(r.DeleteAll("default"))
	add("default", 3)
	if _, count := first("pinned"); count != 10 {
		t.Errorf("pinned: %d", count)
	}
}

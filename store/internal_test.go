package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bellbird.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bucket("b").Put("k", []byte("old")); err != nil {
		t.Fatal(err)
	}
	s.Close()

	// One that fails leaves everything as it was, also what an earlier step did.
	mark := func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put([]byte("mark"), []byte{1}) }
	fail := func(tx *bbolt.Tx) error { return errors.New("no way") }
	if _, err := open(path, Options{}, []migration{mark, fail}); err == nil || !strings.Contains(err.Error(), "to schema 3: no way") {
		t.Fatalf("error %v", err)
	}
	marked := func(s *Store) (marked bool) {
		s.read(func(tx *bbolt.Tx) error { marked = tx.Bucket(metaBucket).Get([]byte("mark")) != nil; return nil })
		return marked
	}
	if s, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if marked(s) {
		t.Error("half a migration")
	}
	s.Close()

	if s, err = open(path, Options{}, []migration{mark, func(*bbolt.Tx) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Bucket("b").Get("k"); string(v) != "old" || err != nil || !marked(s) {
		t.Errorf("%q, %v, marked %v", v, err, marked(s))
	}
	snapshots, err := s.snapshots()
	if err != nil || len(snapshots) != 2 {
		t.Errorf("snapshots %v, %v", snapshots, err)
	}
	s.Close()
	if _, err := Open(path, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v", err)
	}
	// It is done once.
	if s, err = open(path, Options{}, []migration{fail, fail}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	// The snapshot is of the time before.
	os.Rename(snapshots[0].path, path)
	if s, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if marked(s) {
		t.Error("the snapshot was made too late")
	}
	s.Close()
}

// What the verifier lets through, bbolt can walk through without panic.
func FuzzVerify(f *testing.F) {
	path := filepath.Join(f.TempDir(), "bellbird.db")
	s, err := Open(path, Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if err := s.Bucket("b").Put(key, bytes.Repeat([]byte(key), 3000)); err != nil {
			f.Fatal(err)
		}
	}
	s.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	if err := verify(bytes.NewReader(good), int64(len(good))); err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), uint32(0), []byte{})
	f.Add(uint32(4096), uint32(8), []byte{1, 0, 0xff, 0xff})
	for page := range len(good) / pageSize {
		f.Add(uint32(page*pageSize), uint32(40), []byte{0xff, 0xff, 0xff, 0xff})
	}
	f.Fuzz(func(t *testing.T, page, offset uint32, patch []byte) {
		bad := bytes.Clone(good)
		at := (int(page)%len(bad) + int(offset)%pageSize) % len(bad)
		copy(bad[at:], patch)
		if verify(bytes.NewReader(bad), int64(len(bad))) != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "bad.db")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			t.Fatalf("verified, but: %v", err)
		}
		defer db.Close()
		err = db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatalf("verified, but: %v", err)
		}
	})
}

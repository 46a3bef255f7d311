package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

const (
	snapshotEvery = 24 * time.Hour
	snapshotsKept = 3
	asideKept     = 3
	stamp         = "20060102T150405Z"
)

// A snapshot is a copy of the database beside it. Its number tells which is newer: clocks may be wrong.
type snapshot struct {
	path string
	n    int
	at   time.Time
}

// snapshots lists them, newest first.
func (s *Store) snapshots() ([]snapshot, error) {
	var list []snapshot
	names, err := s.beside(".snapshot-")
	for _, path := range names {
		var n int
		var text string
		rest := strings.TrimPrefix(path, s.path+".snapshot-")
		if _, err := fmt.Sscanf(rest, "%d-%s", &n, &text); err != nil {
			continue
		}
		if at, err := time.Parse(stamp, text); err == nil {
			list = append(list, snapshot{path, n, at})
		}
	}
	slices.SortFunc(list, func(a, b snapshot) int { return cmp.Compare(b.n, a.n) })
	return list, err
}

// beside lists the files whose names begin with that of the database and then infix.
func (s *Store) beside(infix string) (paths []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(s.path)+infix) {
			paths = append(paths, filepath.Join(filepath.Dir(s.path), e.Name()))
		}
	}
	return paths, err
}

// snapshotIfDue begins a snapshot if the newest is a day old. It is called after a commit, so that there is none when
// nothing changes.
func (s *Store) snapshotIfDue() {
	age := s.o.Now().Sub(time.Unix(s.snapped.Load(), 0))
	if 0 <= age && age < snapshotEvery {
		return
	}
	s.snapped.Store(s.o.Now().Unix())
	db := s.db
	s.copying.Go(func() {
		if err := s.snapshot(db); err != nil {
			s.o.Logger.Error("snapshot", "err", err)
		}
	})
}

// snapshot copies the database, without its free pages, and removes the oldest snapshots.
func (s *Store) snapshot(db *bbolt.DB) error {
	list, err := s.snapshots()
	if err != nil {
		return err
	}
	n := 1
	if len(list) > 0 {
		n = list[0].n + 1
	}
	fresh := s.path + ".snapshot.new"
	if err := s.compact(db, fresh); err != nil {
		return err
	}
	now := s.o.Now()
	if err := os.Rename(fresh, fmt.Sprintf("%s.snapshot-%06d-%s", s.path, n, now.UTC().Format(stamp))); err != nil {
		return err
	}
	s.snapped.Store(now.Unix())
	for _, old := range list[min(len(list), snapshotsKept-1):] {
		err = errors.Join(err, os.Remove(old.path))
	}
	return errors.Join(err, syncDir(s.path))
}

// compact copies a database, without its free pages, to a new file.
func (s *Store) compact(db *bbolt.DB, to string) error {
	os.Remove(to)
	dst, err := openBolt(to, s.o.MaxBytes)
	if err != nil {
		return err
	}
	dst.NoSync = true
	err = protect(func() error { return bbolt.Compact(dst, db, 1<<20) })
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		os.Remove(to)
	}
	return err
}

// pruneAside removes the oldest of the files that were set aside.
func (s *Store) pruneAside() {
	list, _ := s.beside(".bad-")
	slices.Sort(list)
	for _, old := range list[:max(0, len(list)-asideKept)] {
		os.Remove(old)
	}
}

// scrub erases what is readable of chats that were sealed: from the free pages of the file, by writing it anew, and with
// the snapshots and damaged files, which are of a time before. It is called with the lock, and nothing waiting to be
// committed.
func (s *Store) scrub() error {
	if err := s.rewrite(); err != nil {
		return fmt.Errorf("it is sealed, but what was there before is not erased yet; it will be when the store is opened next: %w", err)
	}
	return nil
}

func (s *Store) rewrite() error {
	s.copying.Wait()
	if err := s.compact(s.db, s.fresh()); err != nil {
		return err
	}
	err := s.db.Close()
	if err == nil {
		err = s.takePlace()
	}
	if err == nil {
		err = s.measure()
	}
	if err != nil {
		s.closed = true // there is no file to work with
		return errors.Join(err, s.lock.Close())
	}
	old, err1 := s.snapshots()
	aside, err2 := s.beside(".bad-")
	if err := errors.Join(err1, err2, s.snapshot(s.db)); err != nil {
		return err
	}
	for _, snap := range old {
		aside = append(aside, snap.path)
	}
	for _, path := range aside {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(syncDir(s.path), s.db.Update(func(tx *bbolt.Tx) error {
		return errors.Join(tx.Bucket(metaBucket).Delete(scrubKey), tx.Bucket(metaBucket).Delete(unsealKey))
	}))
}

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// An Opening tells what was found when the store was opened. The zero value is that all was well.
type Opening struct {
	Damage     string    // what was wrong with the file; empty: nothing
	SetAside   string    // where the damaged file is kept; empty: it is not damaged, or missing
	Reverted   bool      // only what was written last is lost
	Restored   time.Time // else, a snapshot of this time took its place; zero: all is lost
	Unreadable int       // values that were found to be changed, and are left out
}

// Opening tells what was found when the store was opened.
func (s *Store) Opening() Opening { return s.opening }

// A migration brings a database from one schema to the next.
type migration func(*bbolt.Tx) error

// migrations returns them all, the first from schema 1 to 2. There is no other schema yet.
func migrations() []migration { return nil }

// Open opens the database at path, or makes it. The directory may be missing. A file that is damaged is repaired or set
// aside, and Opening tells so. ErrInUse and ErrNewer are errors which the user can do something about.
func Open(path string, o Options) (*Store, error) { return open(path, o, migrations()) }

func open(path string, o Options, steps []migration) (*Store, error) {
	o.setDefaults()
	s := &Store{o: o, path: path, begins: make(map[uint64]uint64)}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	lock, err := lockFile(path+".lock", o.OpenTimeout)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	s.lock = lock
	if err := s.load(steps); err != nil {
		if s.db != nil {
			s.db.Close()
		}
		lock.Close()
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	return s, nil
}

// lockFile keeps other processes away. It is not the database itself that is locked, because that may be replaced.
func lockFile(path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-again.C:
		case <-deadline.C:
			f.Close()
			return nil, fmt.Errorf("%w; stop that first", ErrInUse)
		}
	}
}

// load opens the file, whatever state it is in.
func (s *Store) load(steps []migration) error {
	os.Remove(s.fresh()) // of a replacement that was not finished
	os.Remove(s.path + ".snapshot.new")
	snapshots, err := s.snapshots()
	if err != nil {
		return err
	}
	if len(snapshots) > 0 {
		s.snapped.Store(snapshots[0].at.Unix())
	}
	switch _, err := os.Stat(s.path); {
	case err == nil:
		err = s.openSound(s.path)
		if errors.Is(err, ErrDamaged) {
			err = s.repair(snapshots, err, 1+len(steps))
		}
		if err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist) && len(snapshots) > 0:
		if err := s.restore(snapshots, 1+len(steps)); err != nil {
			return err
		}
		s.opening.Damage = "the file is missing"
	case errors.Is(err, fs.ErrNotExist):
		if err := s.begin(1 + len(steps)); err != nil {
			return err
		}
	default:
		return err
	}
	if err := s.migrate(steps); err != nil {
		return err
	}
	return s.prepare()
}

// openSound opens a file after having read through it. The error is ErrDamaged if that is what it is.
func (s *Store) openSound(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w; it must be writable", err)
	}
	info, err := f.Stat()
	if err == nil {
		if err = verify(f, info.Size()); err != nil && !isIO(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	db, err := openBolt(path, s.o.MaxBytes)
	if err != nil {
		return err
	}
	var unreadable int
	err = protect(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			if err := s.checkSchema(tx, -1); err != nil {
				return err
			}
			unreadable, err = check(tx)
			if err != nil {
				err = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return err
		})
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.db, s.opening.Unreadable = db, unreadable
	return nil
}

// isIO tells an error of the disk, which another attempt may survive, from what is wrong in the file.
func isIO(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

func openBolt(path string, size int64) (db *bbolt.DB, err error) {
	err = protect(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:  time.Second,
			PageSize: pageSize,
			// The list of free pages is made when the file is opened. In the file it would be one more thing that can be
			// damaged, and be written with every commit.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
			// So much that the file can grow while a snapshot is being made. It is only address space.
			InitialMmapSize: int(2 * size),
		})
		return err
	})
	if err == nil {
		db.AllocSize = 1 << 20
	}
	return db, err
}

func (s *Store) fresh() string { return s.path + ".new" }

// begin makes a new, empty database.
func (s *Store) begin(schema int) error {
	db, err := openBolt(s.fresh(), s.o.MaxBytes)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		var errs []error
		for _, name := range [][]byte{metaBucket, namesBucket, chatsBucket, stateBucket, otherBucket} {
			_, err := tx.CreateBucket(name)
			errs = append(errs, err)
		}
		return errors.Join(append(errs, tx.Bucket(metaBucket).Put(schemaKey, key64(uint64(schema))))...)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	s.snapped.Store(s.o.Now().Unix())
	return s.takePlace()
}

// takePlace puts the fresh file in the place of the database and opens it.
func (s *Store) takePlace() error {
	if err := os.Rename(s.fresh(), s.path); err != nil {
		return err
	}
	if err := syncDir(s.path); err != nil {
		return err
	}
	return s.openSound(s.path)
}

// syncDir makes durable what was renamed in the directory of path.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkSchema returns ErrNewer for a schema that is not known. most is the newest that is; -1: it doesn't matter.
func (s *Store) checkSchema(tx *bbolt.Tx, most int) error {
	b := tx.Bucket(metaBucket)
	if b == nil || len(b.Get(schemaKey)) != 8 {
		return fmt.Errorf("%w: it has no schema", ErrDamaged)
	}
	if n := num64(b.Get(schemaKey)); most >= 0 && n > uint64(most) {
		return fmt.Errorf("%w: its schema is %d, this one knows %d; install the newer version again, or move the file away", ErrNewer, n, most)
	}
	return nil
}

// migrate brings the database to the newest schema, in one transaction.
func (s *Store) migrate(steps []migration) error {
	var schema int
	err := s.db.View(func(tx *bbolt.Tx) error {
		schema = int(num64(tx.Bucket(metaBucket).Get(schemaKey)))
		return s.checkSchema(tx, 1+len(steps))
	})
	if err != nil || schema == 1+len(steps) {
		return err
	}
	if err := s.snapshot(s.db); err != nil {
		return fmt.Errorf("snapshot before the migration: %w", err)
	}
	err = protect(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			for i, step := range steps[schema-1:] {
				if err := step(tx); err != nil {
					return fmt.Errorf("migration to schema %d: %w", schema+i+1, err)
				}
			}
			return tx.Bucket(metaBucket).Put(schemaKey, key64(uint64(1+len(steps))))
		})
	})
	if err == nil {
		s.o.Logger.Info("database migrated", "from", schema, "to", 1+len(steps))
	}
	return err
}

// prepare does what was left undone, and sees to it that there is a chat.
func (s *Store) prepare() error {
	if err := s.measure(); err != nil {
		return err
	}
	if err := s.reindex(); err != nil {
		return err
	}
	pending := false
	err := s.read(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket)
		pending = b.Get(scrubKey) != nil || b.Get(unsealKey) != nil
		return nil
	})
	if err != nil {
		return err
	}
	if pending {
		if err := s.scrub(); err != nil {
			s.o.Logger.Error("what was sealed is still readable in old pages", "err", err)
		}
	}
	if x := s.index.Load(); x.active != 0 && x.total > 0 {
		return nil // though all may be hidden
	}
	return s.write(alone, s.ensureActive)
}

// repair finds the best that can be had instead of the damaged file: the state before the last transaction, a
// snapshot, or nothing.
func (s *Store) repair(snapshots []snapshot, damage error, schema int) error {
	s.opening.Damage = damage.Error()
	s.o.Logger.Error("the database is damaged", "err", damage)
	aside := s.path + ".bad-" + s.o.Now().UTC().Format(stamp)
	s.opening.SetAside = aside
	if s.copyTo(s.path, aside) == nil {
		if s.revert() == nil {
			s.opening.Reverted = true
			s.pruneAside()
			return nil
		}
	} else if err := os.Rename(s.path, aside); err != nil { // the disk may be too full for a copy
		return fmt.Errorf("keeping the damaged file: %w", err)
	}
	s.pruneAside()
	return s.restore(snapshots, schema)
}

// revert makes the meta page before the newest the one that counts.
func (s *Store) revert() error {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	newest, _, err := newestMeta(f)
	if err != nil {
		return err
	}
	older, err := readMeta(f, 1-newest)
	if err != nil {
		return err
	}
	if err := verifyTree(f, info.Size(), older); err != nil {
		return err
	}
	if _, err := f.WriteAt(make([]byte, pageHeader+64), newest*pageSize); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return s.openSound(s.path)
}

// restore puts the newest snapshot that is good in the place of the database, or else an empty database.
func (s *Store) restore(snapshots []snapshot, schema int) error {
	for _, snap := range snapshots {
		err := s.copyTo(snap.path, s.fresh())
		if err == nil {
			err = s.takePlace()
		}
		if err == nil {
			s.opening.Restored = snap.at
			return nil
		}
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		s.o.Logger.Error("a snapshot is damaged", "err", err)
	}
	return s.begin(schema)
}

// copyTo copies a file durably.
func (s *Store) copyTo(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

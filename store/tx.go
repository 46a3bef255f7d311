package store

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A txn is a transaction that changes something.
type txn struct {
	*bbolt.Tx
	writes  int  // of which it consists
	broken  bool // something in it was done by half
	roomy   bool // it was seen to that there is room
	chats   bool // the index changes with it
	scrub   bool // old pages must not be readable any more
	changes []Change
	undo    []func() // what to restore in memory if it fails
}

// tell has the change told once it is committed.
func (t *txn) tell(c Change) { t.changes = append(t.changes, c) }

// fault marks the transaction as one that can't be committed, if err is an error, which it returns.
func (t *txn) fault(err error) error {
	if err != nil {
		t.broken = true
	}
	return err
}

// A pace says when a write is committed.
type pace int

const (
	later pace = iota // within the batch delay
	now               // before the call returns, together with what is waiting
	alone             // before the call returns, in a transaction of its own, so that it can be undone
)

// errUnchanged is returned by the function of a write that finds nothing to do.
var errUnchanged = errors.New("nothing changed")

// write runs f in a transaction. If f returns an error without having called fault, it must not have changed anything,
// unless the pace is alone.
func (s *Store) write(p pace, f func(*txn) error) error {
	s.mu.Lock()
	err := s.writeLocked(p, f)
	s.mu.Unlock()
	s.deliver()
	return err
}

func (s *Store) writeLocked(p pace, f func(*txn) error) error {
	if s.closed {
		return ErrClosed
	}
	if p == alone {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.tx == nil {
		tx, err := s.db.Begin(true)
		if err != nil {
			return s.explain(err)
		}
		s.tx = &txn{Tx: tx}
	}
	t := s.tx
	err := protect(func() error { return f(t) })
	if err != nil {
		switch {
		case t.writes == 0:
			s.drop()
		case t.broken || errors.Is(err, ErrDamaged):
			s.o.Logger.Error("writes that nobody waited for are lost", "writes", t.writes)
			s.drop()
		}
		if errors.Is(err, errUnchanged) {
			return nil
		}
		return err
	}
	t.writes++
	if p != later {
		err := s.flush()
		if err == nil && t.scrub {
			err = s.scrub()
		}
		return err
	}
	if s.unbatch == nil {
		s.unbatch = s.o.AfterFunc(s.o.BatchDelay, s.batch)
	}
	return nil
}

// batch commits what is waiting.
func (s *Store) batch() {
	s.mu.Lock()
	if err := s.flush(); err != nil {
		s.o.Logger.Error("writes that nobody waited for are lost", "err", err)
	}
	s.mu.Unlock()
	s.deliver()
}

// flush commits what is waiting, if anything.
func (s *Store) flush() error {
	t := s.tx
	if t == nil {
		return nil
	}
	if t.writes == 0 {
		s.drop()
		return nil
	}
	if err := protect(t.Commit); err != nil {
		s.drop()
		return s.explain(err)
	}
	s.forget()
	s.queue = append(s.queue, t.changes...)
	if t.chats {
		if err := s.reindex(); err != nil {
			return err
		}
	}
	s.snapshotIfDue()
	return nil
}

// drop gives up the transaction.
func (s *Store) drop() {
	t := s.tx
	s.forget()
	for _, f := range t.undo {
		f()
	}
	if err := protect(t.Rollback); err != nil && !errors.Is(err, berrors.ErrTxClosed) {
		s.o.Logger.Error("rollback", "err", err)
	}
}

func (s *Store) forget() {
	s.tx = nil
	if s.unbatch != nil {
		s.unbatch()
		s.unbatch = nil
	}
}

// read runs f on what is committed or waiting to be.
func (s *Store) read(f func(*bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked(f)
}

func (s *Store) readLocked(f func(*bbolt.Tx) error) error {
	if s.closed {
		return ErrClosed
	}
	if s.tx != nil {
		return protect(func() error { return f(s.tx.Tx) })
	}
	tx, err := s.db.Begin(false)
	if err != nil {
		return s.explain(err)
	}
	defer tx.Rollback()
	return protect(func() error { return f(tx) })
}

// deliver tells what was changed. It is called without the lock; whoever comes while another is telling leaves it to him.
func (s *Store) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.telling && len(s.queue) > 0 {
		c := s.queue[0]
		s.queue = s.queue[1:]
		s.tellOne(c)
	}
}

func (s *Store) tellOne(c Change) {
	s.telling = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.telling = false
	}()
	s.o.After(c)
}

// explain adds what can be done about an error of the file.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("database %s: %w; is the disk full, read-only or failing?", s.path, err)
}

// protect turns what a damaged file leads to, a panic or a fault of memory, into an error.
func protect(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}

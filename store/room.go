package store

import "go.etcd.io/bbolt"

// room is called before something is added. When the file holds more than it may, the oldest messages of chats that
// aren't pinned go; ErrFull is that there are not enough of them.
func (s *Store) room(t *txn) error {
	if t.roomy {
		return nil // what is freed shows only after the commit
	}
	t.roomy = true
	stats := s.db.Stats()
	used := t.Size() - int64(stats.FreePageN+stats.PendingPageN)*pageSize
	if used <= s.o.MaxBytes {
		return nil
	}
	// Some more than necessary, so that it isn't done each time.
	freed, n, err := trim(t.Tx, used-s.o.MaxBytes/10*9)
	if err != nil {
		return t.fault(err)
	}
	if n > 0 {
		s.o.Logger.Info("old messages are removed to make room", "messages", n)
	}
	if freed < used-s.o.MaxBytes {
		return ErrFull
	}
	return nil
}

// trim removes the oldest messages of chats that aren't pinned, of need bytes or more if there are so many.
func trim(tx *bbolt.Tx, need int64) (freed int64, n int, err error) {
	var candidates []*bbolt.Bucket
	err = tx.Bucket(chatsBucket).ForEachBucket(func(k []byte) error {
		r, err := openHead(tx, num64(k))
		if err == nil && !r.Pinned {
			candidates = append(candidates, r.messages())
		}
		return err
	})
	for err == nil && freed < need {
		var oldest *bbolt.Bucket
		var key, value []byte
		for _, b := range candidates {
			if k, v := b.Cursor().First(); k != nil && (key == nil || string(k) < string(key)) {
				oldest, key, value = b, k, v
			}
		}
		if oldest == nil {
			break
		}
		n++
		freed += int64(len(key) + len(value) + elemSize)
		err = oldest.Delete(key)
	}
	return freed, n, err
}

// measure makes bbolt count its free pages, which it does at the end of a transaction.
func (s *Store) measure() error {
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	return tx.Rollback()
}

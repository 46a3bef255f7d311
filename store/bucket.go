package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// A Bucket is what another part of the appliance keeps, such as timers: bytes by key, durable when a call returns.
type Bucket struct {
	s    *Store
	name string
}

// Bucket returns the records of that name.
func (s *Store) Bucket(name string) *Bucket { return &Bucket{s, name} }

func (b *Bucket) bucket(tx *bbolt.Tx) *bbolt.Bucket {
	return tx.Bucket(otherBucket).Bucket([]byte(b.name))
}

func (b *Bucket) at(key string) place { return at(0, "other", b.name, key) }

// Get returns a record; nil if there is none.
func (b *Bucket) Get(key string) (value []byte, err error) {
	err = b.s.read(func(tx *bbolt.Tx) error {
		if in := b.bucket(tx); in != nil {
			if v := in.Get([]byte(key)); v != nil {
				payload, err := unplain(b.at(key), v)
				value = append([]byte{}, payload...)
				return err
			}
		}
		return nil
	})
	return value, err
}

// All returns all records. What can't be read is left out.
func (b *Bucket) All() (map[string][]byte, error) {
	all := make(map[string][]byte)
	err := b.s.read(func(tx *bbolt.Tx) error {
		in := b.bucket(tx)
		if in == nil {
			return nil
		}
		return in.ForEach(func(k, v []byte) error {
			if payload, err := unplain(b.at(string(k)), v); err == nil {
				all[string(k)] = bytes.Clone(payload)
			}
			return nil
		})
	})
	return all, err
}

// Put sets a record.
func (b *Bucket) Put(key string, value []byte) error {
	return b.change(map[string][]byte{key: value}, false)
}

// Replace makes these the only records, all at once.
func (b *Bucket) Replace(records map[string][]byte) error { return b.change(records, true) }

// Delete removes a record.
func (b *Bucket) Delete(key string) error {
	return b.s.write(now, func(t *txn) error {
		in := b.bucket(t.Tx)
		if in == nil || in.Get([]byte(key)) == nil {
			return errUnchanged
		}
		return t.fault(in.Delete([]byte(key)))
	})
}

func (b *Bucket) change(records map[string][]byte, replace bool) error {
	if err := checkKey("bucket", b.name); err != nil {
		return err
	}
	encoded := make(map[string][]byte, len(records))
	for key, value := range records {
		if err := checkKey("record", key); err != nil {
			return err
		}
		if len(value) > maxValue {
			return fmt.Errorf("record %s of %s: %w, at most %d bytes", key, b.name, ErrTooLarge, maxValue)
		}
		encoded[key] = plain(b.at(key), value)
	}
	return b.s.write(now, func(t *txn) error {
		in := b.bucket(t.Tx)
		if replace && in != nil {
			if same(in, encoded) {
				return errUnchanged
			}
			if err := t.Bucket(otherBucket).DeleteBucket([]byte(b.name)); err != nil {
				return t.fault(err)
			}
		}
		in, err := t.Bucket(otherBucket).CreateBucketIfNotExists([]byte(b.name))
		if err != nil {
			return t.fault(err)
		}
		for key, v := range encoded {
			if err := in.Put([]byte(key), v); err != nil {
				return t.fault(err)
			}
		}
		return nil
	})
}

// same reports whether these are the values in the bucket.
func same(in *bbolt.Bucket, values map[string][]byte) bool {
	n := 0
	in.ForEach(func(k, v []byte) error {
		if bytes.Equal(values[string(k)], v) {
			n++
		} else {
			n = -1 << 31
		}
		return nil
	})
	return n == len(values)
}

package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Rows are what one plugin keeps in chats: JSON values, under a key in slot 0, and numbered from 1 on as they are
// appended. They go with their chat when it is deleted, and stay when it is cleared. No plugin sees those of another.
//
// A read of what is not there, or is in the locked vault, or is damaged, finds nothing. A write to a chat that is not
// there or in the locked vault is an error.
type Rows struct {
	s      *Store
	plugin string
	pace   pace
}

// Bounds of rows.
const (
	maxKey   = 256     // bytes of a key, and of a plugin's name
	maxValue = 1 << 20 // bytes of a value
)

// Rows returns the rows of a plugin. Their writes are durable when they return.
func (s *Store) Rows(plugin string) *Rows { return &Rows{s: s, plugin: plugin, pace: now} }

// Batched returns the same rows for a writer that doesn't wait: its writes are committed within the batch delay. They are
// seen at once.
func (r *Rows) Batched() *Rows { return &Rows{s: r.s, plugin: r.plugin, pace: later} }

// Within a chat there is a bucket for each plugin, and in it one for each key. In a sealed chat the key is sealed too:
// the bucket has a keyed digest for a name, and the key under keyOfBucket.
const (
	plainBucket  = 'k'
	sealedBucket = 'h'
)

var keyOfBucket = []byte("key")

func pluginBucket(plugin string) []byte { return []byte("p" + plugin) }

func (r *record) keyBucket(plugin, key string) []byte {
	if r.k == nil {
		return []byte(string(rune(plainBucket)) + key)
	}
	return append([]byte{sealedBucket}, r.k.digest(r.at("rows", plugin, key))...)
}

// rowsOf is the bucket of a key, or nil.
func (r *record) rowsOf(plugin, key string) *bbolt.Bucket {
	if p := r.b.Bucket(rowsBucket).Bucket(pluginBucket(plugin)); p != nil {
		return p.Bucket(r.keyBucket(plugin, key))
	}
	return nil
}

func (r *record) makeRowsOf(plugin, key string) (*bbolt.Bucket, error) {
	p, err := r.b.Bucket(rowsBucket).CreateBucketIfNotExists(pluginBucket(plugin))
	if err != nil {
		return nil, err
	}
	name := r.keyBucket(plugin, key)
	if b := p.Bucket(name); b != nil {
		return b, nil
	}
	b, err := p.CreateBucket(name)
	if err == nil && r.k != nil {
		err = b.Put(keyOfBucket, r.encode(r.at("key", plugin, string(name)), []byte(key)))
	}
	return b, err
}

// keyOf is the key that a bucket of a plugin is for.
func (r *record) keyOf(plugin string, name []byte, b *bbolt.Bucket) (string, error) {
	if r.k == nil {
		if len(name) == 0 || name[0] != plainBucket {
			return "", errUnreadable
		}
		return string(name[1:]), nil
	}
	key, err := r.decode(r.at("key", plugin, string(name)), b.Get(keyOfBucket))
	return string(key), err
}

// A row is the time of its writing, in milliseconds, and the JSON.
func (s *Store) encodeRow(r *record, p place, v []byte) []byte {
	payload := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(v)), uint64(s.o.Now().UnixMilli()))
	return r.encode(p, append(payload, v...))
}

func (r *record) decodeRow(p place, v []byte) (json.RawMessage, time.Time, error) {
	payload, err := r.decode(p, v)
	if err == nil && (len(payload) < 8 || !json.Valid(payload[8:])) {
		err = errUnreadable
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return bytes.Clone(payload[8:]), time.UnixMilli(int64(num64(payload))).UTC(), nil
}

func (r *record) rowPlace(plugin, key string) place { return r.at("rows", plugin, key) }

func (r *Rows) read(chat string, f func(*record) error) {
	err := r.s.read(func(tx *bbolt.Tx) error {
		e, err := r.s.find(chat)
		if err != nil {
			return nil
		}
		rec, err := r.s.open(tx, e.id)
		if err != nil {
			return nil
		}
		return f(rec)
	})
	if err != nil {
		r.s.o.Logger.Warn("rows", "plugin", r.plugin, "err", err)
	}
}

func (r *Rows) write(chat, key string, values []json.RawMessage, f func(*txn, *record) error) error {
	if err := r.check(key, values); err != nil {
		return err
	}
	return r.s.write(r.pace, func(t *txn) error {
		e, err := r.s.find(chat)
		if err != nil {
			return err
		}
		rec, err := r.s.open(t.Tx, e.id)
		if err != nil {
			return err
		}
		if len(values) > 0 {
			if err := r.s.room(t); err != nil {
				return err
			}
		}
		return f(t, rec)
	})
}

func (r *Rows) check(key string, values []json.RawMessage) error {
	if err := checkKey("plugin", r.plugin); err != nil {
		return err
	}
	if len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("a key is text of at most %d bytes", maxKey)
	}
	for _, v := range values {
		if !json.Valid(v) {
			return fmt.Errorf("rows of %s: a value is not JSON", r.plugin)
		}
		if len(v) > maxValue {
			return fmt.Errorf("rows of %s: %w, at most %d bytes in a value", r.plugin, ErrTooLarge, maxValue)
		}
	}
	return nil
}

// checkKey bounds what becomes the name of a bucket.
func checkKey(what, key string) error {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return fmt.Errorf("a %s's name is text of 1 to %d bytes", what, maxKey)
	}
	return nil
}

// Get returns the value in slot 0. A null counts as none.
func (r *Rows) Get(chat, key string) (v json.RawMessage, ok bool) {
	r.read(chat, func(rec *record) error {
		v, ok = rec.slot0(r.plugin, key)
		return nil
	})
	return v, ok
}

func (r *record) slot0(plugin, key string) (json.RawMessage, bool) {
	b := r.rowsOf(plugin, key)
	if b == nil {
		return nil, false
	}
	v, _, err := r.decodeRow(r.rowPlace(plugin, key).seq(0), b.Get(key64(0)))
	if err != nil || strings.TrimSpace(string(v)) == "null" {
		return nil, false
	}
	return v, true
}

// Put sets the value in slot 0.
func (r *Rows) Put(chat, key string, v json.RawMessage) error {
	return r.write(chat, key, []json.RawMessage{v}, func(t *txn, rec *record) error {
		b, err := rec.makeRowsOf(r.plugin, key)
		if err != nil {
			return t.fault(err)
		}
		return t.fault(b.Put(key64(0), r.s.encodeRow(rec, rec.rowPlace(r.plugin, key).seq(0), v)))
	})
}

// Append adds a value and returns its number.
func (r *Rows) Append(chat, key string, v json.RawMessage) (uint64, error) {
	seqs, err := r.AppendMany(chat, key, []json.RawMessage{v})
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

// AppendMany adds values, all or none, and returns their numbers.
func (r *Rows) AppendMany(chat, key string, values []json.RawMessage) (seqs []uint64, err error) {
	err = r.write(chat, key, values, func(t *txn, rec *record) error {
		if len(values) == 0 {
			return errUnchanged
		}
		b, err := rec.makeRowsOf(r.plugin, key)
		if err != nil {
			return t.fault(err)
		}
		seqs, err = r.add(rec, b, key, lastSeq(b), values)
		return t.fault(err)
	})
	return seqs, err
}

func (r *Rows) add(rec *record, b *bbolt.Bucket, key string, seq uint64, values []json.RawMessage) (seqs []uint64, err error) {
	p := rec.rowPlace(r.plugin, key)
	b.FillPercent = appendFill
	for _, v := range values {
		seq++
		if err := b.Put(key64(seq), r.s.encodeRow(rec, p.seq(seq), v)); err != nil {
			return nil, err
		}
		seqs = append(seqs, seq)
	}
	return seqs, nil
}

// lastSeq is the highest number in a bucket of rows; 0 if there is none. The key of a sealed bucket comes after all
// numbers there can be.
func lastSeq(b *bbolt.Bucket) uint64 {
	c := b.Cursor()
	k, _ := c.Last()
	if k != nil && len(k) != 8 {
		k, _ = c.Prev()
	}
	if k == nil {
		return 0
	}
	return num64(k)
}

// eachRow calls f with the rows of a bucket, in order.
func eachRow(b *bbolt.Bucket, f func(seq uint64, v []byte)) {
	if b == nil {
		return
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) == 8 {
			f(num64(k), v)
		}
	}
}

// ReadAll returns all values in the order of their numbers, that of slot 0 first. What can't be read is left out.
func (r *Rows) ReadAll(chat, key string) (values []json.RawMessage) {
	r.read(chat, func(rec *record) error {
		p := rec.rowPlace(r.plugin, key)
		eachRow(rec.rowsOf(r.plugin, key), func(seq uint64, v []byte) {
			if value, _, err := rec.decodeRow(p.seq(seq), v); err == nil {
				values = append(values, value)
			}
		})
		return nil
	})
	return values
}

// Replace makes the values, numbered from 1, all that there is under the key. With none it deletes.
func (r *Rows) Replace(chat, key string, values []json.RawMessage) error {
	return r.write(chat, key, values, func(t *txn, rec *record) error {
		if rec.rowsOf(r.plugin, key) == nil && len(values) == 0 {
			return errUnchanged
		}
		if err := rec.deleteRows(r.plugin, key); err != nil {
			return t.fault(err)
		}
		if len(values) == 0 {
			return nil
		}
		b, err := rec.makeRowsOf(r.plugin, key)
		if err == nil {
			_, err = r.add(rec, b, key, 0, values)
		}
		return t.fault(err)
	})
}

func (r *record) deleteRows(plugin, key string) error {
	if r.rowsOf(plugin, key) == nil {
		return nil
	}
	p := r.b.Bucket(rowsBucket).Bucket(pluginBucket(plugin))
	if err := p.DeleteBucket(r.keyBucket(plugin, key)); err != nil {
		return err
	}
	if k, _ := p.Cursor().First(); k == nil {
		return r.b.Bucket(rowsBucket).DeleteBucket(pluginBucket(plugin))
	}
	return nil
}

// Delete removes what is under the key. A chat that is not there is no error; one that may be in the locked vault is.
func (r *Rows) Delete(chat, key string) error {
	return r.tolerate(r.write(chat, key, nil, func(t *txn, rec *record) error {
		if rec.rowsOf(r.plugin, key) == nil {
			return errUnchanged
		}
		return t.fault(rec.deleteRows(r.plugin, key))
	}))
}

// DeleteAll removes all that the plugin has in the chat, like Delete.
func (r *Rows) DeleteAll(chat string) error {
	return r.tolerate(r.write(chat, "", nil, func(t *txn, rec *record) error {
		rows := rec.b.Bucket(rowsBucket)
		if rows.Bucket(pluginBucket(r.plugin)) == nil {
			return errUnchanged
		}
		return t.fault(rows.DeleteBucket(pluginBucket(r.plugin)))
	}))
}

func (r *Rows) tolerate(err error) error {
	if err == ErrNoChat {
		return nil
	}
	return err
}

// Keys returns the keys that the plugin has in the chat, sorted.
func (r *Rows) Keys(chat string) (keys []string) {
	r.read(chat, func(rec *record) error {
		p := rec.b.Bucket(rowsBucket).Bucket(pluginBucket(r.plugin))
		if p == nil {
			return nil
		}
		return p.ForEachBucket(func(name []byte) error {
			if key, err := rec.keyOf(r.plugin, name, p.Bucket(name)); err == nil {
				keys = append(keys, key)
			}
			return nil
		})
	})
	slices.Sort(keys)
	return keys
}

// AllChats returns the values in slot 0 of the key, by the names of the chats.
func (r *Rows) AllChats(key string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	err := r.s.read(func(tx *bbolt.Tx) error {
		for _, e := range r.s.index.Load().byID {
			rec, err := r.s.open(tx, e.id)
			if err != nil {
				continue
			}
			if v, ok := rec.slot0(r.plugin, key); ok {
				all[e.name] = v
			}
		}
		return nil
	})
	if err != nil {
		r.s.o.Logger.Warn("rows", "plugin", r.plugin, "err", err)
	}
	return all
}

// A RowsMeta describes what is under a key.
type RowsMeta struct {
	Rows    int
	Updated time.Time // of the newest
}

// Meta describes what is under a key, if anything is.
func (r *Rows) Meta(chat, key string) (m RowsMeta, ok bool) {
	r.read(chat, func(rec *record) error {
		p := rec.rowPlace(r.plugin, key)
		eachRow(rec.rowsOf(r.plugin, key), func(seq uint64, v []byte) {
			m.Rows++
			if _, at, err := rec.decodeRow(p.seq(seq), v); err == nil && at.After(m.Updated) {
				m.Updated = at
			}
		})
		return nil
	})
	return m, m.Rows > 0
}

// Purge removes all that the plugin has in any chat, except in those of the locked vault. It returns how many chats
// had something that is gone, and how many are locked.
func (r *Rows) Purge() (deleted, locked int, err error) {
	if err := checkKey("plugin", r.plugin); err != nil {
		return 0, 0, err
	}
	err = r.s.write(alone, func(t *txn) error {
		x := r.s.index.Load()
		locked = x.hidden
		for id := range x.byID {
			rows := t.Bucket(chatsBucket).Bucket(key64(id)).Bucket(rowsBucket)
			if rows.Bucket(pluginBucket(r.plugin)) == nil {
				continue
			}
			if err := rows.DeleteBucket(pluginBucket(r.plugin)); err != nil {
				return err
			}
			deleted++
		}
		if deleted == 0 {
			return errUnchanged
		}
		return nil
	})
	return deleted, locked, err
}

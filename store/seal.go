package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// sealMarked seals the chats that are marked as private and are not sealed.
func (s *Store) sealMarked(t *txn) error {
	var marked []*record
	err := t.Bucket(chatsBucket).ForEachBucket(func(k []byte) error {
		r, err := s.open(t.Tx, num64(k))
		if err != nil || r.Sealed {
			return err
		}
		if settings, err := r.settings(); err == nil && settings.PrivateChat {
			marked = append(marked, r)
		}
		return nil
	})
	for _, r := range marked {
		err = errors.Join(err, s.sealChat(t, r), r.putHead())
	}
	return err
}

// mustScrub notes, also in the file, that old pages must not be readable any more once t is committed.
func mustScrub(t *txn) error {
	t.scrub = true
	return t.Bucket(metaBucket).Put(scrubKey, []byte{1})
}

// sealChat seals all of a chat. The head is left to the caller.
func (s *Store) sealChat(t *txn, r *record) error {
	name, err := r.name()
	if err != nil {
		return err
	}
	t.tell(Change{Kind: Vaulted, Name: name, Private: true})
	if err := errors.Join(t.Bucket(namesBucket).Delete([]byte(name)), mustScrub(t)); err != nil {
		return err
	}
	// What is damaged is left out: it can't be shown to be harmless.
	return s.recode(r, coder{s.keys}, name, func(error) error { return nil })
}

// announceUnseal notes in the file that a chat is about to be unsealed, if private is false and it is sealed. When that is
// cut off, pages that were written already would have plain text in them. It is called with the lock, which is kept until it is unsealed.
func (c *Chat) announceUnseal(private json.RawMessage) error {
	if private == nil || string(private) == "true" {
		return nil
	}
	return c.s.writeLocked(alone, func(t *txn) error {
		r, err := openHead(t.Tx, c.id)
		if err != nil {
			return err
		}
		if !r.Sealed || c.s.keys == nil {
			return errUnchanged
		}
		return t.Bucket(metaBucket).Put(unsealKey, []byte{1})
	})
}

// unsealChat unseals all of a chat, or returns an error if anything can't be read.
func (s *Store) unsealChat(t *txn, r *record) error {
	name, err := r.name()
	if err != nil {
		return err
	}
	if err := errors.Join(t.Bucket(metaBucket).Delete(unsealKey), t.Bucket(namesBucket).Put([]byte(name), key64(r.id))); err != nil {
		return err
	}
	return s.recode(r, coder{}, name, func(err error) error { return err })
}

// recode writes everything in a chat with another coder. bad is called for what can't be read: if it returns nil, that
// is left out.
func (s *Store) recode(r *record, to coder, name string, bad func(error) error) error {
	settings, err := r.settings()
	if err != nil {
		if err := bad(fmt.Errorf("the chat stays private: its %w", err)); err != nil {
			return err
		}
	}
	from := *r
	if err := recodeMessages(&from, to, bad); err != nil {
		return err
	}
	if err := recodeRows(&from, to, bad); err != nil {
		return err
	}
	r.coder = to
	r.Sealed = to.k != nil
	return errors.Join(r.putName(name), r.putSettings(settings))
}

// recodeMessages does it with the messages.
func recodeMessages(from *record, to coder, bad func(error) error) error {
	type value struct{ k, v []byte }
	var values []value // a bucket must not be changed while it is walked through
	p := from.at("messages")
	b := from.messages()
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		var recoded []byte // nil: none
		payload, err := []byte(nil), errUnreadable
		if len(k) == 8 {
			payload, err = from.decode(p.seq(num64(k)), v)
		}
		if err == nil {
			recoded = to.encode(p.seq(num64(k)), payload)
		} else if err := bad(fmt.Errorf("the chat stays private: a message: %w", err)); err != nil {
			return err
		}
		values = append(values, value{bytes.Clone(k), recoded})
	}
	for _, x := range values {
		err := error(nil)
		if x.v == nil {
			err = b.Delete(x.k)
		} else {
			err = b.Put(x.k, x.v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recodeRows does it with the rows of all plugins.
func recodeRows(from *record, to coder, bad func(error) error) error {
	rows := from.b.Bucket(rowsBucket)
	target := *from
	target.coder = to
	for _, plugin := range bucketNames(rows) {
		of := rows.Bucket(plugin)
		for _, name := range bucketNames(of) {
			b := of.Bucket(name)
			key, err := from.keyOf(string(plugin[1:]), name, b)
			if err != nil {
				if err := bad(fmt.Errorf("the chat stays private: plugin data of %s: %w", plugin[1:], err)); err != nil {
					return err
				}
				if err := of.DeleteBucket(name); err != nil {
					return err
				}
				continue
			}
			p := from.rowPlace(string(plugin[1:]), key)
			if err := moveRows(from, &target, string(plugin[1:]), key, p, bad); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveRows does it with the rows of one key, into the bucket which that has with the other coder.
func moveRows(from, target *record, plugin, key string, p place, bad func(error) error) error {
	old := from.rowsOf(plugin, key)
	if old == nil {
		return bad(fmt.Errorf("the chat stays private: plugin data of %s: %w", plugin, errUnreadable))
	}
	b, err := target.makeRowsOf(plugin, key)
	if err != nil {
		return err
	}
	c := old.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if len(k) != 8 {
			continue
		}
		payload, err := from.decode(p.seq(num64(k)), v)
		if err != nil {
			if err := bad(fmt.Errorf("the chat stays private: plugin data of %s: %w", plugin, err)); err != nil {
				return err
			}
			continue
		}
		if err := b.Put(bytes.Clone(k), target.encode(p.seq(num64(k)), payload)); err != nil {
			return err
		}
	}
	return from.b.Bucket(rowsBucket).Bucket(pluginBucket(plugin)).DeleteBucket(from.keyBucket(plugin, key))
}

func bucketNames(b *bbolt.Bucket) (names [][]byte) {
	b.ForEachBucket(func(k []byte) error { names = append(names, bytes.Clone(k)); return nil })
	return names
}

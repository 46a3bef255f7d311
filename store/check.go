package store

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// check says whether a database, whose structure is sound, can be worked with: names and chats belong together, nothing
// is sealed by half. Messages and rows that can't be read are only counted. What is sealed can't be read here.
func check(tx *bbolt.Tx) (unreadable int, err error) {
	for _, name := range [][]byte{metaBucket, namesBucket, chatsBucket, stateBucket, otherBucket} {
		if tx.Bucket(name) == nil {
			return 0, fmt.Errorf("bucket %s is missing", name)
		}
	}
	if v := tx.Bucket(metaBucket).Get(vaultKey); v != nil {
		if err := (coder{}).decodeJSON(at(0, "vault"), v, new(vault)); err != nil {
			return 0, fmt.Errorf("the vault: %w", err)
		}
	}
	if v := tx.Bucket(metaBucket).Get(activeKey); v != nil && (len(v) != 8 || tx.Bucket(chatsBucket).Bucket(v) == nil) {
		return 0, errors.New("the active chat is missing")
	}
	named := 0
	err = tx.Bucket(chatsBucket).ForEach(func(k, v []byte) error {
		if len(k) != 8 || v != nil {
			return errors.New("something that is not a chat")
		}
		r, err := openHead(tx, num64(k))
		if err != nil {
			return err
		}
		if r.messages() == nil || r.b.Bucket(rowsBucket) == nil {
			return errors.New("half a chat")
		}
		if !r.Sealed {
			name, err := r.name()
			if err != nil {
				return fmt.Errorf("the name of a chat: %w", err)
			}
			if !bytes.Equal(tx.Bucket(namesBucket).Get([]byte(name)), k) {
				return errors.New("a chat is not found by its name")
			}
			named++
		}
		n, err := r.checkValues()
		unreadable += n
		return err
	})
	if err != nil {
		return 0, err
	}
	names := 0
	tx.Bucket(namesBucket).ForEach(func(_, _ []byte) error { names++; return nil })
	if names != named {
		return 0, fmt.Errorf("%d names for %d chats", names, named)
	}
	return unreadable, nil
}

// checkValues counts what can't be read in a chat. Something plain in a sealed chat is an error.
func (r *record) checkValues() (unreadable int, err error) {
	one := func(p place, v []byte) {
		if r.Sealed {
			if len(v) == 0 || v[0] != sealedKind {
				err = errors.New("something in a sealed chat is not sealed")
			}
		} else if _, e := unplain(p, v); e != nil {
			unreadable++
		}
	}
	one(r.at("name"), r.b.Get(nameKey))
	if v := r.b.Get(settingsKey); v != nil {
		one(r.at("settings"), v)
	}
	p := r.at("messages")
	r.messages().ForEach(func(k, v []byte) error {
		if len(k) == 8 {
			one(p.seq(num64(k)), v)
		} else {
			unreadable++
		}
		return nil
	})
	rows := r.b.Bucket(rowsBucket)
	for _, plugin := range bucketNames(rows) {
		of := rows.Bucket(plugin)
		for _, name := range bucketNames(of) {
			b := of.Bucket(name)
			if r.Sealed {
				if name[0] != sealedBucket {
					return unreadable, errors.New("a key in a sealed chat is not sealed")
				}
				one(nil, b.Get(keyOfBucket))
			}
			rp := r.at("rows", string(plugin[1:]), string(name[1:])) // of a chat that is not sealed
			eachRow(b, func(seq uint64, v []byte) { one(rp.seq(seq), v) })
		}
	}
	return unreadable, err
}

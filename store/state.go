package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"go.etcd.io/bbolt"
)

// maxState bounds what one plugin keeps, as JSON.
const maxState = 4 << 20

// A State is what one plugin keeps between runs, whatever the chat: JSON values by key, durable when a call returns.
type State struct {
	s      *Store
	plugin string
	mu     sync.Mutex // held by all that write
}

// State returns the state of a plugin; for one plugin it is always the same.
func (s *Store) State(plugin string) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = make(map[string]*State)
	}
	st := s.states[plugin]
	if st == nil {
		st = &State{s: s, plugin: plugin}
		s.states[plugin] = st
	}
	return st
}

func (st *State) at(key string) place { return at(0, "state", st.plugin, key) }

func (st *State) bucket(tx *bbolt.Tx) *bbolt.Bucket {
	return tx.Bucket(stateBucket).Bucket(pluginBucket(st.plugin))
}

func (st *State) get(key string) (v any, ok bool) {
	err := st.s.read(func(tx *bbolt.Tx) error {
		if b := st.bucket(tx); b != nil {
			if value := b.Get(stateKey(key)); value != nil {
				ok = true
				return (coder{}).decodeJSON(st.at(key), value, &v)
			}
		}
		return nil
	})
	if err != nil {
		st.s.o.Logger.Warn("state", "plugin", st.plugin, "err", err)
		return nil, false
	}
	return v, ok
}

func stateKey(key string) []byte { return []byte("k" + key) }

// Get returns a value, or def if there is none.
func (st *State) Get(key string, def any) any {
	if v, ok := st.get(key); ok {
		return v
	}
	return def
}

// All returns the values. What can't be read is left out.
func (st *State) All() map[string]any {
	all := make(map[string]any)
	err := st.s.read(func(tx *bbolt.Tx) error {
		b := st.bucket(tx)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, value []byte) error {
			var v any
			if key := string(k[1:]); (coder{}).decodeJSON(st.at(key), value, &v) == nil {
				all[key] = v
			}
			return nil
		})
	})
	if err != nil {
		st.s.o.Logger.Warn("state", "plugin", st.plugin, "err", err)
	}
	return all
}

// Save sets a value.
func (st *State) Save(key string, value any) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.save(map[string]any{key: value})
}

func (st *State) save(values map[string]any) error {
	if err := checkKey("plugin", st.plugin); err != nil {
		return err
	}
	encoded := make(map[string][]byte, len(values))
	for key, value := range values {
		if len(key) > maxKey {
			return fmt.Errorf("the state of %s: a key has at most %d bytes", st.plugin, maxKey)
		}
		payload, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("the state of %s: %w", st.plugin, err)
		}
		encoded[key] = plain(st.at(key), payload)
	}
	return st.s.write(now, func(t *txn) error {
		if err := st.s.room(t); err != nil {
			return err
		}
		if err := st.fits(t.Tx, encoded); err != nil {
			return err
		}
		b, err := t.Bucket(stateBucket).CreateBucketIfNotExists(pluginBucket(st.plugin))
		if err != nil {
			return t.fault(err)
		}
		for key, v := range encoded {
			if err := b.Put(stateKey(key), v); err != nil {
				return t.fault(err)
			}
		}
		return nil
	})
}

// fits says whether the plugin's state stays small enough with the new values.
func (st *State) fits(tx *bbolt.Tx, values map[string][]byte) error {
	size := 0
	for key, v := range values {
		size += len(key) + len(v)
	}
	if b := st.bucket(tx); b != nil {
		b.ForEach(func(k, v []byte) error {
			if _, ok := values[string(k[1:])]; !ok {
				size += len(k) + len(v)
			}
			return nil
		})
	}
	if size > maxState {
		return fmt.Errorf("the state of %s: %w, at most %d bytes", st.plugin, ErrTooLarge, maxState)
	}
	return nil
}

// Delete removes a value.
func (st *State) Delete(key string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.s.write(now, func(t *txn) error {
		b := st.bucket(t.Tx)
		if b == nil || b.Get(stateKey(key)) == nil {
			return errUnchanged
		}
		return t.fault(b.Delete(stateKey(key)))
	})
}

// Clear removes all values.
func (st *State) Clear() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.s.write(now, func(t *txn) error {
		if st.bucket(t.Tx) == nil {
			return errUnchanged
		}
		return t.fault(t.Bucket(stateBucket).DeleteBucket(pluginBucket(st.plugin)))
	})
}

// Update replaces a value by what f makes of it, def if there is none, while nobody else changes the plugin's state, and
// returns it. f may read the state.
func (st *State) Update(key string, def any, f func(any) (any, error)) (any, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	value, err := f(st.Get(key, def))
	if err != nil {
		return nil, err
	}
	return value, st.save(map[string]any{key: value})
}

// ImportState takes over the state of a plugin from the JSON file at path, an object, unless the plugin has a state here
// already, and renames the file so that it ends in ".imported". It reports whether it took anything over. A file that is
// not there is none.
func (s *Store) ImportState(plugin, path string) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		return false, fmt.Errorf("the state in %s: %w", path, err)
	}
	st := s.State(plugin)
	st.mu.Lock()
	defer st.mu.Unlock()
	fresh := len(values) > 0 && len(st.All()) == 0
	if fresh {
		if err := st.save(values); err != nil {
			return false, err
		}
	}
	return fresh, os.Rename(path, path+".imported")
}

package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A State is what one plugin keeps between runs: JSON values by key, in a file that is replaced as a whole at each
// change. It may be used by several goroutines; for one plugin there must be one State.
type State struct {
	mu     sync.Mutex
	path   string
	values map[string]any
}

// maxState bounds the file of a plugin's state.
const maxState = 4 << 20

// OpenState reads the state in the file at path, which need not be there. A file that can't be read is set aside, and
// its new name is in the error; the state is usable, and empty.
func OpenState(path string) (*State, error) {
	s := &State{path: path, values: make(map[string]any)}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	}
	if err := json.Unmarshal(text, &s.values); err != nil || s.values == nil {
		s.values = make(map[string]any)
		bad := path + ".bad-" + time.Now().UTC().Format("20060102T150405Z")
		return s, errors.Join(fmt.Errorf("the state %s can't be read, it is kept as %s: %w", path, bad, err), os.Rename(path, bad))
	}
	return s, nil
}

// Get returns a value, or def if there is none.
func (s *State) Get(key string, def any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v
	}
	return def
}

// All returns a copy of the values, which themselves must not be changed.
func (s *State) All() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// Save sets a value, durably.
func (s *State) Save(key string, value any) error {
	return s.change(func(v map[string]any) error { v[key] = value; return nil })
}

// Delete removes a value, durably.
func (s *State) Delete(key string) error {
	return s.change(func(v map[string]any) error { delete(v, key); return nil })
}

// Update replaces a value by what f makes of it, def if there is none, while nobody else changes it, and returns it.
func (s *State) Update(key string, def any, f func(any) (any, error)) (value any, err error) {
	err = s.change(func(v map[string]any) error {
		old, ok := v[key]
		if !ok {
			old = def
		}
		if value, err = f(old); err == nil {
			v[key] = value
		}
		return err
	})
	return value, err
}

func (s *State) change(f func(map[string]any) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := maps.Clone(s.values)
	if err := f(changed); err != nil {
		return err
	}
	text, err := json.MarshalIndent(changed, "", "  ")
	if err != nil {
		return err
	}
	if len(text) > maxState {
		return fmt.Errorf("the state would be larger than %d bytes", maxState)
	}
	if err := replaceFile(s.path, text); err != nil {
		return err
	}
	s.values = changed
	return nil
}

// replaceFile writes a file so that there is always a whole one, the old or the new.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/store"

	"go.etcd.io/bbolt"
)

const passphrase = "correct horse"

func begin() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// A world is a store, its clock, and what it told.
type world struct {
	*testing.T
	*store.Store
	clock   *clock.Virtual
	path    string
	o       store.Options
	mu      sync.Mutex
	changes []store.Change
}

func newWorld(t *testing.T, set ...func(*store.Options)) *world {
	w := &world{T: t, clock: clock.NewVirtual(begin()), path: filepath.Join(t.TempDir(), "state", "bellbird.db")}
	w.o = store.Options{Now: w.clock.Now, AfterFunc: w.clock.AfterFunc, ScryptN: 2, After: func(c store.Change) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changes = append(w.changes, c)
	}}
	for _, f := range set {
		f(&w.o)
	}
	w.open()
	t.Cleanup(func() { w.must(w.Close()) })
	return w
}

func (w *world) open() {
	w.Helper()
	s, err := store.Open(w.path, w.o)
	w.must(err)
	w.Store = s
}

func (w *world) reopen() {
	w.Helper()
	w.must(w.Close())
	w.open()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wants fails the test unless err is want.
func (w *world) wants(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("error %v, want %v", err, want)
	}
}

// told returns what was told since the last call.
func (w *world) told() []store.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.changes
	w.changes = nil
	return c
}

func (w *world) wantTold(want ...store.Change) {
	w.Helper()
	if got := w.told(); !slices.Equal(got, want) {
		w.Errorf("told %+v, want %+v", got, want)
	}
}

func (w *world) names() (names []string) {
	w.Helper()
	list, err := w.Chats()
	w.must(err)
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

func (w *world) wantNames(want ...string) {
	w.Helper()
	if got := w.names(); !slices.Equal(got, want) {
		w.Errorf("chats %q, want %q", got, want)
	}
}

func (w *world) chat(name string) *store.Chat {
	w.Helper()
	c, err := w.Chat(name)
	w.must(err)
	return c
}

// private makes a chat, with a vault that is set up if need be, and seals it.
func (w *world) private(name string) *store.Chat {
	w.Helper()
	if there, _ := w.Vault(); !there {
		w.must(w.SetUp(passphrase))
	}
	w.must(w.Create(name))
	w.seal(name)
	return w.chat(name)
}

func (w *world) seal(name string) {
	w.Helper()
	_, err := w.Set(name, map[string]any{"private_chat": true})
	w.must(err)
}

func (w *world) unseal(name string) error {
	_, err := w.Set(name, map[string]any{"private_chat": false})
	return err
}

// found reports which of the words are in the files of the store.
func (w *world) found(words ...string) (found []string) {
	w.Helper()
	files, err := filepath.Glob(w.path + "*")
	w.must(err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a snapshot that was being made has got its name
		}
		w.must(err)
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) {
				found = append(found, filepath.Base(f)+": "+word)
			}
		}
	}
	return found
}

// poke changes the closed database file behind the store's back.
func (w *world) poke(f func(tx *bbolt.Tx) error) {
	w.Helper()
	db, err := bbolt.Open(w.path, 0o600, &bbolt.Options{NoFreelistSync: true})
	w.must(err)
	w.must(db.Update(f))
	w.must(db.Close())
}

// eachRow walks through all values of a plugin's rows in the file, of which a sealed one begins with an s.
func eachRow(tx *bbolt.Tx, plugin string, f func(b *bbolt.Bucket, k, v []byte) error) error {
	chats := tx.Bucket([]byte("chats"))
	return chats.ForEachBucket(func(id []byte) error {
		of := chats.Bucket(id).Bucket([]byte("rows")).Bucket([]byte("p" + plugin))
		if of == nil {
			return nil
		}
		return of.ForEachBucket(func(key []byte) error {
			return of.Bucket(key).ForEach(func(k, v []byte) error { return f(of.Bucket(key), bytes.Clone(k), bytes.Clone(v)) })
		})
	})
}

func say(role dialog.Role, text string) dialog.Message {
	return dialog.Message{Role: role, Content: text}
}

func contents(messages []dialog.Message) (all []string) {
	for _, m := range messages {
		all = append(all, m.Content)
	}
	return all
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func raws(s ...string) (all []json.RawMessage) {
	for _, s := range s {
		all = append(all, raw(s))
	}
	return all
}

func join(values []json.RawMessage) string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return strings.Join(all, " ")
}

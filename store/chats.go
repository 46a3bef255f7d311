package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// DefaultName is the name of the chat that is there when there is no other.
const DefaultName = "default"

// Bounds of chats.
const (
	maxName  = 100 // characters
	maxChats = 1000
)

// An Info is a chat in a list.
type Info struct {
	Name    string
	Active  bool
	Private bool // marked as private
	Sealed  bool // and sealed in the file
	Pinned  bool
	Created time.Time
	Used    time.Time // of the last message; zero: there is none
}

func trimName(name string) string { return strings.TrimSpace(name) }

// checkName returns the name as it is stored.
func checkName(name string) (string, error) {
	name = trimName(name)
	switch {
	case name == "":
		return "", errors.New("a chat needs a name")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("the name of a chat is text without control characters")
	case utf8.RuneCountInString(name) > maxName:
		return "", fmt.Errorf("the name of a chat has at most %d characters", maxName)
	}
	return name, nil
}

// Chats lists the chats, by name. While the vault is locked those in it are not there.
func (s *Store) Chats() ([]Info, error) {
	var list []Info
	err := s.read(func(tx *bbolt.Tx) error {
		x := s.index.Load()
		for _, e := range x.byID {
			r, err := s.open(tx, e.id)
			if err != nil {
				return err
			}
			i := Info{Name: e.name, Active: e.id == x.active, Private: e.private, Sealed: e.Sealed, Pinned: e.Pinned, Created: e.Created}
			if k, v := r.messages().Cursor().Last(); k != nil {
				if m, err := r.message(k, v); err == nil {
					i.Used = m.Time
				}
			}
			list = append(list, i)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// Create makes a chat. Its name has at most 100 characters; space around it is removed.
func (s *Store) Create(name string) error {
	name, err := checkName(name)
	if err != nil {
		return err
	}
	return s.write(alone, func(t *txn) error {
		if err := s.room(t); err != nil {
			return err
		}
		x := s.index.Load()
		if x.byName[name] != nil {
			return ErrExists
		}
		if x.total >= maxChats {
			return ErrTooMany
		}
		_, err := s.create(t, name)
		return err
	})
}

func (s *Store) create(t *txn, name string) (id uint64, err error) {
	t.chats = true
	chats := t.Bucket(chatsBucket)
	names := t.Bucket(namesBucket)
	if id, err = names.NextSequence(); err != nil {
		return 0, err
	}
	b, err := chats.CreateBucket(key64(id))
	if err != nil {
		return 0, err
	}
	r := &record{id: id, b: b, head: head{Created: s.o.Now().UTC()}}
	_, err1 := b.CreateBucket(messagesBucket)
	_, err2 := b.CreateBucket(rowsBucket)
	return id, errors.Join(err1, err2, r.putHead(), r.putName(name), names.Put([]byte(name), key64(id)))
}

// Activate makes a chat the one that is talked in.
func (s *Store) Activate(name string) error {
	return s.write(alone, func(t *txn) error {
		e, err := s.find(name)
		if err != nil {
			return err
		}
		if s.index.Load().active == e.id {
			return errUnchanged
		}
		s.touch(e.Sealed)
		return setActive(t, e.id)
	})
}

func setActive(t *txn, id uint64) error {
	t.chats = true
	return t.Bucket(metaBucket).Put(activeKey, key64(id))
}

// Rename gives a chat another name. Nothing else of it is touched.
func (s *Store) Rename(old, name string) error {
	name, err := checkName(name)
	if err != nil {
		return err
	}
	return s.write(alone, func(t *txn) error {
		e, err := s.find(old)
		if err != nil {
			return err
		}
		if e.name == name {
			return errUnchanged
		}
		if _, err := s.find(name); err == nil {
			return ErrExists
		}
		r, err := s.open(t.Tx, e.id)
		if err != nil {
			return err
		}
		t.tell(Change{Kind: Renamed, Name: name, Old: e.name, Private: e.private})
		return rename(t, r, e.name, name)
	})
}

func rename(t *txn, r *record, old, name string) error {
	t.chats = true
	if !r.Sealed {
		names := t.Bucket(namesBucket)
		if err := errors.Join(names.Delete([]byte(old)), names.Put([]byte(name), key64(r.id))); err != nil {
			return err
		}
	}
	return r.putName(name)
}

// Delete removes a chat with all that is in it. If it was the active one, the one used last becomes active; if it was the
// last that is visible, there is a new one named DefaultName.
func (s *Store) Delete(name string) error {
	return s.write(alone, func(t *txn) error {
		e, err := s.find(name)
		if err != nil {
			return err
		}
		if err := t.Bucket(chatsBucket).DeleteBucket(key64(e.id)); err != nil {
			return err
		}
		if !e.Sealed {
			if err := t.Bucket(namesBucket).Delete([]byte(e.name)); err != nil {
				return err
			}
		}
		t.chats = true
		t.tell(Change{Kind: Deleted, Name: e.name, Private: e.private})
		return s.ensureActive(t)
	})
}

// ensureActive sees to it that a chat is visible and that the active one is there.
func (s *Store) ensureActive(t *txn) error {
	x, err := s.indexOf(t.Tx)
	if err != nil {
		return err
	}
	if len(x.byID) == 0 {
		id, err := s.create(t, DefaultName)
		if err != nil {
			return err
		}
		x.byID[id] = &entry{id: id, name: DefaultName}
	}
	if x.active != 0 && t.Bucket(chatsBucket).Bucket(key64(x.active)) != nil {
		return nil // though it may be hidden
	}
	type candidate struct {
		used uint64
		*entry
	}
	var best candidate
	for _, e := range x.byID {
		c := candidate{entry: e}
		if k, _ := t.Bucket(chatsBucket).Bucket(key64(e.id)).Bucket(messagesBucket).Cursor().Last(); k != nil {
			c.used = num64(k)
		}
		if best.entry == nil || c.used > best.used || c.used == best.used && c.name < best.name {
			best = c
		}
	}
	return setActive(t, best.id)
}

// Clear removes the messages of a chat. Its settings and rows stay.
func (s *Store) Clear(name string) error {
	return s.write(alone, func(t *txn) error {
		e, err := s.find(name)
		if err != nil {
			return err
		}
		b := t.Bucket(chatsBucket).Bucket(key64(e.id))
		if err := b.DeleteBucket(messagesBucket); err != nil {
			return err
		}
		t.tell(Change{Kind: Cleared, Name: e.name, Private: e.private})
		_, err = b.CreateBucket(messagesBucket)
		return err
	})
}

// Export writes a chat as JSON; docs/store.md describes it. What can't be read is left out.
func (s *Store) Export(name string, w io.Writer) error {
	c, err := s.Chat(name)
	if err != nil {
		return err
	}
	settings, err := c.Settings()
	if err != nil {
		return err
	}
	messages, err := c.All()
	if err != nil {
		return err
	}
	e := s.index.Load().byID[c.id]
	if e == nil {
		return s.index.Load().missing()
	}
	type message struct {
		Seq uint64 `json:"seq"`
		stored
	}
	out := struct {
		Format   string    `json:"format"`
		Version  int       `json:"version"`
		Name     string    `json:"name"`
		Created  time.Time `json:"created"`
		Settings Settings  `json:"settings"`
		Messages []message `json:"messages"`
	}{"bellbird-chat", 1, e.name, e.Created, settings, make([]message, 0, len(messages))}
	for _, m := range messages {
		out.Messages = append(out.Messages, message{m.Seq, toStored(m)})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

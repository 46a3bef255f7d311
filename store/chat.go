package store

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// The buckets and keys of the file; docs/store.md shows them.
var (
	metaBucket  = []byte("meta")
	namesBucket = []byte("names")
	chatsBucket = []byte("chats")
	stateBucket = []byte("state")
	otherBucket = []byte("other")

	schemaKey = []byte("schema")
	activeKey = []byte("active")
	vaultKey  = []byte("vault")
	scrubKey  = []byte("scrub")  // old pages must not be readable any more
	unsealKey = []byte("unseal") // a chat is being unsealed: unless that is committed, no page of it may be readable

	headKey        = []byte("head")
	nameKey        = []byte("name")
	settingsKey    = []byte("settings")
	messagesBucket = []byte("messages")
	rowsBucket     = []byte("rows")
)

// A head is what of a chat is never sealed, because it must be known while the vault is locked.
type head struct {
	Created time.Time `json:"created"`
	Sealed  bool      `json:"sealed,omitempty"`
	Pinned  bool      `json:"pinned,omitempty"`
}

// A record is a chat within a transaction.
type record struct {
	id uint64
	b  *bbolt.Bucket
	head
	coder
}

func (r *record) at(path ...string) place { return at(r.id, path...) }

// openHead returns a chat of which only the head can be used.
func openHead(tx *bbolt.Tx, id uint64) (*record, error) {
	r := &record{id: id, b: tx.Bucket(chatsBucket).Bucket(key64(id))}
	if r.b == nil {
		return nil, ErrNoChat
	}
	if err := (coder{}).decodeJSON(r.at("head"), r.b.Get(headKey), &r.head); err != nil {
		return nil, fmt.Errorf("%w: the head of a chat: %w", ErrDamaged, err)
	}
	return r, nil
}

// open returns the chat, or ErrLocked.
func (s *Store) open(tx *bbolt.Tx, id uint64) (*record, error) {
	r, err := openHead(tx, id)
	if err != nil {
		return nil, err
	}
	if r.Sealed {
		if s.keys == nil {
			return nil, ErrLocked
		}
		r.k = s.keys
	}
	return r, nil
}

func (r *record) putHead() error {
	return r.b.Put(headKey, (coder{}).encodeJSON(r.at("head"), r.head))
}

func (r *record) name() (string, error) {
	name, err := r.decode(r.at("name"), r.b.Get(nameKey))
	return string(name), err
}

func (r *record) putName(name string) error {
	return r.b.Put(nameKey, r.encode(r.at("name"), []byte(name)))
}

// settings are the chat's settings. Those of a chat whose settings can't be read are the defaults, but private.
func (r *record) settings() (s Settings, err error) {
	s = DefaultSettings()
	if v := r.b.Get(settingsKey); v != nil {
		if err = r.decodeJSON(r.at("settings"), v, &s); err != nil {
			s, err = DefaultSettings(), fmt.Errorf("settings: %w", err)
			s.PrivateChat = true
		}
	}
	s.Pinned = r.Pinned
	s.PrivateChat = s.PrivateChat || r.Sealed
	return s, err
}

func (r *record) putSettings(s Settings) error {
	return r.b.Put(settingsKey, r.encodeJSON(r.at("settings"), s))
}

func (r *record) messages() *bbolt.Bucket { return r.b.Bucket(messagesBucket) }

// An index is what is visible of the chats. It is never changed.
type index struct {
	byName map[string]*entry
	byID   map[uint64]*entry
	active uint64
	hidden int // how many are not visible
	total  int
}

// An entry is a chat in the index.
type entry struct {
	id      uint64
	name    string
	private bool
	surface string
	head
}

// reindex makes the index anew.
func (s *Store) reindex() error {
	return s.readLocked(func(tx *bbolt.Tx) error {
		x, err := s.indexOf(tx)
		if err == nil {
			s.index.Store(x)
		}
		return err
	})
}

func (s *Store) indexOf(tx *bbolt.Tx) (*index, error) {
	x := &index{byName: make(map[string]*entry), byID: make(map[uint64]*entry)}
	if v := tx.Bucket(metaBucket).Get(activeKey); len(v) == 8 {
		x.active = num64(v)
	}
	err := tx.Bucket(chatsBucket).ForEachBucket(func(k []byte) error {
		x.total++
		r, err := s.open(tx, num64(k))
		if err == ErrLocked {
			x.hidden++
			return nil
		}
		if err != nil {
			return err
		}
		e := &entry{id: r.id, head: r.head}
		if e.name, err = r.name(); err != nil {
			if !r.Sealed {
				return fmt.Errorf("%w: the name of a chat: %w", ErrDamaged, err)
			}
			x.hidden++ // sealed with a key that we don't have
			return nil
		}
		settings, _ := r.settings()
		e.surface = settings.ShownOn()
		e.private = settings.PrivateChat
		x.byName[e.name], x.byID[e.id] = e, e
		return nil
	})
	return x, err
}

// find is the chat of a name. While the vault is locked nobody can tell whether a chat is in it or not there at all;
// the error is both then, and never has the name.
func (s *Store) find(name string) (*entry, error) {
	x := s.index.Load()
	if e := x.byName[trimName(name)]; e != nil {
		return e, nil
	}
	return nil, x.missing()
}

func (x *index) missing() error {
	if x.hidden > 0 {
		return errMaybeHidden
	}
	return ErrNoChat
}

var errMaybeHidden = fmt.Errorf("%w, or it is private and %w", ErrNoChat, ErrLocked)

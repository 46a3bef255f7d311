// Package store is what the appliance remembers: chats with their messages and settings, the rows that plugins keep in a
// chat, the state of plugins, and small records of other parts such as timers. It is one bbolt file. Private chats are
// sealed with a key that a passphrase protects.
//
// It is not a cache, not a search index, and it knows nothing of turns or hooks: what happened is told to a function
// that the wiring sets. docs/store.md shows what is where in the file.
//
// All methods may be called by several goroutines. They take turns: a read waits for a commit that is under way.
package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Options are how a store works. The zero value is usable.
type Options struct {
	// Now and AfterFunc are the clock; nil: the system's. AfterFunc calls f once d has passed; stop keeps it from that.
	Now       func() time.Time                                   `toml:"-"`
	AfterFunc func(d time.Duration, f func()) (stop func() bool) `toml:"-"`
	Logger    *slog.Logger                                       `toml:"-"` // nil: none
	// After is called with each change once it is committed, one at a time, in the order of the commits. It may use the
	// store. What it is told of private chats is not for logs.
	After func(Change) `toml:"-"`

	// OpenTimeout is how long to wait for another process to let go of the file; default 2 s.
	OpenTimeout time.Duration `toml:"open_timeout"`
	// BatchDelay is how long a write that nobody waits for may stay in memory; default 1 s.
	BatchDelay time.Duration `toml:"batch_delay"`
	// MaxBytes is how much the file may hold. Above it the oldest messages of chats that aren't pinned are removed, and
	// when that is not enough, writes are refused; default 64 MiB.
	MaxBytes int64 `toml:"max_bytes"`
	// HistoryMessages and HistoryBytes bound what Chat.Messages returns; default 40 messages and 32 KiB.
	HistoryMessages int `toml:"history_messages"`
	HistoryBytes    int `toml:"history_bytes"`
	// VaultIdle is how long the vault stays open while no private chat is used; default 30 min, negative: for ever.
	VaultIdle time.Duration `toml:"vault_idle"`
	// ScryptN is the cost of a guess at a new passphrase, a power of two; default 32768, which takes 32 MiB of memory.
	ScryptN int `toml:"scrypt_n"`
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.After == nil {
		o.After = func(Change) {}
	}
	orElse(&o.OpenTimeout, 2*time.Second)
	orElse(&o.BatchDelay, time.Second)
	orElse(&o.MaxBytes, 64<<20)
	orElse(&o.HistoryMessages, 40)
	orElse(&o.HistoryBytes, 32<<10)
	orElse(&o.ScryptN, 1<<15)
	if o.VaultIdle == 0 {
		o.VaultIdle = 30 * time.Minute
	}
}

func orElse[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Errors that callers act on.
var (
	ErrClosed   = errors.New("the store is closed")
	ErrInUse    = errors.New("in use by another process")
	ErrNewer    = errors.New("written by a newer version of this program")
	ErrNoChat   = errors.New("no such chat")
	ErrExists   = errors.New("there is already a chat of this name")
	ErrLocked   = errors.New("the vault is locked")
	ErrFull     = errors.New("the store is full")
	ErrDamaged  = errors.New("the database is damaged")
	ErrTooLarge = errors.New("too large")
	ErrTooMany  = fmt.Errorf("there are already %d chats", maxChats)
)

// A Change is something that was done to a chat, or to the vault.
type Change struct {
	Kind    ChangeKind
	Name    string // of the chat; of a renamed one the new name; empty for Locked and Unlocked
	Old     string // for Renamed, the name before
	Private bool   // whether the chat is, or was, private
}

// A ChangeKind says what was done.
type ChangeKind string

// The kinds of changes. Deleted comes when the chat's rows are gone already, Vaulted when the chat is sealed and what
// was readable of it before is erased.
const (
	Renamed  ChangeKind = "renamed"
	Deleted  ChangeKind = "deleted"
	Cleared  ChangeKind = "cleared"
	Vaulted  ChangeKind = "vaulted"
	Locked   ChangeKind = "locked"
	Unlocked ChangeKind = "unlocked"
)

// A Store is an open database.
type Store struct {
	o       Options
	path    string
	lock    *os.File // held as long as the store is open
	opening Opening

	// index is what is visible of the chats. It is replaced as a whole, so that it can be read without waiting.
	index atomic.Pointer[index]

	mu      sync.Mutex
	closed  bool
	db      *bbolt.DB
	tx      *txn        // has the writes that nobody waits for; nil: none
	unbatch func() bool // cancels their commit
	keys    *keys       // nil: the vault is locked, or there is none
	lastUse time.Time   // of a private chat
	unidle  func() bool // cancels the lock for idleness
	states  map[string]*State
	begins  map[uint64]uint64 // by chat, the message with which its history begins for a model
	queue   []Change
	telling bool
	copying sync.WaitGroup // snapshots being made
	snapped atomic.Int64   // when the newest snapshot was made, in seconds

	attempts sync.Mutex // held during a guess at the passphrase
	guessed  time.Time  // when the last wrong one was made
}

// Close writes what is waiting to be written, locks the vault, and closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	err := s.flush()
	s.dropKeys()
	s.closed = true
	s.copying.Wait()
	return errors.Join(err, s.db.Close(), s.lock.Close())
}

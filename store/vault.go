package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/crypto/scrypt"
)

// Errors of the vault.
var (
	ErrNoVault    = errors.New("there is no vault yet")
	ErrVaultThere = errors.New("the vault is set up already")
	ErrPassphrase = errors.New("the passphrase is wrong")
	ErrTooSoon    = errors.New("the passphrase can be tried once a second")
)

const (
	keySize       = 32
	nonceSize     = 12
	maxPassphrase = 1024 // bytes
	guessInterval = time.Second
)

// keys are what a chat's values are sealed with.
type keys struct {
	aead cipher.AEAD
	mac  []byte
}

func newKeys(secret []byte) (*keys, error) {
	value, err1 := hkdf.Key(sha256.New, secret, nil, "bellbird: values", keySize)
	mac, err2 := hkdf.Key(sha256.New, secret, nil, "bellbird: keys of rows", keySize)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	aead, err := newAEAD(value)
	return &keys{aead, mac}, err
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// digest stands for something at a place without telling what it is.
func (k *keys) digest(p place) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write(p)
	return h.Sum(nil)[:16]
}

// A vault is how the secret, from which the keys are made, is kept.
type vault struct {
	KDF    string `json:"kdf"`
	N      int    `json:"n"`
	R      int    `json:"r"`
	P      int    `json:"p"`
	Salt   []byte `json:"salt"`
	Secret []byte `json:"secret"` // sealed with what scrypt makes of the passphrase
}

// bound is what the parameters are bound to the secret with.
func (v vault) bound() place {
	return at(0, "vault", fmt.Sprintf("%s %d %d %d", v.KDF, v.N, v.R, v.P), string(v.Salt))
}

// keysOf makes the keys that protect the secret.
func (v vault) keysOf(passphrase string) (*keys, error) {
	if v.KDF != "scrypt" || v.N > 1<<22 || v.R < 1 || v.R > 32 || v.P < 1 || v.P > 16 {
		return nil, fmt.Errorf("the vault: parameters %s %d %d %d are not supported", v.KDF, v.N, v.R, v.P)
	}
	key, err := scrypt.Key([]byte(passphrase), v.Salt, v.N, v.R, v.P, keySize)
	if err != nil {
		return nil, fmt.Errorf("the vault: %w", err)
	}
	aead, err := newAEAD(key)
	return &keys{aead: aead}, err
}

func (s *Store) newVault(passphrase string, secret []byte) (vault, error) {
	if passphrase == "" || len(passphrase) > maxPassphrase {
		return vault{}, fmt.Errorf("a passphrase has 1 to %d bytes", maxPassphrase)
	}
	v := vault{KDF: "scrypt", N: s.o.ScryptN, R: 8, P: 1, Salt: make([]byte, 16)}
	rand.Read(v.Salt)
	k, err := v.keysOf(passphrase)
	if err != nil {
		return vault{}, err
	}
	v.Secret = k.seal(v.bound(), secret)
	return v, nil
}

func hasVault(tx *bbolt.Tx) bool { return tx.Bucket(metaBucket).Get(vaultKey) != nil }

func (s *Store) vault() (v vault, err error) {
	err = s.read(func(tx *bbolt.Tx) error {
		value := tx.Bucket(metaBucket).Get(vaultKey)
		if value == nil {
			return ErrNoVault
		}
		return (coder{}).decodeJSON(at(0, "vault"), value, &v)
	})
	return v, err
}

func putVault(t *txn, v vault) error {
	return t.Bucket(metaBucket).Put(vaultKey, (coder{}).encodeJSON(at(0, "vault"), v))
}

// Vault reports whether there is a vault, and whether it is unlocked.
func (s *Store) Vault() (there, unlocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.readLocked(func(tx *bbolt.Tx) error { there = hasVault(tx); return nil })
	return there && err == nil, s.keys != nil
}

// SetUp makes the vault and unlocks it. Chats that are marked as private already are sealed, as by Set.
func (s *Store) SetUp(passphrase string) error {
	s.attempts.Lock()
	defer s.attempts.Unlock()
	if there, _ := s.Vault(); there {
		return ErrVaultThere
	}
	if s.index.Load().hidden > 0 {
		return fmt.Errorf("%w, and it is lost: there are chats sealed with another key", ErrLocked)
	}
	secret := make([]byte, keySize)
	rand.Read(secret)
	v, err := s.newVault(passphrase, secret)
	if err != nil {
		return err
	}
	return s.unlock(secret, func(t *txn) error { return putVault(t, v) })
}

// Unlock opens the vault. A chat whose name was given to another in the meantime gets a number behind its name; chats
// that were marked as private without being sealed are sealed.
//
// After a wrong passphrase the next can be tried a second later; before that it is ErrTooSoon.
func (s *Store) Unlock(passphrase string) error {
	s.attempts.Lock()
	defer s.attempts.Unlock()
	_, secret, err := s.guess(passphrase)
	if err != nil {
		return err
	}
	return s.unlock(secret, func(*txn) error { return nil })
}

// Change gives the vault another passphrase. Nothing is sealed anew, but what the old one opened is erased.
func (s *Store) Change(old, passphrase string) error {
	s.attempts.Lock()
	defer s.attempts.Unlock()
	_, secret, err := s.guess(old)
	if err != nil {
		return err
	}
	v, err := s.newVault(passphrase, secret)
	if err != nil {
		return err
	}
	return s.write(alone, func(t *txn) error {
		return errors.Join(mustScrub(t), putVault(t, v))
	})
}

// guess returns the secret if the passphrase is right.
func (s *Store) guess(passphrase string) (v vault, secret []byte, err error) {
	if v, err = s.vault(); err != nil {
		return v, nil, err
	}
	// The clock may be set back, which must not keep anybody out.
	if since := s.o.Now().Sub(s.guessed); 0 <= since && since < guessInterval {
		return v, nil, ErrTooSoon
	}
	if len(passphrase) > maxPassphrase {
		passphrase = ""
	}
	k, err := v.keysOf(passphrase)
	if err != nil {
		return v, nil, err
	}
	secret, err = k.unseal(v.bound(), v.Secret)
	if err != nil || len(secret) != keySize {
		s.guessed = s.o.Now()
		return v, nil, ErrPassphrase
	}
	return v, secret, nil
}

// unlock begins to use the secret. What more has to be written is written in the same transaction.
func (s *Store) unlock(secret []byte, more func(*txn) error) error {
	k, err := newKeys(secret)
	if err != nil {
		return err
	}
	err = s.write(alone, func(t *txn) error {
		if s.keys != nil {
			return errUnchanged
		}
		s.keys = k
		t.undo = append(t.undo, func() { s.keys = nil })
		t.chats = true
		t.tell(Change{Kind: Unlocked})
		if err := s.freeNames(t); err != nil {
			return err
		}
		return errors.Join(s.sealMarked(t), more(t))
	})
	s.Touch()
	return err
}

// freeNames renames the sealed chats whose names are taken.
func (s *Store) freeNames(t *txn) error {
	taken := func(name string) bool { return t.Bucket(namesBucket).Get([]byte(name)) != nil }
	return t.Bucket(chatsBucket).ForEachBucket(func(k []byte) error {
		r, err := s.open(t.Tx, num64(k))
		if err != nil || !r.Sealed {
			return err
		}
		name, err := r.name()
		if err != nil || !taken(name) {
			return nil // one that can't be read stays hidden
		}
		fresh := name
		for n := 2; taken(fresh) || s.sealedName(t, fresh); n++ {
			fresh = fmt.Sprintf("%s %d", name, n)
		}
		t.tell(Change{Kind: Renamed, Name: fresh, Old: name, Private: true})
		return r.putName(fresh)
	})
}

// sealedName reports whether a sealed chat has this name.
func (s *Store) sealedName(t *txn, name string) (found bool) {
	t.Bucket(chatsBucket).ForEachBucket(func(k []byte) error {
		if r, err := s.open(t.Tx, num64(k)); err == nil && r.Sealed {
			other, err := r.name()
			found = found || err == nil && other == name
		}
		return nil
	})
	return found
}

// Lock locks the vault. Private chats are not there until it is unlocked. An answer that is still being spoken in one of
// them can't be kept any more.
func (s *Store) Lock() error {
	s.mu.Lock()
	err := s.lockVault()
	s.mu.Unlock()
	s.deliver()
	return err
}

func (s *Store) lockVault() error {
	if s.closed || s.keys == nil {
		return nil
	}
	err := s.flush()
	s.dropKeys()
	s.queue = append(s.queue, Change{Kind: Locked})
	return errors.Join(err, s.reindex())
}

func (s *Store) dropKeys() {
	if s.keys != nil {
		clear(s.keys.mac)
		s.keys = nil
	}
	if s.unidle != nil {
		s.unidle()
		s.unidle = nil
	}
}

// Touch says that the vault is being used, so that it isn't locked for idleness. Messages of private chats do that too.
func (s *Store) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touch(true)
}

func (s *Store) touch(sealed bool) {
	if !sealed || s.keys == nil || s.o.VaultIdle < 0 {
		return
	}
	s.lastUse = s.o.Now()
	if s.unidle == nil {
		s.unidle = s.o.AfterFunc(s.o.VaultIdle, s.lockIfIdle)
	}
}

func (s *Store) lockIfIdle() {
	s.mu.Lock()
	if s.keys != nil && s.unidle != nil {
		s.unidle = nil
		// A clock that was set back must not keep the vault open.
		if idle := s.o.Now().Sub(s.lastUse); 0 <= idle && idle < s.o.VaultIdle {
			s.unidle = s.o.AfterFunc(s.o.VaultIdle-idle, s.lockIfIdle)
		} else if err := s.lockVault(); err != nil {
			s.o.Logger.Error("vault", "err", err)
		}
	}
	s.mu.Unlock()
	s.deliver()
}

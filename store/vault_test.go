package store_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/store"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
)

func TestVault(t *testing.T) {
	w := newWorld(t)
	w.wants(w.Unlock(passphrase), store.ErrNoVault)
	if w.SetUp("") == nil {
		t.Error("a vault without a passphrase")
	}
	w.must(w.SetUp(passphrase))
	w.wants(w.SetUp(passphrase), store.ErrVaultThere)
	w.wantTold(store.Change{Kind: store.Unlocked})
	w.must(w.Unlock(passphrase)) // it is
	w.wantTold()
	w.must(w.Lock())
	w.must(w.Lock())
	w.wantTold(store.Change{Kind: store.Locked})

	// One guess a second; the next is refused even if it is right.
	w.wants(w.Unlock("wrong"), store.ErrPassphrase)
	w.wants(w.Unlock(passphrase), store.ErrTooSoon)
	w.clock.Advance(999 * time.Millisecond)
	w.wants(w.Change(passphrase, "x"), store.ErrTooSoon)
	w.clock.Advance(time.Millisecond)
	w.must(w.Unlock(passphrase))

	w.private("secret")
	w.must(w.Rows("p").Put("secret", "k", raw("1")))
	w.wants(w.Change("wrong", "x"), store.ErrPassphrase)
	w.clock.Advance(time.Second)
	w.must(w.Change(passphrase, "new one"))
	w.reopen()
	if there, unlocked := w.Vault(); !there || unlocked {
		t.Errorf("after reopening: there %v, unlocked %v", there, unlocked)
	}
	w.wants(w.Unlock(passphrase), store.ErrPassphrase)
	w.clock.Advance(time.Second)
	w.must(w.Unlock("new one"))
	w.wantGet(w.Rows("p"), "secret", "k", "1")
}

// Everything that was ever said or kept in a chat is gone from the files when it is sealed: the database, snapshots,
// damaged files.
func TestNothingReadableIsLeft(t *testing.T) {
	words := []string{"nightingale", "goldfinch", "kestrel", "turtledove", "bullfinch", "jackdaw", "yellowhammer"}
	var w *world
	told := 0
	w = newWorld(t, func(o *store.Options) {
		o.After = func(c store.Change) {
			if c.Kind == store.Vaulted {
				told++
				if found := w.found(words...); found != nil {
					t.Errorf("told of it before it was done: %q", found)
				}
			}
		}
	})
	w.must(w.Create(words[0]))
	c := w.chat(words[0])
	for range 100 { // over many pages
		w.must(c.Append(say(dialog.User, strings.Repeat(words[1]+" ", 30)), say(dialog.Tool, words[2])))
	}
	_, err := w.Set(words[0], map[string]any{"ghost_context": words[3]})
	w.must(err)
	w.must(w.Rows("p").Put(words[0], words[4], raw(`"`+words[5]+`"`)))
	w.clock.Advance(25 * time.Hour) // a snapshot
	w.must(w.Rows("p").Put(words[0], "k", raw(`"`+words[6]+`"`)))
	w.must(w.Rows("p").Delete(words[0], "k"))
	w.reopen()
	if found := w.found(words...); len(found) < len(words) {
		t.Fatalf("before: %q", found)
	}
	before, err := w.chat(words[0]).All()
	w.must(err)

	w.must(w.SetUp(passphrase))
	w.seal(words[0])
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if found := w.found(words...); found != nil {
		t.Errorf("after sealing: %q", found)
	}
	c = w.chat(words[0])
	w.must(c.Append(say(dialog.User, words[1])))
	w.must(c.Amend(words[2]))
	w.must(w.Rename(words[0], words[1]))
	w.must(w.Rows("p").Put(words[1], words[4], raw(`"`+words[5]+`"`)))
	_, err = w.Set(words[1], map[string]any{"voice": words[3]})
	w.must(err)
	w.reopen()
	if found := w.found(words...); found != nil {
		t.Errorf("after more writes: %q", found)
	}
	w.wantNames("default")
	w.must(w.Unlock(passphrase))
	w.wantNames("default", words[1])
	after, err := w.chat(words[1]).All()
	w.must(err)
	if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
		t.Error(diff)
	}
	w.must(w.Delete(words[1]))
	w.wantNames("default")
}

// While the vault is locked nobody learns that there is a chat of that name: another can have it.
func TestNameIsTakenMeanwhile(t *testing.T) {
	w := newWorld(t)
	c := w.private("diary")
	w.must(c.Append(say(dialog.User, "sealed")))
	w.must(w.Lock())
	w.must(w.Create("diary"))
	w.must(w.Create("diary 2"))
	w.told()
	w.must(w.Unlock(passphrase))
	w.wantNames("default", "diary", "diary 2", "diary 3")
	w.wantTold(store.Change{Kind: store.Unlocked}, store.Change{Kind: store.Renamed, Name: "diary 3", Old: "diary", Private: true})
	if m := w.chat("diary 3").Messages(); len(m) != 1 {
		t.Errorf("%v", m)
	}
	w.wants(w.Create("diary 3"), store.ErrExists)
	w.wants(w.Rename("default", "diary 3"), store.ErrExists)
	w.must(w.Lock())
	w.reopen()
	w.wantNames("default", "diary", "diary 2")
}

func TestActiveChatInLockedVault(t *testing.T) {
	w := newWorld(t)
	w.private("secret")
	w.must(w.Activate("secret"))
	w.must(w.Lock())
	_, err := w.Active()
	w.wants(err, store.ErrLocked)
	w.reopen()
	_, err = w.Active()
	w.wants(err, store.ErrLocked)
	w.must(w.Unlock(passphrase))
	c, err := w.Active()
	w.must(err)
	if c.Name() != "secret" {
		t.Errorf("active %q", c.Name())
	}
	w.must(w.Lock())
	w.must(w.Activate("default"))
	if _, err := w.Active(); err != nil {
		t.Error(err)
	}
	// Deleting the last that is visible makes another; locking the vault doesn't.
	w.must(w.Delete("default"))
	w.wantNames("default")
	w.must(w.Unlock(passphrase))
	w.must(w.Activate("secret"))
	w.must(w.Delete("default"))
	w.wantNames("secret")
	w.must(w.Lock())
	w.wantNames()
	w.reopen()
	w.wantNames()
	w.must(w.Create("default"))
	w.wantNames("default")
}

func TestGoingPrivateNeedsTheVault(t *testing.T) {
	w := newWorld(t)
	w.must(w.SetUp(passphrase))
	w.must(w.Lock())
	_, err := w.Set("default", map[string]any{"private_chat": true, "voice": "x"})
	w.wants(err, store.ErrLocked)
	s, err := w.Settings("default")
	w.must(err)
	if s.PrivateChat || s.Voice != "" {
		t.Errorf("changed all the same: %+v", s)
	}
}

func TestExportOfPrivateChat(t *testing.T) {
	w := newWorld(t)
	w.must(w.private("secret").Append(say(dialog.User, "hello")))
	var out bytes.Buffer
	w.must(w.Export("secret", &out))
	if !strings.Contains(out.String(), `"private_chat": true`) || !strings.Contains(out.String(), "hello") {
		t.Errorf("%s", out.String())
	}
	w.must(w.Lock())
	w.wants(w.Export("secret", &out), store.ErrLocked)
}

func TestAutoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.private("secret")
		unlocked := func(want bool) {
			t.Helper()
			synctest.Wait()
			if _, got := w.Vault(); got != want {
				t.Fatalf("unlocked %v, want %v", got, want)
			}
		}
		w.clock.Advance(20 * time.Minute)
		w.must(c.Append(say(dialog.User, "still here")))
		w.clock.Advance(29 * time.Minute)
		unlocked(true)
		c.Messages()
		w.clock.Advance(29 * time.Minute)
		w.Touch()
		unlocked(true)
		w.must(w.chat("default").Append(say(dialog.User, "that doesn't count")))
		w.clock.Advance(29 * time.Minute)
		unlocked(true)
		w.told()
		w.clock.Advance(time.Minute)
		unlocked(false)
		w.wantTold(store.Change{Kind: store.Locked})
		w.wantNames("default")

		w.o.VaultIdle = -1
		w.reopen()
		w.must(w.Unlock(passphrase))
		w.clock.Advance(1000 * time.Hour)
		unlocked(true)
	})
}

// What was written of a chat that was being unsealed when the power failed is erased when the store is opened.
func TestUnsealingIsCutOff(t *testing.T) {
	w := newWorld(t)
	w.must(w.private("secret").Append(say(dialog.User, "hello")))
	w.must(w.Close())
	w.poke(func(tx *bbolt.Tx) error {
		w.must(tx.Bucket([]byte("meta")).Put([]byte("unseal"), []byte{1}))
		b, err := tx.CreateBucket([]byte("junk"))
		w.must(err)
		return b.Put([]byte("k"), bytes.Repeat([]byte("nightingale"), 1000))
	})
	w.poke(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("junk")) })
	if w.found("nightingale") == nil {
		t.Fatal("there is nothing to erase")
	}
	w.open()
	if found := w.found("nightingale"); found != nil {
		t.Errorf("not erased: %q", found)
	}
	before := w.files()
	w.reopen()
	if after := w.files(); !slices.Equal(before, after) {
		t.Errorf("erased again: %q, %q", before, after)
	}
	// Going public by and by leaves no note of it.
	w.must(w.Unlock(passphrase))
	w.must(w.unseal("secret"))
	before = w.files()
	w.reopen()
	if after := w.files(); !slices.Equal(before, after) {
		t.Errorf("erased for nothing: %q, %q", before, after)
	}
}

// A chat whose settings can't be read is private, and can be given new ones.
func TestUnreadableSettings(t *testing.T) {
	w := newWorld(t)
	_, err := w.Set("default", map[string]any{"voice": "x"})
	w.must(err)
	w.must(w.Close())
	w.poke(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("chats")).Bucket([]byte{0, 0, 0, 0, 0, 0, 0, 1})
		v := bytes.Clone(b.Get([]byte("settings")))
		v[len(v)-2] ^= 1
		return b.Put([]byte("settings"), v)
	})
	w.open()
	if n := w.Opening().Unreadable; n != 1 {
		t.Errorf("%d values are unreadable", n)
	}
	if _, err := w.Settings("default"); err == nil {
		t.Error("no error")
	}
	if !w.chat("default").Private() {
		t.Error("it is not private")
	}
	s, err := w.Set("default", map[string]any{"private_chat": false})
	w.must(err)
	if s.Voice != "" || w.chat("default").Private() {
		t.Errorf("%+v", s)
	}
}

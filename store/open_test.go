package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/store"

	"go.etcd.io/bbolt"
)

func TestSecondProcess(t *testing.T) {
	w := newWorld(t)
	_, err := store.Open(w.path, store.Options{OpenTimeout: 50 * time.Millisecond})
	w.wants(err, store.ErrInUse)
	w.must(w.Close())
	w.wants(w.Create("x"), store.ErrClosed)
	w.wants(w.chat("default").Append(say(dialog.User, "x")), store.ErrClosed)
	w.must(w.Close())
	w.open()
}

func TestNewerSchema(t *testing.T) {
	w := newWorld(t)
	w.must(w.Close())
	set := func(n byte) {
		w.poke(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte{0, 0, 0, 0, 0, 0, 0, n})
		})
	}
	set(9)
	before, err := os.ReadFile(w.path)
	w.must(err)
	_, err = store.Open(w.path, w.o)
	w.wants(err, store.ErrNewer)
	if after, _ := os.ReadFile(w.path); string(after) != string(before) {
		t.Error("the file was changed")
	}
	set(1)
	w.open()
	if o := w.Opening(); o != (store.Opening{}) {
		t.Errorf("%+v", o)
	}
}

// files are the files beside the database, with their sizes and times, but not the lock.
func (w *world) files() (all []string) {
	w.Helper()
	entries, err := os.ReadDir(filepath.Dir(w.path))
	w.must(err)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && !strings.HasSuffix(e.Name(), ".lock") {
			all = append(all, fmt.Sprint(e.Name(), " ", i.Size(), " ", i.ModTime().UnixNano()))
		}
	}
	return all
}

func (w *world) snapshots() []string {
	w.Helper()
	files, err := filepath.Glob(w.path + ".snapshot-*")
	w.must(err)
	return files
}

func TestNothingIsWrittenWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.private("secret")
		w.must(w.chat("default").Append(say(dialog.User, "hello")))
		w.must(w.chat("default").Amend("hello!"))
		w.clock.Advance(2 * time.Second)
		synctest.Wait()
		before := w.files()
		for range 2 * 24 * 60 { // two days, in which the vault is locked
			w.clock.Advance(time.Minute)
			synctest.Wait()
		}
		w.must(w.Rows("p").Delete("default", "nothing"))
		w.must(w.Rename("default", "default"))
		w.must(w.Activate("default"))
		w.chat("default").Messages()
		if after := w.files(); !slices.Equal(before, after) {
			t.Errorf("before %q\nafter %q", before, after)
		}
	})
}

func TestSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		count := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := w.snapshots(); len(got) != want {
				t.Errorf("snapshots %q, want %d", got, want)
			}
		}
		day := func(n int) {
			w.must(w.chat("default").Append(say(dialog.User, fmt.Sprint("day ", n))))
			synctest.Wait()
		}
		day(1)
		w.reopen()
		day(1)
		count(1)
		for n := 2; n < 6; n++ {
			w.clock.Advance(24 * time.Hour)
			count(min(n-1, 3))
			day(n)
			day(n)
			count(min(n, 3))
		}
		// A clock that was wrong, and is put right, leads to one more, and is no reason to mistake the newest.
		w.must(w.Close())
		w.o.Now = func() time.Time { return time.Unix(1000, 0) }
		w.open()
		day(6)
		count(3)

		// The newest good one takes the place of a damaged file.
		w.must(w.Close())
		newest := w.snapshots()
		slices.SortFunc(newest, func(a, b string) int { return strings.Compare(b, a) })
		w.must(os.Truncate(newest[0], 8192))
		w.must(os.WriteFile(w.path, []byte("rubbish"), 0o600))
		w.open()
		if o := w.Opening(); o.Damage == "" || !strings.Contains(o.SetAside, ".bad-19700101T001640Z") || !o.Restored.Equal(begin().Add(4*24*time.Hour)) {
			t.Errorf("%+v", o)
		}
		if text, _ := os.ReadFile(w.Opening().SetAside); string(text) != "rubbish" {
			t.Errorf("set aside %q", text)
		}
		got := contents(w.chat("default").Messages())
		if !slices.Equal(got, []string{"day 1", "day 1", "day 2", "day 2", "day 3", "day 3", "day 4", "day 4", "day 5"}) {
			t.Errorf("restored %q", got)
		}
		w.reopen()
		if o := w.Opening(); o != (store.Opening{}) {
			t.Errorf("%+v", o)
		}
		// So it does that of a missing one.
		w.must(w.Close())
		w.must(os.Remove(w.path))
		w.open()
		if o := w.Opening(); o.Restored.IsZero() || o.SetAside != "" {
			t.Errorf("%+v", o)
		}
		// Without any, one begins anew.
		w.must(w.Close())
		for range 5 {
			for _, f := range w.snapshots() {
				w.must(os.Remove(f))
			}
			w.must(os.WriteFile(w.path, nil, 0o600))
			w.open()
			if o := w.Opening(); o.SetAside == "" || !o.Restored.IsZero() || o.Reverted {
				t.Errorf("%+v", o)
			}
			w.wantNames("default")
			w.must(w.Close())
			w.o.Now = func() time.Time { return begin().Add(rand.N(time.Hour)) }
		}
		if bad, _ := filepath.Glob(w.path + ".bad-*"); len(bad) > 3 {
			t.Errorf("kept %q", bad)
		}
		w.open()
	})
}

// full fills a store over many pages and returns the contents of its messages by their numbers.
func (w *world) full() map[uint64]string {
	w.Helper()
	w.private("secret")
	all := make(map[uint64]string)
	for _, name := range []string{"default", "secret"} {
		c := w.chat(name)
		for i := range 60 {
			w.must(c.Append(say(dialog.User, strings.Repeat(fmt.Sprint(name, i, " "), i*3))))
		}
		list, err := c.All()
		w.must(err)
		for _, m := range list {
			all[m.Seq] = m.Content
		}
		for i := range 40 {
			_, err := w.Rows("p").Append(name, fmt.Sprint("key", i%4), raw(fmt.Sprintf(`"%s%d"`, name, i)))
			w.must(err)
		}
		w.must(w.State("p").Save(name, strings.Repeat("x", 3000)))
	}
	return all
}

// Whatever happens to the file: it opens, or another takes its place; nothing is read that was not written; and it can be
// written to.
func TestDamage(t *testing.T) {
	w := newWorld(t, func(o *store.Options) { o.VaultIdle = -1 })
	want := w.full()
	w.must(w.Close())
	good, err := os.ReadFile(w.path)
	w.must(err)
	rounds := rounds(40, 2000)
	var reverted, begun, sound, unreadable int
	for i := range rounds {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		bad := slices.Clone(good)
		if i%4 == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		for range r.IntN(4) + i%4 {
			if len(bad) > 0 {
				at := r.IntN(len(bad))
				if i%2 == 0 { // where it hurts
					at = at/4096*4096 + r.IntN(min(200, len(bad)-at/4096*4096))
				}
				bad[at] ^= byte(1 + r.IntN(255))
			}
		}
		w.path = filepath.Join(t.TempDir(), "bellbird.db")
		w.must(os.WriteFile(w.path, bad, 0o600))
		w.open()
		switch o := w.Opening(); {
		case o.Reverted:
			reverted++
		case o.SetAside != "":
			begun++
		case o.Unreadable > 0:
			unreadable++
		default:
			sound++
		}
		if there, _ := w.Vault(); there {
			err := w.Unlock(passphrase)
			if err != nil {
				t.Logf("round %d: %v", i, err)
			}
		}
		for _, name := range w.names() {
			list, err := w.chat(name).All()
			w.must(err)
			for _, m := range list {
				if m.Content != want[m.Seq] {
					t.Fatalf("round %d: message %d is %.100q", i, m.Seq, m.Content)
				}
			}
			for _, key := range w.Rows("p").Keys(name) {
				for _, v := range w.Rows("p").ReadAll(name, key) {
					if !strings.HasPrefix(string(v), `"`+name) {
						t.Fatalf("round %d: row %s", i, v)
					}
				}
			}
			w.must(w.chat(name).Append(say(dialog.User, "it goes on")))
			w.must(w.Rows("p").Put(name, "after", raw("1")))
			w.State("p").All()
		}
		w.reopen()
		w.must(w.Close())
	}
	t.Logf("of %d: sound %d, with unreadable values %d, reverted %d, begun anew %d", rounds, sound, unreadable, reverted, begun)
	if sound == 0 || unreadable == 0 || begun == 0 {
		t.Error("some kind of damage was not tried")
	}
	w.open()
}

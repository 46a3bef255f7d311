package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"bellbird/dialog"
	"bellbird/store"

	"go.etcd.io/bbolt"
)

// What the reference asserts of the rows of plugins, each under its name there.

func (w *world) wantGet(r *store.Rows, chat, key, want string) {
	w.Helper()
	v, ok := r.Get(chat, key)
	if string(v) != want || ok != (want != "") {
		w.Errorf("get %s %s: %s %v, want %s", chat, key, v, ok, want)
	}
}

func (w *world) wantAll(r *store.Rows, chat, key, want string) {
	w.Helper()
	if got := join(r.ReadAll(chat, key)); got != want {
		w.Errorf("read_all %s %s: %s, want %s", chat, key, got, want)
	}
}

func (w *world) wantKeys(r *store.Rows, chat string, want ...string) {
	w.Helper()
	if got := r.Keys(chat); !slices.Equal(got, want) {
		w.Errorf("keys %s: %q, want %q", chat, got, want)
	}
}

func TestPublicRoundtrip(t *testing.T) {
	t.Run("put_get", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		w.wantGet(r, "default", "score", "")
		w.must(r.Put("default", "score", raw(`{"a":[1,2.5,"x",null]}`)))
		w.wantGet(r, "default", "score", `{"a":[1,2.5,"x",null]}`)
		w.must(r.Put("default", "none", raw(`null`)))
		w.wantGet(r, "default", "none", "") // stored null is the default
		w.wantGet(r, "no such chat", "score", "")
	})
	t.Run("put_overwrites_seq0", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		w.must(r.Put("default", "k", raw("1")))
		w.must(r.Put("default", "k", raw("2")))
		w.wantGet(r, "default", "k", "2")
		m, ok := r.Meta("default", "k")
		if !ok || m.Rows != 1 || !m.Updated.Equal(begin()) {
			t.Errorf("meta %+v %v, want one row", m, ok)
		}
	})
	t.Run("append_and_read_all_ordered", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		for i := range 3 {
			seq, err := r.Append("default", "log", raw(fmt.Sprint(i)))
			w.must(err)
			if seq != uint64(i+1) {
				t.Errorf("append returned %d, want %d", seq, i+1)
			}
		}
		w.wantAll(r, "default", "log", "0 1 2")
		seqs, err := r.AppendMany("default", "log", raws("3", "4"))
		w.must(err)
		if !slices.Equal(seqs, []uint64{4, 5}) {
			t.Errorf("append_many returned %d", seqs)
		}
		seqs, err = r.AppendMany("default", "log", nil)
		if len(seqs) != 0 || err != nil {
			t.Errorf("append_many of nothing: %d, %v", seqs, err)
		}
		w.must(r.Put("default", "log", raw(`"zero"`)))
		w.wantAll(r, "default", "log", `"zero" 0 1 2 3 4`)
		if _, err := r.AppendMany("default", "log", raws("5", "{")); err == nil {
			t.Error("broken JSON was appended")
		}
		w.wantAll(r, "default", "log", `"zero" 0 1 2 3 4`)
	})
	t.Run("replace_renumbers", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		_, err := r.AppendMany("default", "log", raws("1", "2", "3"))
		w.must(err)
		w.must(r.Put("default", "log", raw("0")))
		w.must(r.Replace("default", "log", raws("8", "9")))
		w.wantAll(r, "default", "log", "8 9")
		w.wantGet(r, "default", "log", "")
		if seq, err := r.Append("default", "log", raw("10")); seq != 3 || err != nil {
			t.Errorf("the next is number %d, %v", seq, err)
		}
		w.must(r.Replace("default", "log", nil))
		w.wantKeys(r, "default")
	})
	t.Run("delete_key_and_all", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		for _, key := range []string{"c", "a", "b", ""} {
			w.must(r.Put("default", key, raw("1")))
		}
		w.wantKeys(r, "default", "", "a", "b", "c")
		w.must(r.Delete("default", "b"))
		w.wantKeys(r, "default", "", "a", "c")
		w.must(r.Delete("default", "b"))
		w.must(r.Delete("no such chat", "b"))
		w.must(r.DeleteAll("default"))
		w.wantKeys(r, "default")
		w.must(r.DeleteAll("default"))
		if _, ok := r.Meta("default", "a"); ok {
			t.Error("meta of a deleted key")
		}
	})
	t.Run("plugin_isolation", func(t *testing.T) {
		w := newWorld(t)
		a, b := w.Rows("a"), w.Rows("b")
		w.must(a.Put("default", "k", raw(`"a"`)))
		w.wantGet(b, "default", "k", "")
		w.must(b.Put("default", "k", raw(`"b"`)))
		w.must(b.DeleteAll("default"))
		w.wantGet(a, "default", "k", `"a"`)
	})
	t.Run("get_all_chats", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.Create("other"))
		w.must(w.Create("empty"))
		r := w.Rows("p")
		w.must(r.Put("default", "k", raw("1")))
		w.must(r.Put("other", "k", raw("2")))
		_, err := r.Append("empty", "k", raw("3"))
		w.must(err)
		got := r.AllChats("k")
		if len(got) != 2 || string(got["default"]) != "1" || string(got["other"]) != "2" {
			t.Errorf("get_all_chats: %v", slices.Collect(maps.Keys(got)))
		}
	})
	t.Run("write_to_missing_chat_raises", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		w.wants(r.Put("nowhere", "k", raw("1")), store.ErrNoChat)
		_, err := r.Append("nowhere", "k", raw("1"))
		w.wants(err, store.ErrNoChat)
		_, err = r.AppendMany("nowhere", "k", raws("1"))
		w.wants(err, store.ErrNoChat)
		w.wants(r.Replace("nowhere", "k", raws("1")), store.ErrNoChat)
	})
}

func TestChatLifecycle(t *testing.T) {
	t.Run("rename_carries_rows", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		w.must(r.Put("default", "k", raw("1")))
		w.must(w.Rename("default", "kitchen"))
		w.wantGet(r, "kitchen", "k", "1")
		w.wantGet(r, "default", "k", "")
		w.wantTold(store.Change{Kind: store.Renamed, Name: "kitchen", Old: "default"})
	})
	t.Run("delete_chat_removes_rows", func(t *testing.T) {
		w := newWorld(t)
		w.must(w.Create("kitchen"))
		r := w.Rows("p")
		w.must(r.Put("kitchen", "k", raw("1")))
		w.o.After = nil
		w.must(w.Delete("kitchen"))
		w.wantTold(store.Change{Kind: store.Deleted, Name: "kitchen"})
		w.must(w.Create("kitchen"))
		w.wantKeys(r, "kitchen")
	})
	t.Run("rows_are_gone_before_the_hook", func(t *testing.T) {
		var w *world
		seen := -1
		w = newWorld(t, func(o *store.Options) {
			o.After = func(c store.Change) {
				if c.Kind == store.Deleted {
					seen = len(w.Rows("p").AllChats("k"))
					w.wants(w.Rows("p").Put(c.Name, "archive", raw("1")), store.ErrNoChat)
				}
			}
		})
		w.must(w.Create("kitchen"))
		w.must(w.Rows("p").Put("kitchen", "k", raw("1")))
		w.must(w.Delete("kitchen"))
		if seen != 0 {
			t.Errorf("the hook found rows in %d chats", seen)
		}
	})
	t.Run("clear_chat_preserves_plugin_data", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		w.must(r.Put("default", "k", raw("1")))
		w.must(w.chat("default").Append(say(dialog.User, "hello")))
		w.must(w.Clear("default"))
		w.wantGet(r, "default", "k", "1")
		if m := w.chat("default").Messages(); len(m) != 0 {
			t.Errorf("messages left: %v", m)
		}
		w.wantTold(store.Change{Kind: store.Cleared, Name: "default"})
	})
}

func TestVaultFlip(t *testing.T) {
	t.Run("vault_encrypts_rows_at_rest", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p")
		_, err := r.AppendMany("default", "turtledove", raws(`"nightingale"`, `"goldfinch"`))
		w.must(err)
		w.must(w.SetUp(passphrase))
		w.told()
		w.seal("default")
		w.wantTold(store.Change{Kind: store.Vaulted, Name: "default", Private: true})
		w.wantAll(r, "default", "turtledove", `"nightingale" "goldfinch"`)
		w.wantKeys(r, "default", "turtledove")
		if m, _ := r.Meta("default", "turtledove"); m.Rows != 2 {
			t.Errorf("meta: %+v", m)
		}
		w.must(w.Close())
		rows := 0
		w.poke(func(tx *bbolt.Tx) error {
			return eachRow(tx, "p", func(_ *bbolt.Bucket, _, v []byte) error {
				rows++
				if v[0] != 's' {
					t.Errorf("%q is not sealed", v)
				}
				return nil
			})
		})
		if rows != 3 { // and the key
			t.Errorf("%d values in the file", rows)
		}
		if found := w.found("nightingale", "goldfinch", "turtledove"); found != nil {
			t.Errorf("in plain text: %q", found)
		}
		w.open()
	})
	t.Run("write_after_vault_encrypted_at_rest", func(t *testing.T) {
		w := newWorld(t)
		w.private("secret")
		seq, err := w.Rows("p").Append("secret", "kestrel", raw(`"goldfinch"`))
		w.must(err)
		if seq != 1 {
			t.Errorf("append returned %d", seq)
		}
		w.wantAll(w.Rows("p"), "secret", "kestrel", `"goldfinch"`)
		w.reopen()
		if found := w.found("goldfinch", "kestrel"); found != nil {
			t.Errorf("in plain text: %q", found)
		}
	})
	t.Run("unvault_decrypts_rows", func(t *testing.T) {
		w := newWorld(t)
		c := w.private("secret")
		w.must(w.Rows("p").Put("secret", "k", raw(`{"a":1}`)))
		w.must(c.Append(say(dialog.User, "hello")))
		w.must(w.unseal("secret"))
		w.wantGet(w.Rows("p"), "secret", "k", `{"a":1}`)
		w.must(w.Lock())
		w.wantGet(w.Rows("p"), "secret", "k", `{"a":1}`)
		if got := contents(w.chat("secret").Messages()); !slices.Equal(got, []string{"hello"}) {
			t.Errorf("messages %q", got)
		}
		w.reopen()
		if found := w.found(`{"a":1}`); found == nil {
			t.Error("not in plain text")
		}
	})
	t.Run("unvault_aborts_on_tampered_row", func(t *testing.T) {
		w := newWorld(t)
		c := w.private("secret")
		w.must(c.Append(say(dialog.User, "hello")))
		r := w.Rows("p")
		w.must(r.Put("secret", "a", raw("1")))
		w.must(r.Put("secret", "b", raw("2")))
		w.must(w.Close())
		tampered := 0
		w.poke(func(tx *bbolt.Tx) error {
			return eachRow(tx, "p", func(b *bbolt.Bucket, k, v []byte) error {
				if len(k) != 8 || tampered > 0 {
					return nil
				}
				tampered++
				v[len(v)-1] ^= 1
				return b.Put(k, v)
			})
		})
		w.open()
		w.must(w.Unlock(passphrase))
		w.told()
		err := w.unseal("secret")
		if err == nil || !strings.Contains(err.Error(), "plugin data") {
			t.Fatalf("error %v, want one of plugin data", err)
		}
		w.wantTold()
		list, err := w.Chats()
		w.must(err)
		if i := slices.IndexFunc(list, func(i store.Info) bool { return i.Name == "secret" }); i < 0 || !list[i].Sealed {
			t.Errorf("it is not sealed any more: %+v", list)
		}
		if got := contents(w.chat("secret").Messages()); !slices.Equal(got, []string{"hello"}) {
			t.Errorf("messages %q", got)
		}
		w.reopen()
		if found := w.found("hello"); found != nil {
			t.Errorf("in plain text: %q", found)
		}
	})
	t.Run("moved_value_does_not_open", func(t *testing.T) {
		w := newWorld(t)
		w.private("secret")
		r := w.Rows("p")
		_, err := r.AppendMany("secret", "log", raws("1", "2"))
		w.must(err)
		w.must(w.Close())
		w.poke(func(tx *bbolt.Tx) error {
			values := make(map[string][]byte)
			var bucket *bbolt.Bucket
			err := eachRow(tx, "p", func(b *bbolt.Bucket, k, v []byte) error {
				values[string(k)], bucket = v, b
				return nil
			})
			w.must(err)
			one, two := []byte("\x00\x00\x00\x00\x00\x00\x00\x01"), []byte("\x00\x00\x00\x00\x00\x00\x00\x02")
			w.must(bucket.Put(one, values[string(two)]))
			return bucket.Put(two, values[string(one)])
		})
		w.open()
		w.must(w.Unlock(passphrase))
		w.wantAll(w.Rows("p"), "secret", "log", "")
	})
}

func TestSealedContract(t *testing.T) {
	t.Run("sealed_reads_empty", func(t *testing.T) {
		w := newWorld(t)
		c := w.private("secret")
		r := w.Rows("p")
		w.must(r.Put("secret", "k", raw("1")))
		w.must(c.Append(say(dialog.User, "hello")))
		w.must(w.Lock())
		w.wantGet(r, "secret", "k", "")
		w.wantAll(r, "secret", "k", "")
		w.wantKeys(r, "secret")
		if _, ok := r.Meta("secret", "k"); ok {
			t.Error("meta is there")
		}
		if got := r.AllChats("k"); len(got) != 0 {
			t.Errorf("get_all_chats: %v", got)
		}
		if m := c.Messages(); len(m) != 0 {
			t.Errorf("messages: %v", m)
		}
		if c.Name() != "" || !c.Private() {
			t.Errorf("its handle says %q, private %v", c.Name(), c.Private())
		}
		w.must(w.Unlock(passphrase))
		w.wantGet(r, "secret", "k", "1")
	})
	t.Run("sealed_writes_raise", func(t *testing.T) {
		w := newWorld(t)
		c := w.private("secret")
		r := w.Rows("p")
		w.must(r.Put("secret", "k", raw("1")))
		w.must(w.Lock())
		w.wants(r.Put("secret", "k", raw(`"goldfinch"`)), store.ErrLocked)
		_, err := r.Append("secret", "k", raw(`"goldfinch"`))
		w.wants(err, store.ErrLocked)
		w.wants(r.Replace("secret", "k", nil), store.ErrLocked)
		w.wants(r.Delete("secret", "k"), store.ErrLocked)
		w.wants(r.DeleteAll("secret"), store.ErrLocked)
		w.wants(c.Append(say(dialog.User, "goldfinch")), store.ErrLocked)
		w.wants(c.Amend("goldfinch"), store.ErrLocked)
		_, err = c.Set(map[string]any{"voice": "goldfinch"})
		w.wants(err, store.ErrLocked)
		if found := w.found("goldfinch"); found != nil {
			t.Errorf("leaked: %q", found)
		}
		w.must(w.Unlock(passphrase))
		w.wantAll(r, "secret", "k", "1")
	})
	t.Run("keyless_not_sealed_hides_vaulted_rows", func(t *testing.T) {
		w := newWorld(t)
		w.private("secret")
		r := w.Rows("p")
		w.must(r.Put("secret", "k", raw("1")))
		w.must(w.Close())
		w.poke(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("vault")) })
		w.open()
		r = w.Rows("p")
		w.wantGet(r, "secret", "k", "")
		w.wants(r.Put("secret", "k", raw("2")), store.ErrNoChat)
		w.wantNames("default")
		// Another vault doesn't open what the first sealed, and doesn't take its place either.
		w.wants(w.SetUp("another"), store.ErrLocked)
	})
	t.Run("purge_skips_sealed", func(t *testing.T) {
		w := newWorld(t)
		w.private("secret")
		r := w.Rows("p")
		w.must(r.Put("secret", "k", raw("1")))
		w.must(r.Put("default", "k", raw("1")))
		w.must(w.Rows("q").Put("default", "k", raw("1")))
		w.must(w.Lock())
		deleted, locked, err := r.Purge()
		w.must(err)
		if deleted != 1 || locked != 1 {
			t.Errorf("purged %d, locked %d", deleted, locked)
		}
		w.must(w.Unlock(passphrase))
		w.wantGet(r, "secret", "k", "1")
		w.wantGet(r, "default", "k", "")
		w.wantGet(w.Rows("q"), "default", "k", "1")
	})
}

func TestLoaderVeneer(t *testing.T) {
	t.Run("bound_roundtrip", func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p").Batched()
		w.must(r.Put("default", "k", raw("1")))
		w.wantGet(r, "default", "k", "1")
		_, err := r.Append("default", "k", raw("2"))
		w.must(err)
		w.wantAll(r, "default", "k", "1 2")
		w.wantKeys(r, "default", "k")
		w.must(r.Delete("default", "k"))
		w.wantKeys(r, "default")
	})
	t.Run("get_chat_state_cached", func(t *testing.T) {
		w := newWorld(t)
		if p, q := w.State("p"), w.State("q"); p != w.State("p") || p == q {
			t.Error("a plugin's state is not one thing")
		}
	})
}

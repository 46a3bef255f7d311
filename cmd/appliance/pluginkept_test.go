package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bellbird/plugins"
	"bellbird/store"
)

// What stands for the store in a trial, beside the store.

// A notebook is a store, or what stands for it in a trial.
type notebook struct {
	rows func(plugin string) plugins.Rows
	add  func(chat string)
}

func inMemory(*testing.T) notebook {
	all := map[string]*plugins.MemoryRows{"p": {}, "q": {}}
	return notebook{
		func(plugin string) plugins.Rows { return all[plugin] },
		func(chat string) {
			for _, r := range all {
				r.AddChat(chat)
			}
		},
	}
}

func openStore(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	o.ScryptN = 2 // guessing is not what is tested here
	s, err := store.Open(filepath.Join(t.TempDir(), "bellbird.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func inStore(t *testing.T) notebook {
	s := openStore(t, store.Options{})
	var o plugins.Options
	keepPlugins(&o, s, "", slog.New(slog.DiscardHandler))
	return notebook{o.Rows, func(chat string) {
		if err := s.Create(chat); err != nil {
			t.Fatal(err)
		}
	}}
}

// What a trial has in the place of the store is like it, as far as a script can tell.
func TestRowsConform(t *testing.T) {
	for name, open := range map[string]func(*testing.T) notebook{"memory": inMemory, "store": inStore} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			b.add("kitchen")
			b.add("garden")
			type args = []any
			for i, step := range []struct {
				plugin, call string
				args         args
				want         string // as JSON, or what the error says
			}{
				{"p", "get", args{"kitchen", "n"}, `null`},
				{"p", "put", args{"kitchen", "n", 1.0}, `null`},
				{"p", "put", args{"kitchen", "n", map[string]any{"a": args{true, nil, "ü"}}}, `null`},
				{"p", "get", args{"kitchen", "n"}, `{"a":[true,null,"ü"]}`},
				{"q", "get", args{"kitchen", "n"}, `null`},
				{"p", "get", args{"garden", "n"}, `null`},
				{"p", "append", args{"kitchen", "log", "a"}, `1`},
				{"p", "append", args{"kitchen", "log", "b"}, `2`},
				{"p", "append_many", args{"kitchen", "log", args{"c", "d"}}, `[3,4]`},
				{"p", "append_many", args{"kitchen", "log", args{}}, `[]`},
				{"p", "read_all", args{"kitchen", "log"}, `["a","b","c","d"]`},
				{"p", "put", args{"kitchen", "log", "zero"}, `null`},
				{"p", "read_all", args{"kitchen", "log"}, `["zero","a","b","c","d"]`},
				{"p", "replace", args{"kitchen", "log", args{"x", "y"}}, `null`},
				{"p", "read_all", args{"kitchen", "log"}, `["x","y"]`},
				{"p", "get", args{"kitchen", "log"}, `null`},
				{"p", "append", args{"kitchen", "log", "z"}, `3`},
				{"p", "keys", args{"kitchen"}, `["log","n"]`},
				{"q", "keys", args{"kitchen"}, `[]`},
				{"p", "put", args{"garden", "n", 2.0}, `null`},
				{"p", "get_all_chats", args{"n"}, `{"garden":2,"kitchen":{"a":[true,null,"ü"]}}`},
				{"q", "get_all_chats", args{"n"}, `{}`},
				{"p", "put", args{"garden", "n", nil}, `null`}, // a null is as good as nothing
				{"p", "get", args{"garden", "n"}, `null`},
				{"p", "get_all_chats", args{"n"}, `{"kitchen":{"a":[true,null,"ü"]}}`},
				{"p", "replace", args{"kitchen", "log", args{}}, `null`},
				{"p", "keys", args{"kitchen"}, `["n"]`},
				{"p", "replace", args{"kitchen", "none", args{}}, `null`},
				{"p", "meta", args{"kitchen", "none"}, `null`},
				{"p", "append_many", args{"kitchen", "log", args{1.0, 2.0}}, `[1,2]`},
				{"p", "delete", args{"kitchen", "n"}, `null`},
				{"p", "keys", args{"kitchen"}, `["log"]`},
				{"q", "put", args{"kitchen", "log", "mine"}, `null`},
				{"p", "delete", args{"kitchen"}, `null`},
				{"p", "keys", args{"kitchen"}, `[]`},
				{"q", "get", args{"kitchen", "log"}, `"mine"`},
				{"p", "put", args{"cellar", "n", 1.0}, "no such chat"},
				{"p", "append", args{"cellar", "n", 1.0}, "no such chat"},
				{"p", "replace", args{"cellar", "n", args{1.0}}, "no such chat"},
				{"p", "replace", args{"cellar", "n", args{}}, "no such chat"},
				{"p", "delete", args{"cellar"}, `null`},
				{"p", "delete", args{"cellar", "n"}, `null`},
				{"p", "read_all", args{"cellar", "n"}, `[]`},
				{"p", "keys", args{"cellar"}, `[]`},
				{"p", "put", args{"kitchen", "n"}, "value is missing"},
				{"p", "append_many", args{"kitchen", "n", "abc"}, "values: it should be a list"},
				{"p", "put", args{1.0, "n", 1.0}, "chat: it should be a text"},
				{"p", "put", args{"kitchen", strings.Repeat("k", 300), 1.0}, "key: a text of 300 bytes"},
				{"p", "purge", nil, "no function"},
			} {
				got, err := plugins.CallRows(b.rows(step.plugin), step.call, step.args, nil)
				text := fmt.Sprint(err)
				if err == nil {
					raw, _ := json.Marshal(got)
					text = string(raw)
				}
				if ok := text == step.want; !ok && (err == nil || !strings.Contains(text, step.want)) {
					t.Errorf("%d: %s %s(%v): %s, want %s", i, step.plugin, step.call, step.args, text, step.want)
				}
			}
			if _, err := b.rows("p").AppendMany("kitchen", "m", []json.RawMessage{[]byte("1"), []byte("2")}); err != nil {
				t.Fatal(err)
			}
			if m, ok := b.rows("p").Meta("kitchen", "m"); !ok || m.Rows != 2 || m.Updated.IsZero() {
				t.Errorf("meta %+v, %v", m, ok)
			}
		})
	}
}

// So is its state.
func TestStatesConform(t *testing.T) {
	for name, open := range map[string]func(*testing.T) plugins.State{
		"memory": func(*testing.T) plugins.State { return new(plugins.MemoryState) },
		"store":  func(t *testing.T) plugins.State { return openStore(t, store.Options{}).State("p") },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			is := func(key, want string) {
				t.Helper()
				got, err := json.Marshal(s.Get(key, "default"))
				if err != nil || string(got) != want {
					t.Errorf("%s: %s, %v, want %s", key, got, err, want)
				}
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			is("a", `"default"`)
			must(s.Save("a", map[string]any{"list": []any{1, "x", nil}}))
			is("a", `{"list":[1,"x",null]}`)
			must(s.Save("none", nil))
			is("none", `null`)
			must(s.Delete("a"))
			must(s.Delete("a"))
			is("a", `"default"`)
			if err := s.Save("a", func() {}); err == nil {
				t.Error("a function: no error")
			}
			oh := errors.New("oh")
			if _, err := s.Update("a", 0.0, func(any) (any, error) { return 1.0, oh }); !errors.Is(err, oh) {
				t.Errorf("an update that fails: error %v", err)
			}
			is("a", `"default"`)
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := s.Update("n", 0.0, func(n any) (any, error) { return n.(float64) + 1, nil }); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			is("n", `50`)
			all := s.All()
			all["mine"] = true
			if got := s.All(); len(got) != 2 || got["n"] != 50.0 {
				t.Errorf("all %v", got)
			}
			must(s.Clear())
			if got := s.All(); got == nil || len(got) != 0 {
				t.Errorf("cleared: %v", got)
			}
		})
	}
}

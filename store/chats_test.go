package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/store"

	"github.com/google/go-cmp/cmp"
)

func TestThereIsAlwaysAChat(t *testing.T) {
	w := newWorld(t)
	w.wantNames("default")
	w.must(w.Delete("default"))
	w.wantNames("default")
	w.must(w.Rename("default", "kitchen"))
	w.must(w.Create("zoo"))
	w.must(w.Create("attic"))
	w.must(w.chat("attic").Append(say(dialog.User, "1")))
	w.must(w.chat("zoo").Append(say(dialog.User, "2")))
	active := func() string {
		c, err := w.Active()
		w.must(err)
		return c.Name()
	}
	if active() != "kitchen" {
		t.Errorf("active %q", active())
	}
	w.must(w.Activate("attic"))
	w.reopen()
	if active() != "attic" {
		t.Errorf("active after reopening %q", active())
	}
	w.must(w.Delete("attic"))
	if active() != "zoo" {
		t.Errorf("active after deleting it %q, want the one used last", active())
	}
	w.must(w.Delete("kitchen"))
	w.must(w.Delete("zoo"))
	w.wantNames("default")
	if active() != "default" {
		t.Errorf("active %q", active())
	}
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	for _, bad := range []string{"", "  ", "a\nb", "a\x00", string([]byte{0xff}), strings.Repeat("é", 101)} {
		if err := w.Create(bad); err == nil {
			t.Errorf("a chat named %q was made", bad)
		}
		if err := w.Rename("default", bad); err == nil {
			t.Errorf("a chat was renamed %q", bad)
		}
	}
	good := []string{strings.Repeat("é", 100), "Küche 🍳", "kitchen", "Kitchen", "a/b"}
	for _, name := range good {
		w.must(w.Create("  " + name + " "))
	}
	w.wants(w.Create("kitchen"), store.ErrExists)
	w.wants(w.Rename("Kitchen", "kitchen"), store.ErrExists)
	w.must(w.Rename("kitchen", " kitchen "))
	w.wantTold()
	good = append(good, "default")
	slices.Sort(good)
	w.reopen()
	w.wantNames(good...)
	w.wants(w.Rename("nowhere", "x"), store.ErrNoChat)
	w.wants(w.Delete("nowhere"), store.ErrNoChat)
	w.wants(w.Clear("nowhere"), store.ErrNoChat)
	w.wants(w.Activate("nowhere"), store.ErrNoChat)
	w.wants(w.Export("nowhere", new(bytes.Buffer)), store.ErrNoChat)
}

func TestTurnSurvivesRename(t *testing.T) {
	w := newWorld(t)
	c, err := w.Active()
	w.must(err)
	w.must(c.Append(say(dialog.User, "hello")))
	w.must(w.Rename("default", "kitchen"))
	w.must(c.Append(say(dialog.Assistant, "good day to you")))
	w.must(c.Amend("good day"))
	w.must(c.End("interrupted"))
	if c.Name() != "kitchen" {
		t.Errorf("its name is %q", c.Name())
	}
	w.reopen()
	all, err := w.chat("kitchen").All()
	w.must(err)
	want := []store.Message{
		{Message: say(dialog.User, "hello"), Seq: 1},
		{Message: say(dialog.Assistant, "good day"), Seq: 2, Ended: "interrupted"},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}

	c = w.chat("kitchen")
	w.must(w.Delete("kitchen"))
	w.wants(c.Append(say(dialog.User, "anybody?")), store.ErrNoChat)
	if c.Name() != "" || len(c.Messages()) != 0 {
		t.Error("a deleted chat is still there")
	}
}

func TestAmendOwnAnswer(t *testing.T) {
	w := newWorld(t)
	mine, other := w.chat("default"), w.chat("default")
	w.must(mine.Append(say(dialog.Assistant, "mine, all of it")))
	w.must(other.Append(say(dialog.User, "other")))
	w.must(mine.Amend("mine"))
	if got := contents(other.Messages()); !slices.Equal(got, []string{"mine", "other"}) {
		t.Errorf("%q", got)
	}
	w.must(w.chat("default").Amend("the last"))
	if got := contents(other.Messages()); !slices.Equal(got, []string{"mine", "the last"}) {
		t.Errorf("%q", got)
	}
}

func TestMessagesAreWhole(t *testing.T) {
	w := newWorld(t)
	c := w.chat("default")
	want := []dialog.Message{
		{Role: dialog.User, Content: "time <& weather?", Time: begin()},
		{Role: dialog.Assistant, Time: begin(), Calls: []dialog.ToolCall{{ID: "1", Name: "time", Arguments: raw(`{}`)}, {ID: "2", Name: "weather", Arguments: raw(`{"at":"here"}`), Invalid: "why"}}},
		{Role: dialog.Tool, Content: "noon", CallID: "1", Name: "time", Time: begin()},
		{Role: dialog.Tool, Content: "rain", CallID: "2", Name: "weather", Time: begin()},
		{Role: dialog.Assistant, Content: "Noon, and rain.", Time: begin().Add(time.Second)},
	}
	w.must(c.Append(want...))
	w.must(c.Append())
	w.reopen()
	c = w.chat("default")
	if diff := cmp.Diff(want, c.Messages()); diff != "" {
		t.Error(diff)
	}
	page, err := c.Page(2, 2)
	w.must(err)
	if len(page) != 2 || page[0].Seq != 3 || page[1].Content != "rain" {
		t.Errorf("page %+v", page)
	}
	// Bounded, and never from the middle of a round of tools.
	for _, test := range []struct{ n, bytes, want int }{{5, 1000, 5}, {4, 1000, 4}, {3, 1000, 1}, {2, 1000, 1}, {1, 1000, 1}, {0, 1000, 0}, {5, 15, 1}, {5, 14, 0}, {5, 15 + 4 + 4 + 15, 4}, {5, 15 + 4 + 4 + 14, 1}} {
		list, err := c.Last(test.n, test.bytes)
		w.must(err)
		if len(list) != test.want {
			t.Errorf("the last %d of %d bytes are %d, want %d", test.n, test.bytes, len(list), test.want)
		}
	}
	w.wants(c.Append(say(dialog.User, strings.Repeat("x", 1<<20))), store.ErrTooLarge)
}

func TestSettings(t *testing.T) {
	w := newWorld(t)
	s, err := w.Settings("default")
	w.must(err)
	if diff := cmp.Diff(store.Settings{SpiceEnabled: true}, s); diff != "" {
		t.Errorf("defaults: %s", diff)
	}
	_, err = w.Set("default", map[string]any{"inject_datetime": true, "spice_enabled": false, "ghost_context": "g", "custom_context": "c",
		"mode": "game", "voice": "en", "pinned": true, "private_chat": true, "acme.level": map[string]any{"n": 1}})
	w.must(err)
	w.reopen()
	want := store.Settings{InjectDatetime: true, GhostContext: "g", CustomContext: "c", Mode: "game", Voice: "en", Pinned: true, PrivateChat: true,
		More: map[string]json.RawMessage{"acme.level": raw(`{"n":1}`)}}
	if s, err = w.Settings("default"); !cmp.Equal(want, s) || err != nil {
		t.Errorf("%v %s", err, cmp.Diff(want, s))
	}
	if got := w.chat("default").Surface(); got != "game" {
		t.Errorf("surface %q", got)
	}
	for _, test := range []struct{ surface, mode, want string }{{"", "", "chat"}, {"", "game", "game"}, {"", "other", "chat"}, {"chat", "game", "chat"}, {"kiosk", "", "kiosk"}} {
		if got := (store.Settings{Surface: test.surface, Mode: test.mode}).ShownOn(); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	s, err = w.Set("default", map[string]any{"spice_enabled": nil, "acme.level": nil, "pinned": nil})
	w.must(err)
	if !s.SpiceEnabled || len(s.More) != 0 || s.Pinned {
		t.Errorf("after resetting: %+v", s)
	}
	for name, bad := range map[string]any{"voice": 1, "pinned": "yes", "ghost_context": strings.Repeat("x", 1<<15), "x": strings.Repeat("x", 1<<16), "y": func() {}} {
		if _, err := w.Set("default", map[string]any{name: bad}); err == nil {
			t.Errorf("%s was set to %T", name, bad)
		}
	}
	if again, err := w.Settings("default"); !cmp.Equal(again.Voice, "en") || err != nil {
		t.Errorf("%+v %v", again, err)
	}
	_, err = w.Set("nowhere", nil)
	w.wants(err, store.ErrNoChat)
}

// Without a vault, private is only a mark.
func TestPrivateWithoutVault(t *testing.T) {
	w := newWorld(t)
	private := func(name *string, wantChat string, want bool, wantErr error) {
		t.Helper()
		chat, private, err := w.Private(t.Context(), name)
		if chat != wantChat || private != want {
			t.Errorf("%q private %v, want %q %v", chat, private, wantChat, want)
		}
		w.wants(err, wantErr)
	}
	private(nil, "default", false, nil)
	w.must(w.Create("secret"))
	w.seal("secret")
	private(new("secret"), "secret", true, nil)
	private(new("default"), "default", false, nil)
	private(new("nowhere"), "nowhere", true, store.ErrNoChat)
	w.must(w.Activate("secret"))
	private(nil, "secret", true, nil)
	w.wantTold()
	// The vault, once it is there, seals what was marked.
	w.must(w.SetUp(passphrase))
	w.wantTold(store.Change{Kind: store.Unlocked}, store.Change{Kind: store.Vaulted, Name: "secret", Private: true})
	w.must(w.Lock())
	private(nil, "", true, store.ErrLocked)
	private(new("secret"), "secret", true, store.ErrNoChat)
	private(new("default"), "default", false, nil)
}

func TestExport(t *testing.T) {
	w := newWorld(t)
	w.must(w.chat("default").Append(say(dialog.User, "<hello>"), say(dialog.Assistant, "hi")))
	var out bytes.Buffer
	w.must(w.Export("default", &out))
	want := `{
  "format": "bellbird-chat",
  "version": 1,
  "name": "default",
  "created": "2030-01-01T12:00:00Z",
  "settings": {
    "custom_context": "",
    "ghost_context": "",
    "inject_datetime": false,
    "mode": "",
    "pinned": false,
    "private_chat": false,
    "spice_enabled": true,
    "surface": "",
    "voice": ""
  },
  "messages": [
    {
      "seq": 1,
      "role": "user",
      "content": "<hello>"
    },
    {
      "seq": 2,
      "role": "assistant",
      "content": "hi"
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestState(t *testing.T) {
	w := newWorld(t)
	st := w.State("p")
	if st.Get("n", 5) != 5 || len(st.All()) != 0 {
		t.Error("a new state is not empty")
	}
	w.must(st.Save("n", 1))
	w.must(st.Save("null", nil))
	w.must(w.State("q").Save("n", 9))
	v, err := st.Update("n", 0, func(v any) (any, error) { return v.(float64) + 1, nil })
	if v != 2.0 || err != nil {
		t.Errorf("update: %v, %v", v, err)
	}
	if _, err := st.Update("n", 0, func(any) (any, error) { return nil, fmt.Errorf("no") }); err == nil {
		t.Error("an error of the function is lost")
	}
	w.reopen()
	st = w.State("p")
	if diff := cmp.Diff(map[string]any{"n": 2.0, "null": nil}, st.All()); diff != "" {
		t.Error(diff)
	}
	if st.Get("null", 7) != nil {
		t.Error("a stored null is not there")
	}
	w.must(st.Delete("null"))
	w.must(st.Delete("null"))
	w.wants(st.Save("big", strings.Repeat("x", 5<<20)), store.ErrTooLarge)
	if err := st.Save("f", func() {}); err == nil {
		t.Error("a function was saved")
	}
	done := make(chan error, 50)
	for range 50 {
		go func() {
			_, err := st.Update("sum", 0.0, func(v any) (any, error) { return v.(float64) + 1, nil })
			done <- err
		}()
	}
	for range 50 {
		w.must(<-done)
	}
	if st.Get("sum", nil) != 50.0 {
		t.Errorf("50 updates make %v", st.Get("sum", nil))
	}
	w.must(st.Clear())
	w.must(st.Clear())
	if len(st.All()) != 0 || w.State("q").Get("n", 0) != 9.0 {
		t.Error("clear cleared too little or too much")
	}
}

func TestImportState(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "p.json")
	imported := func(want bool) {
		t.Helper()
		got, err := w.ImportState("p", path)
		w.must(err)
		if got != want {
			t.Errorf("imported: %v", got)
		}
	}
	imported(false)
	w.must(os.WriteFile(path, []byte(`{"a":1,"b":[true]}`), 0o600))
	imported(true)
	imported(false)
	want := map[string]any{"a": 1.0, "b": []any{true}}
	if diff := cmp.Diff(want, w.State("p").All()); diff != "" {
		t.Error(diff)
	}
	// What is here counts more than a file.
	w.must(os.WriteFile(path, []byte(`{"a":2}`), 0o600))
	imported(false)
	if diff := cmp.Diff(want, w.State("p").All()); diff != "" {
		t.Error(diff)
	}
	w.must(os.WriteFile(path, []byte(`{`), 0o600))
	if _, err := w.ImportState("p", path); err == nil {
		t.Error("a broken file was imported")
	}
}

func TestBucket(t *testing.T) {
	w := newWorld(t)
	b := w.Bucket("timers")
	v, err := b.Get("1")
	if v != nil || err != nil {
		t.Errorf("%q %v", v, err)
	}
	w.must(b.Put("1", []byte("tea")))
	w.must(b.Put("2", nil))
	w.must(w.Bucket("other").Put("1", []byte("x")))
	w.reopen()
	b = w.Bucket("timers")
	all, err := b.All()
	if diff := cmp.Diff(map[string][]byte{"1": []byte("tea"), "2": nil}, all); diff != "" && err == nil {
		t.Log(diff)
	}
	if string(all["1"]) != "tea" || len(all) != 2 {
		t.Errorf("%q", all)
	}
	w.must(b.Delete("2"))
	w.must(b.Delete("2"))
	w.must(b.Replace(map[string][]byte{"3": []byte("egg")}))
	if v, _ := b.Get("3"); string(v) != "egg" {
		t.Errorf("%q", v)
	}
	if v, _ := b.Get("1"); v != nil {
		t.Errorf("replaced, but %q", v)
	}
	w.must(b.Replace(nil))
	if all, _ := b.All(); len(all) != 0 {
		t.Errorf("%q", all)
	}
	if err := b.Put("", nil); err == nil {
		t.Error("a record without a name")
	}
}

// What nobody waits for is seen at once, and written once for all, after the delay; what is awaited takes it along.
func TestBatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.Rows("p").Batched()
		onDisk := func() string {
			copied := filepath.Join(t.TempDir(), "copy.db")
			text, err := os.ReadFile(w.path)
			w.must(err)
			w.must(os.WriteFile(copied, text, 0o600))
			s, err := store.Open(copied, store.Options{Now: w.clock.Now, AfterFunc: w.clock.AfterFunc})
			w.must(err)
			defer s.Close()
			return join(s.Rows("p").ReadAll("default", "k"))
		}
		add := func(r *store.Rows, v string) {
			_, err := r.Append("default", "k", raw(v))
			w.must(err)
		}
		add(r, "1")
		add(r, "2")
		w.wantAll(r, "default", "k", "1 2")
		w.clock.Advance(999 * time.Millisecond)
		synctest.Wait()
		if got := onDisk(); got != "" {
			t.Errorf("written too soon: %s", got)
		}
		w.clock.Advance(time.Millisecond)
		synctest.Wait()
		if got := onDisk(); got != "1 2" {
			t.Errorf("written after the delay: %s", got)
		}
		add(r, "3")
		add(w.Rows("p"), "4")
		if got := onDisk(); got != "1 2 3 4" {
			t.Errorf("written when one waits: %s", got)
		}
		// One that is refused doesn't take the others with it.
		add(r, "5")
		w.wants(w.Rows("p").Put("nowhere", "k", raw("1")), store.ErrNoChat)
		w.wantAll(r, "default", "k", "1 2 3 4 5")
		w.must(w.Close())
		if got := onDisk(); got != "1 2 3 4 5" {
			t.Errorf("written when closed: %s", got)
		}
		w.open()
	})
}

// The history that a model is given begins with the same message for many turns, and never has more than is allowed.
func TestHistoryMovesInSteps(t *testing.T) {
	w := newWorld(t, func(o *store.Options) { o.HistoryMessages, o.HistoryBytes = 10, 1000 })
	c := w.chat("default")
	moved := 0
	first := ""
	for i := range 100 {
		text := fmt.Sprint("message ", i)
		if i%20 == 10 {
			text += strings.Repeat(" and so on", 40)
		}
		w.must(c.Append(say(dialog.User, text)))
		got := contents(c.Messages())
		total := 0
		for _, text := range got {
			total += len(text)
		}
		if len(got) == 0 || len(got) > 10 || total > 1000 || got[len(got)-1] != text {
			t.Fatalf("after %d: %d messages of %d bytes: %q", i, len(got), total, got)
		}
		if got[0] != first {
			first = got[0]
			moved++
		}
	}
	if moved > 25 {
		t.Errorf("it began anew %d times in 100 messages", moved)
	}
	w.must(w.Clear("default"))
	if got := c.Messages(); len(got) != 0 {
		t.Errorf("a cleared chat has %d messages", len(got))
	}
	w.must(c.Append(say(dialog.User, "hello")))
	if got := contents(c.Messages()); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("%q", got)
	}
}

func TestGhostsAreRefused(t *testing.T) {
	w := newWorld(t)
	c := w.chat("default")
	ghost := say(dialog.User, "the time is noon")
	ghost.PerTurn = true
	if err := c.Append(say(dialog.User, "hello"), ghost); err == nil {
		t.Error("a message for one turn was kept")
	}
	if got := c.Messages(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

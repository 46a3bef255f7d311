package store_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellbird/dialog"
	"bellbird/store"

	"github.com/google/go-cmp/cmp"
)

// children are what the test binary does instead of testing, when it is started by a test.
var children = map[string]func(args []string) error{
	"crash": func(args []string) error { return crashChild(args[0], args[1]) },
	"full":  func(args []string) error { return fullChild(args[0]) },
	"write": func(args []string) error { return writeChild(args[0]) },
}

const childVariable = "BELLBIRD_STORE_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		args := strings.Split(text, "\t")
		if err := children[args[0]](args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(args, "\t"))
	cmd.Stderr = os.Stderr
	return cmd
}

// rounds is how often something random is tried: few times in a test, many in a soak.
func rounds(test, soak int) int {
	if os.Getenv("BELLBIRD_SOAK") != "" {
		return soak
	}
	return test
}

// An op is one operation of the child. N is a number that no other has.
type op struct {
	Kind, Chat string
	N          int
}

func (o op) text() string { return fmt.Sprintf("text-%08d-", o.N) }
func (o op) name() string { return fmt.Sprintf("name-%08d-", o.N) }

// A model is what must be in the store.
type model struct {
	Chats   map[string]*modelChat
	State   int
	Batched int // at least so many batched rows
}

type modelChat struct {
	Messages []string
	Rows     map[string][]string
	Private  bool
}

func (m *model) clone() *model {
	var c model
	text, _ := json.Marshal(m)
	json.Unmarshal(text, &c)
	return &c
}

// apply changes the model as the operation does the store.
func (m *model) apply(o op) {
	c := m.Chats[o.Chat]
	switch o.Kind {
	case "create":
		m.Chats[o.name()] = &modelChat{Rows: make(map[string][]string)}
	case "rename":
		delete(m.Chats, o.Chat)
		m.Chats[o.name()] = c
	case "delete":
		delete(m.Chats, o.Chat)
	case "clear":
		c.Messages = nil
	case "say":
		c.Messages = append(c.Messages, o.text()+"1", o.text()+"2")
	case "append":
		c.Rows["list"] = append(c.Rows["list"], o.text())
	case "replace":
		c.Rows["list"] = []string{o.text()}
	case "put":
		c.Rows["slot"] = []string{o.text()}
	case "remove":
		delete(c.Rows, "list")
	case "seal":
		c.Private = true
	case "unseal":
		c.Private = false
	case "state":
		m.State = o.N
	}
}

func (o op) do(s *store.Store) error {
	r := s.Rows("p")
	text, _ := json.Marshal(o.text())
	switch o.Kind {
	case "create":
		return s.Create(o.name())
	case "rename":
		return s.Rename(o.Chat, o.name())
	case "delete":
		return s.Delete(o.Chat)
	case "clear":
		return s.Clear(o.Chat)
	case "say":
		c, err := s.Chat(o.Chat)
		if err != nil {
			return err
		}
		return c.Append(say(dialog.User, o.text()+"1"), say(dialog.Assistant, o.text()+"2"))
	case "append":
		_, err := r.Append(o.Chat, "list", text)
		return err
	case "replace":
		return r.Replace(o.Chat, "list", []json.RawMessage{text})
	case "put":
		return r.Put(o.Chat, "slot", text)
	case "remove":
		return r.Delete(o.Chat, "list")
	case "seal", "unseal":
		_, err := s.Set(o.Chat, map[string]any{"private_chat": o.Kind == "seal"})
		return err
	case "state":
		return s.State("p").Save("n", o.N)
	case "batch":
		_, err := s.Rows("batch").Batched().Append("default", "list", raw(strconv.Itoa(o.N)))
		return err
	}
	return errors.New(o.Kind)
}

// crashChild does operations until it is killed, and says before each which it is and after it that it is done.
func crashChild(path, seed string) error {
	n, err := strconv.Atoi(seed)
	if err != nil {
		return err
	}
	s, err := store.Open(path, store.Options{ScryptN: 2, BatchDelay: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	if there, _ := s.Vault(); there {
		err = s.Unlock(passphrase)
	} else {
		err = s.SetUp(passphrase)
	}
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(2, uint64(n)))
	batched := len(s.Rows("batch").ReadAll("default", "list"))
	out := json.NewEncoder(os.Stdout)
	kinds := []string{"create", "rename", "delete", "clear", "say", "say", "say", "append", "append", "replace", "put", "remove", "seal", "unseal", "state", "batch", "batch"}
	for i := 0; ; i++ {
		o := op{Kind: kinds[random.IntN(len(kinds))], N: n*100000 + i}
		list, err := s.Chats()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(i store.Info) bool { return i.Name == "default" })
		switch {
		case o.Kind == "batch":
			batched++
			o.N = batched
		case o.Kind == "state":
		case len(list) == 0 || o.Kind == "create" && len(list) < 6:
			o.Kind = "create"
		default:
			if o.Kind == "create" {
				o.Kind = "delete"
			}
			o.Chat = list[random.IntN(len(list))].Name
		}
		if err := out.Encode(o); err != nil {
			return err
		}
		if err := o.do(s); err != nil {
			return fmt.Errorf("%+v: %w", o, err)
		}
		if err := out.Encode(op{Kind: "done"}); err != nil {
			return err
		}
	}
}

// Killed at any moment: it opens, its invariants hold, what was acknowledged is there, and what wasn't is there as a whole
// or not at all.
func TestKilledAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bellbird.db")
	now := &model{Chats: map[string]*modelChat{}}
	seed := rand.IntN(1 << 20)
	random := rand.New(rand.NewPCG(3, uint64(seed)))
	t.Logf("seed %d", seed)
	acknowledged, inFlight, happened := 0, 0, 0
	for round := range rounds(50, 1000) {
		cmd := child("crash", path, strconv.Itoa(round+1))
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var begun *op
		after := random.IntN(60)
		kill := func() {
			time.AfterFunc(time.Duration(random.IntN(8000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
		if after == 0 {
			kill() // perhaps while it opens
		}
		batched := now.Batched
		for in := bufio.NewScanner(stdout); in.Scan(); {
			var o op
			if json.Unmarshal(in.Bytes(), &o) != nil {
				break // cut off
			}
			if o.Kind != "done" {
				begun = &o
				continue
			}
			unchanged := begun.Kind == "remove" && now.Chats[begun.Chat].Rows["list"] == nil
			now.apply(*begun)
			switch {
			case begun.Kind == "batch":
				batched = begun.N
			case !unchanged:
				now.Batched = batched // those before it are committed with it
			}
			acknowledged++
			begun = nil
			if after--; after == 0 {
				kill()
			}
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("round %d: the child ended: %v", round, err)
		}

		got := inspect(t, path)
		want := []*model{now}
		if begun != nil && begun.Kind != "batch" {
			inFlight++
			done := now.clone()
			done.apply(*begun)
			want = append(want, done)
		}
		i := slices.IndexFunc(want, func(m *model) bool {
			return cmp.Equal(m.Chats, got.Chats) && m.State == got.State && got.Batched >= m.Batched
		})
		if i < 0 {
			t.Fatalf("round %d, during %+v:\n%s", round, begun, cmp.Diff(now, got))
		}
		happened += i
		now = got
	}
	t.Logf("%d operations were acknowledged; of %d in flight %d had happened", acknowledged, inFlight, happened)
	if acknowledged == 0 {
		t.Error("nothing was tried")
	}
}

// inspect opens the store and says what is in it.
func inspect(t *testing.T, path string) *model {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(path, store.Options{ScryptN: 2})
	must(err)
	defer s.Close()
	if o := s.Opening(); o != (store.Opening{}) {
		t.Fatalf("%+v", o)
	}
	if there, _ := s.Vault(); there {
		must(s.Unlock(passphrase))
	}
	m := &model{Chats: map[string]*modelChat{}}
	list, err := s.Chats()
	must(err)
	var secrets []string
	for _, i := range list {
		if i.Name == "default" {
			continue
		}
		if i.Private != i.Sealed {
			t.Fatalf("half sealed: %+v", i)
		}
		c := &modelChat{Rows: make(map[string][]string), Private: i.Private}
		m.Chats[i.Name] = c
		h, err := s.Chat(i.Name)
		must(err)
		messages, err := h.All()
		must(err)
		for _, x := range messages {
			c.Messages = append(c.Messages, x.Content)
		}
		for _, key := range s.Rows("p").Keys(i.Name) {
			for _, v := range s.Rows("p").ReadAll(i.Name, key) {
				var text string
				must(json.Unmarshal(v, &text))
				c.Rows[key] = append(c.Rows[key], text)
			}
		}
		if i.Sealed {
			secrets = append(secrets, i.Name)
			secrets = append(secrets, c.Messages...)
			for _, rows := range c.Rows {
				secrets = append(secrets, rows...)
			}
		}
	}
	if n, ok := s.State("p").Get("n", 0).(float64); ok {
		m.State = int(n)
	}
	for n, v := range s.Rows("batch").ReadAll("default", "list") {
		if string(v) != strconv.Itoa(n+1) {
			t.Fatalf("batched row %d is %s", n+1, v)
		}
		m.Batched++
	}
	must(s.Close()) // which waits for a snapshot
	files, err := filepath.Glob(path + "*")
	must(err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(err)
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Fatalf("%q of a sealed chat is in %s", secret, filepath.Base(f))
			}
		}
	}
	return m
}

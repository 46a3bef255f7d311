package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/api"
	"bellbird/event"
)

// desk is an appliance's plugins and chats, written down.
type desk struct {
	mu   sync.Mutex
	did  []string
	fail error
}

func (d *desk) note(words ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, strings.Join(words, " "))
	return d.fail
}

func (d *desk) Settings(context.Context, string) (any, error) {
	return []map[string]any{{"key": "units", "type": "string", "value": "metric"}}, nil
}

func (d *desk) SetSettings(_ context.Context, name string, _ map[string]any) error {
	return d.note("set", name)
}

func (d *desk) List() []api.Plugin { return []api.Plugin{{Name: "weather", Enabled: true}} }

func (d *desk) SetEnabled(_ context.Context, name string, on bool) error {
	if on {
		return d.note("enable", name)
	}
	return d.note("disable", name)
}
func (d *desk) Reload(_ context.Context, name string) error { return d.note("reload", name) }
func (d *desk) Rescan(context.Context) error                { return d.note("rescan") }

type chatDesk struct{ *desk }

func (d chatDesk) List() ([]api.Chat, error)    { return []api.Chat{{Name: "a/b", Active: true}}, nil }
func (d chatDesk) Create(name string) error     { return d.note("create", name) }
func (d chatDesk) Activate(name string) error   { return d.note("activate", name) }
func (d chatDesk) Rename(name, to string) error { return d.note("rename", name, to) }
func (d chatDesk) Clear(name string) error      { return d.note("clear", name) }
func (d chatDesk) Delete(name string) error     { return d.note("delete", name) }
func (d chatDesk) Export(name string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), d.note("export", name)
}
func (d chatDesk) Settings(name string) (any, error) {
	return map[string]any{"mode": "chat"}, d.note("settings", name)
}
func (d chatDesk) Set(name string, s map[string]any) (any, error) {
	mode, _ := s["mode"].(string)
	return s, d.note("set", name, mode)
}
func (d chatDesk) Preview(_ context.Context, name, input string) (api.Preview, error) {
	return api.Preview{Messages: []api.PreviewMessage{{Role: "user", Content: input}}}, d.note("preview", name, input)
}

func (d *desk) AskIn(_ context.Context, chat, text string) (event.Record, error) {
	return event.Record{Outcome: event.Completed, Answer: "Yes."}, d.note("ask", chat, text)
}

func (d *desk) Say(_ context.Context, text string) (event.Record, error) {
	return event.Record{Outcome: event.Completed}, d.note("say", text)
}

func (d *desk) Stop() { d.note("stop") }

func (d *desk) State() string                { return "locked" }
func (d *desk) SetUp(p string) error         { return d.note("setup", p) }
func (d *desk) Unlock(p string) error        { return d.note("unlock", p) }
func (d *desk) Lock() error                  { return d.note("lock") }
func (d *desk) Change(from, to string) error { return d.note("change", from, to) }

// options are those of an appliance that has everything.
func (d *desk) options(bus *event.Bus) api.Options {
	began := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	volume := api.Volume{Percent: 70}
	mute := func() api.Mute { return api.Mute{} }
	record := event.Record{
		Run: 3, Began: began, Outcome: event.Completed, WakeWord: "okay_nabu", Stages: event.Stages{End: event.Millis(time.Second)}, Gaps: 1,
		Model: &event.ModelUse{Requests: 1, Input: 20, Output: 5},
		Hooks: []event.HookCall{{Point: "post_llm", Plugin: "weather", Outcome: "committed", Took: event.Millis(time.Millisecond)}},
	}
	return api.Options{
		Turns: d, Plugins: d, Chats: chatDesk{d}, Vault: d, Bus: bus,
		State: func() api.State {
			m := mute()
			return api.State{State: event.Idle, Since: began, Version: "v1", Began: began, Chat: "default", Volume: volume, Mute: &m, Problems: []string{}}
		},
		Volume: func() api.Volume { return volume },
		SetVolume: func(v api.VolumeChange) error {
			return d.note("volume", fmt.Sprint(*v.Percent))
		},
		Mute:    mute,
		SetMute: func(m bool) error { return d.note("mute", fmt.Sprint(m)) },
		Timers: func() []api.Timer {
			return []api.Timer{{ID: 1, Name: "eggs", Ends: began, Total: 90}, {ID: 2, Alarm: true, Ends: began, Days: []string{"Monday"}, Ringing: true}}
		},
		SetTimer: func(name string, l time.Duration) error { return d.note("timer", name, l.String()) },
		CancelTimer: func(id int) bool {
			_ = d.note("cancel", fmt.Sprint(id))
			return id == 1
		},
		Models: func() []api.Model {
			return []api.Model{{Kind: "llm", Name: "openai", Address: "http://server", Active: true}, {Kind: "stt", Name: "pocketsphinx", Active: true, Reached: new(true)}}
		},
		Records: func() ([]api.TurnRecord, error) {
			return []api.TurnRecord{{ID: 8, Record: record}, {ID: 7, Record: record}}, nil
		},
		Metrics: func(w io.Writer) error {
			_, err := io.WriteString(w, "bellbird_volume_percent 70\n")
			return err
		},
	}
}

// serve runs a server, and returns its bus, a client of it, and its socket.
func serve(t *testing.T, d *desk) (*event.Bus, *api.Client, string) {
	t.Helper()
	bus := new(event.Bus)
	socket := filepath.Join(t.TempDir(), "run", "bellbird.sock")
	s, err := api.Listen(socket, d.options(bus))
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return bus, api.Dial(socket), socket
}

// run runs a server until the end of the test.
func run(t testing.TB, s *api.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestRoutes(t *testing.T) {
	d := new(desk)
	_, c, _ := serve(t, d)
	for _, r := range []struct {
		method, path string
		in           any
		did          string
	}{
		{"PUT", "/api/plugins/weather/enabled", true, "enable weather"},
		{"PUT", "/api/plugins/weather/enabled", false, "disable weather"},
		{"POST", "/api/plugins/weather/reload", nil, "reload weather"},
		{"POST", "/api/plugins/rescan", nil, "rescan"},
		{"POST", "/api/chats", map[string]string{"name": "new"}, "create new"},
		{"POST", "/api/chats/a%2Fb/activate", nil, "activate a/b"},
		{"POST", "/api/chats/a%2Fb/rename", map[string]string{"name": "c"}, "rename a/b c"},
		{"POST", "/api/chats/c/clear", nil, "clear c"},
		{"DELETE", "/api/chats/c", nil, "delete c"},
		{"GET", "/api/chats/c/export", nil, "export c"},
		{"GET", "/api/chats/c/settings", nil, "settings c"},
		{"PUT", "/api/chats/c/settings", map[string]string{"mode": "game"}, "set c game"},
		{"PUT", "/api/chats/c/settings", map[string]any{"settings": map[string]string{"mode": "game"}}, "set c game"},
		{"PUT", "/api/volume", map[string]int{"percent": 30}, "volume 30"},
		{"PUT", "/api/mute", map[string]bool{"muted": true}, "mute true"},
		{"POST", "/api/timers", map[string]any{"name": "eggs", "seconds": 90}, "timer eggs 1m30s"},
		{"DELETE", "/api/timers/1", nil, "cancel 1"},
		{"GET", "/api/chats/c/prompt-preview?input=hi+there", nil, "preview c hi there"},
		{"POST", "/api/ask", map[string]string{"chat": "c", "text": "is it late"}, "ask c is it late"},
		{"POST", "/api/say", map[string]string{"text": "it is late"}, "say it is late"},
		{"POST", "/api/stop", nil, "stop"},
		{"POST", "/api/vault/setup", map[string]string{"passphrase": "one"}, "setup one"},
		{"POST", "/api/vault/unlock", map[string]string{"passphrase": "one"}, "unlock one"},
		{"POST", "/api/vault/lock", nil, "lock"},
		{"POST", "/api/vault/passphrase", map[string]string{"from": "one", "to": "two"}, "change one two"},
	} {
		d.did = nil
		if err := c.Do(t.Context(), r.method, r.path, r.in, nil); err != nil {
			t.Errorf("%s %s: %v", r.method, r.path, err)
		}
		if !reflect.DeepEqual(d.did, []string{r.did}) {
			t.Errorf("%s %s: did %q, want %q", r.method, r.path, d.did, r.did)
		}
	}
	var list []api.Plugin
	if err := c.Do(t.Context(), "GET", "/api/plugins", nil, &list); err != nil || len(list) != 1 || list[0].Name != "weather" {
		t.Errorf("%v %v", list, err)
	}
}

func TestRefusals(t *testing.T) {
	d := &desk{fail: api.Errorf(http.StatusNotFound, "there is no plugin %q", "x")}
	_, c, _ := serve(t, d)
	for _, r := range []struct {
		method, path string
		in           any
		status       int
		says         string
	}{
		{"POST", "/api/plugins/x/reload", nil, 404, `there is no plugin "x"`},
		{"GET", "/api/nothing", nil, 404, "there is no GET /api/nothing here"},
		{"PUT", "/api/plugins/x/enabled", "yes", 400, "can't be read"},
		{"POST", "/api/chats", map[string]string{"nom": "c"}, 400, "nom"},
		{"POST", "/api/ask", map[string]string{"text": ""}, 400, "the text has to have"},
		{"POST", "/api/chats", strings.Repeat("x", 2<<20), 413, "too large"},
		{"PUT", "/api/plugins/x/enabled", json.RawMessage("null"), 400, "null"},
		{"PUT", "/api/volume", map[string]int{"percent": 101}, 400, "0 to 100"},
		{"PUT", "/api/mute", map[string]int{}, 400, "muted"},
		{"POST", "/api/timers", map[string]any{"seconds": 0.5}, 400, "1 to"},
		{"POST", "/api/timers", map[string]any{"seconds": 1e300}, 400, "1 to"},
		{"DELETE", "/api/timers/7", nil, 404, "no timer"},
		{"DELETE", "/api/timers/seven", nil, 404, "no timer"},
		{"GET", "/api/turns/9", nil, 404, "no record"},
		{"GET", "/api/turns?limit=-1", nil, 400, "from 1"},
	} {
		err := c.Do(t.Context(), r.method, r.path, r.in, nil)
		var e *api.Error
		if !errors.As(err, &e) || e.Status != r.status || !strings.Contains(e.Message, r.says) {
			t.Errorf("%s %s: %v", r.method, r.path, err)
		}
	}
}

func TestEvents(t *testing.T) {
	bus, c, _ := serve(t, new(desk))
	enough := errors.New("enough")
	var got []string
	err := c.Events(t.Context(), "/api/events?kind=volume_changed", func(kind string, data []byte) error {
		got = append(got, kind+" "+string(data))
		return enough
	}, func() { // it has begun
		bus.Publish(event.MicrophoneWell{})
		bus.Publish(event.VolumeChanged{Percent: 30})
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "volume_changed ") || !strings.Contains(got[0], `"Percent":30`) {
		t.Errorf("%q", got)
	}
}

func TestSocket(t *testing.T) {
	dir := t.TempDir()
	o := api.Options{Bus: new(event.Bus)}

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(file, o); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file: %v", err)
	}

	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(stale, o); err == nil || !strings.Contains(err.Error(), "another appliance") {
		t.Errorf("a socket that is served: %v", err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	err = api.Dial(stale).Do(t.Context(), "GET", "/api/events", nil, nil)
	if !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("nobody serves: %v", err)
	}
	s, err := api.Listen(stale, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(stale)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v %v", info.Mode(), err)
	}

	if err := api.Dial(filepath.Join(dir, "none")).Do(t.Context(), "GET", "/", nil, nil); !errors.Is(err, api.ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
}

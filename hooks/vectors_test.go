package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"bellbird/hooks"
)

var update = flag.Bool("update", false, "write what came out into the vectors; read the difference before you keep it")

// The vectors are what the runner does, one behaviour in each file of testdata. A file's comment says which, and if it is
// another one than that of the reference, why. The sections are steps, in order:
//
//	runner        only first; options: {"private": {"chat": "den", "names": {"den": true}, "error": "", "panic": false}}
//	handlers      a list of handlers to register (see vectorHandler)
//	refused       a list of handlers that must be refused
//	surfaces NAME a plugin's surfaces, or null
//	unregister    names of plugins
//	fire POINT    fires with this event; behind the point may stand budget=20ms and cancel=10ms
//	out           the event after the last fire
//	trace         of the last fire
//	seen          what the handlers noted since the last such section, and who asked for a chat's privacy
//	took          how long the last fire took
//	breakers      which breakers opened so far, and for how long
//	has POINT     whether anybody would be called
//	wait          time that passes
type vector struct {
	t       *testing.T
	runner  *hooks.Runner
	event   *hooks.Event
	trace   hooks.Trace
	took    time.Duration
	mu      sync.Mutex
	seen    []string
	opened  []string
	options struct {
		Private struct {
			Chat  string          `json:"chat"` // the active one
			Names map[string]bool `json:"names"`
			Error string          `json:"error"`
			Panic bool            `json:"panic"`
		} `json:"private"`
	}
}

// A vectorHandler is a handler, and what its plugin declares. "system" is the band of those that name none.
type vectorHandler struct {
	Plugin     string     `json:"plugin"`
	Point      string     `json:"point"`
	Band       string     `json:"band"`
	Priority   *int       `json:"priority"`
	Aware      bool       `json:"aware"`
	Surfaces   []string   `json:"surfaces"`
	FailClosed bool       `json:"fail_closed"`
	Mode       hooks.Mode `json:"mode"`
	Match      []string   `json:"match"` // triggers
	Do         []action   `json:"do"`
}

// An action is one thing that a handler does: the field that is set.
type action struct {
	Set    map[string]json.RawMessage `json:"set"`    // a field, or a path within one: "arguments.unit", "tools.0.function.name"
	Append map[string]string          `json:"append"` // to a text, or to a list
	Note   []string                   `json:"note"`   // fields or paths, for the section seen
	Sleep  string                     `json:"sleep"`  // without looking at the context; "deadline": until that has come
	Stop   bool                       `json:"stop"`   // stop_propagation
	Error  string                     `json:"error"`
	Panic  string                     `json:"panic"`
	Kill   bool                       `json:"kill"` // as a runtime does whose worker had to be killed
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d vectors, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Error("it doesn't say what it shows")
			}
			synctest.Test(t, func(t *testing.T) {
				v := &vector{t: t}
				o := hooks.Options{System: "powers", Config: "settings", OnBreaker: v.breaker}
				if archive.Files[0].Name == "runner" {
					v.decode(archive.Files[0].Data, &v.options)
					o.Private = v.private
				}
				v.runner = hooks.New(o)
				defer v.runner.Close()
				checks := 0
				for i := range archive.Files {
					s := &archive.Files[i]
					got, checked := v.step(s.Name, s.Data)
					if !checked {
						continue
					}
					checks++
					if *update {
						s.Data = []byte(got)
					} else if diff := cmp.Diff(string(s.Data), got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", s.Name, diff)
					}
				}
				if checks == 0 {
					t.Error("it checks nothing")
				}
				time.Sleep(3 * time.Hour) // until the last handler has had enough
			})
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// step does what a section says. If it is one that says what there should be, it returns what there is.
func (v *vector) step(section string, data []byte) (got string, checked bool) {
	v.t.Helper()
	name, argument, _ := strings.Cut(section, " ")
	switch name {
	case "runner": // was read before
	case "handlers":
		for _, h := range v.handlers(data) {
			if err := v.register(h); err != nil {
				v.t.Fatal(err)
			}
		}
	case "refused":
		for _, h := range v.handlers(data) {
			if err := v.register(h); err == nil {
				v.t.Errorf("handler of %s: not refused", h.Plugin)
			}
		}
		return string(data), true
	case "unregister":
		for _, plugin := range strings.Fields(string(data)) {
			v.runner.Unregister(plugin)
		}
	case "surfaces":
		var surfaces []string
		v.decode(data, &surfaces)
		v.runner.SetSurfaces(argument, surfaces)
	case "fire":
		v.fire(argument, data)
	case "wait":
		d, err := time.ParseDuration(strings.TrimSpace(string(data)))
		if err != nil {
			v.t.Fatal(err)
		}
		time.Sleep(d)
		synctest.Wait()
	case "out":
		text, err := json.MarshalIndent(v.event, "", "  ")
		if err != nil {
			v.t.Fatal(err)
		}
		return string(text) + "\n", true
	case "trace":
		return lines(outcomes(v.trace)), true
	case "seen":
		v.mu.Lock()
		defer v.mu.Unlock()
		got, v.seen = lines(v.seen), nil
		return got, true
	case "took":
		return v.took.String() + "\n", true
	case "breakers":
		return lines(v.opened), true
	case "has":
		return strconv.FormatBool(v.runner.Has(argument)) + "\n", true
	default:
		v.t.Fatalf("there is no section %q", section)
	}
	return "", false
}

func lines(all []string) string {
	var b strings.Builder
	for _, l := range all {
		b.WriteString(l + "\n")
	}
	return b.String()
}

func (v *vector) decode(data []byte, to any) {
	v.t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		v.t.Fatal(err)
	}
}

func (v *vector) handlers(data []byte) (all []vectorHandler) {
	v.t.Helper()
	v.decode(data, &all)
	return all
}

func (v *vector) register(d vectorHandler) error {
	h := hooks.Handler{
		Plugin: d.Plugin, Point: d.Point, Priority: hooks.DefaultPriority, FailClosed: d.FailClosed,
		Func: func(ctx context.Context, e *hooks.Event) error {
			for _, a := range d.Do {
				if err := v.do(ctx, d, a, e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	if d.Band == "user" {
		h.Band = hooks.User
	}
	if d.Priority != nil {
		h.Priority = *d.Priority
	}
	if d.Mode != "" || d.Match != nil {
		m, err := hooks.NewMatch(d.Mode, d.Match)
		if err != nil {
			return err
		}
		h.Match = m
	}
	if d.Aware {
		v.runner.SetAware(d.Plugin, true)
	}
	if d.Surfaces != nil {
		v.runner.SetSurfaces(d.Plugin, d.Surfaces)
	}
	return v.runner.Register(h)
}

func (v *vector) fire(argument string, data []byte) {
	words := strings.Fields(argument)
	ctx, cancel := context.WithCancel(v.t.Context())
	defer cancel()
	budget := time.Duration(0)
	for _, option := range words[1:] {
		key, value, _ := strings.Cut(option, "=")
		d, err := time.ParseDuration(value)
		if err != nil {
			v.t.Fatal(err)
		}
		switch key {
		case "budget":
			budget = d
		case "cancel":
			time.AfterFunc(d, cancel)
		default:
			v.t.Fatalf("fire has no option %q", key)
		}
	}
	v.event = new(hooks.Event)
	v.decode(data, v.event)
	began := time.Now()
	v.trace = v.runner.FireWithin(ctx, words[0], v.event, budget)
	v.took = time.Since(began)
	synctest.Wait()
}

func (v *vector) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, fmt.Sprintf(format, args...))
}

func (v *vector) private(_ context.Context, name *string) (chat string, private bool, err error) {
	p := v.options.Private
	chat = p.Chat
	if name != nil {
		chat = *name
	}
	v.note("asked for the privacy of %s", chat)
	if p.Panic {
		panic("oh")
	}
	if p.Error != "" {
		err = errors.New(p.Error)
	}
	return chat, p.Names[chat], err
}

func (v *vector) breaker(plugin, point string, d time.Duration) {
	v.opened = append(v.opened, fmt.Sprintf("%s at %s, %v", plugin, point, d))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/dialog"
	"bellbird/event"
	"bellbird/plugins"
)

// body plays all parts of an appliance, and notes what is done to it.
type body struct {
	done     []string
	speaking bool
	release  chan struct{} // what the model waits for
	say      chan struct{} // what the turns wait for
}

func (b *body) note(what string, args ...any) error {
	b.done = append(b.done, strings.TrimSpace(what+" "+fmt.Sprintln(args...)))
	return nil
}

func (b *body) SetVoice(name string) error { return b.note("voice", name) }
func (b *body) SetSpeed(f float64) error   { return b.note("speed", f) }
func (b *body) SetPitch(f float64) error   { return b.note("pitch", f) }
func (b *body) Stop()                      { b.note("stop") }
func (b *body) Volume() int                { return 40 }
func (b *body) SetVolume(n int)            { b.note("volume", n) }
func (b *body) SetMuted(m bool)            { b.note("mute", m) }
func (b *body) Enabled() bool              { return true }
func (b *body) SetEnabled(on bool)         { b.note("enable", on) }
func (b *body) Specs() []dialog.ToolSpec {
	return []dialog.ToolSpec{{Name: "get_time", Description: "Tells it."}}
}
func (b *body) Names() ([]string, error)     { return []string{"diary", "kitchen"}, nil }
func (b *body) Create(name string) error     { return b.note("create", name) }
func (b *body) Activate(name string) error   { return b.note("activate", name) }
func (b *body) Rename(old, new string) error { return b.note("rename", old, new) }
func (b *body) Clear(name string) error      { return b.note("clear", name) }

func (b *body) Say(ctx context.Context, text string) (event.Record, error) {
	select {
	case <-b.say:
		return event.Record{}, b.note("say", text)
	case <-ctx.Done():
		return event.Record{}, ctx.Err()
	}
}

func (b *body) SetCutoff(word string, cutoff float64) error {
	return b.note("cutoff", word, fmt.Sprintf("%.2f", cutoff))
}

func (b *body) Show(_ string, c color.RGBA, pattern string, d time.Duration) error {
	return b.note("show", c.R, c.G, c.B, pattern, d)
}

func (b *body) Private(_ context.Context, name *string) (string, bool, error) {
	if name == nil {
		return "kitchen", false, nil
	}
	return *name, *name != "kitchen", nil // one that isn't there is private too
}

func (b *body) Messages(name string) ([]dialog.Message, error) {
	return []dialog.Message{{Role: dialog.User, Content: "in " + name}}, nil
}

func (b *body) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		select {
		case <-b.release:
			yield(dialog.Delta{Text: " About " + req.Messages[0].Content}, nil)
		case <-ctx.Done():
			yield(dialog.Delta{}, ctx.Err())
		}
	}
}

func newPowers(t *testing.T, b *body) (*powers, *plugins.System) {
	p := &powers{
		voice: b, turns: b, speaking: func() bool { return b.speaking }, silence: func() { b.note("silence") }, ears: b,
		wakeWords: []string{"nabu", "jarvis"}, wakeSwitch: b, sttSwitch: b, chats: b, model: b, tools: b, volume: b, ring: b,
		log: slog.New(slog.DiscardHandler),
	}
	s, err := p.system()
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

func owner(aware bool) *plugins.Owner {
	return &plugins.Owner{Manifest: &plugins.Manifest{Name: "p", PrivacyAware: aware}}
}

func TestPowers(t *testing.T) {
	type args = []any
	for _, test := range []struct {
		name   string
		args   args
		aware  bool
		done   []string
		result any
		err    string
	}{
		{name: "tts.set_voice", args: args{"en-gb"}, done: []string{"voice en-gb"}},
		{name: "tts.set_speed", args: args{1.5}, done: []string{"speed 1.5"}},
		{name: "tts.set_pitch", args: args{0.5}, done: []string{"pitch 0.5"}},
		{name: "tts.stop", done: []string{"silence"}},
		{name: "cancel_generation", done: []string{"stop"}},
		{name: "wakeword.set_sensitivity", args: args{0.0}, done: []string{"cutoff nabu 0.99", "cutoff jarvis 0.99"}},
		{name: "wakeword.set_sensitivity", args: args{1.0, "jarvis"}, done: []string{"cutoff jarvis 0.50"}},
		{name: "wakeword.set_sensitivity", args: args{1.0, "stop"}, err: "the wake words are"},
		{name: "toggle_wakeword", args: args{true}, done: []string{"enable true"}},
		{name: "stt.enabled", result: true},
		{name: "tools.list", result: args{map[string]any{"name": "get_time", "description": "Tells it."}}},
		{name: "volume.get", result: 40},
		{name: "volume.set", args: args{30.0}, done: []string{"volume 30"}},
		{name: "volume.mute", args: args{true}, done: []string{"mute true"}},
		{name: "ring.show", args: args{"#0a00ff", 1.5}, done: []string{"show 10 0 255 steady 1.5s"}},
		{name: "ring.show", args: args{"Red", 1.0, "pulse"}, done: []string{"show 255 0 0 pulse 1s"}},
		{name: "ring.show", args: args{"#0a00fg", 1.0}, err: "is no colour"},
		{name: "ring.show", args: args{"red", 1.0, "dance"}, err: "the patterns are"},
		{name: "ring.show", args: args{"red", 3600.0}, err: "not from 0.1 to 60"},

		{name: "llm_chat.active_chat", result: "kitchen"},
		{name: "llm_chat.get_messages", result: args{map[string]any{"role": "user", "content": "in kitchen"}}},
		{name: "llm_chat.get_messages", args: args{"diary"}, err: "private"},
		{name: "llm_chat.get_messages", args: args{"diary"}, aware: true, result: args{map[string]any{"role": "user", "content": "in diary"}}},
		{name: "llm_chat.list_chats", result: args{"kitchen"}},
		{name: "llm_chat.list_chats", aware: true, result: args{"diary", "kitchen"}},
		{name: "llm_chat.create_chat", args: args{"x"}, done: []string{"create x"}},
		{name: "llm_chat.activate_chat", args: args{"kitchen"}, done: []string{"activate kitchen"}},
		{name: "llm_chat.activate_chat", args: args{"diary"}, err: "private"},
		{name: "llm_chat.rename_chat", args: args{"kitchen", "x"}, done: []string{"rename kitchen x"}},
		{name: "llm_chat.clear_chat", done: []string{"clear kitchen"}},
		{name: "llm_chat.clear_chat", args: args{"diary"}, err: "private"},
	} {
		b := new(body)
		p, s := newPowers(t, b)
		got, err := s.Grant(owner(test.aware)).Call(t.Context(), test.name, test.args, nil)
		p.close()
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || len(b.done) > 0 {
				t.Errorf("%s%v: error %v, want %q; done %q", test.name, test.args, err, test.err, b.done)
			}
			continue
		}
		if diff := cmp.Diff(test.result, got); err != nil || diff != "" || !slices.Equal(b.done, test.done) {
			t.Errorf("%s%v: error %v, done %q, result (-want +got):\n%s", test.name, test.args, err, b.done, diff)
		}
	}
}

func TestStopWhileSpeaking(t *testing.T) {
	b := &body{speaking: true}
	p, s := newPowers(t, b)
	defer p.close()
	if _, err := s.Grant(owner(false)).Call(t.Context(), "tts.stop", nil, nil); err != nil || !slices.Equal(b.done, []string{"silence", "stop"}) {
		t.Errorf("error %v, done %q", err, b.done)
	}
}

// What is to be spoken waits for its turn, but not everything that a plugin thinks of.
func TestSpeakLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &body{say: make(chan struct{})}
		p, s := newPowers(t, b)
		g := s.Grant(owner(false))
		var err error
		for i := range 5 {
			if _, e := g.Call(t.Context(), "tts.speak", []any{"hello"}, nil); e != nil && i < 4 {
				t.Error(e)
			} else {
				err = e
			}
		}
		if err == nil || !strings.Contains(err.Error(), "under way already") {
			t.Errorf("the fifth: error %v", err)
		}
		b.say <- struct{}{}
		synctest.Wait()
		if !slices.Equal(b.done, []string{"say hello"}) {
			t.Errorf("done %q", b.done)
		}
		p.close()
		if _, err := g.Call(t.Context(), "tts.speak", []any{"late"}, nil); err == nil {
			t.Error("after the end: no error")
		}
	})
}

func TestChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &body{release: make(chan struct{}, 2)}
		p, s := newPowers(t, b)
		defer p.close()
		o := owner(false)
		state := new(plugins.MemoryState)
		o.State = state
		g := s.Grant(o)

		// Whoever waits has as long as his hook.
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, over)
		defer cancel()
		began := time.Now()
		if _, err := g.Call(ctx, "llm_chat.chat", []any{"birds"}, nil); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("without an answer: %v after %v", err, time.Since(began))
		}
		b.release <- struct{}{}
		if got, err := g.Call(t.Context(), "llm_chat.chat", []any{"birds"}, nil); err != nil || got != "About birds" {
			t.Errorf("%v, %v", got, err)
		}

		// Whoever has it saved doesn't wait.
		ctx, cancel = context.WithCancel(t.Context())
		if got, err := g.Call(ctx, "llm_chat.chat", []any{"bees"}, map[string]any{"save": "about"}); err != nil || got != nil {
			t.Errorf("%v, %v", got, err)
		}
		cancel()
		if _, err := g.Call(t.Context(), "llm_chat.chat", []any{"wasps"}, map[string]any{"save": "about"}); err == nil {
			t.Error("a second one at the same time: no error")
		}
		b.release <- struct{}{}
		synctest.Wait()
		if got := state.Get("about", nil); got != "About bees" {
			t.Errorf("state %v", got)
		}
	})
}

func TestPartsThatAreNotThere(t *testing.T) {
	p := &powers{log: slog.New(slog.DiscardHandler)}
	s, err := p.system()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if names := s.Grant(owner(true)).Names(); len(names) > 0 {
		t.Errorf("powers %q", names)
	}
}

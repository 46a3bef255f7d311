package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"image/color"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"bellbird/dialog"
	"bellbird/event"
	"bellbird/pipeline"
	"bellbird/plugins"
)

// powers are what plugins may use of the appliance. What is nil is not there, and its part of the system is None.
type powers struct {
	voice interface { // factors: 1 is as configured
		SetVoice(name string) error
		SetSpeed(factor float64) error
		SetPitch(factor float64) error
	}
	turns interface {
		Stop()
		Say(ctx context.Context, text string) (event.Record, error)
	}
	speaking func() bool // whether a turn is being spoken
	silence  func()      // ends what rings
	ears     interface {
		SetCutoff(word string, cutoff float64) error
	}
	wakeWords  []string // those that begin a turn
	wakeSwitch onOff
	sttSwitch  onOff
	chats      chats
	model      pipeline.Model
	tools      interface{ Specs() []dialog.ToolSpec }
	volume     interface {
		Volume() int
		SetVolume(percent int)
		SetMuted(muted bool)
	}
	ring interface {
		// Show shows a colour for a while on behalf of a plugin, and then what was shown before.
		Show(plugin string, c color.RGBA, pattern string, d time.Duration) error
	}
	log *slog.Logger

	// What goes on when the plugin's call has returned. It is ended by close.
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	mu       sync.Mutex
	underWay map[string]int // by what and whose
}

// onOff is something that can be switched off.
type onOff interface {
	Enabled() bool
	SetEnabled(on bool)
}

// chats are all there are.
type chats interface {
	Names() ([]string, error)
	Private(ctx context.Context, name *string) (chat string, private bool, err error) // nil: the active one
	Messages(name string) ([]dialog.Message, error)
	Create(name string) error
	Activate(name string) error
	Rename(old, name string) error
	Clear(name string) error
}

const (
	chatWait    = 30 * time.Second // that a plugin waits for the model at most, if its hook has so long
	chatLater   = 2 * time.Minute  // that the model has when nobody waits for it
	maxAnswer   = 64 << 10
	maxSpeeches = 4 // of one plugin, waiting to be spoken
)

// system is what the plugins get. close must be called in the end.
func (p *powers) system() (*plugins.System, error) {
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.underWay = make(map[string]int)
	do := make(map[string]plugins.Func)
	for _, part := range []func(map[string]plugins.Func){p.speech, p.listening, p.conversation, p.surroundings} {
		part(do)
	}
	return plugins.NewSystem(do)
}

// close ends what goes on for plugins, and waits for that.
func (p *powers) close() {
	p.mu.Lock() // so that nothing begins in between
	p.cancel()
	p.mu.Unlock()
	p.wg.Wait()
}

// later runs f when the call has returned. No more than most of the same what go on for a plugin.
func (p *powers) later(c *plugins.Call, what string, most int, f func(ctx context.Context) error) error {
	key := what + " " + c.Owner.Manifest.Name
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx.Err() != nil:
		return errors.New("the appliance stops")
	case p.underWay[key] >= most:
		return fmt.Errorf("%d of this plugin are under way already", most)
	}
	p.underWay[key]++
	p.wg.Go(func() {
		err := f(p.ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.underWay[key]--; p.underWay[key] == 0 {
			delete(p.underWay, key)
		}
		if err != nil && p.ctx.Err() == nil {
			p.log.Warn("what a plugin wanted", "what", what, "plugin", c.Owner.Manifest.Name, "err", err)
		}
	})
	return nil
}

// act is a power that returns nothing.
func act(f func(c *plugins.Call) error) plugins.Func {
	return func(_ context.Context, c *plugins.Call) (any, error) { return nil, f(c) }
}

func (p *powers) speech(do map[string]plugins.Func) {
	if p.voice != nil {
		do["tts.set_voice"] = act(func(c *plugins.Call) error { return p.voice.SetVoice(c.Text("voice")) })
		do["tts.set_speed"] = act(func(c *plugins.Call) error { return p.voice.SetSpeed(c.Number("speed")) })
		do["tts.set_pitch"] = act(func(c *plugins.Call) error { return p.voice.SetPitch(c.Number("pitch")) })
	}
	if p.turns == nil {
		return
	}
	do["cancel_generation"] = act(func(*plugins.Call) error { p.turns.Stop(); return nil })
	do["tts.stop"] = act(func(*plugins.Call) error {
		if p.silence != nil {
			p.silence()
		}
		if p.speaking != nil && p.speaking() { // else it would end the turn that asks for this
			p.turns.Stop()
		}
		return nil
	})
	do["tts.speak"] = act(func(c *plugins.Call) error {
		return p.later(c, "speak", maxSpeeches, func(ctx context.Context) error {
			_, err := p.turns.Say(ctx, c.Text("text"))
			return err
		})
	})
}

func (p *powers) listening(do map[string]plugins.Func) {
	if p.ears != nil {
		do["wakeword.set_sensitivity"] = act(func(c *plugins.Call) error {
			words := p.wakeWords
			if c.Has("word") {
				words = []string{c.Text("word")}
				if !slices.Contains(p.wakeWords, c.Text("word")) {
					return fmt.Errorf("the wake words are %q", p.wakeWords)
				}
			}
			for _, w := range words {
				if err := p.ears.SetCutoff(w, cutoffOf(c.Number("sensitivity"))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for part, s := range map[string]onOff{"wakeword": p.wakeSwitch, "stt": p.sttSwitch} {
		if s != nil {
			do[part+".enable"] = act(func(c *plugins.Call) error { s.SetEnabled(c.Flag("on")); return nil })
			do[part+".enabled"] = func(context.Context, *plugins.Call) (any, error) { return s.Enabled(), nil }
		}
	}
}

// cutoffOf is how probable a wake word must be at a sensitivity, from 0, at which it must be all but sure, to 1, at which
// it is as likely as not.
func cutoffOf(sensitivity float64) float64 { return 0.99 - sensitivity*0.49 }

func (p *powers) surroundings(do map[string]plugins.Func) {
	if p.tools != nil {
		do["tools.list"] = func(context.Context, *plugins.Call) (any, error) {
			list := []any{}
			for _, s := range p.tools.Specs() {
				list = append(list, map[string]any{"name": s.Name, "description": s.Description})
			}
			return list, nil
		}
	}
	if p.volume != nil {
		do["volume.get"] = func(context.Context, *plugins.Call) (any, error) { return p.volume.Volume(), nil }
		do["volume.set"] = act(func(c *plugins.Call) error { p.volume.SetVolume(int(c.Number("percent"))); return nil })
		do["volume.mute"] = act(func(c *plugins.Call) error { p.volume.SetMuted(c.Flag("on")); return nil })
	}
	if p.ring != nil {
		do["ring.show"] = act(func(c *plugins.Call) error {
			colour, err := parseColour(c.Text("colour"))
			if err != nil {
				return err
			}
			pattern := c.Text("pattern")
			if pattern == "" {
				pattern = "steady"
			}
			if patterns := []string{"steady", "pulse", "spin"}; !slices.Contains(patterns, pattern) {
				return fmt.Errorf("the patterns are %q", patterns)
			}
			return p.ring.Show(c.Owner.Manifest.Name, colour, pattern, time.Duration(c.Number("seconds")*float64(time.Second)))
		})
	}
}

var colours = map[string]color.RGBA{
	"red": {R: 255}, "green": {G: 255}, "blue": {B: 255}, "white": {R: 255, G: 255, B: 255}, "yellow": {R: 255, G: 200},
	"orange": {R: 255, G: 100}, "purple": {R: 160, B: 255}, "cyan": {G: 255, B: 255}, "off": {},
}

// parseColour reads a name or #rrggbb.
func parseColour(s string) (color.RGBA, error) {
	if c, ok := colours[strings.ToLower(s)]; ok {
		return c, nil
	}
	if digits, ok := strings.CutPrefix(s, "#"); ok {
		if rgb, err := hex.DecodeString(digits); err == nil && len(rgb) == 3 {
			return color.RGBA{R: rgb[0], G: rgb[1], B: rgb[2]}, nil
		}
	}
	return color.RGBA{}, fmt.Errorf("%q is no colour: write a name or #rrggbb", s)
}

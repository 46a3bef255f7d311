package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/dictation"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/internal/run"
	"bellbird/pipeline"
	"bellbird/plugins"
	integrations "bellbird/plugins/mcp"
	"bellbird/store"
	"bellbird/stt/pocketsphinx"
	"bellbird/timers"
	"bellbird/tools"
	"bellbird/tools/mcp"
	"bellbird/tts"
	"bellbird/wake"
)

// stopGrace is how long the parts have to stop, all together.
const stopGrace = 1800 * time.Millisecond

// A device is the appliance's body: it delivers the frames of a microphone and plays what the output gives it.
type device interface {
	Frames() <-chan audio.Frame
	Run(ctx context.Context) error
}

// An appliance is everything but the device.
type appliance struct {
	clock  clock.Clock
	zone   func() *time.Location // where the user is
	bus    *event.Bus
	output *audio.Output
	timers *timers.Keeper
	turns  *pipeline.Pipeline
	hooks  *hooks.Runner
	loader *plugins.Loader
	tally  *tally // of what the hooks did
	told   func(hooks.Trace)
	store  *store.Store
	tools  *tools.Set
	mcp    []*mcp.Server
	ears   *wake.Ears  // nil: it has none
	body   *embodiment // nil: it has none
	voice  tts.Voice

	integrations  *integrations.Set
	dictation     *dictation.Dictation
	confirmations *pipeline.Confirmations

	more    []run.Part                                        // what else runs
	contend func(word string, score float64, tell func(bool)) // set before it runs; nil: there is nobody else
	publish func(owner, topic, text string) error             // below its own topic on MQTT; set before it runs; nil: there is none
	toClose []func()

	wakes, recognises switched // what plugins can switch off
	wakeSound         atomic.Bool
	announcing        atomic.Int32 // announcements that wait
	forgetful         bool         // the storage is broken
	hearsAnything     bool         // its recogniser is not bound to a grammar
}

// senses says which parts an appliance gets.
type senses struct {
	ears    bool
	body    func(gpio.Options) gpio.Options // fits the body to what there is; nil: it has none
	timers  bool                            // without them the agent knows that it can't keep time
	lasting bool                            // it remembers beyond its end
	sane    func() bool                     // whether the time of day is known; nil: it is
	output  *audio.Output                   // nil: a new one
	measure *probe                          // nil: nothing is measured
}

// assemble builds an appliance, from the engines up to the turn. It starts nothing. What it lacks has to be installed
// or configured before it makes sense to try again, so every error is a usageError.
func assemble(c Config, s senses, clk clock.Clock, log *slog.Logger) (*appliance, error) {
	a := &appliance{clock: clk, bus: new(event.Bus), output: s.output, zone: userZone()}
	if err := a.wire(c, s, log); err != nil {
		a.close()
		return nil, &usageError{err}
	}
	return a, nil
}

// onClose has f called when the appliance is closed, before what was asked for earlier.
func (a *appliance) onClose(f func()) { a.toClose = append(a.toClose, f) }

// close ends what does not run.
func (a *appliance) close() {
	for i := len(a.toClose) - 1; i >= 0; i-- {
		a.toClose[i]()
	}
	a.toClose = nil
}

func (a *appliance) wire(c Config, s senses, log *slog.Logger) error {
	clk := a.clock
	if a.output == nil {
		a.output = audio.NewOutput(0)
	}
	a.output.SetVolume(*c.Volume)

	// What can be understood, which is also what the recogniser listens for.
	grammar, err := intents.English()
	if err != nil {
		return err
	}

	// What is remembered.
	if err := a.remember(c.Store, s.lasting, clk, log); err != nil {
		return err
	}
	a.timers = timers.New(timers.Options{
		Clock: clk, Bus: a.bus, Ring: ringer(a.output), Records: record{a.store.Bucket("timers"), "all"}, Sane: s.sane, Zone: a.zone, Private: a.speaksPrivately,
		Logger: log.With("part", "timers"),
	})

	// What can be done, what is asked, and how it is said.
	servers, err := a.equip(c, s, log)
	if err != nil {
		return err
	}
	model, err := a.think(c.Model, grammar, log)
	if err != nil {
		return err
	}
	c.TTS.Logger = log.With("part", "voice")
	voice, err := a.speak(c.TTS, log)
	if err != nil {
		return err
	}
	a.voice = voice

	// What may see and change all of it.
	if err := a.plug(c, s, model, voice, log); err != nil {
		return err
	}
	if err := a.takeDown(c.Dictation, log); err != nil {
		return err
	}
	a.integrate(c, servers, log)
	if a.confirmations, err = confirmations(c.Ask); err != nil {
		return err
	}

	a.hearsAnything = c.STT.Engine != "" && c.STT.Engine != "pocketsphinx"

	// The turn.
	rail, err := c.Ghost.rail(log)
	if err != nil {
		return err
	}
	c.Turn.Model = model
	c.Turn.Tools, c.Turn.Confirmations = a.tools, a.confirmations
	c.Turn.Withheld = func(tool string) bool { return a.loader.Withheld(tool) || a.integrations.Withheld(tool) }
	c.Turn.Voice = voice
	c.Turn.VoiceFor = voices(voice, log)
	c.Turn.Chats = conversations{a.store}
	c.Turn.Prompt = systemPrompt(c.Prompt)
	c.Turn.Ghost = ghosts(rail, a.localTime)
	c.Turn.Hooks = a.hooks
	c.Turn.Output = a.output
	c.Turn.Bus = a.bus
	c.Turn.Clock = clk
	c.Turn.Logger = log.With("part", "turns")
	c.Turn.ErrorSound = audio.ErrorTone()
	c.Turn.Contend = func(word string, score float64, tell func(bool)) {
		if a.contend == nil {
			tell(true)
			return
		}
		a.contend(word, score, tell)
	}
	a.wakeSound.Store(*c.WakeSound)
	c.Turn.WakeSound = func() []audio.Frame {
		if a.wakeSound.Load() {
			return audio.WakeTone()
		}
		return nil
	}

	// Body: before the ears, which must not hear while it is muted.
	if s.body != nil {
		if a.body, err = a.embody(s.body(c.Body), nil, log); err != nil {
			return err
		}
		a.onClose(a.body.Close)
	}

	// Ears: last, because they call the turn, which asks them to listen.
	if s.ears {
		heard, err := intents.Heard()
		if err != nil {
			return err
		}
		g := heard.Grammar()
		c.STT.Logger = log.With("part", "recogniser")
		c.STT.OnPartial = func(text string, frames int) { a.ears.Hint(frames, hint(heard, text)) }
		recognizer, err := pocketsphinx.New(c.STT.Options, pocketsphinx.Grammar(g))
		if err != nil {
			return err
		}
		a.onClose(recognizer.Close)
		if c.Turn.Recognizer, err = a.understand(c.STT, recognizer, log); err != nil {
			return err
		}
		c.Wake.Logger = log.With("part", "ears")
		c.Wake.Work = clk.Work
		c.Wake.OnPause = recognizer.Pause
		a.listenTo(&c.Wake)
		a.attune(&c)
		if c.Debug.Recordings > 0 {
			part, err := a.recordTurns(&c, filepath.Dir(c.Store.Path), log.With("part", "recordings"))
			if err != nil {
				return err
			}
			a.more = append(a.more, part)
		}
		if a.ears, err = wake.New(c.Wake); err != nil {
			return err
		}
		c.Turn.Ears = a.ears
	}
	if s.measure != nil {
		s.measure.wrap(&c.Turn)
	}
	a.turns = pipeline.New(c.Turn)
	return nil
}

// speaksPrivately reports whether what happens now belongs to a private chat.
func (a *appliance) speaksPrivately() bool {
	return a.turns != nil && a.turns.Private() || isPrivate(a.store)()
}

// run keeps the appliance alive on device d, with further parts, until ctx is done or one of them ends.
func (a *appliance) run(ctx context.Context, d device, more ...run.Part) error {
	defer a.close()
	watcher, err := a.loader.Watch()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := a.loader.Scan(ctx); err != nil {
		return err
	}
	// Stopping goes from the last to the first: no more calls, no more frames, and the turn ends when nobody can
	// begin another.
	parts := []run.Part{{Name: "timers", Run: a.timers.Run}}
	for _, server := range a.mcp {
		parts = append(parts, run.Part{Name: "MCP server " + server.Name(), Run: server.Run})
	}
	parts = append(parts, a.more...)
	parts = append(parts, run.Part{Name: "turns", Run: a.turns.Run}, run.Part{Name: "plugins", Run: watcher.Run})
	if a.ears != nil {
		parts = append(parts, run.Part{Name: "ears", Run: func(ctx context.Context) error { return a.ears.Run(ctx, d.Frames()) }})
	}
	if a.body != nil {
		parts = append(parts, a.body.parts()...)
	}
	parts = append(parts, run.Part{Name: "sound", Run: d.Run})
	if loss := a.loss(); loss != "" {
		parts = append(parts, run.Part{Name: "report", Run: func(ctx context.Context) error {
			if _, err := a.turns.Say(ctx, loss); err != nil && ctx.Err() == nil {
				return err
			}
			<-ctx.Done()
			return nil
		}})
	}
	return run.All(ctx, stopGrace, append(parts, more...)...)
}

// wakeWords names what the appliance listens to, for people.
func wakeWords(c Config) string {
	var words []string
	for _, w := range c.Wake.All() {
		if w.Action != wake.Stop {
			words = append(words, w.Name)
		}
	}
	return fmt.Sprintf("%q", words)
}

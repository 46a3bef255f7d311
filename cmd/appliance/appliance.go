package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/intents"
	"bellbird/internal/run"
	"bellbird/llm/offline"
	"bellbird/pipeline"
	"bellbird/plugins"
	"bellbird/stt/pocketsphinx"
	"bellbird/timers"
	"bellbird/tools"
	"bellbird/tts/espeak"
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
	bus    *event.Bus
	output *audio.Output
	timers *timers.Keeper
	turns  *pipeline.Pipeline
	hooks  *hooks.Runner
	loader *plugins.Loader
	ears   *wake.Ears // nil: it has none
	close  func()
}

// senses says which parts an appliance gets.
type senses struct {
	ears    bool
	timers  bool          // without them the agent knows that it can't keep time
	output  *audio.Output // nil: a new one
	measure *probe        // nil: nothing is measured
}

// assemble builds an appliance, from the engines up to the turn. It starts nothing. What it lacks has to be installed
// or configured before it makes sense to try again, so every error is a usageError.
func assemble(c Config, s senses, clk clock.Clock, log *slog.Logger) (*appliance, error) {
	a := &appliance{clock: clk, bus: new(event.Bus), output: s.output, close: func() {}}
	if err := a.wire(c, s, log); err != nil {
		a.close()
		return nil, &usageError{err}
	}
	return a, nil
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

	// What can be done.
	a.timers = timers.New(timers.Options{Clock: clk, Bus: a.bus, Ring: ringer(a.output)})
	all := tools.Time(func() time.Time { return clk.Now().Local() })
	all = append(all, tools.Sound(loudness{a.output, a.bus, clk})...)
	all = append(all, tools.Stop(func() { a.timers.Silence() }))
	if s.timers {
		all = append(all, tools.Timing(timekeeper{a.timers, clk})...)
	}
	set, err := tools.NewSet(log.With("part", "tools"), all...)
	if err != nil {
		return err
	}

	// Mouth.
	c.TTS.Logger = log.With("part", "voice")
	voice, err := espeak.New(c.TTS)
	if err != nil {
		return err
	}

	// What may see and change all of it.
	unplug := a.plug(c.Plugins, clk, log)
	a.close = unplug
	c.Turn.Hooks = a.hooks

	// The turn.
	c.Turn.Model = offline.New(grammar)
	c.Turn.Tools = set
	c.Turn.Voice = voice
	c.Turn.Chat = new(memory)
	c.Turn.Output = a.output
	c.Turn.Bus = a.bus
	c.Turn.Clock = clk
	c.Turn.Logger = log.With("part", "turns")
	c.Turn.ErrorSound = audio.ErrorTone()
	if *c.WakeSound {
		c.Turn.WakeSound = audio.WakeTone()
	}

	// Ears: last, because they call the turn, which asks them to listen.
	if s.ears {
		if err := checkActions(c.Wake.All()); err != nil {
			return err
		}
		g := grammar.Grammar()
		c.STT.Logger = log.With("part", "recogniser")
		c.STT.OnPartial = func(text string, frames int) { a.ears.Hint(frames, hint(grammar, text)) }
		recognizer, err := pocketsphinx.New(c.STT, pocketsphinx.Grammar(g))
		if err != nil {
			return err
		}
		a.close = func() { recognizer.Close(); unplug() }
		c.Turn.Recognizer = recognizer
		c.Wake.Logger = log.With("part", "ears")
		c.Wake.Work = clk.Work
		c.Wake.OnPause = recognizer.Pause
		a.listenTo(&c.Wake)
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

// run keeps the appliance alive on device d, with further parts, until ctx is done or one of them ends.
func (a *appliance) run(ctx context.Context, d device, more ...run.Part) error {
	defer a.close()
	watcher, err := a.loader.Watch()
	if err != nil {
		return err
	}
	if err := a.loader.Scan(ctx); err != nil {
		return err
	}
	// Stopping goes from the last to the first: no more calls, no more frames, and the turn ends when nobody can
	// begin another.
	parts := []run.Part{{Name: "turns", Run: a.turns.Run}, {Name: "plugins", Run: watcher.Run}}
	if a.ears != nil {
		parts = append(parts, run.Part{Name: "ears", Run: func(ctx context.Context) error { return a.ears.Run(ctx, d.Frames()) }})
	}
	parts = append(parts, run.Part{Name: "sound", Run: d.Run})
	return run.All(ctx, stopGrace, append(parts, more...)...)
}

// ringer returns a function that begins and ends the sound of timers.
func ringer(out *audio.Output) func(bool) {
	ring := audio.RingTone()
	stop := func() {}
	return func(ringing bool) {
		stop()
		stop = func() {}
		if ringing {
			stop = out.Sound(ring, true)
		}
	}
}

// loudness tells what becomes of the volume.
type loudness struct {
	*audio.Output
	bus   *event.Bus
	clock clock.Clock
}

func (l loudness) SetVolume(percent int) { l.change(func() { l.Output.SetVolume(percent) }) }
func (l loudness) SetMuted(muted bool)   { l.change(func() { l.Output.SetMuted(muted) }) }

func (l loudness) change(set func()) {
	before := event.VolumeChanged{Percent: l.Volume(), Muted: l.Muted()}
	set()
	if now := (event.VolumeChanged{Percent: l.Volume(), Muted: l.Muted()}); now != before {
		now.At = l.clock.Now()
		l.bus.Publish(now)
	}
}

// timekeeper shows a timers.Keeper to the tools.
type timekeeper struct {
	*timers.Keeper
	clock clock.Clock
}

func (k timekeeper) Set(name string, d time.Duration) error {
	_, err := k.Keeper.Set(name, d)
	return err
}

func (k timekeeper) List() []tools.Timer {
	var list []tools.Timer
	for _, t := range k.Keeper.List() {
		left := t.Ends.Sub(k.clock.Now())
		if t.Ringing {
			left = 0
		}
		list = append(list, tools.Timer{ID: t.ID, Name: t.Name, Total: t.Total, Left: left})
	}
	return list
}

// memory is a chat that is forgotten when the program ends.
type memory struct {
	mu   sync.Mutex
	rows []dialog.Message
}

const maxRows = 40

func (m *memory) Messages() []dialog.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]dialog.Message(nil), m.rows...)
}

func (m *memory) Append(rows ...dialog.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, rows...)
	if over := len(m.rows) - maxRows; over > 0 {
		m.rows = append([]dialog.Message(nil), m.rows[over:]...)
	}
	return nil
}

// Name is that of the only chat there is.
func (m *memory) Name() string { return "default" }

func (m *memory) Amend(content string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.rows); n > 0 {
		m.rows[n-1].Content = content
	}
	return nil
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

package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
	"bellbird/mqtt"
	"bellbird/ota"
	"bellbird/pipeline"
	"bellbird/store"
	"bellbird/wake"
)

// What Home Assistant sees of the appliance, and what it may do with it.

// A homeView is what there is to be shown besides what every appliance has. What is nil or empty isn't there.
type homeView struct {
	body    *embodiment
	buttons []string     // the names of the body's
	words   []string     // those that begin a turn, if their cutoff can be set
	restart func() error // of the appliance
	state   string       // the directory of what is kept, whose free space is shown
	voice   namedVoice   // nil: it can't be changed
	voices  []string     // those that there are
	update  func() mqtt.Update
	install func() error
}

// home makes the device that Home Assistant sees. It must be run or closed.
func (a *appliance) home(o mqtt.Options, v homeView, log *slog.Logger) (*mqtt.Device, error) {
	o.Appliance, o.Bus, o.Version, o.Logger = a.shown(v, log), a.bus, version, log.With("part", "mqtt")
	if o.Model == "" {
		o.Model = machineModel("/")
	}
	return mqtt.New(o)
}

// shown is what the appliance has that can be shown and done.
func (a *appliance) shown(v homeView, log *slog.Logger) mqtt.Appliance {
	volume := loudness{a.output, a.bus, a.clock}
	chats := homeChats{a.store}
	private := privateToggle(a.store)
	if v.body != nil {
		private = v.body.reflexes.private // the same, so that both know what was talked in before
	}
	s := mqtt.Appliance{
		Volume: &mqtt.Number{Min: 0, Max: 100, Step: 1, Unit: "%",
			Get: func() float64 { return float64(volume.Volume()) },
			Set: func(p float64) error { volume.SetVolume(int(p)); return nil }},
		Chat:    &mqtt.Select{Options: chats.names, Get: chats.active, Set: chats.Activate},
		Private: &mqtt.Switch{Get: isPrivate(a.store), Set: chats.setPrivate(private)},
		Timers:  a.timers != nil,
		Stop: func() error {
			if !a.timers.Silence() {
				a.turns.Stop()
			}
			return nil
		},
		Announce: func(ctx context.Context, text string) error {
			_, err := a.turns.Say(ctx, text)
			return err
		},
		Ask: func(ctx context.Context, text string) (string, bool, error) {
			r, err := a.turns.Ask(ctx, text)
			return r.Answer, r.Private, err
		},
		Identify: func() error { a.output.Sound(audio.WakeTone(), false); return nil },
		Restart:  v.restart,
		Update:   v.update,
		Install:  v.install,
		Plugins:  a.homePlugins,
		SetPlugin: func(name string, on bool) error {
			return a.loader.SetEnabled(context.Background(), name, on)
		},
		Problems: func() []string {
			if loss := a.loss(); loss != "" {
				return []string{loss}
			}
			return nil
		},
		Diagnostics: machineDiagnostics("/", v.state),
	}
	s.Diagnostics.Underruns = func() (float64, error) { return float64(a.output.Stats().Underruns), nil }
	if v.voice != nil {
		s.Voice = voiceChoice(v.voice, v.voices)
	}
	muted := func() bool { return false }
	if v.body != nil {
		muted = v.body.mute.Muted
		s.Mute = &mqtt.Switch{Get: muted, Set: v.body.mute.Set}
		s.Buttons = v.buttons
		for _, part := range v.body.Report() {
			if part.Part == "ring" && part.State == gpio.Loaded {
				s.Ring = lampOf(v.body.Ring())
				if v.body.HasNight() {
					s.Night = nightBrightness(v.body)
				}
			}
		}
	}
	if a.ears != nil {
		s.Listen = func() error {
			if muted() {
				return errors.New("the microphone is muted")
			}
			a.turns.Wake("home_assistant", 1, a.ears.Heard())
			return nil
		}
		s.WakeSound = &mqtt.Switch{Get: a.wakeSound.Load, Set: func(on bool) error { a.wakeSound.Store(on); return nil }}
		s.FollowUp = &mqtt.Number{Max: pipeline.MostFollowUpTime.Seconds(), Step: 1, Unit: "s",
			Get: func() float64 { return a.turns.FollowUpTime().Seconds() },
			Set: func(v float64) error {
				a.turns.SetFollowUpTime(time.Duration(v * float64(time.Second)))
				return nil
			}}
		if len(v.words) > 0 {
			s.Sensitivity = sensitivity(a.ears, v.words)
		}
	}
	return s
}

// homePlugins are the plugins, with what is wrong with them. What their errors say is for who can see their files.
func (a *appliance) homePlugins() []mqtt.Plugin {
	var list []mqtt.Plugin
	for _, i := range a.loader.List() {
		p := mqtt.Plugin{Name: i.Manifest.Name, Enabled: i.Enabled}
		if len(i.Errors) > 0 {
			p.Problem = "It can't be loaded: \"bellbird plugin list\" tells why."
		}
		list = append(list, p)
	}
	return list
}

// homeChats shows the chats that aren't private. The name of a private one tells of what is said in it.
type homeChats struct{ *store.Store }

func (c homeChats) names() []string {
	list, err := c.Chats()
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range list {
		if !i.Private && !i.Sealed {
			names = append(names, i.Name)
		}
	}
	return names
}

// active is "" if the active chat is private, or unknown.
func (c homeChats) active() string {
	name, private, err := c.Store.Private(context.Background(), nil)
	if private || err != nil {
		return ""
	}
	return name
}

// setPrivate goes to the private chat, or to one that isn't.
func (c homeChats) setPrivate(toggle func() error) func(on bool) error {
	return func(on bool) error {
		if on == isPrivate(c.Store)() {
			return nil
		}
		if active, err := c.Active(); !on && (err != nil || active.Name() != privateChat) {
			return c.Activate("default") // another chat that is private
		}
		return toggle()
	}
}

// sensitivity sets the cutoff of all words at once. As long as nobody has set it, each has its own.
func sensitivity(ears *wake.Ears, words []string) *mqtt.Number {
	var set atomic.Uint64
	set.Store(math.Float64bits(math.NaN()))
	return &mqtt.Number{Min: 0, Max: 1, Step: 0.05,
		Get: func() float64 { return math.Float64frombits(set.Load()) },
		Set: func(v float64) error {
			for _, w := range words {
				if err := ears.SetCutoff(w, cutoffOf(v)); err != nil {
					return err
				}
			}
			set.Store(math.Float64bits(v))
			return nil
		}}
}

// nightBrightness is how bright the ring is at night, in percent.
func nightBrightness(b interface {
	NightBrightness() float64
	SetNightBrightness(share float64) error
}) *mqtt.Number {
	return &mqtt.Number{Min: 1, Max: 100, Step: 1, Unit: "%",
		Get: func() float64 { return math.Round(100 * b.NightBrightness()) },
		Set: func(v float64) error { return b.SetNightBrightness(v / 100) }}
}

// lampOf is the ring as a lamp, which shows when the ring has nothing of its own to show.
func lampOf(r interface {
	SetLight(on bool, c led.Color, brightness float64, e ring.Effect) error
}) *mqtt.Light {
	var mu sync.Mutex
	now := mqtt.LightState{Brightness: 255, R: 255, G: 190, B: 110, Effect: string(ring.Solid)}
	var effects []string
	for _, e := range ring.Effects() {
		effects = append(effects, string(e))
	}
	return &mqtt.Light{
		Effects: effects,
		Get: func() mqtt.LightState {
			mu.Lock()
			defer mu.Unlock()
			return now
		},
		Set: func(c mqtt.LightCommand) error {
			mu.Lock()
			defer mu.Unlock()
			next := now
			if c.On != nil {
				next.On = *c.On
			}
			if c.Brightness != nil {
				next.Brightness = *c.Brightness
			}
			if c.Color != nil {
				next.R, next.G, next.B = c.Color[0], c.Color[1], c.Color[2]
			}
			if c.Effect != nil {
				next.Effect = *c.Effect
			}
			if err := r.SetLight(next.On, led.Color{R: next.R, G: next.G, B: next.B}, float64(next.Brightness)/255, ring.Effect(next.Effect)); err != nil {
				return err
			}
			now = next
			return nil
		},
	}
}

// joinHome has Home Assistant see the appliance, and several appliances settle who answers, if a broker is configured.
func (a *appliance) joinHome(c Config, updater *ota.Updater, log *slog.Logger) ([]run.Part, error) {
	if c.MQTT.Broker == "" {
		return nil, nil
	}
	v := homeView{body: a.body, words: callingWords(c), state: filepath.Dir(c.Store.Path)}
	asking, done := context.WithTimeout(context.Background(), 3*time.Second)
	defer done()
	v.voice = a.voice
	v.voices, _ = a.voice.Voices(asking) // one that doesn't tell has those that were set
	if updater != nil {
		v.update, v.install = homeUpdate(updater)
	}
	body, err := c.Body.Resolve()
	if err != nil {
		return nil, err
	}
	for _, b := range body.Buttons {
		v.buttons = append(v.buttons, b.Name)
	}
	var parts []run.Part
	if os.Getenv("NOTIFY_SOCKET") != "" { // else nobody would start it again
		restart, part := restarting(log)
		v.restart, parts = restart, append(parts, part)
	}
	device, err := a.home(c.MQTT, v, log)
	if err != nil {
		return nil, err
	}
	a.publish = func(owner, topic, text string) error { return device.PluginPublish(owner, topic, text, false) }
	a.contend = func(word string, score float64, tell func(bool)) {
		if !slices.Contains(v.words, word) { // a button, or Home Assistant itself, means this one
			tell(true)
			return
		}
		level := 0.0
		if a.body != nil {
			level = a.body.admission.recent.level()
		}
		device.Contend(word, score, level, tell)
	}
	return append(parts, run.Part{Name: "home assistant", Run: device.Run}), nil
}

// callingWords are the wake words that begin a turn.
func callingWords(c Config) []string {
	var words []string
	for _, w := range c.Wake.All() {
		if w.Action == wake.Listen || w.Action == wake.ListenPrivately {
			words = append(words, w.Name)
		}
	}
	return words
}

package mqtt_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/event"
	"bellbird/mqtt"
)

// A house is an appliance that has everything, in which each setting is what was set last.
type house struct {
	mu       sync.Mutex
	settings map[string]any
	calls    []string
	called   chan string // what was called, as it happens
	plugins  []mqtt.Plugin
	hardware bool // the slide switch says mute
	private  bool // the chat is
	speaking func(ctx context.Context, text string) error
}

func newHouse() *house {
	return &house{
		called:   make(chan string, 4096),
		settings: map[string]any{"volume": 70.0, "gain": 6.0, "sensitivity": 0.5, "follow_up": 8.0, "night": 20.0, "chat": "default", "wake_word": "okay_nabu", "voice": "en", "wake_sound": true},
		plugins:  []mqtt.Plugin{{Name: "weather", Enabled: true}, {Name: "Übung 1", Problem: "its script doesn't compile"}},
	}
}

var errSwitch = errors.New("the mute switch is on")

func (h *house) call(what string) {
	h.mu.Lock()
	h.calls = append(h.calls, what)
	h.mu.Unlock()
	select {
	case h.called <- what:
	default:
	}
}

func (h *house) set(key string, v any) {
	h.mu.Lock()
	h.settings[key] = v
	h.mu.Unlock()
	h.call("set " + key)
}

func of[T any](h *house, key string) T {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, _ := h.settings[key].(T)
	return v
}

func (h *house) toggle(key string) *mqtt.Switch {
	return &mqtt.Switch{Get: func() bool { return of[bool](h, key) }, Set: func(on bool) error { h.set(key, on); return nil }}
}

func (h *house) number(key string, least, most, step float64, unit string) *mqtt.Number {
	return &mqtt.Number{Min: least, Max: most, Step: step, Unit: unit,
		Get: func() float64 { return of[float64](h, key) }, Set: func(v float64) error { h.set(key, v); return nil }}
}

func (h *house) choice(key string, options ...string) *mqtt.Select {
	return &mqtt.Select{Options: func() []string { return options },
		Get: func() string { return of[string](h, key) }, Set: func(v string) error { h.set(key, v); return nil }}
}

func (h *house) press(what string) func() error { return func() error { h.call(what); return nil } }

func (h *house) appliance() mqtt.Appliance {
	mute := h.toggle("mute")
	set := mute.Set
	mute.Set = func(on bool) error {
		h.mu.Lock()
		hardware := h.hardware
		h.mu.Unlock()
		if hardware {
			h.call("refused mute")
			return errSwitch
		}
		return set(on)
	}
	reading := func(v float64) func() (float64, error) { return func() (float64, error) { return v, nil } }
	return mqtt.Appliance{
		Private: h.toggle("private"), Mute: mute, WakeSound: h.toggle("wake_sound"),
		Volume: h.number("volume", 0, 100, 1, "%"), Gain: h.number("gain", -10, 30, 1, "dB"), Sensitivity: h.number("sensitivity", 0, 1, 0.05, ""),
		FollowUp: h.number("follow_up", 0, 30, 1, "s"), Night: h.number("night", 0, 100, 1, "%"),
		Chat: h.choice("chat", "default", "kitchen"), WakeWord: h.choice("wake_word", "okay_nabu", "hey_jarvis"), Voice: h.choice("voice", "en", "de"),
		Ring: &mqtt.Light{Effects: []string{"auto", "spin"},
			Get: func() mqtt.LightState {
				s := mqtt.LightState{Effect: "auto"}
				c := of[mqtt.LightCommand](h, "ring")
				s.On = c.On != nil && *c.On
				if c.Brightness != nil {
					s.Brightness = *c.Brightness
				}
				if c.Color != nil {
					s.R, s.G, s.B = c.Color[0], c.Color[1], c.Color[2]
				}
				return s
			},
			Set: func(c mqtt.LightCommand) error { h.set("ring", c); return nil }},
		Buttons: []string{"top"}, Timers: true,
		Listen: h.press("listen"), Stop: h.press("stop"), Restart: h.press("restart"), Identify: h.press("identify"),
		Announce: func(ctx context.Context, text string) error {
			h.call("announce " + text)
			if h.speaking != nil {
				return h.speaking(ctx, text)
			}
			return nil
		},
		Ask: func(_ context.Context, text string) (string, bool, error) {
			h.call("ask " + text)
			return "answer to " + text, h.private, nil
		},
		Plugins: func() []mqtt.Plugin {
			h.mu.Lock()
			defer h.mu.Unlock()
			return append([]mqtt.Plugin(nil), h.plugins...)
		},
		SetPlugin: func(name string, on bool) error {
			h.mu.Lock()
			for i := range h.plugins {
				if h.plugins[i].Name == name {
					h.plugins[i].Enabled = on
				}
			}
			h.mu.Unlock()
			h.call("plugin " + name)
			return nil
		},
		Update: func() mqtt.Update {
			return mqtt.Update{Installed: "1.0.0", Latest: "1.1.0", Title: "Bellbird", Summary: "Better.", URL: "https://example.org/1.1.0", InProgress: true, Percent: new(40)}
		},
		Install: h.press("install"),
		Diagnostics: mqtt.Diagnostics{
			Signal: reading(-61), Temperature: reading(48.2), Load: reading(0.25), Memory: reading(37), Free: reading(812), Underruns: reading(0),
			Started: func() (time.Time, error) { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), nil },
			Address: func() (string, error) { return "192.0.2.7", nil },
		},
	}
}

// await waits until something was called.
func (h *house) await(t testing.TB, what string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case got := <-h.called:
			if got == what {
				return
			}
		case <-late:
			t.Fatalf("%q was not called", what)
		}
	}
}

// A lines is a log whose lines can be waited for.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.more != nil {
		close(l.more)
	}
	l.more = make(chan struct{})
	return len(p), nil
}

// await returns the log from there on.
func (l *lines) await(t testing.TB, part string) string {
	t.Helper()
	late := time.After(patience)
	for {
		l.mu.Lock()
		if l.more == nil {
			l.more = make(chan struct{})
		}
		text, more := l.text.String(), l.more
		l.mu.Unlock()
		if i := strings.Index(text, part); i >= 0 && strings.Contains(text[i:], "\n") {
			return text[i:]
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q is not in the log:\n%s", part, text)
		}
	}
}

// A running device.
type device struct {
	*mqtt.Device
	bus  *event.Bus
	log  *lines
	base string
	stop func() // ends it and waits
}

// begin runs a device with the options that change sets.
func begin(t testing.TB, a mqtt.Appliance, change func(*mqtt.Options)) *device {
	t.Helper()
	bus, log := new(event.Bus), new(lines)
	o := mqtt.Options{
		Name: "Kitchen", Model: "Pi Zero 2 W", Version: "1.0.0", MachineID: "00112233445566778899aabbccddeeff", Appliance: a, Bus: bus,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	change(&o)
	d, err := mqtt.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	r := &device{Device: d, bus: bus, log: log, base: "bellbird/" + d.ID()}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func at(url string) func(*mqtt.Options) { return func(o *mqtt.Options) { o.Broker = url } }

func (d *device) config() string       { return "homeassistant/device/" + d.ID() + "/config" }
func (d *device) availability() string { return d.base + "/availability" }

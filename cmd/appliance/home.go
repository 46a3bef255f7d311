package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellbird/api"
	"bellbird/audio"
	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
	"bellbird/mqtt"
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
	s := mqtt.Appliance{
		Volume: &mqtt.Number{Min: 0, Max: 100, Step: 1, Unit: "%",
			Get: func() float64 { return float64(volume.Volume()) },
			Set: func(p float64) error { volume.SetVolume(int(p)); return nil }},
		Chat:    &mqtt.Select{Options: chats.names, Get: chats.active, Set: chats.Activate},
		Private: &mqtt.Switch{Get: isPrivate(a.store), Set: chats.setPrivate(privateToggle(a.store))},
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
	muted := func() bool { return false }
	if v.body != nil {
		muted = v.body.mute.Muted
		s.Mute = &mqtt.Switch{Get: muted, Set: v.body.mute.Set}
		s.Buttons = v.buttons
		for _, part := range v.body.Report() {
			if part.Part == "ring" && part.State == gpio.Loaded {
				s.Ring = lampOf(v.body.Ring())
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

// machineDiagnostics reads what Linux tells of the machine, below root; what isn't there at the start isn't shown.
func machineDiagnostics(root, state string) mqtt.Diagnostics {
	path := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	number := func(get func() (float64, error)) func() (float64, error) {
		if _, err := get(); err != nil {
			return nil
		}
		return get
	}
	d := mqtt.Diagnostics{
		Temperature: number(func() (float64, error) {
			v, err := field(path("sys/class/thermal/thermal_zone0/temp"), "", 0)
			return v / 1000, err
		}),
		Load: number(func() (float64, error) { return field(path("proc/loadavg"), "", 0) }),
		Memory: number(func() (float64, error) {
			total, err := field(path("proc/meminfo"), "MemTotal:", 1)
			if err != nil || total == 0 {
				return 0, errors.Join(err, errors.New("no memory"))
			}
			free, err := field(path("proc/meminfo"), "MemAvailable:", 1)
			return 100 * (total - free) / total, err
		}),
		Signal:  number(func() (float64, error) { return wirelessLevel(path("proc/net/wireless")) }),
		Address: address,
	}
	if state != "" {
		d.Free = number(func() (float64, error) {
			var s syscall.Statfs_t
			if err := syscall.Statfs(state, &s); err != nil {
				return 0, err
			}
			return float64(s.Bavail) * float64(s.Bsize) / (1 << 20), nil
		})
	}
	if _, err := field(path("proc/stat"), "btime", 1); err == nil {
		d.Started = func() (time.Time, error) {
			s, err := field(path("proc/stat"), "btime", 1)
			// It is computed from the clock each time, and may differ by a second.
			return time.Unix(int64(s), 0).UTC().Round(time.Minute), err
		}
	}
	return d
}

// field is a number in a file, in the first line that begins with a word, or in the first of all if that is empty.
func field(path, begin string, index int) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > index && (begin == "" || fields[0] == begin) {
			return strconv.ParseFloat(fields[index], 64)
		}
	}
	return 0, fmt.Errorf("%s: no %s", path, begin)
}

// wirelessLevel is the signal of the first wireless interface, in dBm.
func wirelessLevel(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		// wlan0: 0000   49.  -61.  -256 …
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasSuffix(fields[0], ":") {
			return strconv.ParseFloat(strings.TrimSuffix(fields[3], "."), 64)
		}
	}
	return 0, fmt.Errorf("%s: no wireless interface", path)
}

// address is the first by which others can reach this machine.
func address() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("no address")
}

// machineModel is what the machine calls itself; "" if it doesn't.
func machineModel(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "sys/firmware/devicetree/base/model"))
	if err != nil || len(text) > 200 {
		return ""
	}
	return strings.TrimRight(string(text), "\x00\n")
}

// joinHome has Home Assistant see the appliance, and several appliances settle who answers, if a broker is configured.
func (a *appliance) joinHome(c Config, log *slog.Logger) ([]run.Part, error) {
	if c.MQTT.Broker == "" {
		return nil, nil
	}
	v := homeView{body: a.body, words: callingWords(c), state: filepath.Dir(c.Store.Path)}
	body, err := c.Body.Resolve()
	if err != nil {
		return nil, err
	}
	for _, b := range body.Buttons {
		v.buttons = append(v.buttons, b.Name)
	}
	device, err := a.home(c.MQTT, v, log)
	if err != nil {
		return nil, err
	}
	a.contend = func(word string, score float64, tell func(bool)) {
		if !slices.Contains(v.words, word) { // a button, or Home Assistant itself, means this one
			tell(true)
			return
		}
		level := 0.0
		if a.body != nil {
			level = a.body.admission.heard()*40 - 55
		}
		device.Contend(word, score, level, tell)
	}
	return []run.Part{{Name: "home assistant", Run: device.Run}}, nil
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

func mqttCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mqtt",
		Short: "Look after what Home Assistant sees of the appliance",
		Args:  onlyArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "remove",
		Short: "Take the appliance out of Home Assistant, with all that the broker has kept of it",
		Args:  onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			if c.MQTT.Broker == "" {
				return usagef("no broker is configured: see docs/home-assistant.md")
			}
			err = c.API.dial().Do(cmd.Context(), http.MethodGet, "/api/plugins", nil, nil)
			if !errors.Is(err, api.ErrNotRunning) {
				return errors.New("the appliance is running, and would announce itself again: stop it first")
			}
			n, err := mqtt.Remove(cmd.Context(), c.MQTT)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d topics are emptied\n", n)
			return nil
		},
	})
	return cmd
}

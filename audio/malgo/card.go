//go:build cgo

package malgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/gen2brain/malgo"

	"bellbird/audio"
)

// backendNull is what malgo.BackendNull should be. malgo's is off by one: it leaves out miniaudio's "custom" backend.
const backendNull = malgo.BackendNull + 1

// A Card is a microphone and a loudspeaker. Open makes one, Run uses it up.
type Card struct {
	info     Info
	log      *slog.Logger
	capture  *capture
	playback *playback
	messages chan string   // full: the message is dropped
	stopped  chan struct{} // a token when a device says that it has stopped

	context *malgo.AllocatedContext
	mic     *malgo.Device // nil if only playback was asked for
	speaker *malgo.Device
}

// Open opens both devices without starting them, and tells out their latency. Run or Close must follow.
func Open(o Options, out *audio.Output) (*Card, error) {
	c := &Card{
		log:      o.Logger,
		capture:  newCapture(),
		playback: newPlayback(out),
		messages: make(chan string, 16),
		stopped:  make(chan struct{}, 1),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	backends, err := o.backends()
	if err != nil {
		return nil, err
	}
	// One after the other, not as a list: if the sound server runs but has no microphone, the card itself may have.
	missing := "microphone"
	if o.PlaybackOnly {
		missing = "loudspeaker"
	}
	telling := fmt.Errorf(`no %s found: %w: plug one in, or try "bellbird demo"`, missing, errNoCard)
	for _, b := range backends {
		err := c.open(o, b)
		if err == nil {
			c.playback.off.Store(false)
			out.SetLatency(c.info.Latency)
			return c, nil
		}
		c.Close()
		// The last error is the most telling, because its backend is nearest to the hardware. But that a backend isn't
		// there at all is no news if there may be another.
		if o.Backend != "" || !errors.Is(err, errNoBackend) {
			telling = err
		}
	}
	return nil, telling
}

var (
	errNoBackend = errors.New("no sound system found")
	errNoCard    = errors.New("there is no sound card, and PulseAudio doesn't run")
)

func (o Options) backends() ([]malgo.Backend, error) {
	switch o.Backend {
	case "":
		backends := []malgo.Backend{malgo.BackendPulseaudio}
		if alsaHasSomething() {
			backends = append(backends, malgo.BackendAlsa)
		}
		return backends, nil
	case "alsa":
		return []malgo.Backend{malgo.BackendAlsa}, nil
	case "pulseaudio", "pulse":
		return []malgo.Backend{malgo.BackendPulseaudio}, nil
	case "null":
		return []malgo.Backend{backendNull}, nil
	}
	return nil, fmt.Errorf(`sound: backend %q is unknown: choose "alsa", "pulseaudio" or "null"`, o.Backend)
}

// alsaHasSomething reports whether it makes sense to ask ALSA: if there is a card, or somebody has described another
// device. Without either its library would print a page of errors.
func alsaHasSomething() bool {
	if cards, _ := filepath.Glob("/dev/snd/pcm*"); len(cards) > 0 || os.Getenv("ALSA_CONFIG_PATH") != "" {
		return true
	}
	home, _ := os.UserHomeDir()
	for _, path := range []string{"/etc/asound.conf", filepath.Join(home, ".asoundrc")} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

func backendName(b malgo.Backend) string {
	switch b {
	case malgo.BackendPulseaudio:
		return "pulseaudio"
	case malgo.BackendAlsa:
		return "alsa"
	}
	return "null"
}

func initContext(b malgo.Backend, log malgo.LogProc) (*malgo.AllocatedContext, error) {
	ctx, err := malgo.InitContext([]malgo.Backend{b}, malgo.ContextConfig{ThreadPriority: malgo.ThreadPriorityRealtime}, log)
	if err != nil {
		return nil, fmt.Errorf("%w (%s: %v): install libasound2 or start PulseAudio", errNoBackend, backendName(b), plain(err))
	}
	return ctx, nil
}

func (c *Card) open(o Options, b malgo.Backend) (err error) {
	c.context, err = initContext(b, func(message string) {
		select {
		case c.messages <- strings.TrimSpace(message):
		default:
		}
	})
	if err != nil {
		return err
	}
	c.info = Info{Backend: backendName(b), Latency: o.Latency}
	if c.info.Latency <= 0 {
		c.info.Latency = periods * period
	}
	onStop := func() {
		select {
		case c.stopped <- struct{}{}:
		default:
		}
	}
	if !o.PlaybackOnly {
		c.mic, c.info.Capture, err = c.device(malgo.Capture, o.Capture, malgo.DeviceCallbacks{
			Data: func(_, in []byte, _ uint32) { c.capture.take(in) },
			Stop: onStop,
		})
		if err != nil {
			return fmt.Errorf(`no microphone found: %w: plug one in, or try "bellbird demo"`, err)
		}
	}
	c.speaker, c.info.Playback, err = c.device(malgo.Playback, o.Playback, malgo.DeviceCallbacks{
		Data: func(out, _ []byte, _ uint32) { c.playback.give(out) },
		Stop: onStop,
	})
	if err != nil {
		return fmt.Errorf(`no loudspeaker found: %w: plug one in, or try "bellbird demo"`, err)
	}
	return nil
}

// device opens one device in the inner format; miniaudio converts from what the hardware has.
func (c *Card) device(kind malgo.DeviceType, name string, calls malgo.DeviceCallbacks) (*malgo.Device, string, error) {
	config := malgo.DefaultDeviceConfig(kind)
	config.SampleRate = uint32(audio.SampleRate)
	config.PeriodSizeInMilliseconds = uint32(period.Milliseconds())
	config.Periods = periods
	config.Alsa.NoMMap = 1 // ALSA's plugins have no memory map
	config.Pulse.StreamNameCapture, config.Pulse.StreamNamePlayback = "bellbird hears", "bellbird speaks"
	side := &config.Capture
	if kind == malgo.Playback {
		side = &config.Playback
	}
	side.Format = malgo.FormatS16
	side.Channels = 1

	var pin runtime.Pinner // C keeps the identifier only during InitDevice
	defer pin.Unpin()
	found := "default"
	if name != "" {
		devices, err := c.context.Devices(kind)
		if err != nil {
			return nil, "", plain(err)
		}
		d, err := pick(devices, name)
		if err != nil {
			return nil, "", err
		}
		pin.Pin(&d.ID)
		side.DeviceID = unsafe.Pointer(&d.ID)
		found = d.Name()
	}
	dev, err := malgo.InitDevice(c.context.Context, config, calls)
	if err != nil {
		return nil, "", fmt.Errorf("open %q on %s: %w", found, c.info.Backend, plain(err))
	}
	return dev, found, nil
}

// pick chooses the device whose name or identifier contains name; an exact match wins.
func pick(devices []malgo.DeviceInfo, name string) (*malgo.DeviceInfo, error) {
	var names []string
	var found *malgo.DeviceInfo
	for i := range devices {
		d := &devices[i]
		if strings.EqualFold(d.Name(), name) || strings.EqualFold(readable(d.ID), name) {
			return d, nil
		}
		names = append(names, fmt.Sprintf("%q", d.Name()))
		if found == nil && (contains(d.Name(), name) || contains(readable(d.ID), name)) {
			found = d
		}
	}
	switch {
	case found != nil:
		return found, nil
	case len(names) == 0:
		return nil, fmt.Errorf("none is called %q, there are none at all", name)
	}
	return nil, fmt.Errorf("none is called %q, there are %s", name, strings.Join(names, ", "))
}

func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// readable is the identifier of a device if the backend uses text, as ALSA and PulseAudio do.
func readable(id malgo.DeviceID) string {
	text, _, _ := bytes.Cut(id[:], []byte{0})
	for _, b := range text {
		if b < ' ' || b > '~' {
			return ""
		}
	}
	return string(text)
}

// plain drops the name of the library from an error: it means nothing to the user.
func plain(err error) error {
	return errors.New(strings.ToLower(strings.TrimPrefix(err.Error(), "miniaudio: ")))
}

// Info says what was opened.
func (c *Card) Info() Info { return c.info }

// Frames is what the microphone hears. A listener that is more than a second late loses the newest frames. It is never
// closed: the callback could still be sending.
func (c *Card) Frames() <-chan audio.Frame { return c.capture.frames }

// Dropped is the number of frames lost because nobody took them in time.
func (c *Card) Dropped() uint64 { return c.capture.dropped.Load() }

// Heard is the number of frames that the microphone has delivered, dropped ones included.
func (c *Card) Heard() uint64 { return c.capture.made.Load() }

// Run starts both devices and closes them when ctx is done. It returns an error if one of them stops by itself or stands
// still; then open another Card. It may be called once.
func (c *Card) Run(ctx context.Context) error {
	err := c.run(ctx)
	if hangs := c.Close(); err == nil {
		err = hangs
	}
	return err
}

func (c *Card) run(ctx context.Context) error {
	// The loudspeaker first: it is silent until somebody speaks, while the first word heard might ask for an answer.
	if err := c.speaker.Start(); err != nil {
		return fmt.Errorf("start loudspeaker %q: %w", c.info.Playback, plain(err))
	}
	if c.mic != nil {
		if err := c.mic.Start(); err != nil {
			return fmt.Errorf("start microphone %q: %w", c.info.Capture, plain(err))
		}
	}
	tick := time.NewTicker(stalled / 6)
	defer tick.Stop()
	now := time.Now()
	mic, speaker := watch{at: now}, watch{at: now}
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-c.messages:
			c.log.Debug("miniaudio says", "message", m)
			continue
		case <-c.stopped: // look at once, don't wait for the tick
		case <-tick.C:
		}
		now := time.Now()
		switch {
		case c.mic != nil && !c.mic.IsStarted():
			return fmt.Errorf("microphone %q has stopped: is it still plugged in?", c.info.Capture)
		case !c.speaker.IsStarted():
			return fmt.Errorf("loudspeaker %q has stopped: is it still plugged in?", c.info.Playback)
		case c.mic != nil && mic.still(now, c.capture.made.Load()):
			return fmt.Errorf("microphone %q has delivered nothing for %v: is it still plugged in?", c.info.Capture, stalled)
		case speaker.still(now, c.playback.pulled.Load()):
			return fmt.Errorf("loudspeaker %q has taken nothing for %v: is it still plugged in?", c.info.Playback, stalled)
		}
	}
}

// Close closes the devices of a card that was not run; Run does it itself.
func (c *Card) Close() error {
	c.playback.off.Store(true)
	context, devices := c.context, []*malgo.Device{c.mic, c.speaker}
	c.context, c.mic, c.speaker = nil, nil, nil
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, d := range devices {
			if d != nil {
				d.Stop() // wakes its thread, which Uninit alone doesn't
				d.Uninit()
			}
		}
		if context != nil {
			context.Uninit()
			context.Free()
		}
	}()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C: // that goroutine and its thread are lost; they touch nothing that another card uses
		return fmt.Errorf("sound: closing %q and %q hangs", c.info.Capture, c.info.Playback)
	}
}

// A watch notices when a counter stands still.
type watch struct {
	at    time.Time // of the last change
	count uint64
}

func (w *watch) still(now time.Time, count uint64) bool {
	if count != w.count {
		w.at, w.count = now, count
	}
	return now.Sub(w.at) >= stalled
}

// Devices lists the microphones and loudspeakers of a backend; empty means the first that works.
func Devices(backend string) (capture, playback []Device, err error) {
	backends, err := Options{Backend: backend}.backends()
	if err != nil {
		return nil, nil, err
	}
	for _, b := range backends {
		capture, playback, err = list(b)
		if err == nil && len(capture)+len(playback) > 0 {
			break
		}
	}
	return capture, playback, err
}

func list(b malgo.Backend) (capture, playback []Device, err error) {
	ctx, err := initContext(b, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { ctx.Uninit(); ctx.Free() }()
	for kind, to := range map[malgo.DeviceType]*[]Device{malgo.Capture: &capture, malgo.Playback: &playback} {
		found, err := ctx.Devices(kind)
		if err != nil {
			return nil, nil, fmt.Errorf("list sound devices: %w", plain(err))
		}
		for _, d := range found {
			*to = append(*to, Device{Name: d.Name(), ID: readable(d.ID), Default: d.IsDefault != 0})
		}
	}
	return capture, playback, nil
}

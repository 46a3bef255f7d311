//go:build cgo

package malgo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/gen2brain/malgo"

	"bellbird/audio"
)

// backendNull is what malgo.BackendNull should be. malgo's is off by one: it leaves out miniaudio's "custom" backend.
const backendNull = malgo.BackendNull + 1

var (
	errNoBackend = errors.New("no sound system found")
	errNoCard    = errors.New("there is no sound card, and PulseAudio doesn't run")
)

// openHalf opens one device without starting it, and says which backend it was found in.
func openHalf(o Options, side Side, out *audio.Output) (*half, error) {
	backends, err := o.backends()
	if err != nil {
		return nil, err
	}
	// One after the other, not as a list: if the sound server runs but has no microphone, the card itself may have.
	telling := errNoCard
	for _, b := range backends {
		h, err := openOn(o, b, side, out)
		if err == nil {
			return h, nil
		}
		// The last error is the most telling, because its backend is nearest to the hardware. But that a backend isn't
		// there at all is no news if there may be another.
		if o.Backend != "" || !errors.Is(err, errNoBackend) {
			telling = err
		}
	}
	return nil, fmt.Errorf(`no %s found: %w: plug one in, or try "bellbird demo"`, side, telling)
}

func (o Options) backends() ([]malgo.Backend, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	switch o.Backend {
	case "alsa":
		return []malgo.Backend{malgo.BackendAlsa}, nil
	case "pulseaudio", "pulse":
		return []malgo.Backend{malgo.BackendPulseaudio}, nil
	case "null":
		return []malgo.Backend{backendNull}, nil
	}
	backends := []malgo.Backend{malgo.BackendPulseaudio}
	if alsaHasSomething() {
		backends = append(backends, malgo.BackendAlsa)
	}
	return backends, nil
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

// initContext connects to a backend. What miniaudio says goes into messages; full, or nil: it is dropped.
func initContext(b malgo.Backend, messages chan<- string) (*malgo.AllocatedContext, error) {
	say := func(message string) {
		select {
		case messages <- strings.TrimSpace(message):
		default:
		}
	}
	// Its own way to a higher priority is all or nothing, without a bound: see priority.go.
	ctx, err := malgo.InitContext([]malgo.Backend{b}, malgo.ContextConfig{ThreadPriority: malgo.ThreadPriorityNormal}, say)
	if err != nil {
		return nil, fmt.Errorf("%w (%s: %v): install libasound2 or start PulseAudio", errNoBackend, backendName(b), plain(err))
	}
	return ctx, nil
}

// openOn opens a device of one backend, in the format that it has: the conversion is ours (callback.go), because
// miniaudio's is made for games, and cuts to 16 bits before any gain.
func openOn(o Options, b malgo.Backend, side Side, out *audio.Output) (_ *half, err error) {
	half := &half{side: side, backend: backendName(b), stopped: make(chan struct{}, 1), messages: make(chan string, 16)}
	ctx, err := initContext(b, half.messages)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			ctx.Uninit()
			ctx.Free()
		}
	}()

	kind := malgo.Capture
	if side == Loudspeaker {
		kind = malgo.Playback
	}
	config := malgo.DefaultDeviceConfig(kind)
	config.SampleRate = 0 // what it has
	config.PeriodSizeInMilliseconds = uint32(period.Milliseconds())
	config.Periods = periods
	config.Alsa.NoMMap = 1 // ALSA's plugins have no memory map
	config.Pulse.StreamNameCapture, config.Pulse.StreamNamePlayback = "bellbird hears", "bellbird speaks"
	end := &config.Capture
	if side == Loudspeaker {
		end = &config.Playback
	}
	end.Format, end.Channels = malgo.FormatUnknown, 0
	if side == Microphone {
		end.Channels = uint32(o.Channels)
	}

	devices, err := ctx.Devices(kind)
	if err != nil {
		return nil, plain(err)
	}
	d, err := choose(devices, o.wanted(side))
	if err != nil {
		return nil, err
	}
	half.name = "default"
	var pin runtime.Pinner // C keeps the identifier only during InitDevice
	defer pin.Unpin()
	if d != nil {
		half.name = d.Name()
		pin.Pin(&d.ID)
		end.DeviceID = unsafe.Pointer(&d.ID)
	}

	// The callback is needed to open the device, and the format that it must understand is known only afterwards. The
	// device isn't started in between, so nobody calls it.
	var data malgo.DataProc
	dev, err := malgo.InitDevice(ctx.Context, config, malgo.DeviceCallbacks{
		Data: func(out, in []byte, n uint32) { data(out, in, n) },
		Stop: func() {
			select {
			case half.stopped <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("open %q on %s: %w", half.name, half.backend, plain(err))
	}
	defer func() {
		if err != nil {
			dev.Uninit()
		}
	}()
	half.rate = audio.Rate(dev.SampleRate())
	if side == Microphone {
		half.format, half.channels = sampleFormat(dev.CaptureFormat()), int(dev.CaptureChannels())
		mix, err := o.mixdown(half.channels)
		if err != nil {
			return nil, fmt.Errorf("%w (microphone %q)", err, half.name)
		}
		if half.capture, err = newCapture(half.shape, o.factor(), mix); err != nil {
			return nil, fmt.Errorf("open %q: %w", half.name, err)
		}
		take := half.capture.take
		data = func(_, in []byte, _ uint32) { half.priority.raise(); take(in) }
	} else {
		half.format, half.channels = sampleFormat(dev.PlaybackFormat()), int(dev.PlaybackChannels())
		if half.playback, err = newPlayback(half.shape, out); err != nil {
			return nil, fmt.Errorf("open %q: %w", half.name, err)
		}
		give := half.playback.give
		data = func(out, _ []byte, _ uint32) { half.priority.raise(); give(out) }
	}
	half.start = func() error {
		if err := dev.Start(); err != nil {
			return plain(err)
		}
		return nil
	}
	half.started = dev.IsStarted
	half.close = func() {
		dev.Stop() // wakes its thread, which Uninit alone doesn't
		dev.Uninit()
		ctx.Uninit()
		ctx.Free()
	}
	return half, nil
}

// choose finds the device whose name or identifier contains name; an exact match wins. Nil means that the backend should
// take its default, which is so if no name is given.
func choose(devices []malgo.DeviceInfo, name string) (*malgo.DeviceInfo, error) {
	if name == "" {
		for i := range devices {
			if d := &devices[i]; d.IsDefault != 0 && monitor(d) {
				return nil, fmt.Errorf("there is only %q, which is not one but what a loudspeaker plays", d.Name())
			}
		}
		if len(devices) == 0 {
			return nil, errors.New("there are none at all")
		}
		return nil, nil
	}
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

// monitor reports whether a microphone of PulseAudio is none.
func monitor(d *malgo.DeviceInfo) bool { return strings.HasSuffix(readable(d.ID), ".monitor") }

// readable is the identifier of a device if the backend uses text, as ALSA and PulseAudio do.
func readable(id malgo.DeviceID) string {
	text, _, _ := bytes.Cut(id[:], []byte{0})
	if slices.ContainsFunc(text, func(b byte) bool { return b < ' ' || b > '~' }) {
		return ""
	}
	return string(text)
}

// plain drops the name of the library from an error: it means nothing to the user.
func plain(err error) error {
	return errors.New(strings.ToLower(strings.TrimPrefix(err.Error(), "miniaudio: ")))
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
		for i := range found {
			d := &found[i]
			*to = append(*to, Device{Name: d.Name(), ID: readable(d.ID), Default: d.IsDefault != 0, Monitor: monitor(d)})
		}
	}
	return capture, playback, nil
}

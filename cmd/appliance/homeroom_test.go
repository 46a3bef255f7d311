package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/internal/run"
	"bellbird/mqtt"
	"bellbird/tts/espeak"
)

const deviceName = "Speaker of the test"

// A roomed appliance is one in a virtual room, with the panel for a body, in real time. Else it is wired as it is shipped.
type roomed struct {
	*appliance
	t      *testing.T
	config string
	plugin string   // the directory of one that it has
	id     string   // its device's
	absent []string // entities that it would have on another machine
	press  chan rune
	room   *audiotest.Room
	begin  func()
	stop   func()

	mu     sync.Mutex
	played []int16
}

// newRoomed makes one that is connected to a broker, on a machine of this id; "" is that of this machine. Its log is in a
// file.
func newRoomed(t *testing.T, log, broker, machine string) *roomed {
	t.Helper()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nowhere")) // as if somebody started it again
	state := t.TempDir()
	r := &roomed{t: t, config: filepath.Join(state, "config.toml"), press: make(chan rune, 8)}
	text := fmt.Sprintf("[mqtt]\nbroker = \"mqtt://%s\"\nname = %q\n[api]\nsocket = %q\n[body.night]\nhours = \"22:00-07:00\"\n", broker, deviceName, filepath.Join(state, "s"))
	write(t, r.config, text)
	r.plugin = filepath.Join(state, "plugins", "polite")
	write(t, filepath.Join(r.plugin, "plugin.json"), `{"name": "polite", "version": "1.0.0", "description": "Says thanks.", "capabilities": {"hooks": {"post_llm": "polite.star"}}}`)
	write(t, filepath.Join(r.plugin, "polite.star"), "def post_llm(event):\n    event.response += \" Thank you.\"\n")
	f := flags{config: r.config, state: state, models: modelDirs}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	c.Store.ScryptN = 1024 // as fast as a test should be
	c.MQTT.MachineID = machine
	// The entity ids of a machine without one of these differ.
	d := machineDiagnostics("/", state)
	if d.Signal == nil {
		r.absent = append(r.absent, "sensor.ID_signal")
	}
	if d.Temperature == nil {
		r.absent = append(r.absent, "sensor.ID_temperature")
	}
	device, err := mqtt.New(c.MQTT)
	if err != nil {
		t.Fatal(err)
	}
	r.id = device.ID()
	device.Close()

	kept, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	logger := slog.New(slog.NewTextHandler(kept, nil))
	panel := gpio.NewPanel()
	c.Body = panel.Fit(c.Body)
	c.Body.Lights = func([]led.Color) error { return nil }
	as := senses{ears: true, timers: true, lasting: true, body: func(o gpio.Options) gpio.Options { return o }}
	if r.appliance, err = assemble(c, as, clock.System, logger); err != nil {
		t.Fatal(err)
	}
	r.room = audiotest.NewRoom(audiotest.RoomOptions{Output: r.output, Record: func(_, speaker audio.Frame) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.played = append(r.played, speaker[:]...)
	}})
	parts, err := r.joinHome(c, nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	parts = append(parts, run.Part{Name: "panel", Run: func(ctx context.Context) error { return panel.Run(ctx, r.press) }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	begun := false
	r.begin = func() {
		begun = true
		go func() { done <- r.run(ctx, r.room, parts...) }()
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if !begun {
			r.close()
		} else if err := <-done; err != nil {
			t.Errorf("the appliance: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// spokenBy is a text in another voice than the appliance's.
func spokenBy(t *testing.T, voice, text string) (samples []int16) {
	t.Helper()
	err := voiceOf(t, voice).Synthesize(t.Context(), text, func(f audio.Frame) error {
		samples = append(samples, f[:]...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func voiceOf(t *testing.T, name string) *espeak.Voice {
	t.Helper()
	v, err := espeak.New(espeak.Options{Voice: name})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mark is how much the loudspeaker has played; since is what it has played since then.
func (r *roomed) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.played)
}

func (r *roomed) since(mark int) []int16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.played[mark:]
}

// remove runs "bellbird mqtt remove".
func (r *roomed) remove() {
	r.t.Helper()
	var out, errs strings.Builder
	if code := execute(r.t.Context(), []string{"mqtt", "remove", "--config", r.config}, &out, &errs); code != 0 || !strings.Contains(out.String(), "emptied") {
		r.t.Errorf("mqtt remove: exit code %d: %s%s", code, out.String(), errs.String())
	}
}

// mosquitto starts a broker, which ends with the test, and returns its address.
func mosquitto(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/mosquitto"); err != nil {
			t.Skip("mosquitto is not installed (apt-get install mosquitto)")
		}
	}
	port := freePort(t)
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	write(t, conf, "listener "+port+" 127.0.0.1\nallow_anonymous true\npersistence false\n")
	cmd := exec.Command(path, "-c", conf)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr := net.JoinHostPort("127.0.0.1", port)
	patiently(t, "mosquitto", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// patiently asks another program again and again, until it says yes.
func patiently(t *testing.T, what string, yes func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !yes() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

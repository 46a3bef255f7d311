package device_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/deploy/device"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

// patience is for everything that has to come. A busy host makes a slow device.
const patience = 4 * time.Minute

// ringLEDs is the ring's size, and frameBytes what it is sent for a frame: 32 zero bits, 32 for each LED, and an end.
const (
	ringLEDs   = 12
	frameBytes = 4 + 4*ringLEDs + 4 + 1
)

// body is the configuration of the body as device.Options wire it.
const body = `
[body]
board = "custom"
[body.ring]
spi = "SPI0.0"
count = 12
[[body.button]]
name = "top"
pin = "GPIO17"
[[body.button]]
name = "side"
pin = "GPIO27"
press = "volume_up"
no_reset = true
[body.mute_switch]
pin = "GPIO22"
`

// boot starts a device with the body's lines at rest. It skips where there is none.
func boot(t testing.TB, hurry bool) *device.Machine {
	t.Helper()
	dir := os.Getenv("BELLBIRD_DEVICE")
	if dir == "" {
		t.Skip(`it needs a virtual device: run "make test-device"`)
	}
	o := device.Options{
		Dir: dir, Share: filepath.Join(dir, "share"), Data: data(), Work: t.TempDir(),
		High: []int{device.Button, device.Switch, device.Second}, Modules: []string{"snd-aloop", "spi-gpio"}, Hurry: hurry,
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := device.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console:\n%s", m.Console())
		}
		m.Kill()
	})
	return m
}

// within is a context for something that has to come.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// run runs a script that must succeed.
func run(t testing.TB, m *device.Machine, script string) string {
	t.Helper()
	r, err := m.Run(within(t), script)
	if err != nil || r.Code != 0 {
		t.Fatalf("%s: exit code %d, error %v: %s", script, r.Code, err, r.Output)
	}
	return r.Output
}

// pause waits for a time of the device's clock.
func pause(t testing.TB, m *device.Machine, d time.Duration) {
	t.Helper()
	run(t, m, fmt.Sprintf("sleep %.3f", d.Seconds()))
}

// An appliance is the product, running in a device.
type appliance struct {
	t     testing.TB
	m     *device.Machine
	facts chan fact
	pid   string
	out   *syncBuffer
	ended chan int
}

// A fact is one that the appliance told.
type fact struct {
	Kind string
	Data map[string]any
}

func (f fact) is(kind string, pairs ...any) bool {
	if f.Kind != kind {
		return false
	}
	for i := 0; i < len(pairs); i += 2 {
		if f.Data[pairs[i].(string)] != pairs[i+1] {
			return false
		}
	}
	return true
}

// start starts the appliance with a configuration, and waits until it is ready.
func start(t testing.TB, m *device.Machine, config string) *appliance {
	t.Helper()
	if err := m.Put(within(t), "/tmp/config.toml", []byte(config)); err != nil {
		t.Fatal(err)
	}
	a := &appliance{t: t, m: m, facts: make(chan fact, 10000), out: new(syncBuffer), ended: make(chan int, 1)}
	go func() {
		code, err := m.Stream(t.Context(), `mkdir -p /run/bellbird
echo $$ >/tmp/pid
NOTIFY_SOCKET=/run/notify exec /share/bellbird run --config /tmp/config.toml --models /share/models --state /tmp/state`, a.out)
		if err != nil {
			code = -1
		}
		a.ended <- code
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("appliance:\n%s", a.out)
		}
	})
	a.until("READY", func() bool {
		r, err := m.Run(within(t), "grep READY /run/notify.log")
		return err == nil && r.Code == 0
	})
	a.pid = strings.TrimSpace(run(t, m, "cat /tmp/pid"))
	a.follow()
	return a
}

// until waits until something holds.
func (a *appliance) until(what string, holds func() bool) {
	a.t.Helper()
	for ctx := within(a.t); !holds(); {
		select {
		case code := <-a.ended:
			a.t.Fatalf("the appliance ended with exit code %d before %s", code, what)
		case <-ctx.Done():
			a.t.Fatalf("%s never came", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// follow reads the appliance's facts from now on.
func (a *appliance) follow() {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.m.API()+"/api/events", nil)
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		a.t.Fatal(answer, err)
	}
	go func() {
		defer close(a.facts)
		defer answer.Body.Close()
		var f fact
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			if kind, ok := strings.CutPrefix(s.Text(), "event: "); ok {
				f = fact{Kind: kind}
			} else if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				_ = json.Unmarshal([]byte(data), &f.Data) // what is none has no fields
				a.facts <- f
			}
		}
	}()
}

// await waits for a fact, and skips others.
func (a *appliance) await(kind string, pairs ...any) fact {
	a.t.Helper()
	limit := time.After(patience)
	var seen []string
	for {
		select {
		case f, more := <-a.facts:
			if !more {
				a.t.Fatalf("the facts ended before %s %v", kind, pairs)
			}
			if f.is(kind, pairs...) {
				return f
			}
			seen = append(seen, fmt.Sprint(f))
		case <-limit:
			a.t.Fatalf("%s %v never came, but %s", kind, pairs, strings.Join(seen, "\n"))
		}
	}
}

// without fails if one of the facts that were told up to now is of a kind.
func (a *appliance) without(kind string, pairs ...any) {
	a.t.Helper()
	for len(a.facts) > 0 {
		if f := <-a.facts; f.is(kind, pairs...) {
			a.t.Errorf("there was %v", f)
		}
	}
}

// stop ends the appliance as systemd would.
func (a *appliance) stop() {
	a.t.Helper()
	run(a.t, a.m, "kill -TERM "+a.pid)
	select {
	case code := <-a.ended:
		if code != 0 {
			a.t.Errorf("the appliance ended with exit code %d", code)
		}
	case <-time.After(patience):
		a.t.Fatal("the appliance does not end")
	}
	run(a.t, a.m, ": >/run/notify.log")
}

// cpu is the time that the appliance and its children have used, on the device's clock.
func (a *appliance) cpu() time.Duration {
	a.t.Helper()
	var sum time.Duration
	for line := range strings.Lines(run(a.t, a.m, "cat /proc/"+a.pid+"/task/*/schedstat")) {
		ns, err := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// uptime is the device's clock.
func uptime(t testing.TB, m *device.Machine) time.Duration {
	t.Helper()
	s, err := strconv.ParseFloat(strings.Fields(run(t, m, "cat /proc/uptime"))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(s * float64(time.Second))
}

// A syncBuffer is a buffer that can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// set moves a line of the body.
func set(t testing.TB, m *device.Machine, line int, high bool) {
	t.Helper()
	if err := m.SetLine(line, high); err != nil {
		t.Fatal(err)
	}
}

// looks are the bytes with which the ring can show a scene, at each level of the voice.
func looks(t testing.TB, s ring.Scene) map[string]bool {
	t.Helper()
	strip, err := led.New(led.Options{Count: ringLEDs})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	frame := make([]led.Color, ringLEDs)
	for level := range 1001 {
		s.Level = float64(level) / 1000
		ring.Draw(frame, s)
		b, err := strip.Encode(frame)
		if err != nil {
			t.Fatal(err)
		}
		all[string(b)] = true
	}
	return all
}

// shows waits until the ring is sent a frame of the scene, among those that begin with the byte from, and returns the
// first byte after it.
func shows(t testing.TB, m *device.Machine, from int, what string, s ring.Scene) int {
	t.Helper()
	want := looks(t, s)
	_, next, err := m.Wire.Await(within(t), from, frameBytes, func(b []byte) bool { return want[string(b)] })
	if err != nil {
		t.Fatalf("the ring never showed %q: it was sent %x", what, last(m.Wire.Frames(from, frameBytes), 5))
	}
	return next
}

func last[T any](s []T, n int) []T { return s[max(len(s)-n, 0):] }

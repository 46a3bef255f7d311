package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
	"bellbird/mqtt"
)

// TestHome is an appliance without ears or body, seen through the embedded broker.
func TestHome(t *testing.T) {
	needDemo(t)
	f := flags{config: os.DevNull, state: t.TempDir()}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	c.Store.ScryptN = 1024 // as fast as a test should be
	log := slog.New(slog.DiscardHandler)
	virtual := clock.NewVirtual(time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC))
	output := audio.NewOutput(0)
	a, err := assemble(c, senses{timers: true, lasting: true, output: output}, virtual, log)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	installs := make(chan bool, 1)
	device, err := a.home(mqtt.Options{Broker: "embedded", Listen: addr, MachineID: "x"}, homeView{
		state: f.state, voice: voiceOf(t, "en-us"), voices: []string{"en-gb", "en-us"},
		update: func() mqtt.Update { return mqtt.Update{Installed: "1", Latest: "2"} }, install: func() error { installs <- true; return nil },
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // its time passes quickly, but not as fast as the machine can
		for ctx.Err() == nil {
			brake := virtual.Work()
			<-time.After(time.Millisecond)
			brake()
		}
	}()
	go func() {
		done <- a.run(ctx, deafDevice{audiotest.NewRoom(audiotest.RoomOptions{Output: output}), virtual}, run.Part{Name: "home", Run: device.Run})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	heard := make(chan paho.Message, 4096)
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + addr).SetClientID("test").SetOrderMatters(true).
		SetConnectRetry(true).SetConnectRetryInterval(10 * time.Millisecond).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { heard <- m }))
	finish := func(token paho.Token) {
		t.Helper()
		if !token.WaitTimeout(30*time.Second) || token.Error() != nil {
			t.Fatal(token.Error())
		}
	}
	finish(client.Connect())
	defer client.Disconnect(0)
	finish(client.Subscribe("#", 1, nil))
	base := "bellbird/" + device.ID()
	var pending []paho.Message // heard since the last command, in any order
	await := func(topic, payload string) (got string) {
		t.Helper()
		late := time.After(30 * time.Second)
		for {
			for i, m := range pending {
				if m.Topic() == topic && (payload == "" || string(m.Payload()) == payload) {
					pending = slices.Delete(pending, i, i+1)
					return string(m.Payload())
				}
			}
			select {
			case m := <-heard:
				pending = append(pending, m)
				if strings.Contains(string(m.Payload()), "secret") && !strings.HasSuffix(m.Topic(), "/set") {
					t.Errorf("%s: %s", m.Topic(), m.Payload())
				}
			case <-late:
				t.Fatalf("%s %s: not heard", topic, payload)
			}
		}
	}
	command := func(key, payload string) {
		t.Helper()
		pending = nil
		finish(client.Publish(base+"/"+key+"/set", 1, false, payload))
	}

	var config struct {
		Components map[string]any `json:"cmps"`
	}
	if err := json.Unmarshal([]byte(await("homeassistant/device/"+device.ID()+"/config", "")), &config); err != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(config.Components))
	for _, there := range []string{"state", "volume", "chat", "private", "ask", "announce", "timers", "stop", "load", "memory", "free", "firmware", "voice"} {
		if !slices.Contains(keys, there) {
			t.Errorf("%s isn't there: %q", there, keys)
		}
	}
	for _, absent := range []string{"listen", "mute", "ring", "restart", "sensitivity", "follow_up", "night", "button_1"} {
		if slices.Contains(keys, absent) {
			t.Errorf("%s is there: %q", absent, keys)
		}
	}
	await(base+"/availability", "online")
	command("volume", "35")
	await(base+"/volume", "35")
	if output.Volume() != 35 {
		t.Errorf("the volume is %d", output.Volume())
	}
	command("voice", "en-gb")
	await(base+"/voice", "en-gb")
	command("firmware", "install")
	select {
	case <-installs:
	case <-time.After(30 * time.Second):
		t.Error("the firmware isn't installed")
	}
	command("ask", "what time is it")
	if got := await(base+"/ask/answer", ""); !strings.Contains(got, `"text":"It's `) {
		t.Errorf("the answer is %s", got)
	}
	await(base+"/turn", "completed")
	await(base+"/state", "speaking")
	await(base+"/state", "idle")
	command("announce", "dinner")
	await(base+"/state", "speaking")
	await(base+"/state", "idle")

	if err := a.store.SetUp("passphrase of the test"); err != nil {
		t.Fatal(err)
	}
	if err := a.store.Create("secret plans"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.store.Set("secret plans", map[string]any{"private_chat": true}); err != nil {
		t.Fatal(err)
	}
	if err := a.store.Activate("secret plans"); err != nil {
		t.Fatal(err)
	}
	command("private", "ON")
	await(base+"/private", "ON")
	command("chat", "secret plans") // is none of the options
	await(base+"/chat", "None")
	command("ask", "what time is it")
	await(base+"/state", "speaking")
	await(base+"/state", "idle")
	command("private", "OFF")
	await(base+"/chat", "default")
	await(base+"/private", "OFF")
}

type bulb struct {
	on         bool
	color      led.Color
	brightness float64
	effect     ring.Effect
	err        error
}

func (b *bulb) SetLight(on bool, c led.Color, brightness float64, e ring.Effect) error {
	if b.err != nil {
		return b.err
	}
	b.on, b.color, b.brightness, b.effect = on, c, brightness, e
	return nil
}

func TestLamp(t *testing.T) {
	var b bulb
	l := lampOf(&b)
	if err := l.Set(mqtt.LightCommand{On: new(true), Color: &[3]uint8{1, 2, 3}}); err != nil || !b.on || b.color != (led.Color{R: 1, G: 2, B: 3}) || b.brightness != 1 {
		t.Errorf("%+v, error %v", b, err)
	}
	if err := l.Set(mqtt.LightCommand{Brightness: new(uint8(51)), Effect: new("spin")}); err != nil || !b.on || b.brightness != 0.2 || b.effect != ring.Spin || b.color.B != 3 {
		t.Errorf("%+v, error %v", b, err)
	}
	before := l.Get()
	b.err = errors.New("lent")
	if err := l.Set(mqtt.LightCommand{On: new(false)}); err == nil || l.Get() != before {
		t.Errorf("%+v, error %v", l.Get(), err)
	}
}

func TestMachineDiagnostics(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"sys/class/thermal/thermal_zone0/temp": "48312\n",
		"proc/loadavg":                         "0.52 0.58 0.59 1/123 4567\n",
		"proc/meminfo":                         "MemTotal:         400000 kB\nMemFree:  1 kB\nMemAvailable:     100000 kB\n",
		"proc/net/wireless":                    "Inter-| sta-|   Quality        |\n face | tus | link level noise |\n wlan0: 0000   49.  -61.  -256        0\n",
		"proc/stat":                            "cpu  1 2 3\nbtime 1796025630\n",
		"sys/firmware/devicetree/base/model":   "Raspberry Pi Zero 2 W Rev 1.0\x00",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := machineDiagnostics(root, root)
	for want, get := range map[string]func() (float64, error){"48.312": d.Temperature, "0.52": d.Load, "75": d.Memory, "-61": d.Signal} {
		if v, err := get(); err != nil || fmt.Sprint(v) != want {
			t.Errorf("%v, error %v, not %s", v, err, want)
		}
	}
	if v, err := d.Free(); err != nil || v <= 0 {
		t.Errorf("%v MiB are free, error %v", v, err)
	}
	if at, err := d.Started(); err != nil || at.Second() != 0 || at.Unix()/60 != 1796025630/60 && at.Unix()/60 != 1796025630/60+1 {
		t.Errorf("started %v, error %v", at, err)
	}
	if m := machineModel(root); m != "Raspberry Pi Zero 2 W Rev 1.0" {
		t.Errorf("model %q", m)
	}
	d = machineDiagnostics(t.TempDir(), "")
	if d.Temperature != nil || d.Load != nil || d.Memory != nil || d.Signal != nil || d.Free != nil || d.Started != nil {
		t.Errorf("of a machine that tells nothing: %+v", d)
	}
}

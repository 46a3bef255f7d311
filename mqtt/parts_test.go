package mqtt_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/mqtt"
)

func TestOptions(t *testing.T) {
	for want, o := range map[string]mqtt.Options{
		`broker = "http://host"`:         {Broker: "http://host"},
		`"mqtt://host:port"`:             {Broker: "localhost"},
		`broker = "mqtt://a:xxxxx@b"`:    {Broker: "mqtt://a:secret@b"},
		`others can reach that`:          {Broker: "embedded", Listen: ":1883"},
		`listen = "1883"`:                {Broker: "embedded", Listen: "1883"},
		`belong together`:                {Broker: "mqtts://b", CertFile: "x"},
		`set one of them`:                {Broker: "mqtt://b", User: "x", UserFile: "y"},
		`discovery_prefix = "a/#"`:       {Broker: "mqtt://b", DiscoveryPrefix: "a/#"},
		`group = "a/b"`:                  {Broker: "mqtt://b", Group: "a/b"},
		`window = 3s`:                    {Broker: "mqtt://b", Window: 3 * time.Second},
		`keep_alive = 500ms`:             {Broker: "mqtt://b", KeepAlive: 500 * time.Millisecond},
		`systemd-machine-id-setup makes`: {Broker: "mqtt://b", MachineID: "\n"},
	} {
		if o.MachineID == "" {
			o.MachineID = "x"
		}
		_, err := mqtt.New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: error %v, not with %q", o, err, want)
		}
	}
	password := filepath.Join(t.TempDir(), "password")
	for _, o := range []mqtt.Options{
		{Broker: "embedded", Listen: "[::1]:0"}, {Broker: "embedded", Listen: ":0", User: "x", PasswordFile: password}, {Broker: "mqtts://[::1]:1"},
	} {
		o.MachineID = "x"
		d, err := mqtt.New(o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		d.Close()
	}
}

func TestID(t *testing.T) {
	id := func(machine, name string) string {
		d, err := mqtt.New(mqtt.Options{Broker: "embedded", MachineID: machine, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return d.ID()
	}
	if id("a", "Kitchen") != id("a\n", "Bath") {
		t.Error("the id follows the name")
	}
	if id("a", "") == id("b", "") || strings.Contains(id("00112233445566778899aabbccddeeff", ""), "00112233") {
		t.Error("the id isn't made from the machine's, or shows it")
	}
}

// TestBackoff tries to connect with a password that isn't there.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d, err := mqtt.New(mqtt.Options{
			Broker: "mqtt://broker", MachineID: "x", User: "x", PasswordFile: "/nonexistent/password",
			Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		warnings := strings.Count(log.String(), `"level":"WARN"`)
		tries := strings.Count(log.String(), "no connection to the broker")
		if warnings != 1 || tries < 60 || tries > 130 {
			t.Errorf("%d warnings, %d tries in an hour", warnings, tries)
		}
	})
	var b mqtt.Backoff
	for _, most := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		if d := b.Wait(); d < most/2 || d > most {
			t.Errorf("waits %v, not up to %v", d, most)
		}
	}
}

func TestLimiter(t *testing.T) {
	l := mqtt.NewLimiter(5, 10)
	now := time.Now()
	passed := func(n int, every time.Duration) (count int) {
		for range n {
			if l.Pass(now) {
				count++
			}
			now = now.Add(every)
		}
		return count
	}
	if n := passed(1000, 0); n != 10 {
		t.Errorf("%d of a burst passed", n)
	}
	if n := passed(1000, time.Millisecond); n != 5 && n != 4 {
		t.Errorf("%d passed in a second", n)
	}
	now = now.Add(time.Hour)
	if n := passed(1000, 0); n != 10 {
		t.Errorf("%d of a burst passed later", n)
	}
}

// packets are what a broker may send: a type, a length and a body, in pieces.
func TestPacketBound(t *testing.T) {
	packet := func(n int) []byte {
		head := []byte{0x30}
		for v := n; ; {
			b := byte(v & 0x7f)
			if v >>= 7; v == 0 {
				head = append(head, b)
				break
			}
			head = append(head, b|0x80)
		}
		return append(head, make([]byte, n)...)
	}
	for _, c := range []struct {
		stream []byte
		ok     bool
	}{
		{bytes.Join([][]byte{packet(0), packet(2), packet(127), packet(128), packet(300), packet(mqtt.MaxPacket), packet(1)}, nil), true},
		{packet(mqtt.MaxPacket + 1), false},
		{append(packet(5), 0x30, 0xff, 0xff, 0xff, 0x7f), false},
		{[]byte{0x30, 0x80, 0x80, 0x80, 0x80}, false},
	} {
		for _, piece := range []int{1, 3, len(c.stream)} {
			var l mqtt.Limited
			ok := true
			for rest := c.stream; len(rest) > 0 && ok; {
				n := min(piece, len(rest))
				ok = l.Follow(rest[:n])
				rest = rest[n:]
			}
			if ok != c.ok {
				t.Errorf("%d bytes in pieces of %d: %v", len(c.stream), piece, ok)
			}
		}
	}
}

func FuzzBid(f *testing.F) {
	f.Add([]byte(`{"from":"b","word":"okay_nabu","score":0.9,"level":-20,"claim":true,"at":"2026-11-30T09:00:00Z"}`))
	f.Add([]byte(`{"score":1e999}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		tells := 0
		g := mqtt.NewGroup("a", time.Hour, func(string) bool { return true })
		g.Call("okay_nabu", 0.5, -20, func(bool) { tells++ })
		g.Receive(payload)
		g.Receive(payload)
		if tells > 1 {
			t.Errorf("told %d times", tells)
		}
	})
}

func TestPluginTopics(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	d := begin(t, newHouse().appliance(), at(m.url()))
	if err := d.PluginPublish("weather", "outside/temperature", "7.5", true); err != nil { // before there is a connection
		t.Error(err)
	}
	w.payload(0, d.availability(), "online")
	n := w.payload(0, d.base+"/plugin/weather/outside/temperature", "7.5")

	got := make(chan string, 16)
	cancel, err := d.PluginSubscribe("weather", "ask/+/#", func(topic, payload string) { got <- topic + " " + payload })
	if err != nil {
		t.Fatal(err)
	}
	hear := func(want string) {
		t.Helper()
		select {
		case s := <-got:
			if s != want {
				t.Errorf("heard %q, not %q", s, want)
			}
		case <-time.After(patience):
			t.Fatalf("%q not heard", want)
		}
	}
	w.publish(d.base+"/plugin/weather/ask/now", "1", false)
	w.publish(d.base+"/plugin/weather/ask", "2", false)
	w.publish(d.base+"/plugin/other/ask/now", "3", false)
	w.publish(d.base+"/plugin/weather/ask/tomorrow/noon", "4", false)
	hear("ask/now 1")
	hear("ask/tomorrow/noon 4")
	cancel()
	cancel()

	if err := d.PluginPublish("weather", "outside/temperature", "", true); err != nil {
		t.Error(err)
	}
	w.payload(n, d.base+"/plugin/weather/outside/temperature", "")
	for _, c := range [][2]string{{"weather", "../state"}, {"weather", "a/+"}, {"weather", "#"}, {"weather", ""}, {"weather", "/state"}, {"Weather/..", "a"}, {"we/ather", "a"}} {
		err := d.PluginPublish(c[0], c[1], "x", false)
		if c[1] == "../state" { // a part of two dots is nothing special in a topic: it stays below the plugin's
			w.payload(n, d.base+"/plugin/weather/../state", "x")
		} else if err == nil {
			t.Errorf("plugin %q may publish on %q", c[0], c[1])
		}
	}
	for _, filter := range []string{"a/#/b", "a#", "+a", "", "/"} {
		if _, err := d.PluginSubscribe("weather", filter, nil); err == nil {
			t.Errorf("the filter %q is taken", filter)
		}
	}
	if err := d.PluginPublish("weather", "a", strings.Repeat("x", 17<<10), false); err == nil {
		t.Error("too long a payload is taken")
	}
	failed := 0
	for i := range 200 {
		if d.PluginPublish("other", fmt.Sprint("a/", i%100), "x", true) != nil {
			failed++
		}
	}
	if failed < 100 {
		t.Errorf("only %d of a flood were refused", failed)
	}
}

func TestNoMachineID(t *testing.T) {
	if _, err := os.Stat("/etc/machine-id"); err == nil {
		d, err := mqtt.New(mqtt.Options{Broker: "embedded"})
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		return
	}
	if _, err := mqtt.New(mqtt.Options{Broker: "embedded"}); err == nil {
		t.Error("it has an id without a machine id")
	}
}

package device_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// A house is a broker on the host, and what the appliance has told it last, by the end of the topic.
type house struct {
	t      testing.TB
	config string // that lets the appliance find it
	told   chan [2]string
}

// newHouse starts a mosquitto on a free port of the loopback, which is 10.0.2.2 for the device.
func newHouse(t testing.TB) *house {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	text := fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\npersistence false\n", port)
	if os.Geteuid() == 0 {
		text += "user root\n"
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	broker := exec.CommandContext(t.Context(), path, "-c", conf)
	if err := broker.Start(); err != nil {
		t.Fatalf("mosquitto: %v (make test-device installs it)", err)
	}
	h := &house{t: t, config: fmt.Sprintf("[mqtt]\nbroker = \"mqtt://10.0.2.2:%d\"\n", port), told: make(chan [2]string, 1000)}
	o := paho.NewClientOptions().AddBroker(fmt.Sprintf("tcp://127.0.0.1:%d", port)).SetClientID("house").SetConnectRetry(true).SetConnectRetryInterval(50 * time.Millisecond)
	o.SetOnConnectHandler(func(c paho.Client) {
		c.Subscribe("bellbird/#", 1, func(_ paho.Client, m paho.Message) {
			topic := strings.SplitN(m.Topic(), "/", 3)
			h.told <- [2]string{topic[len(topic)-1], string(m.Payload())}
		})
	})
	c := paho.NewClient(o)
	c.Connect()
	t.Cleanup(func() {
		c.Disconnect(100)
		_ = broker.Process.Kill() // it may have ended
		_ = broker.Wait()
	})
	return h
}

// await waits until the appliance tells a value.
func (h *house) await(key, value string) {
	h.t.Helper()
	limit := time.After(patience)
	var seen [][2]string
	for {
		select {
		case m := <-h.told:
			if m == [2]string{key, value} {
				return
			}
			seen = append(seen, m)
		case <-limit:
			h.t.Fatalf("the house was never told that %s is %s, but %q", key, value, seen)
		}
	}
}

package mqtt_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// patience is how long a test waits for what must come. It is no measure: a test that waits for so long has failed.
const patience = 30 * time.Second

// A mosquitto is a broker of its own.
type mosquitto struct {
	t    testing.TB
	port string
	conf string
	cmd  *exec.Cmd
}

// broker starts a mosquitto with further lines of configuration; listener says what follows its listener.
func broker(t testing.TB, lines ...string) *mosquitto {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/mosquitto"); err != nil {
			t.Skip("mosquitto is not installed (apt-get install mosquitto)")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir := t.TempDir()
	conf := filepath.Join(dir, "mosquitto.conf")
	all := append([]string{"listener " + port + " 127.0.0.1", "persistence false", "log_dest stderr", "log_type all", "max_queued_messages 0"}, lines...)
	if !strings.Contains(strings.Join(lines, "\n"), "password_file") {
		all = append(all, "allow_anonymous true")
	}
	if os.Geteuid() == 0 {
		all = append(all, "user root") // else it can't read its files in the test's directory
	}
	if err := os.WriteFile(conf, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &mosquitto{t: t, port: port, conf: conf}
	m.start(path)
	t.Cleanup(m.stop)
	return m
}

func (m *mosquitto) start(path string) {
	m.t.Helper()
	m.cmd = exec.Command(path, "-c", m.conf)
	out, err := m.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	running := make(chan struct{})
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			if strings.HasSuffix(s.Text(), " running") {
				close(running)
			}
		}
	}()
	select {
	case <-running:
	case <-time.After(patience):
		m.t.Fatal("mosquitto doesn't start")
	}
}

func (m *mosquitto) stop() {
	m.cmd.Process.Kill()
	m.cmd.Wait()
}

func (m *mosquitto) restart() {
	m.stop()
	m.start(m.cmd.Path)
}

func (m *mosquitto) addr() string { return "127.0.0.1:" + m.port }
func (m *mosquitto) url() string  { return "mqtt://" + m.addr() }

// A watcher is a client that hears everything, as Home Assistant would.
type watcher struct {
	t      testing.TB
	client paho.Client

	mu    sync.Mutex
	more  chan struct{} // closed when something has come
	heard []heard
}

type heard struct {
	topic, payload string
	retained       bool
}

func watch(t testing.TB, addr string, topics ...string) *watcher {
	t.Helper()
	w := &watcher{t: t, more: make(chan struct{})}
	if len(topics) == 0 {
		topics = []string{"#"}
	}
	subs := make(map[string]byte)
	for _, topic := range topics {
		subs[topic] = 1
	}
	ready := make(chan struct{})
	once := sync.OnceFunc(func() { close(ready) })
	o := paho.NewClientOptions().AddBroker("tcp://" + addr).SetClientID(fmt.Sprintf("watcher%p", w)).SetProtocolVersion(4).
		SetAutoReconnect(true).SetMaxReconnectInterval(100 * time.Millisecond).SetOrderMatters(true).
		SetOnConnectHandler(func(c paho.Client) {
			c.SubscribeMultiple(subs, nil).Wait()
			once()
		}).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.heard = append(w.heard, heard{m.Topic(), string(m.Payload()), m.Retained()})
			close(w.more)
			w.more = make(chan struct{})
		})
	w.client = paho.NewClient(o)
	if token := w.client.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatalf("watcher: %v", token.Error())
	}
	t.Cleanup(func() { w.client.Disconnect(0) })
	<-ready
	return w
}

// publish publishes and waits for the broker.
func (w *watcher) publish(topic, payload string, retained bool) {
	w.t.Helper()
	if token := w.client.Publish(topic, 1, retained, payload); !token.WaitTimeout(patience) || token.Error() != nil {
		w.t.Fatalf("publish %s: %v", topic, token.Error())
	}
}

// mark is how much has been heard so far.
func (w *watcher) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heard)
}

// await waits for the first message since a mark that fits, and returns it with the mark behind it.
func (w *watcher) await(since int, what string, fits func(heard) bool) (heard, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		w.mu.Lock()
		list, more := w.heard, w.more
		w.mu.Unlock()
		for ; since < len(list); since++ {
			if fits(list[since]) {
				return list[since], since + 1
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, h := range w.heard[max(0, len(w.heard)-20):] {
				w.t.Logf("heard %s %.120q", h.topic, h.payload)
			}
			w.t.Fatalf("%s: not heard", what)
		}
	}
}

// payload waits for exactly this.
func (w *watcher) payload(since int, topic, payload string) int {
	w.t.Helper()
	_, next := w.await(since, topic+" "+payload, func(h heard) bool { return h.topic == topic && h.payload == payload })
	return next
}

// all is what was heard from one mark to another.
func (w *watcher) all(from, to int) []heard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard[from:to]
}

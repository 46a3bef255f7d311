package mqtt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/event"
	"bellbird/mqtt"
)

func TestBrokerRestartsDuringATurn(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	d := begin(t, newHouse().appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	d.bus.Publish(event.StateChanged{From: event.Listening, To: event.Thinking, Run: 1})
	w.payload(n, d.base+"/state", "thinking")
	m.stop()
	d.log.await(t, "no connection to the broker")
	d.bus.Publish(event.StateChanged{From: event.Thinking, To: event.Speaking, Run: 1})
	d.bus.Publish(event.ButtonPressed{Button: "top", Gesture: event.Press}) // of no use to anybody later
	n = w.mark()
	m.start(m.cmd.Path)
	// The watcher may return after the device: what is retained tells all the same.
	n = w.payload(n, d.base+"/state", "speaking")
	w.payload(n, d.availability(), "online")
	d.bus.Publish(event.StateChanged{From: event.Speaking, To: event.Idle, Run: 1})
	n = w.payload(n, d.base+"/state", "idle")
	for _, h := range w.all(0, n) {
		if h.topic == d.base+"/button_1" {
			t.Errorf("a press was told later: %v", h)
		}
	}
	if s := d.Status(); s.Dropped == 0 || !s.Connected || s.Twin {
		t.Errorf("status %+v", s)
	}
}

// A proxy stands between a device and a broker, and can swallow what goes through it, without closing anything.
type proxy struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []*swallower
}

type swallower struct {
	net.Conn
	mu    sync.Mutex
	drops bool
}

func (s *swallower) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops {
		return len(p), nil
	}
	return s.Conn.Write(p)
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	t.Cleanup(func() { l.Close(); p.each(func(s *swallower) { s.Close() }) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			a, b := &swallower{Conn: in}, &swallower{Conn: out}
			p.mu.Lock()
			p.conns = append(p.conns, a, b)
			p.mu.Unlock()
			pipe := func(dst, src *swallower) {
				io.Copy(dst, src.Conn)
				dst.mu.Lock()
				defer dst.mu.Unlock()
				if !dst.drops { // of a half-open connection the end isn't seen either
					dst.Close()
				}
			}
			go pipe(a, b)
			go pipe(b, a)
		}
	}()
	return p
}

func (p *proxy) each(f func(*swallower)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.conns {
		f(s)
	}
}

func TestHalfOpen(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	p := newProxy(t, m.addr())
	d := begin(t, newHouse().appliance(), func(o *mqtt.Options) { o.Broker, o.KeepAlive = "mqtt://"+p.Addr().String(), time.Second })
	w.payload(0, d.availability(), "online")
	p.each(func(s *swallower) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drops = true
	})
	n := w.mark()
	d.bus.Publish(event.StateChanged{To: event.Speaking})
	n = w.payload(n, d.base+"/state", "speaking")
	w.payload(n, d.availability(), "online")
	if s := d.Status(); s.Twin {
		t.Errorf("our own older session is taken for another device: %+v", s)
	}
}

func TestWrongPassword(t *testing.T) {
	tool, err := exec.LookPath("mosquitto_passwd")
	if err != nil {
		t.Skip("mosquitto_passwd is not installed (apt-get install mosquitto)")
	}
	dir := t.TempDir()
	users, password := filepath.Join(dir, "users"), filepath.Join(dir, "password")
	if out, err := exec.Command(tool, "-b", "-c", users, "kitchen", "right").CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd: %v: %s", err, out)
	}
	write := func(s string) {
		if err := os.WriteFile(password, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong")
	m := broker(t, "password_file "+users)
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	d := begin(t, newHouse().appliance(), func(o *mqtt.Options) { o.Broker, o.User, o.PasswordFile = m.url(), "kitchen", "password" })
	d.log.await(t, `the broker refuses user \"kitchen\"`)
	if s := d.Status(); s.Connected || !strings.Contains(s.Err, "password_file") {
		t.Errorf("status %+v", s)
	}
	write("right") // needs no restart
	d.log.await(t, "connected to the broker")
}

// authority makes a CA, and certificates that it signs.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, dir, name string) authority {
	t.Helper()
	a := authority{file: filepath.Join(dir, name+".pem")}
	a.cert, a.key = certify(t, a.file, "", &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a
}

// issue writes a certificate and its key.
func (a authority) issue(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	certify(t, certFile, keyFile, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &a)
	return certFile, keyFile
}

func certify(t *testing.T, certFile, keyFile string, c *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, other := newAuthority(t, dir, "ours"), newAuthority(t, dir, "other")
	cert, key := ours.issue(t, dir, "broker")
	clientCert, clientKey := ours.issue(t, dir, "client")
	m := broker(t, "cafile "+ours.file, "certfile "+cert, "keyfile "+key, "require_certificate true")
	secure := "mqtts://" + m.addr()
	for _, c := range []struct {
		name      string
		o         mqtt.Options
		says      string
		connected bool
	}{
		{"all right", mqtt.Options{CAFile: ours.file, CertFile: clientCert, KeyFile: clientKey}, "connected to the broker", true},
		{"wrong CA", mqtt.Options{CAFile: other.file, CertFile: clientCert, KeyFile: clientKey}, "is ca_file that of this broker?", false},
		{"the system's CAs", mqtt.Options{CertFile: clientCert, KeyFile: clientKey}, "is ca_file that of this broker?", false},
		{"no client certificate", mqtt.Options{CAFile: ours.file}, "no connection to the broker", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := begin(t, mqtt.Appliance{}, func(o *mqtt.Options) {
				o.Broker, o.CAFile, o.CertFile, o.KeyFile = secure, c.o.CAFile, c.o.CertFile, c.o.KeyFile
			})
			d.log.await(t, c.says)
			if !c.connected && d.Status().Connected {
				t.Error("it is connected")
			}
		})
	}
}

func TestTwins(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	a := begin(t, newHouse().appliance(), at(m.url()))
	n := w.payload(0, a.availability(), "online")
	b := begin(t, newHouse().appliance(), at(m.url()))
	if a.ID() != b.ID() {
		t.Fatalf("%s and %s", a.ID(), b.ID())
	}
	for _, d := range []*device{a, b} {
		d.log.await(t, "another device has the same id")
	}
	w.await(n, "problem", func(h heard) bool {
		return h.topic == a.base+"/problem/attributes" && strings.Contains(h.payload, "Another device uses the same MQTT id.")
	})
	// Who is thrown out after that leaves the other alone for a while.
	text := a.log.await(t, `msg="no connection to the broker" broker=`+m.url()+` err="another device has the same id`)
	_, wait, _ := strings.Cut(text, "again_in=")
	if d, err := time.ParseDuration(strings.Fields(wait)[0]); err != nil || d < 30*time.Second {
		t.Errorf("it comes back after %v, error %v", d, err)
	}
}

// TestNoTwinAfterAnEnd: a program that ends without leave and begins again is no other device.
func TestNoTwinAfterAnEnd(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	first := begin(t, mqtt.Appliance{}, at(m.url()))
	n := w.payload(0, first.availability(), "online")
	first.stop()
	n = w.payload(n, first.availability(), "offline")
	second := begin(t, mqtt.Appliance{}, at(m.url()))
	n = w.payload(n, second.availability(), "online")
	m.restart()
	second.log.await(t, "no connection to the broker")
	w.payload(n, second.availability(), "online")
	if second.Status().Twin {
		t.Error("it sees a twin")
	}
}

func TestEmbedded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("right"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHouse()
	open := begin(t, h.appliance(), func(o *mqtt.Options) { o.Broker, o.Listen = "embedded", addr })
	open.log.await(t, "connected to the broker")
	w := watch(t, addr)
	n := w.payload(0, open.availability(), "online")
	w.publish(open.base+"/volume/set", "30", false)
	w.payload(n, open.base+"/volume", "30")
	// A client whose packet is refused holds up nobody, whether it has a will or not.
	for _, connect := range []string{
		"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04calm",
		"\x10\x18\x00\x04MQTT\x04\x26\x00\x3c\x00\x04rude\x00\x01w\x00\x03bye", // a retained one
	} {
		rude, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer rude.Close()
		if _, err := rude.Write([]byte(connect + "\x31\x07\x00\x03a/#xx")); err != nil { // retained, on what is no topic
			t.Fatal(err)
		}
		io.Copy(io.Discard, rude) // until it is thrown out
	}
	w.payload(n, "w", "bye")
	w.publish("test/retained", "still", true)
	if v := watch(t, addr, "test/retained"); v.payload(0, "test/retained", "still") == 0 {
		t.Error("what is retained isn't told")
	}
	open.stop()

	closed := begin(t, h.appliance(), func(o *mqtt.Options) {
		o.Broker, o.Listen, o.User, o.PasswordFile = "embedded", addr, "house", password
	})
	closed.log.await(t, "connected to the broker")
	stranger := begin(t, mqtt.Appliance{}, func(o *mqtt.Options) { o.Broker, o.MachineID = "mqtt://"+addr, "another" })
	stranger.log.await(t, "the broker refuses user")
}

package mqtt

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"bellbird/event"
)

// Options say where the broker is, and what is shown there.
type Options struct {
	// Broker is where the broker is: "mqtt://host", "mqtts://host:8883" with TLS, or "embedded": this program is the
	// broker. Empty: there is no MQTT.
	Broker string `toml:"broker"`

	// Listen is where the embedded broker listens; default 127.0.0.1:1883. An address that others can reach needs a password.
	Listen string `toml:"listen"`

	// CAFile has the certificates that the broker's may be signed by; default those of the system. CertFile and KeyFile
	// are the client's own, if the broker wants one.
	CAFile   string `toml:"ca_file"`
	CertFile string `toml:"cert_file"`
	KeyFile  string `toml:"key_file"`

	// User is the name at the broker, or UserFile is a file with it, and PasswordFile one with the password, each in a
	// single line. A relative path is that of a systemd credential. The files are read at each connect.
	User         string `toml:"user"`
	UserFile     string `toml:"user_file"`
	PasswordFile string `toml:"password_file"`

	// Name is what the appliance is called; default "Bellbird".
	Name string `toml:"name"`

	// DiscoveryPrefix is where Home Assistant looks for devices; default "homeassistant".
	DiscoveryPrefix string `toml:"discovery_prefix"`

	// Group is which speakers settle among themselves who answers; default "home". They must have the same broker.
	Group string `toml:"group"`

	// Window is how long a speaker waits for what others of its group have heard; default 200 ms.
	Window time.Duration `toml:"window"`

	// KeepAlive is how long the connection may be silent before it is tried; default 15 s, in whole seconds.
	KeepAlive time.Duration `toml:"keep_alive"`

	Model     string       `toml:"-"` // of the hardware
	Version   string       `toml:"-"` // of the firmware
	MachineID string       `toml:"-"` // default the contents of /etc/machine-id
	Appliance Appliance    `toml:"-"`
	Bus       *event.Bus   `toml:"-"`
	Logger    *slog.Logger `toml:"-"` // nil: none
}

// What is sent and taken.
const (
	maxSecret  = 4 << 10
	maxPacket  = 64 << 10 // that the broker may send
	maxPayload = 8 << 10  // of a command
	embedded   = "embedded"
)

func (o *Options) defaults() {
	for s, def := range map[*string]string{
		&o.Listen: "127.0.0.1:1883", &o.Name: "Bellbird", &o.DiscoveryPrefix: "homeassistant", &o.Group: "home",
	} {
		if *s == "" {
			*s = def
		}
	}
	for d, def := range map[*time.Duration]time.Duration{&o.Window: 200 * time.Millisecond, &o.KeepAlive: 15 * time.Second} {
		if *d == 0 {
			*d = def
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

var plainTopic = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}(/[a-zA-Z0-9_-]{1,64}){0,3}$`)

// check finds what can't be meant.
func (o *Options) check() error {
	if _, err := o.brokerURL(); err != nil {
		return err
	}
	if !plainTopic.MatchString(o.DiscoveryPrefix) {
		return fmt.Errorf("discovery_prefix = %q: it is a topic of letters, digits, _, - and /", o.DiscoveryPrefix)
	}
	if !plainTopic.MatchString(o.Group) || strings.Contains(o.Group, "/") {
		return fmt.Errorf("group = %q: it is of letters, digits, _ and -", o.Group)
	}
	if o.Window < 0 || o.Window > 2*time.Second {
		return fmt.Errorf("window = %v: it is 2s at most", o.Window)
	}
	if o.KeepAlive < time.Second || o.KeepAlive > 10*time.Minute {
		return fmt.Errorf("keep_alive = %v: it goes from 1s to 10m", o.KeepAlive)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("cert_file and key_file belong together: set both or none")
	}
	if o.User != "" && o.UserFile != "" {
		return errors.New("user and user_file: set one of them")
	}
	if o.Broker == embedded {
		return o.checkListen()
	}
	return nil
}

func (o *Options) checkListen() error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("listen = %q: %v", o.Listen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && o.PasswordFile == "" {
		return fmt.Errorf("listen = %q: others can reach that: set user and password_file, or listen on 127.0.0.1", o.Listen)
	}
	return nil
}

// brokerURL is the broker's address with its port. That of an embedded one is nil.
func (o *Options) brokerURL() (*url.URL, error) {
	if o.Broker == embedded {
		return nil, nil
	}
	u, err := url.Parse(o.Broker)
	if err != nil {
		return nil, fmt.Errorf("broker: %v", err)
	}
	ports := map[string]string{"mqtt": "1883", "mqtts": "8883"}
	if ports[u.Scheme] == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf(`broker = %q: it is "mqtt://host:port", "mqtts://host:port" or "embedded"; user and password are set by themselves`, u.Redacted())
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), ports[u.Scheme])
	}
	return u, nil
}

// credentials are read anew for each connect, so that a new password needs no restart.
func (o *Options) credentials() (user, password string, err error) {
	user = o.User
	if o.UserFile != "" {
		if user, err = secret("user_file", o.UserFile); err != nil {
			return "", "", err
		}
	}
	if o.PasswordFile != "" {
		if password, err = secret("password_file", o.PasswordFile); err != nil {
			return "", "", err
		}
		if user == "" {
			return "", "", errors.New("password_file is set: set user or user_file too")
		}
	}
	return user, password, nil
}

// credential is where a file is that may be a systemd credential.
func credential(key, path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return "", fmt.Errorf("%s = %q: a path that is not absolute is a systemd credential, and there are none: "+
			"see LoadCredential= in systemd.exec(5)", key, path)
	}
	return filepath.Join(dir, path), nil
}

func secret(key, path string) (string, error) {
	text, err := read(key, path, maxSecret)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" || strings.ContainsAny(s, "\r\n\x00") {
		return "", fmt.Errorf("%s = %q: it must have one line, with nothing else in it", key, path)
	}
	return s, nil
}

// read reads a file of a bounded size.
func read(key, path string, most int64) ([]byte, error) {
	path, err := credential(key, path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s = %q: more than %d bytes", key, path, most)
	}
	return text, nil
}

// tls is how a connection is secured.
func (o *Options) tls(host string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := read("ca_file", o.CAFile, 1<<20)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file = %q: no certificate in it", o.CAFile)
		}
	}
	if o.CertFile != "" {
		cert, err := read("cert_file", o.CertFile, 1<<20)
		if err != nil {
			return nil, err
		}
		key, err := read("key_file", o.KeyFile, 1<<20)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert_file = %q and key_file = %q: %v", o.CertFile, o.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// id is what the appliance is known by, for ever: it comes from the machine and nothing that can be renamed. The
// machine's own id isn't told to anybody, so it is made from that.
func (o *Options) id() (string, error) {
	machine := []byte(o.MachineID)
	if o.MachineID == "" {
		var err error
		if machine, err = os.ReadFile("/etc/machine-id"); err != nil {
			return "", fmt.Errorf("machine id: %w (systemd-machine-id-setup makes one)", err)
		}
	}
	machine = bytes.TrimSpace(machine)
	if len(machine) == 0 || string(machine) == "uninitialized" {
		return "", errors.New("machine id: /etc/machine-id is empty (systemd-machine-id-setup makes one)")
	}
	mac := hmac.New(sha256.New, machine)
	mac.Write([]byte("bellbird mqtt"))
	return "bellbird_" + hex.EncodeToString(mac.Sum(nil)[:6]), nil
}

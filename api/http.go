package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/netutil"
)

// HTTP says where the API is served over TCP, and for whom.
//
// By default that is this machine, without a token: a browser and curl just work there, also at the other end of an ssh
// tunnel, and nothing of the network can reach it. On a machine with other users that is too much: they could do what
// the group of the socket may. Set a token there, or Listen to "off".
type HTTP struct {
	// Listen is an address with a port; default "127.0.0.1:8080". "off": it isn't served. An address that others can
	// reach, such as "0.0.0.0:8080", needs a token.
	Listen string `toml:"listen"`

	// TokenFile has the token that each request must have, in a single line, and TokenEnv is the name of an environment
	// variable with it. A relative path is that of a systemd credential. Neither: no token is needed.
	TokenFile string `toml:"token_file"`
	TokenEnv  string `toml:"token_env"`

	// CertFile and KeyFile are the certificate and its key, for TLS; both or none. A relative path is that of a systemd
	// credential.
	CertFile string `toml:"cert_file"`
	KeyFile  string `toml:"key_file"`

	// Hosts are further names by which it may be called, besides addresses, "localhost", and, if others can reach it, the
	// machine's own name, also with ".local". Any other name is refused: it could be one with which the owner of a web
	// page reaches into this network.
	Hosts []string `toml:"hosts"`
}

const (
	defaultListen = "127.0.0.1:8080"
	listenOff     = "off"

	minToken       = 16 // bytes: nobody guesses those
	maxToken       = 4 << 10
	maxConnections = 128
)

// Off reports whether it isn't served.
func (h *HTTP) Off() bool { return h.Listen == listenOff }

// Check says what is wrong with the options, as "key = value: what, and what to do".
func (h *HTTP) Check() error {
	if h.Off() {
		return nil
	}
	local, err := h.local()
	if err != nil {
		return err
	}
	token, err := h.token()
	if err != nil {
		return err
	}
	if token == "" && !local {
		return fmt.Errorf("listen = %q: others can reach that: set token_file, or listen on 127.0.0.1", h.Listen)
	}
	_, err = h.tls()
	return err
}

func (h *HTTP) listen() string {
	if h.Listen == "" {
		return defaultListen
	}
	return h.Listen
}

// local reports whether only this machine can reach it.
func (h *HTTP) local() (bool, error) {
	host, _, err := net.SplitHostPort(h.listen())
	if err != nil {
		return false, fmt.Errorf("listen = %q: %v: it is like %q", h.Listen, err, defaultListen)
	}
	if host == "localhost" {
		return true, nil
	}
	if host == "" {
		return false, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil { // a name may become another address tomorrow
		return false, fmt.Errorf("listen = %q: %q is neither an IP address nor localhost", h.Listen, host)
	}
	return ip.IsLoopback(), nil
}

// token is "" if none is configured.
func (h *HTTP) token() (string, error) {
	var token, from string
	switch {
	case h.TokenFile != "" && h.TokenEnv != "":
		return "", errors.New("token_file and token_env are both set: set one of them")
	case h.TokenFile != "":
		from = fmt.Sprintf("token_file = %q", h.TokenFile)
		path, err := credential("token_file", h.TokenFile)
		if err != nil {
			return "", err
		}
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", from, err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
		if err != nil {
			return "", fmt.Errorf("%s: %w", from, err)
		}
		token = strings.TrimSpace(string(text))
	case h.TokenEnv != "":
		from = fmt.Sprintf("token_env = %q", h.TokenEnv)
		token = strings.TrimSpace(os.Getenv(h.TokenEnv))
	default:
		return "", nil
	}
	if len(token) < minToken || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: a token has %d characters or more, none of them a space, such as openssl rand -hex 32 prints", from, minToken)
	}
	return token, nil
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

// tls is nil if it isn't configured.
func (h *HTTP) tls() (*tls.Config, error) {
	if h.CertFile == "" && h.KeyFile == "" {
		return nil, nil
	}
	if h.CertFile == "" || h.KeyFile == "" {
		return nil, errors.New("cert_file and key_file: set both or none")
	}
	cert, err := credential("cert_file", h.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := credential("key_file", h.KeyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert_file = %q, key_file = %q: %w", h.CertFile, h.KeyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// ListenHTTP begins to listen where h says. Run must follow, or Close. Off must be false.
func ListenHTTP(h HTTP, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	secure, err := h.tls()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	g, err := h.guard(&o)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	l, err := net.Listen("tcp", h.listen())
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	l = netutil.LimitListener(l, maxConnections)
	if secure != nil {
		l = tls.NewListener(l, secure)
	} else if !g.local {
		o.Logger.Warn("the token can be read by who reads the network: set cert_file and key_file", "listen", h.Listen)
	}
	return &Server{"api", l, g, o.Logger}, nil
}

// guard puts a guard before what o has.
func (h *HTTP) guard(o *Options) (*guard, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	local, err := h.local()
	if err != nil {
		return nil, err
	}
	token, err := h.token()
	if err != nil {
		return nil, err
	}
	g := newGuard(o, token, h.CertFile != "")
	g.local = local
	for _, name := range h.names(local) {
		g.hosts[strings.ToLower(name)] = true
	}
	return g, nil
}

// names are those by which it may be called.
func (h *HTTP) names(local bool) []string {
	names := append([]string{"localhost"}, h.Hosts...)
	if own, err := os.Hostname(); err == nil && !local && own != "" {
		names = append(names, own, own+".local")
	}
	return names
}

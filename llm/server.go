// Package llm has what the language models have in common: where their server is and with which key, how long it may
// take, what it may send, and what went wrong, as a dialog.ModelError; and Fallback, which asks a second model when the
// first doesn't answer. It speaks no API: each has a package below this one.
package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bellbird/dialog"
)

// A Model answers.
type Model interface {
	Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error]
}

// Server says where a model is and how patient to be with it. The packages of the APIs say what the zero value means to
// them, and which of the fields must be set.
type Server struct {
	// BaseURL is the address of the API, as its makers give it.
	BaseURL string `toml:"base_url"`

	// Model is the name of the model.
	Model string `toml:"model"`

	// KeyFile is a file with the key in its only line. A relative path is that of a systemd credential. The file is read
	// for every request, so that a new key needs no restart.
	KeyFile string `toml:"key_file"`

	// KeyEnv is the name of an environment variable with the key.
	KeyEnv string `toml:"key_env"`

	// MaxTokens bounds an answer; default 1024, which takes minutes to speak.
	MaxTokens int `toml:"max_tokens"`

	// Temperature is how freely the model chooses its words; nil leaves it to the server.
	Temperature *float64 `toml:"temperature"`

	// FirstToken bounds the wait for the beginning of an answer, with all retries; default 25 s.
	FirstToken time.Duration `toml:"first_token"`

	// Idle bounds the wait for the next piece of an answer; default 15 s.
	Idle time.Duration `toml:"idle"`

	// Retries is how often a request is repeated that found the server overloaded or out of reach, before it has
	// answered anything; default 2, negative is never.
	Retries int `toml:"retries"`

	// Transport carries the requests; nil is the network.
	Transport http.RoundTripper `toml:"-"`
}

// SetDefaults fills in what is not set.
func (s *Server) SetDefaults() {
	if s.MaxTokens <= 0 {
		s.MaxTokens = 1024
	}
	if s.FirstToken <= 0 {
		s.FirstToken = 25 * time.Second
	}
	if s.Idle <= 0 {
		s.Idle = 15 * time.Second
	}
	if s.Retries == 0 {
		s.Retries = 2
	}
	if s.Transport == nil {
		s.Transport = transport()
	}
}

// What a server may send.
const (
	maxHeaders = 64 << 10
	maxBody    = 8 << 20 // of a whole answer, with all that surrounds its words
	maxFault   = 16 << 10
	maxKey     = 4 << 10
)

func transport() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 4 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		// A wireless network loses connections without a word. The next turn must not wait for a dead one.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 3 * time.Second},
	}
}

// Client returns an HTTP client for the server. It follows no redirect: the key is for one host.
func (s *Server) Client() *http.Client {
	return &http.Client{
		Transport: s.Transport,
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return &redirectError{to.URL.Scheme + "://" + to.URL.Host}
		},
	}
}

type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "the server redirects to " + e.to + ": set base_url to where the API really is"
}

// Check returns the address of the API, or what is wrong with the options. example is an address as it should be.
func (s *Server) Check(example string) (*url.URL, error) {
	u, err := url.Parse(s.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("base_url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("base_url = %q: it must be like %s", s.BaseURL, example)
	case s.Model == "":
		return nil, errors.New("no model is set: name one that the server has")
	}
	return u, nil
}

// Key returns the key, or "" if none is configured, which is an error if it is required. Every error is a NoKey.
func (s *Server) Key(required bool) (string, error) {
	switch {
	case s.KeyFile != "":
		path := s.KeyFile
		if !filepath.IsAbs(path) {
			dir := os.Getenv("CREDENTIALS_DIRECTORY")
			if dir == "" {
				return "", noKey("key_file = %q: a path that is not absolute is a systemd credential, and there are none: "+
					"see LoadCredential= in systemd.exec(5)", path)
			}
			path = filepath.Join(dir, path)
		}
		return keyFile(path)
	case s.KeyEnv != "":
		return usable(os.Getenv(s.KeyEnv), "environment variable "+s.KeyEnv)
	case required:
		return "", &dialog.ModelError{Kind: dialog.NoKey, Err: ErrNoKey}
	}
	return "", nil
}

func keyFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", noKey("%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", noKey("%v", err)
	}
	if len(text) > maxKey {
		return "", noKey("%s: too long for a key", path)
	}
	return usable(string(text), path)
}

// usable returns the key without the space around it, if it can stand in a header.
func usable(key, where string) (string, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return "", noKey("%s: no key in it", where)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", noKey("%s: more than a key in it: it must be the only line", where)
	}
	return key, nil
}

func noKey(format string, args ...any) error {
	return &dialog.ModelError{Kind: dialog.NoKey, Err: fmt.Errorf(format, args...)}
}

// ErrNoKey is the cause of a NoKey when none is configured.
var ErrNoKey = errors.New("set key_file or key_env")

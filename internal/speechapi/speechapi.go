// Package speechapi is what the two speech endpoints of OpenAI's API have in common: where the server is and with which
// key, how long it may take, and what went wrong, as a dialog.ModelError. It knows neither endpoint: stt/openai and
// tts/openai do.
package speechapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"bellbird/dialog"
	"bellbird/llm"
)

// DefaultURL is the address of OpenAI's own server, the only one that always wants a key.
const DefaultURL = "https://api.openai.com/v1"

// Options say where the server is. Model must be set; an empty BaseURL is DefaultURL. Local servers need no key.
type Options struct {
	// BaseURL is the address of the API, as its makers give it.
	BaseURL string `toml:"base_url"`

	// Model is the name of the model.
	Model string `toml:"model"`

	// KeyFile is a file with the key in its only line. A relative path is that of a systemd credential. The file is read
	// for every request.
	KeyFile string `toml:"key_file"`

	// KeyEnv is the name of an environment variable with the key.
	KeyEnv string `toml:"key_env"`

	// Wait bounds how long the server may take for the beginning of its answer, and for each further piece of it; default
	// 8 s.
	Wait time.Duration `toml:"wait"`

	// Transport carries the requests; nil is the network.
	Transport http.RoundTripper `toml:"-"`
}

// A Server is one that is asked for speech or text.
type Server struct {
	Model string

	at     llm.Server
	url    *url.URL
	own    bool // OpenAI's own
	wait   time.Duration
	client *http.Client
}

// New returns a server. It connects to nothing.
func New(o Options) (*Server, error) {
	if o.BaseURL == "" {
		o.BaseURL = DefaultURL
	}
	if o.Wait <= 0 {
		o.Wait = 8 * time.Second
	}
	at := llm.Server{BaseURL: o.BaseURL, Model: o.Model, KeyFile: o.KeyFile, KeyEnv: o.KeyEnv, Transport: o.Transport}
	u, err := at.Check("http://speech.local:8000/v1")
	if err != nil {
		return nil, err
	}
	at.SetDefaults()
	return &Server{Model: o.Model, at: at, url: u, own: u.Hostname() == "api.openai.com", wait: o.Wait, client: at.Client()}, nil
}

// Host is where the server is, for people.
func (s *Server) Host() string { return s.url.Host }

const maxFault = 16 << 10 // bytes of what the server says of an error

// An Answer is what the server sends. Its Read has Wait for each piece, and returns nothing but io.EOF and ModelErrors. It
// must be closed.
type Answer struct {
	Type string // of the content, as the server says

	body   io.ReadCloser
	ctx    func() error // why the request is over, if it is
	timer  *time.Timer
	wait   time.Duration
	cancel context.CancelCauseFunc
	left   int64
}

var (
	errSlow    = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	errTooMuch = errors.New("the server sends too much")
)

// Post sends body to a path below the address, and returns the answer, of which at most so many bytes may be read. An error
// is ctx's cause or a *dialog.ModelError.
func (s *Server) Post(ctx context.Context, path, contentType string, body []byte, most int64) (*Answer, error) {
	key, err := s.at.Key(s.own)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(s.wait, func() { cancel(errSlow) })
	fail := func(kind dialog.ModelErrorKind, err error) (*Answer, error) {
		timer.Stop()
		cancel(nil)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &dialog.ModelError{Kind: kind, Err: fmt.Errorf("%s: %w", s.Host(), err)}
	}
	r, err := http.NewRequestWithContext(run, http.MethodPost, s.url.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return fail(dialog.BadRequest, err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("User-Agent", "bellbird")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := s.client.Do(r)
	if err != nil {
		if context.Cause(run) == errSlow {
			return fail(dialog.Stalled, errSlow)
		}
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which is named already
		}
		return fail(dialog.Unreachable, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxFault))
		f := llm.ParseFault(text)
		f.Status = res.StatusCode
		return fail(kind(f.Status, key != ""), f)
	}
	a := &Answer{Type: res.Header.Get("Content-Type"), body: res.Body, timer: timer, wait: s.wait, cancel: cancel, left: most}
	a.ctx = func() error {
		if run.Err() == nil {
			return nil
		}
		return context.Cause(run)
	}
	timer.Stop()
	return a, nil
}

// kind tells what a status means.
func kind(status int, hasKey bool) dialog.ModelErrorKind {
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && hasKey:
		return dialog.WrongKey
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return dialog.NoKey
	case status == http.StatusPaymentRequired:
		return dialog.NoCredit
	case status == http.StatusNotFound:
		return dialog.UnknownModel
	case status == http.StatusTooManyRequests:
		return dialog.RateLimited
	case status >= 500, status < 400, status == http.StatusRequestTimeout:
		return dialog.ServerFault
	}
	return dialog.BadRequest
}

// Read reads more of the answer.
func (a *Answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, &dialog.ModelError{Kind: dialog.ServerFault, Err: errTooMuch}
	}
	a.timer.Reset(a.wait)
	n, err := a.body.Read(p[:min(int64(len(p)), a.left)])
	a.timer.Stop()
	a.left -= int64(n)
	if err == nil || err == io.EOF {
		return n, err
	}
	switch cause := a.ctx(); {
	case cause == errSlow:
		return n, &dialog.ModelError{Kind: dialog.Stalled, Err: errSlow}
	case cause != nil:
		return n, cause
	}
	return n, &dialog.ModelError{Kind: dialog.CutOff, Err: err}
}

// Close ends the answer, wherever it is.
func (a *Answer) Close() {
	a.timer.Stop()
	a.cancel(nil)
	a.body.Close()
}

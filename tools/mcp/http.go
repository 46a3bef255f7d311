package mcp

import (
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxToken bounds a token's file, in bytes.
const maxToken = 16 << 10

// connect makes ready to speak with a server over HTTP. Nothing is sent yet.
func (s *Server) connect(u *url.URL) (*link, error) {
	token, err := readToken(s.o.TokenFile)
	if err != nil {
		return nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	// No time-out for a whole request: the stream of what the server has to tell stays open. Every call has its own.
	client := &http.Client{
		Transport: &courier{base, u, token},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s: configure the address where it is", r.URL.Redacted())
		},
	}
	return &link{
		&sdk.StreamableClientTransport{Endpoint: u.String(), HTTPClient: client, MaxEventSize: maxMessage},
		base.CloseIdleConnections,
	}, nil
}

// readToken reads a secret from its file; none, if there is no file.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("token_file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("token_file %q: %w", path, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token_file %q: it must hold one token and nothing else", path)
	}
	return token, nil
}

// A courier carries requests to one server: with the token, which nobody else gets, and with bounds on what comes back.
type courier struct {
	base  http.RoundTripper
	to    *url.URL
	token string
}

func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" && r.URL.Scheme == c.to.Scheme && r.URL.Host == c.to.Host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// Streams may be of any length; the transport bounds each event.
	if t, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); t != "text/event-stream" {
		response.Body = http.MaxBytesReader(nil, response.Body, maxMessage)
	}
	return response, nil
}

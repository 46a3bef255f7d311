package plugins_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellbird/plugins"
)

// tlsServer starts a server with a certificate for 127.0.0.1 and example.com, and a manifest that lists it.
func tlsServer(t *testing.T, prepare func(*httptest.Server), h http.HandlerFunc) (s *httptest.Server, m *plugins.Manifest, roots *x509.CertPool) {
	s = httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if prepare != nil {
		prepare(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, &plugins.Manifest{Name: "p", Network: []string{strings.TrimPrefix(s.URL, "https://"), "localhost:" + port(s)}}, roots
}

func port(s *httptest.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		panic(err)
	}
	return u.Port()
}

func TestHTTPS(t *testing.T) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		s, m, roots := tlsServer(t, func(s *httptest.Server) { s.EnableHTTP2 = version == "HTTP/2.0" }, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Seen", r.Header.Get("Authorization"))
			io.WriteString(w, r.Proto+" "+string(body))
		})
		n := newNetwork(t)
		n.Trust(roots)
		r := plugins.Request{Method: http.MethodPost, URL: s.URL + "/x", Body: "hello", Headers: map[string]string{"Authorization": "secret"}}
		got, err := fetch(t.Context(), n, m, r)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != http.StatusOK || got.Body != version+" hello" || got.Headers["X-Seen"] != "secret" {
			t.Errorf("%s: response %+v", version, got)
		}
	}
}

// A server that can't show who it is gets nothing of the request, and the script hears why.
func TestCertificates(t *testing.T) {
	var reached atomic.Int32
	h := func(http.ResponseWriter, *http.Request) { reached.Add(1) }
	s, m, roots := tlsServer(t, nil, h)
	old, oldManifest, oldRoots := tlsServer(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	}, h)
	plain, plainManifest := server(t, h)
	for name, test := range map[string]struct {
		url   string
		m     *plugins.Manifest
		roots *x509.CertPool
		want  string
	}{
		"unknown authority": {s.URL + "/?token=secret", m, x509.NewCertPool(), "certificate"},
		"another name":      {"https://localhost:" + port(s) + "/?token=secret", m, roots, "certificate"},
		"an old protocol":   {old.URL + "/?token=secret", oldManifest, oldRoots, "protocol version"},
		"no TLS at all":     {strings.Replace(plain, "http", "https", 1) + "/?token=secret", plainManifest, roots, "server gave HTTP response to HTTPS client"},
	} {
		n := newNetwork(t)
		n.Trust(test.roots)
		got, err := n.Fetch(t.Context(), test.m, get(test.url))
		if err != nil {
			t.Errorf("%s: the handler would fail: %v", name, err)
			continue
		}
		if got.Status != 0 || !strings.Contains(got.Error, test.want) || strings.Contains(got.Error, "secret") {
			t.Errorf("%s: response %+v, want the error %q", name, got, test.want)
		}
	}
	if reached.Load() > 0 {
		t.Errorf("%d requests came through", reached.Load())
	}
}

// What was sent in secret is not sent on in the open, nor elsewhere.
func TestRedirectsFromHTTPS(t *testing.T) {
	var seen atomic.Int32
	open, openManifest := server(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	s, m, roots := tlsServer(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/open":
			http.Redirect(w, r, open, http.StatusTemporaryRedirect)
		case "/elsewhere":
			http.Redirect(w, r, "https://example.org/", http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		default:
			io.WriteString(w, r.URL.Path)
		}
	})
	m.Network = append(m.Network, openManifest.Network...)
	n := newNetwork(t)
	n.Trust(roots)
	for path, want := range map[string]string{"/open": "from https to http", "/elsewhere": "not listed"} {
		if _, err := fetch(t.Context(), n, m, get(s.URL+path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if got, err := fetch(t.Context(), n, m, get(s.URL+"/here")); err != nil || got.Body != "/there" {
		t.Errorf("%+v, %v", got, err)
	}
	if seen.Load() > 0 {
		t.Error("it followed from https to http")
	}
}

// A server that accepts a connection and then says nothing costs no more than the time that the script gives it.
func TestSilentServer(t *testing.T) {
	listener := httptest.NewUnstartedServer(nil).Listener // the handshake is never answered
	t.Cleanup(func() { listener.Close() })
	m := &plugins.Manifest{Name: "p", Network: []string{listener.Addr().String()}}
	r := get("https://" + listener.Addr().String())
	r.Timeout = 50 * time.Millisecond
	got, err := newNetwork(t).Fetch(t.Context(), m, r)
	if err != nil || got.Error != "http: \""+listener.Addr().String()+"\": no answer in time" {
		t.Errorf("response %+v, %v", got, err)
	}
}

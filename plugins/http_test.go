package plugins_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/plugins"
)

func newNetwork(t *testing.T) *plugins.Network {
	n := plugins.NewNetwork(nil)
	t.Cleanup(n.Close)
	return n
}

// server starts a server, and a manifest that lists it.
func server(t *testing.T, h http.HandlerFunc) (url string, m *plugins.Manifest) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, &plugins.Manifest{Name: "p", Network: []string{strings.TrimPrefix(s.URL, "http://")}}
}

// fetch has as an error also what is only said in the response.
func fetch(ctx context.Context, n *plugins.Network, m *plugins.Manifest, r plugins.Request) (*plugins.Response, error) {
	got, err := n.Fetch(ctx, m, r)
	if err == nil && got.Error != "" {
		err = errors.New(got.Error)
	}
	return got, err
}

func get(url string) plugins.Request { return plugins.Request{Method: http.MethodGet, URL: url} }

func TestFetch(t *testing.T) {
	url, m := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
		w.Write([]byte(r.Method + " " + r.URL.Path + " " + string(body) + "\xff"))
	})
	r := plugins.Request{Method: http.MethodPost, URL: url + "/x", Body: "hello", Headers: map[string]string{"Authorization": "secret"}}
	got, err := newNetwork(t).Fetch(t.Context(), m, r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != http.StatusTeapot || got.Body != "POST /x hello\ufffd" || got.Headers["X-Seen"] != "secret" {
		t.Errorf("response %+v", got)
	}
}

func TestOnlyListedHosts(t *testing.T) {
	var reached atomic.Int32
	elsewhere, _ := server(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	url, m := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/", http.StatusFound)
		}
	})
	n := newNetwork(t)
	if _, err := fetch(t.Context(), n, m, get(url+"/here")); err != nil {
		t.Errorf("a redirect to the same host: %v", err)
	}
	for name, test := range map[string]struct {
		r    plugins.Request
		want string
	}{
		"another host":           {get(elsewhere), "is not listed"},
		"a redirect to another":  {get(url + "/elsewhere"), "it redirects elsewhere"},
		"redirects without end":  {get(url + "/round"), "more than 5 redirects"},
		"the name of a number":   {get(strings.Replace(url, "127.0.0.1", "localhost", 1)), "is not listed"},
		"user and host":          {get("http://" + m.Network[0] + "@example.org/"), "is not listed"},
		"a file":                 {get("file:///etc/passwd"), "begins with http://"},
		"no URL":                 {get("http://%zz"), "can't be read"},
		"another method":         {plugins.Request{Method: "DELETE", URL: url}, "get and post"},
		"a body of 10 megabytes": {plugins.Request{Method: http.MethodPost, URL: url, Body: strings.Repeat("a", 10<<20)}, "the most are"},
		"a header that breaks":   {plugins.Request{Method: http.MethodGet, URL: url, Headers: map[string]string{"X": "a\r\nY: b"}}, "invalid header"},
	} {
		if _, err := fetch(t.Context(), n, m, test.r); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	if reached.Load() != 0 {
		t.Error("a host that is not listed was reached")
	}
}

func TestListing(t *testing.T) {
	n := newNetwork(t)
	n.Close() // so that nothing gets further than the list
	for _, test := range []struct {
		host, url string
		ok        bool
	}{
		{"ha.local:8123", "http://ha.local:8123/api", true},
		{"HA.local:8123", "http://ha.LOCAL:8123/api", true},
		{"ha.local:8123", "http://ha.local/api", false},
		{"ha.local", "http://ha.local/api", true},
		{"ha.local", "https://ha.local/api", true},
		{"ha.local", "https://ha.local:80/api", false},
		{"ha.local", "http://ha.local:8123/api", false},
		{"*.example.org", "https://api.example.org/", true},
		{"*.example.org", "https://example.org/", false},
		{"*.example.org", "https://badexample.org/", false},
		{"[fd00::1]:80", "http://[fd00::1]/", true},
		{"192.168.1.7", "http://192.168.1.7/", true},
		{"192.168.1.7", "http://192.168.1.7.example.org/", false},
	} {
		_, err := fetch(t.Context(), n, &plugins.Manifest{Name: "p", Network: []string{test.host}}, get(test.url))
		if ok := err != nil && !strings.Contains(err.Error(), "is not listed"); ok != test.ok {
			t.Errorf("%s with %s listed: %v", test.url, test.host, err)
		}
	}
}

// A name that is listed must not lead to this machine or to a host's metadata.
func TestNamesOfNearAddresses(t *testing.T) {
	url, m := server(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	n := newNetwork(t)
	_, port, _ := strings.Cut(m.Network[0], ":")
	m.Network = append(m.Network, "localhost.:"+port, "ip6-localhost:"+port)
	for _, name := range []string{"localhost.", "ip6-localhost"} {
		_, err := fetch(t.Context(), n, m, get(strings.Replace(url, "127.0.0.1", name, 1)))
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		t.Log(err) // a machine may not know the name
	}
}

func TestBoundsOfFetch(t *testing.T) {
	release := make(chan struct{})
	url, m := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			w.Write(make([]byte, 2<<20))
		case "/slow":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	n := newNetwork(t)
	if _, err := fetch(t.Context(), n, m, get(url+"/large")); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large response: error %v", err)
	}
	slow := get(url + "/slow")
	slow.Timeout = 20 * time.Millisecond
	if _, err := fetch(t.Context(), n, m, slow); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("a slow server: error %v", err)
	}
	// The handler's deadline counts if it comes first.
	over := errors.New("over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, over)
	defer cancel()
	slow.Timeout = 0
	if _, err := fetch(ctx, n, m, slow); !errors.Is(err, over) {
		t.Errorf("the deadline: error %v", err)
	}
	// No more than four at a time.
	results := make(chan error, 5)
	for range 5 {
		go func() {
			_, err := fetch(t.Context(), n, m, slow)
			results <- err
		}()
	}
	if err := <-results; err == nil || !strings.Contains(err.Error(), "under way already") {
		t.Errorf("the fifth: error %v", err)
	}
	close(release)
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestCached(t *testing.T) {
	var asked atomic.Int32
	done := make(chan struct{})
	url, m := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", int(asked.Add(1))))
		select {
		case done <- struct{}{}:
		case <-r.Context().Done():
		}
	})
	n := newNetwork(t)
	r := get(url)
	r.Every = time.Hour
	got, err := n.Fetch(t.Context(), m, r)
	if got != nil || err != nil {
		t.Errorf("at first: %v, %v", got, err)
	}
	<-done
	for got == nil { // it comes as soon as the response has been read
		if got, err = n.Fetch(t.Context(), m, r); err != nil {
			t.Fatal(err)
		}
	}
	if got.Body != "x" || got.Age < 0 || got.Age > time.Minute {
		t.Errorf("then: %+v", got)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	r.URL = "http://example.org"
	if _, err := n.Fetch(t.Context(), m, r); err == nil {
		t.Error("a host that is not listed: no error")
	}
	// A plugin can't have as many as it likes.
	for i := range 20 {
		r.URL = url + "/" + strings.Repeat("y", i)
		_, err = n.Fetch(t.Context(), m, r)
	}
	if err == nil || !strings.Contains(err.Error(), "cached") {
		t.Errorf("many: error %v", err)
	}
}

// When a refresh fails, the last good response stays, and it is tried again half a minute later, whatever the interval.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{"one", "", "two"}
		tried := 0
		n := plugins.NewNetworkOver(roundTripper(func(*http.Request) (*http.Response, error) {
			tried++
			if answers[tried-1] == "" {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(answers[tried-1]))}, nil
		}))
		defer n.Close()
		m := &plugins.Manifest{Name: "p", Network: []string{"ha.local"}}
		r := get("http://ha.local/")
		r.Every = 5 * time.Minute
		for _, step := range []struct {
			after time.Duration
			body  string
			age   time.Duration
			tried int
		}{
			{0, "", 0, 1},
			{time.Minute, "one", time.Minute, 1},
			{4 * time.Minute, "one", 5 * time.Minute, 2}, // fails
			{time.Second, "one", 5*time.Minute + time.Second, 2},
			{30 * time.Second, "one", 5*time.Minute + 31*time.Second, 3},
			{time.Second, "two", time.Second, 3},
		} {
			time.Sleep(step.after)
			got, err := n.Fetch(t.Context(), m, r)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got == nil {
				got = new(plugins.Response)
			}
			if got.Body != step.body || got.Age != step.age || tried != step.tried {
				t.Errorf("after %v: %q of age %v, %d tries; want %+v", step.after, got.Body, got.Age, tried, step)
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

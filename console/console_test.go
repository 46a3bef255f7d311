package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bellbird/api"
	"bellbird/console"
	"bellbird/console/consoletest"
	"bellbird/event"
)

func get(t *testing.T, method, path, etag string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	w := httptest.NewRecorder()
	console.Handler().ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(text)
}

// The pages are served with their types and a policy, and nothing else is.
func TestPages(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html", "/index.html": "text/html", "/main.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml", "/budgets.json": "application/json",
	} {
		resp, text := get(t, "GET", path, "")
		policy := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), kind) || text == "" {
			t.Errorf("%s: %d %s, %d bytes", path, resp.StatusCode, resp.Header.Get("Content-Type"), len(text))
		}
		if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if resp, text := get(t, "GET", path, resp.Header.Get("ETag")); resp.StatusCode != 304 || text != "" {
			t.Errorf("%s again: %d, %d bytes", path, resp.StatusCode, len(text))
		}
		if resp, text := get(t, "HEAD", path, ""); resp.StatusCode != 200 || text != "" {
			t.Errorf("HEAD %s: %d, %d bytes", path, resp.StatusCode, len(text))
		}
		if resp, _ := get(t, "POST", path, ""); resp.StatusCode != 405 {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/web/index.html", "/../console.go", "/%2e%2e/console.go", "/web", "//", "/index.html/", "/nothing.js"} {
		if resp, _ := get(t, "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// Nothing in the pages makes markup of text, has script or style inline, or asks for what is elsewhere.
func TestPagesAreSelfContained(t *testing.T) {
	_, index := get(t, "GET", "/", "")
	for _, name := range []string{"main", "dom", "api", "now", "ring", "waterfall", "chats", "plugins", "timers", "models"} {
		resp, text := get(t, "GET", "/"+name+".js", "")
		if resp.StatusCode != 200 {
			t.Errorf("%s.js: %d", name, resp.StatusCode)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s.js has %s", name, bad)
			}
		}
		if lines := strings.Count(text, "\n"); lines >= 500 {
			t.Errorf("%s.js has %d lines", name, lines)
		}
	}
	for _, bad := range []string{"://", "style=", "onclick", "<style", "<script>"} {
		if strings.Contains(index, bad) {
			t.Errorf("index.html has %s", bad)
		}
	}
}

// The page knows what hooks may take.
func TestBudgets(t *testing.T) {
	_, text := get(t, "GET", "/budgets.json", "")
	var ms map[string]int
	if err := json.Unmarshal([]byte(text), &ms); err != nil || ms["pre_chat"] != 500 || ms["on_wake"] != 30 || ms[""] != 250 {
		t.Errorf("%v, error %v", ms, err)
	}
}

// Where the API wants a token the page asks for it, tells that one is wrong, and keeps the right one for this tab.
func TestToken(t *testing.T) {
	const token = "open-sesame-open-sesame"
	t.Setenv("BELLBIRD_TEST_TOKEN", token)
	b := consoletest.Open(t)
	s, err := api.ListenHTTP(api.HTTP{Listen: "127.0.0.1:0", TokenEnv: "BELLBIRD_TEST_TOKEN"}, api.Options{
		Bus: new(event.Bus), Pages: console.Handler(),
		State: func() api.State {
			return api.State{State: event.Idle, Version: "test", Chat: "<i>kitchen</i>", Problems: []string{"<img src=x onerror=alert(1)>"}}
		},
		Timers:  func() []api.Timer { return []api.Timer{} },
		Records: func() ([]api.TurnRecord, error) { return []api.TurnRecord{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	b.Visit("http://" + s.Addr().String())
	b.Type("#token", "a wrong one"+consoletest.Enter)
	b.Until("document.getElementById('login-note').textContent.includes('wrong')")
	b.Screenshot("../build/console/token.png")
	b.Type("#token", token+consoletest.Enter)
	b.Until("!document.getElementById('login').open && document.getElementById('state').textContent === 'Idle'")
	// What is named like markup is text.
	b.Until("document.getElementById('problems').textContent === '<img src=x onerror=alert(1)>' && !document.querySelector('#problems img')")
	b.Until("document.getElementById('chat').textContent.endsWith('<i>kitchen</i>')")
	b.Visit("http://" + s.Addr().String() + "/?again")
	b.Until("document.getElementById('state').textContent === 'Idle'")
	// The policy is in force: not even the page itself could make markup of text.
	var refused bool
	b.Eval(&refused, "try { document.createElement('p').innerHTML = '<b>x</b>'; return false } catch { return true }")
	if !refused {
		t.Error("text can become markup")
	}
}

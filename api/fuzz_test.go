package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"bellbird/api"
	"bellbird/event"
)

// Whatever is sent, what is done is what a route says, and what is answered is JSON.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"PUT", "/api/volume", `{"percent": 30}`},
		{"PUT", "/api/volume", `{"percent": 1e3, "percent": null}`},
		{"PUT", "/api/plugins/a%2f..%2fb/enabled", `true`},
		{"PUT", "/api/chats/%00/settings", `{"mode": "game"}`},
		{"POST", "/api/chats/../../etc/rename", `{"name": "\ud800"}`},
		{"POST", "/api/ask", `{"text": "` + strings.Repeat("x", 9000) + `"}`},
		{"POST", "/api/timers", `{"seconds": -1e999}`},
		{"DELETE", "/api/timers/99999999999999999999", ""},
		{"GET", "/api/turns/-1", ""},
		{"GET", "/api/turns?limit=0x10&limit=1", ""},
		{"GET", "/api/chats/x/prompt-preview?input=%ff", ""},
		{"POST", "/api/vault/unlock", `[{"passphrase"`},
		{"POST", "/api/vault/setup", strings.Repeat("[", 20000)},
		{"PATCH", "//api//chats", ""},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	d := new(desk)
	o := d.options(new(event.Bus))
	o.SetVolume = func(v api.VolumeChange) error {
		if v.Percent != nil && (*v.Percent < 0 || *v.Percent > 100) {
			panic("a volume that there isn't")
		}
		return nil
	}
	h, err := api.HTTPHandler(api.HTTP{}, o)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasPrefix(u.Path, "/api/events") {
			return
		}
		r := httptest.NewRequest("GET", "http://localhost/", strings.NewReader(string(body)))
		r.Method, r.URL = method, u
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.did = nil
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusNoContent, http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			return
		case http.StatusInternalServerError:
			t.Errorf("%s %s %q: %s", method, target, body, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %d %q", method, target, w.Code, w.Body)
		}
		if w.Code >= 400 && !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s %s: %d %q", method, target, w.Code, w.Body)
		}
	})
}

package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/api"
	"bellbird/event"
)

const token = "0123456789abcdef0123456789abcdef"

// tokenFile is a file with the token.
func tokenFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveHTTP runs a server on TCP, and returns its address.
func serveHTTP(t testing.TB, h api.HTTP, o api.Options) string {
	t.Helper()
	if h.Listen == "" {
		h.Listen = "127.0.0.1:0"
	}
	s, err := api.ListenHTTP(h, o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s.Addr().String()
}

// send sends a request with headers "Name: value", and returns the status and the answer.
func send(t testing.TB, client *http.Client, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// Who comes over TCP without being the owner, or a page of the appliance, is refused, and nothing is done.
func TestGuard(t *testing.T) {
	const jsonType, bearer = "Content-Type: application/json", "Authorization: Bearer " + token
	for _, c := range []struct {
		name    string
		token   bool
		method  string
		headers []string
		status  int
	}{
		{"no token is needed", false, "POST", []string{jsonType}, 204},
		{"charset", false, "POST", []string{jsonType + "; charset=utf-8"}, 204},
		{"the token", true, "POST", []string{jsonType, bearer}, 204},
		{"small letters", true, "POST", []string{jsonType, "Authorization: bearer " + token}, 204},
		{"no token", true, "POST", []string{jsonType}, 401},
		{"no token, to read", true, "GET", nil, 401},
		{"another scheme", true, "POST", []string{jsonType, "Authorization: Basic " + token}, 401},
		{"a wrong token", true, "POST", []string{jsonType, "Authorization: Bearer " + token[1:] + "0"}, 401},
		{"a shorter token", true, "POST", []string{jsonType, "Authorization: Bearer " + token[1:]}, 401},
		{"the token in the address", true, "POST", []string{jsonType}, 401},
		{"a form", false, "POST", []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"plain text", false, "POST", []string{"Content-Type: text/plain"}, 415},
		{"no type", false, "POST", nil, 415},
		{"the own page", true, "POST", []string{jsonType, bearer, "Origin: http://localhost:1", "Host: localhost:1", "Sec-Fetch-Site: same-origin"}, 204},
		{"another page", false, "POST", []string{jsonType, "Origin: http://evil.example"}, 403},
		{"another page with the token", true, "POST", []string{jsonType, bearer, "Origin: http://evil.example"}, 403},
		{"another port", false, "POST", []string{jsonType, "Origin: http://localhost:2", "Host: localhost:1"}, 403},
		{"another scheme of the origin", false, "POST", []string{jsonType, "Origin: https://localhost:1", "Host: localhost:1"}, 403},
		{"a page of nowhere", false, "POST", []string{jsonType, "Origin: null"}, 403},
		{"cross-site", false, "POST", []string{jsonType, "Sec-Fetch-Site: cross-site"}, 403},
		{"a picture of another page", false, "GET", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"preflight", false, "OPTIONS", []string{"Origin: http://evil.example", "Access-Control-Request-Method: POST"}, 403},
		{"rebinding", false, "POST", []string{jsonType, "Host: evil.example"}, 421},
		{"rebinding, the same origin", false, "POST", []string{jsonType, "Host: evil.example:8080", "Origin: http://evil.example:8080"}, 421},
		{"rebinding with localhost in it", false, "POST", []string{jsonType, "Host: localhost.evil.example"}, 421},
		{"an address that isn't here", false, "POST", []string{jsonType, "Host: 192.168.1.7"}, 421},
		{"localhost", false, "POST", []string{jsonType, "Host: LocalHost.:8080"}, 204},
		{"IPv6", false, "POST", []string{jsonType, "Host: [::1]:8080"}, 204},
		{"IPv6 without port", false, "POST", []string{jsonType, "Host: [::1]"}, 204},
		{"a name that is configured", false, "POST", []string{jsonType, "Host: bird.example"}, 204},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := new(desk)
			h := api.HTTP{Hosts: []string{"Bird.example"}}
			if c.token {
				h.TokenFile = tokenFile(t)
			}
			url := "http://" + serveHTTP(t, h, d.options(new(event.Bus))) + "/api/stop?token=" + token
			if c.method == "GET" {
				url = strings.Replace(url, "stop", "state", 1)
			}
			resp, text := send(t, http.DefaultClient, c.method, url, "", c.headers...)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, c.status, text)
			}
			if did := len(d.did) > 0; did != (c.status == 204) {
				t.Errorf("did %q", d.did)
			}
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("a header of CORS: %s", name)
				}
			}
			if c.status == 401 && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("401 with %q", resp.Header)
			}
			if resp.Header.Get("X-Content-Type-Options") != "nosniff" || c.status != 204 && resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %q", resp.Header)
			}
		})
	}
}

// Pages need no token, may be linked to, and are no way to the rest.
func TestPages(t *testing.T) {
	o := new(desk).options(new(event.Bus))
	o.Pages = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page "+r.URL.Path) })
	base := "http://" + serveHTTP(t, api.HTTP{TokenFile: tokenFile(t)}, o)
	for _, c := range []struct {
		path    string
		headers []string
		status  int
	}{
		{"/", nil, 200},
		{"/style.css", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		{"/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		{"/style.css", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"/", []string{"Host: evil.example"}, 421},
		{"/api/state", nil, 401},
		{"/%61pi/state", nil, 401},
		{"/api%2fstate", nil, 401},
		{"/api/state", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
	} {
		resp, text := send(t, http.DefaultClient, "GET", base+c.path, "", c.headers...)
		if resp.StatusCode != c.status || strings.Contains(text, "percent") {
			t.Errorf("%s %q: %d %s", c.path, c.headers, resp.StatusCode, text)
		}
	}
	if resp, text := send(t, http.DefaultClient, "GET", base+"//api/state", ""); strings.Contains(text, "percent") {
		t.Errorf("//api/state: %d %s", resp.StatusCode, text)
	}
}

// Tokens can't be guessed by trying.
func TestWrongTokensAreSlowedDown(t *testing.T) {
	h, err := api.HTTPHandler(api.HTTP{TokenFile: tokenFile(t)}, new(desk).options(new(event.Bus)))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ask := func(from, token string) int {
			r := httptest.NewRequest("GET", "http://localhost/api/volume", nil)
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == 429 && w.Header().Get("Retry-After") == "" {
				t.Error("429 says nothing of when")
			}
			return w.Code
		}
		tried := 0
		for range 50 {
			if ask("10.0.0.9:1234", "guess") == 401 {
				tried++
			}
		}
		if tried != 10 {
			t.Errorf("%d guesses were looked at", tried)
		}
		if code := ask("10.0.0.9:1235", token); code != 429 {
			t.Errorf("after that the right one: %d", code)
		}
		if code := ask("10.0.0.8:1", token); code != 200 {
			t.Errorf("from elsewhere: %d", code)
		}
		time.Sleep(10 * time.Second)
		if code := ask("10.0.0.9:1236", token); code != 200 {
			t.Errorf("later: %d", code)
		}
		for i := range 50 { // one network of IPv6 is one who guesses
			ask("[2001:db8:1:2::"+string(rune('a'+i%6))+"]:99", "guess")
		}
		if code := ask("[2001:db8:1:2:3::1]:99", token); code != 429 {
			t.Errorf("IPv6: %d", code)
		}
		// Who comes from everywhere is slowed down too, and takes no memory for ever.
		looked := 0
		for i := range 5000 {
			if ask(net.IPv4(11, byte(i>>16), byte(i>>8), byte(i)).String()+":1", "guess") == 401 {
				looked++
			}
		}
		if looked > 1100 {
			t.Errorf("%d guesses from everywhere", looked)
		}
		time.Sleep(time.Hour)
		if code := ask("12.0.0.1:1", token); code != 200 {
			t.Errorf("an hour later: %d", code)
		}
	})
}

// It doesn't serve where others can reach it without a token, and says what is wrong with the rest.
func TestHTTPOptions(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BELLBIRD_TEST_TOKEN", token)
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	for _, c := range []struct {
		h    api.HTTP
		says string // "": it is fine
	}{
		{api.HTTP{}, ""},
		{api.HTTP{Listen: "off", TokenFile: "/nowhere"}, ""},
		{api.HTTP{Listen: "[::1]:8080"}, ""},
		{api.HTTP{Listen: "localhost:8080"}, ""},
		{api.HTTP{Listen: "0.0.0.0:8080", TokenEnv: "BELLBIRD_TEST_TOKEN"}, ""},
		{api.HTTP{Listen: "0.0.0.0:8080"}, "others can reach that"},
		{api.HTTP{Listen: ":8080"}, "others can reach that"},
		{api.HTTP{Listen: "[::]:8080"}, "others can reach that"},
		{api.HTTP{Listen: "192.168.1.7:8080"}, "others can reach that"},
		{api.HTTP{Listen: "bird.example:8080"}, "neither an IP address"},
		{api.HTTP{Listen: "8080"}, "listen"},
		{api.HTTP{TokenFile: short}, "16 characters"},
		{api.HTTP{TokenFile: filepath.Join(dir, "none")}, "no such file"},
		{api.HTTP{TokenFile: "name"}, "systemd credential"},
		{api.HTTP{TokenEnv: "BELLBIRD_NO_TOKEN"}, "16 characters"},
		{api.HTTP{TokenEnv: "BELLBIRD_TEST_TOKEN", TokenFile: short}, "set one of them"},
		{api.HTTP{CertFile: short}, "both or none"},
		{api.HTTP{CertFile: short, KeyFile: short}, "cert_file"},
	} {
		err := c.h.Check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.h, err, c.says)
		}
		if err != nil && (strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "secret\"")) {
			t.Errorf("%+v: it tells the token: %v", c.h, err)
		}
	}
	if _, err := api.ListenHTTP(api.HTTP{Listen: "0.0.0.0:0"}, api.Options{Bus: new(event.Bus)}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("it listens for everybody: %v", err)
	}
}

// With a certificate it speaks TLS, and only that.
func TestTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	addr := serveHTTP(t, api.HTTP{TokenFile: tokenFile(t), CertFile: cert, KeyFile: key}, new(desk).options(new(event.Bus)))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	resp, text := send(t, client, "GET", "https://"+addr+"/api/volume", "", "Authorization: Bearer "+token, "Origin: https://"+addr)
	if resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, text := send(t, http.DefaultClient, "GET", "http://"+addr+"/api/volume", "", "Authorization: Bearer "+token); resp.StatusCode != 400 || strings.Contains(text, "percent") {
		t.Errorf("without TLS: %d %s", resp.StatusCode, text)
	}
}

// certificate makes one for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, roots
}

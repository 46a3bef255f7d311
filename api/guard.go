package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// A guard stands before the routes where they are served over TCP. A request passes if
//
//  1. it calls the appliance by one of its names or an address, so that no name of a stranger's leads a browser here,
//  2. no page of another origin sent it,
//  3. it has the token, if there is one,
//  4. and says that it has JSON, if it is to change something, which no form of a page can.
//
// There are no headers of CORS: no other origin may read anything.
type guard struct {
	hosts  map[string]bool
	local  bool // only this machine can reach it
	secure bool // with TLS
	token  *[sha256.Size]byte
	failed *failures
	o      *Options
	routes http.Handler
}

func newGuard(o *Options, token string, secure bool) *guard {
	g := &guard{hosts: make(map[string]bool), secure: secure, failed: newFailures(), o: o, routes: Handler(*o)}
	if token != "" {
		g.token = new(sha256.Sum256([]byte(token)))
	}
	return g
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	page := g.o.Pages != nil && !strings.HasPrefix(r.URL.Path, "/api/")
	switch {
	case !g.called(r.Host):
		g.o.fail(w, Errorf(http.StatusMisdirectedRequest, "this appliance isn't called %.100q: put that into hosts, if it is", r.Host))
	case !g.sameOrigin(r, page):
		g.o.fail(w, Errorf(http.StatusForbidden, "a page of another origin may not do that"))
	case page:
		g.o.Pages.ServeHTTP(w, r)
	default:
		if err := g.admit(w, r); err != nil {
			g.o.fail(w, err)
			return
		}
		g.routes.ServeHTTP(w, r)
	}
}

// called reports whether the host of a request is this appliance. An address is: a page can't have it for a name.
func (g *guard) called(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return !g.local || ip.IsLoopback()
	}
	return g.hosts[strings.ToLower(strings.TrimSuffix(name, "."))]
}

// sameOrigin reports whether a request comes from the appliance's own pages, or from no page at all. A browser says where
// from in Origin or in Sec-Fetch-Site (Fetch Metadata). A link of another page may lead to a page.
func (g *guard) sameOrigin(r *http.Request, page bool) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) || (u.Scheme == "https") != g.secure {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return page && reads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// admit asks for the token, and for JSON.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) error {
	if g.token != nil {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || given == "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="bellbird"`)
			return Errorf(http.StatusUnauthorized, "a token is needed: send the header Authorization: Bearer TOKEN")
		}
		// Their digests are compared, so that not even the length shows in the time it takes.
		sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
		ok, wait := g.failed.try(r.RemoteAddr, func() bool { return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1 })
		switch {
		case wait > 0:
			w.Header().Set("Retry-After", strconv.Itoa(wait))
			return Errorf(http.StatusTooManyRequests, "too many wrong tokens: try again in %d seconds", wait)
		case !ok:
			g.o.Logger.Warn("a wrong token", "from", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", `Bearer realm="bellbird", error="invalid_token"`)
			return Errorf(http.StatusUnauthorized, "the token is wrong")
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Errorf(http.StatusUnsupportedMediaType, "what changes something is JSON: send the header Content-Type: application/json")
	}
	return nil
}

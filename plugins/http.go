package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Web does HTTP for plugins.
type Web interface {
	// Fetch does a request of the plugin with manifest m, which lists the hosts that it may reach. If the request has an
	// interval, the response is the last good one, nil if there is none yet. A server that can't be reached, or doesn't
	// answer as it should, is no error but a response that says so: scripts can't catch errors.
	Fetch(ctx context.Context, m *Manifest, r Request) (*Response, error)
}

// A Request is what a plugin wants of a server.
type Request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"` // 0: as long as the handler has, at most longestFetch
	Every   time.Duration     `json:"every,omitempty"`   // not 0: what was fetched in the background, and how often it is
}

// A Response is what came of it.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"` // by their canonical names, such as Content-Type
	Body    string            `json:"body"`
	Age     time.Duration     `json:"age,omitempty"`   // of one that was fetched in the background
	Error   string            `json:"error,omitempty"` // why there is none; then Status is 0
}

// A Network is the Web of the appliance. Close ends what is under way.
type Network struct {
	log    *slog.Logger
	client *http.Client
	ctx    context.Context // ends what is fetched in the background, which belongs to no call
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	underWay map[string]int // by plugin
	cached   map[string]map[string]*cached
}

var _ Web = (*Network)(nil)

const (
	maxBody      = 1 << 20 // bytes, either way
	maxHeaders   = 32
	maxURL       = 16 << 10 // bytes, with the headers
	maxRedirects = 5
	maxUnderWay  = 4 // requests of one plugin
	longestFetch = 10 * time.Second
)

// NewNetwork returns a network. Nil for log means none.
func NewNetwork(log *slog.Logger) *Network {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	n := &Network{log: log, underWay: make(map[string]int), cached: make(map[string]map[string]*cached)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.client = &http.Client{
		Transport: &http.Transport{ // no proxy: it would see addresses in our place
			DialContext:            dial,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: checkRedirect,
	}
	return n
}

// Close ends what is being fetched in the background, and waits for that. Later requests fail.
func (n *Network) Close() {
	n.mu.Lock() // so that nothing begins in between
	n.cancel()
	n.mu.Unlock()
	n.wg.Wait()
	n.client.CloseIdleConnections()
}

// Fetch is described by Web.
func (n *Network) Fetch(ctx context.Context, m *Manifest, r Request) (*Response, error) {
	u, err := r.check(m)
	if err != nil {
		return nil, err
	}
	if r.Every != 0 {
		return n.fromCache(m, r, u.Host)
	}
	n.mu.Lock()
	over := n.underWay[m.Name] >= maxUnderWay
	if !over {
		n.underWay[m.Name]++
	}
	n.mu.Unlock()
	if over {
		return nil, fmt.Errorf("http: %d requests of this plugin are under way already", maxUnderWay)
	}
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.underWay[m.Name]--; n.underWay[m.Name] == 0 {
			delete(n.underWay, m.Name)
		}
	}()
	response, err := n.do(ctx, m, r)
	if err != nil && ctx.Err() == nil {
		return &Response{Error: err.Error()}, nil
	}
	return response, err
}

// check is the URL of a request that may be done.
func (r Request) check(m *Manifest) (*url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, errors.New("http: the URL can't be read") // its text may have a secret in it
	}
	size := len(r.URL)
	for k, v := range r.Headers {
		size += len(k) + len(v)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("http: a URL begins with http:// or https:// and a host")
	case !listed(m.Network, u):
		return nil, notListed(u)
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		return nil, fmt.Errorf("http: there is get and post, not %.20q", r.Method)
	case len(r.Headers) > maxHeaders || size > maxURL:
		return nil, fmt.Errorf("http: the URL and the headers are too large: %d headers, %d bytes", len(r.Headers), size)
	case len(r.Body) > maxBody:
		return nil, fmt.Errorf("http: a body of %d bytes, the most are %d", len(r.Body), maxBody)
	case r.Timeout < 0 || r.Every < 0:
		return nil, errors.New("http: a time is negative")
	}
	return u, nil
}

func notListed(u *url.URL) error {
	return fmt.Errorf(`http: %q is not listed under "network" in the plugin's plugin.json`, u.Host)
}

// manifestKey is where the context of a request has the manifest, for its redirects.
type manifestKey struct{}

func (n *Network) do(ctx context.Context, m *Manifest, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, min(cmp.Or(r.Timeout, longestFetch), longestFetch), errSlow)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	req, err := http.NewRequestWithContext(context.WithValue(ctx, manifestKey{}, m), r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("http: %w", plainError(ctx, err))
	}
	for k, v := range r.Headers {
		req.Header.Set(k, v)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("http: %q: %w", req.URL.Host, plainError(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("http: %q: %w", req.URL.Host, plainError(ctx, err))
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("http: %q: the response is larger than %d bytes", req.URL.Host, maxBody)
	}
	result := &Response{Status: resp.StatusCode, Headers: make(map[string]string), Body: strings.ToValidUTF8(string(body), "\ufffd")}
	for k, v := range resp.Header {
		result.Headers[k] = strings.ToValidUTF8(strings.Join(v, ", "), "\ufffd")
	}
	return result, nil
}

var errSlow = errors.New("no answer in time")

// plainError leaves out the URL, which may have a secret in it.
func plainError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	m, _ := req.Context().Value(manifestKey{}).(*Manifest)
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case m == nil || !listed(m.Network, req.URL):
		return fmt.Errorf("it redirects elsewhere: %w", notListed(req.URL))
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("it redirects from https to http")
	}
	return nil
}

// dial connects to a host that is listed. If it is listed by its name, the address that the name has now must not be one
// that only this machine or its network's equipment answers at: nobody who writes names into the DNS is let in there.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := &net.Dialer{Timeout: 5 * time.Second}
	if _, err := netip.ParseAddr(host); err != nil {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if ip := at.Addr().Unmap(); special(ip) && !(host == "localhost" && ip.IsLoopback()) {
				return fmt.Errorf("its address %v is refused: list it by its address if that is meant", ip)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

// special is whether an address is that of a machine which is trusted for being near: this one, or a host's metadata.
func special(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() || ip == metadataV6
}

// metadataV6 is where machines in some data centres ask for their secrets; the others do so at link-local addresses.
var metadataV6 = netip.MustParseAddr("fd00:ec2::254")

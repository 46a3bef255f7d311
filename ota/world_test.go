package ota_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/event"
	"bellbird/ota"
	"bellbird/ota/otatest"
)

const (
	board   = "bellbird-test"
	address = "http://updates.test/stable/manifest"
)

// A world is a device, and the server of its publisher.
type world struct {
	t       *testing.T
	machine *otatest.Machine
	server  *server
	o       ota.Options
	bus     *event.Bus
	facts   *event.Subscription

	mu       sync.Mutex
	faults   map[string]error // of the health, by part
	busy     bool
	restarts int
	reports  []ota.Outcome
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, machine: otatest.NewMachine(board, "1.0.0"), server: newServer(t), faults: make(map[string]error), bus: new(event.Bus)}
	w.facts = w.bus.Subscribe(1000)
	t.Cleanup(w.facts.Close)
	w.o = ota.Options{
		URL: address, PublicKey: w.server.public(), Automatic: true, Trial: time.Minute, Dir: filepath.Join(t.TempDir(), "ota"),
		Slots: w.machine, BootID: w.machine.BootID, Transport: w.server, Bus: w.bus,
		Busy:    func() bool { return w.busy },
		Zone:    func() *time.Location { return time.UTC },
		Restart: func(context.Context) error { w.restarts++; return nil },
		Report:  func(_ context.Context, o ota.Outcome) error { w.reports = append(w.reports, o); return nil },
	}
	for _, name := range []string{"microphone", "store"} {
		w.o.Health = append(w.o.Health, ota.Part{Name: name, Works: func(context.Context) error { return w.faultOf(name) }})
	}
	w.server.offer("1.1.0", board)
	return w
}

// fault is what is wrong with a part from now on; well, that nothing is.
func (w *world) fault(part string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[part] = err
}

func (w *world) well() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.faults)
}

func (w *world) faultOf(part string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults[part]
}

// start is the start of the program, in the version that the machine runs.
func (w *world) start() *ota.Updater {
	w.t.Helper()
	w.o.Version = w.machine.Running()
	u, err := ota.New(w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// boot is a restart of the machine, and what the program does then, up to the end of a trial.
func (w *world) boot() *ota.Updater {
	w.t.Helper()
	w.machine.Boot()
	u := w.start()
	w.settle(u)
	return u
}

func (w *world) settle(u *ota.Updater) {
	w.t.Helper()
	if err := u.Settle(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// installed is a device that has 1.1.0 installed and waits for its restart.
func (w *world) installed() *ota.Updater {
	w.t.Helper()
	u := w.start()
	w.settle(u)
	if err := u.Install(w.t.Context(), ota.Request{Asked: true}); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// is fails unless the device runs version, and nothing is going on.
func (w *world) is(u *ota.Updater, version string, result ota.Result, kind ota.ReasonKind) {
	w.t.Helper()
	s := u.Status()
	if w.machine.Running() != version || s.Installed != version || s.InProgress() {
		w.t.Errorf("version %s runs, and the status is %+v; want %s", w.machine.Running(), s, version)
	}
	got := ota.Outcome{}
	if s.Last != nil {
		got = *s.Last
	}
	why := ota.ReasonKind("")
	if got.Reason != nil {
		why = got.Reason.Kind
	}
	if got.Result != result || why != kind {
		w.t.Errorf("the last update: %+v because of %v, want %s because of %q", got, got.Reason, result, kind)
	}
	slots, _ := w.machine.Slots(w.t.Context())
	for _, s := range slots {
		if s.Booted && !(s.Primary && s.Good) {
			w.t.Errorf("what runs isn't what is started next: %+v", slots)
		}
	}
	for _, name := range []string{"bundle.part", "bundle.raucb"} {
		if _, err := os.Stat(filepath.Join(w.o.Dir, name)); err == nil {
			w.t.Errorf("%s is left", name)
		}
	}
}

// told are the facts since it was called last, without the percentages.
func (w *world) told() []string {
	var list []string
	for {
		select {
		case f := <-w.facts.C:
			text := ""
			switch f := f.(type) {
			case event.UpdateChanged:
				text = fmt.Sprintf("%s %s", f.Phase, f.Version)
			case event.UpdateEnded:
				text = fmt.Sprintf("%s %s from %s: %s", f.Result, f.Version, f.From, f.Reason)
			}
			if len(list) == 0 || list[len(list)-1] != text {
				list = append(list, text)
			}
		default:
			return list
		}
	}
}

// A server is that of a publisher, in memory.
type server struct {
	private  ed25519.PrivateKey
	release  ota.Release
	manifest []byte
	bundle   []byte

	requests []string // path and range
	sent     int      // bytes of bundles
	body     func(rest []byte) io.ReadCloser
	read     func() // a piece of a bundle was sent
	status   int
	length   int64 // of the bundle, as the server says; 0: the true one; -1: it doesn't say
	ranges   bool
}

func newServer(t testing.TB) *server {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &server{private: private, ranges: true}
}

func (s *server) public() string {
	return base64.StdEncoding.EncodeToString(s.private.Public().(ed25519.PublicKey))
}

// offer publishes a release, whose bundle a Machine can install.
func (s *server) offer(version, compatible string) {
	path := filepath.Join(os.TempDir(), "bundle-"+rand())
	defer os.Remove(path)
	if err := otatest.WriteBundle(path, compatible, version, true); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	s.publish(version, compatible, append(text, bytes.Repeat([]byte(" "), 200<<10)...))
}

func (s *server) publish(version, compatible string, bundle []byte) {
	sum := sha256.Sum256(bundle)
	s.bundle = bundle
	s.release = ota.Release{
		Channel: "stable", Version: version, Size: int64(len(bundle)), SHA256: hex.EncodeToString(sum[:]), URL: "bundle", Compatible: compatible,
		Title: "Bellbird " + version, NotesURL: "https://updates.test/notes",
	}
	s.sign()
}

// sign makes the manifest of the release.
func (s *server) sign() {
	text, err := json.Marshal(s.release)
	if err != nil {
		panic(err)
	}
	s.manifest = signed(s.private, text)
}

func signed(key ed25519.PrivateKey, text []byte) []byte {
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, text))
	return append([]byte("bellbird-update 1 "+signature+"\n"), text...)
}

func rand() string {
	_, private, _ := ed25519.GenerateKey(nil)
	return hex.EncodeToString(private[:8])
}

// RoundTrip answers a request.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	resp := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: make(http.Header), Request: r}
	if s.status != 0 {
		resp.StatusCode, resp.Status = s.status, fmt.Sprint(s.status, " ", http.StatusText(s.status))
		resp.Body = http.NoBody
		return resp, nil
	}
	switch r.URL.Path {
	case "/stable/manifest":
		resp.Body = io.NopCloser(bytes.NewReader(s.manifest))
		return resp, nil
	case "/stable/bundle":
	default:
		return nil, errors.New("no such host")
	}
	rest := s.bundle
	var from int
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && s.ranges {
		rest = rest[from:]
		resp.StatusCode = http.StatusPartialContent
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.bundle)-1, len(s.bundle)))
	}
	resp.ContentLength = int64(len(rest))
	if s.length != 0 {
		resp.ContentLength = s.length
	}
	resp.Body = io.NopCloser(bytes.NewReader(rest))
	if s.body != nil {
		resp.Body = s.body(rest)
	}
	resp.Body = &obedient{resp.Body, r.Context(), s}
	return resp, nil
}

// An obedient body ends with its request, as those of the network do.
type obedient struct {
	io.ReadCloser
	ctx context.Context
	s   *server
}

func (b *obedient) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	q := make([]byte, len(p))
	go func() {
		n, err := b.ReadCloser.Read(q)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		b.s.sent += r.n
		if b.s.read != nil {
			b.s.read()
		}
		return copy(p, q[:r.n]), r.err
	case <-b.ctx.Done():
		b.ReadCloser.Close()
		return 0, b.ctx.Err()
	}
}

func otatestBundle(path, version string) error {
	return otatest.WriteBundle(path, board, version, true)
}

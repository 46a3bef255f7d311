// Package worker runs plugins' scripts outside of the appliance's process, in one that can be killed: the same program,
// started again with less memory and fewer rights. What a script breaks there is the worker, which is replaced within a
// moment, and not the appliance.
//
// The host is a plugins.Runtime. It starts the worker when it is first needed, sends it the plugins' sources and their
// calls, answers for their states, and does what they ask of the appliance and of the network. A call that doesn't end at
// its deadline gets a moment to notice; then the worker is killed, what was under way in it fails, and everything is
// loaded into a new one.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// Options say what the worker is.
type Options struct {
	// Command starts a worker that serves on its standard input and output.
	Command func() *exec.Cmd

	// LoadTime is what a file has to be run in when it is loaded, with the start of the worker; default 5 s.
	LoadTime time.Duration

	// Share is how much of one processor's time a worker may take over some time, of 1; one that takes more is killed. 0: as
	// much as it likes.
	Share float64

	// Publish tells the appliance what a plugin has to say to everybody; nil: nobody hears it.
	Publish func(plugin, kind string, data any) error

	Logger *slog.Logger // nil: none
}

// A Host runs scripts in a worker. Close ends it.
type Host struct {
	o    Options
	stop chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	deaths   int       // one soon after the other
	next     time.Time // before which no worker is started
	ids      uint64
	units    map[uint64]*unit // as they must be loaded into each new worker
	proc     *process         // with all units loaded; nil: there is none at the moment
	starting *start           // nil: nobody starts one
}

// A start is a worker being started.
type start struct {
	done chan struct{}
	err  error // set when done is closed
}

type unit struct {
	host   *Host
	id     uint64
	owner  *plugins.Owner
	file   string
	source string

	sent    atomic.Pointer[sentSettings]
	telling sync.Mutex
}

// sentSettings are what a worker knows of a plugin's settings.
type sentSettings struct {
	to     *process
	values *plugins.Values
}

var _ plugins.Runtime = (*Host)(nil)

const (
	// loadTime is what a file has to be run in at the start, if nothing else is said.
	loadTime = 5 * time.Second
	// moment is how long a call that was cancelled has to end before the worker is killed.
	moment = 100 * time.Millisecond

	// A worker that ends within soon is not worth starting again at once, if that happens again and again.
	soon         = 5 * time.Second
	shortestWait = 250 * time.Millisecond
	longestWait  = time.Minute
)

// New returns a host without a worker.
func New(o Options) *Host {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.LoadTime = cmp.Or(o.LoadTime, loadTime)
	return &Host{o: o, stop: make(chan struct{}), units: make(map[uint64]*unit)}
}

// Close ends the worker.
func (h *Host) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.stop)
	}
	s := h.starting
	h.mu.Unlock()
	if s != nil {
		<-s.done
	}
	h.mu.Lock()
	p := h.proc
	h.mu.Unlock()
	if p != nil {
		p.stdin.Close()
		p.kill()
		<-p.gone
	}
}

// Load runs the source in the worker.
func (h *Host) Load(ctx context.Context, owner *plugins.Owner, file string, source []byte) (plugins.Unit, error) {
	p, err := h.process(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.ids++
	u := &unit{host: h, id: h.ids, owner: owner, file: file, source: string(source)}
	h.units[u.id] = u
	h.mu.Unlock()
	if err := u.load(ctx, p); err != nil {
		h.mu.Lock()
		delete(h.units, u.id)
		h.mu.Unlock()
		return nil, err
	}
	return u, nil
}

func (u *unit) load(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, u.host.o.LoadTime, fmt.Errorf("%s: it was not loaded within %v", u.file, u.host.o.LoadTime))
	defer cancel()
	m := message{Op: opLoad, ID: u.id, Plugin: u.owner.Manifest.Name, File: u.file, Source: u.source}
	if u.owner.Settings != nil {
		values := u.owner.Settings.Now()
		m.Settings = values.ByKey
		u.sent.Store(&sentSettings{p, values})
	}
	_, err := p.call(ctx, m, nil)
	return err
}

// tell tells the worker the settings, if it doesn't know them as they are now.
func (u *unit) tell(p *process) error {
	if u.owner.Settings == nil || u.knows(p, u.owner.Settings.Now()) {
		return nil
	}
	u.telling.Lock()
	defer u.telling.Unlock()
	values := u.owner.Settings.Now() // so that what is sent last is the newest
	if u.knows(p, values) {
		return nil
	}
	if err := p.send(message{Op: opSettings, Unit: u.id, Settings: values.ByKey}); err != nil {
		return fmt.Errorf("plugin worker: %w", err)
	}
	u.sent.Store(&sentSettings{p, values})
	return nil
}

func (u *unit) knows(p *process, values *plugins.Values) bool {
	sent := u.sent.Load()
	return sent != nil && sent.to == p && sent.values == values
}

// process returns the worker, and starts it if there is none.
func (h *Host) process(ctx context.Context) (*process, error) {
	for {
		h.mu.Lock()
		p, s := h.proc, h.begin()
		h.mu.Unlock()
		switch {
		case p != nil:
			return p, nil
		case s == nil:
			return nil, errClosed
		}
		select {
		case <-s.done:
			if s.err != nil {
				return nil, s.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin begins to start a worker, if there is none and nobody does so already. It is called with the lock held.
func (h *Host) begin() *start {
	if h.proc == nil && h.starting == nil && !h.closed {
		h.starting = &start{done: make(chan struct{})}
		go h.start(h.starting)
	}
	return h.starting
}

// current returns the worker, or an error at once: a call has no time to wait for a new one.
func (h *Host) current() (*process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc == nil {
		h.begin()
		return nil, errRestarting
	}
	return h.proc, nil
}

var (
	errRestarting = errors.New("the plugin worker is being started")
	errClosed     = errors.New("plugin worker: closed")
)

// start starts a worker and loads all units into it. A unit that kills the worker by being loaded is left out, and the
// others go into another one.
func (h *Host) start(s *start) {
	if !h.wait() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.starting, s.err = nil, errClosed
		close(s.done)
		return
	}
	h.mu.Lock()
	units := slices.SortedFunc(maps.Values(h.units), func(a, b *unit) int { return cmp.Compare(a.id, b.id) })
	h.mu.Unlock()
	var p *process
	var err error
	for again := true; again; {
		again = false
		if p, err = h.spawn(); err != nil {
			break
		}
		for i, u := range units {
			err := u.load(context.Background(), p)
			if err == nil {
				continue
			}
			h.o.Logger.Error("a plugin can't be loaded into a new worker", "plugin", u.owner.Manifest.Name, "file", u.file, "err", err)
			if errors.Is(err, hooks.ErrKilled) {
				units, again = slices.Delete(units, i, i+1), true
				<-p.gone
				break
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p != nil {
		select {
		case <-p.gone: // then nobody else would notice
			p, err = nil, errors.New("the plugin worker has ended as soon as it was started")
		default:
		}
	}
	h.proc, h.starting, s.err = p, nil, err
	close(s.done)
}

// wait waits until a worker may be started, and reports whether one still should be.
func (h *Host) wait() bool {
	h.mu.Lock()
	d := time.Until(h.next)
	h.mu.Unlock()
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.stop:
		return false
	}
}

// died takes note of the end of a worker that lived for d, and returns how long no other one is started. It is called with
// the lock held.
func (h *Host) died(d time.Duration) (pause time.Duration) {
	if d > soon {
		h.deaths = 0
	}
	if h.deaths++; h.deaths > 2 { // the first ones may have other reasons
		pause = min(shortestWait<<min(h.deaths-3, 16), longestWait)
	}
	h.next = time.Now().Add(pause)
	return pause
}

// Func returns a function that calls the worker's.
func (u *unit) Func(point string) (hooks.Func, error) {
	ctx, cancel := context.WithTimeout(context.Background(), u.host.o.LoadTime)
	defer cancel()
	p, err := u.host.process(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.call(ctx, message{Op: opCheck, ID: u.host.id(), Unit: u.id, Point: point}, nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, e *hooks.Event) error {
		p, err := u.ready()
		if err != nil {
			return err
		}
		system := e.Metadata[systemKey]
		var granted *plugins.Granted
		if s, ok := system.(*plugins.System); ok && s != nil {
			granted = s.Grant(u.owner)
		}
		m, err := p.call(ctx, message{Op: opCall, ID: u.host.id(), Unit: u.id, Point: point, Event: e, System: granted != nil}, granted)
		if err != nil {
			return err
		}
		*e = *m.Event
		if system != nil {
			if e.Metadata == nil {
				e.Metadata = make(map[string]any)
			}
			e.Metadata[systemKey] = system
		}
		return nil
	}, nil
}

// ready returns the worker for a call now.
func (u *unit) ready() (*process, error) {
	p, err := u.host.current()
	if err == nil {
		err = u.tell(p)
	}
	return p, err
}

func (h *Host) id() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids++
	return h.ids
}

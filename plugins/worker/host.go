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
	"io"
	"log/slog"
	"maps"
	"os"
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

	Logger *slog.Logger // nil: none
}

// A Host runs scripts in a worker. Close ends it.
type Host struct {
	o Options

	mu       sync.Mutex
	closed   bool
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

// A process is one life of the worker.
type process struct {
	*conn
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed when it has ended

	mu     sync.Mutex
	calls  map[uint64]*pending
	asking int // how much of what it asked for is under way
}

// A pending call waits for its answer.
type pending struct {
	answer chan message
	began  time.Time
	late   bool // it was told to end, and didn't
	blamed bool // for the end of the worker

	// What the worker asks for in this call is done in its context and with its powers.
	unit    uint64
	ctx     context.Context
	granted *plugins.Granted // nil: it has none
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
	// loadTime is what a file has to be run in at the start, all its plugin's together.
	loadTime = 5 * time.Second
	// moment is how long a call that was cancelled has to end before the worker is killed.
	moment = 100 * time.Millisecond
)

// New returns a host without a worker.
func New(o Options) *Host {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Host{o: o, units: make(map[uint64]*unit)}
}

// Close ends the worker.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
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
		p.cmd.Process.Kill()
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
	ctx, cancel := context.WithTimeoutCause(ctx, loadTime, fmt.Errorf("%s: it was not loaded within %v", u.file, loadTime))
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
			return nil, errors.New("plugin worker: closed")
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

var errRestarting = errors.New("the plugin worker is being started")

// start starts a worker and loads all units into it. A unit that kills the worker by being loaded is left out, and the
// others go into another one.
func (h *Host) start(s *start) {
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

func (h *Host) spawn() (*process, error) {
	cmd := h.o.Command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("plugin worker: %w", err)
	}
	p := &process{conn: newConn(out, in), cmd: cmd, stdin: in, gone: make(chan struct{}), calls: make(map[uint64]*pending)}
	// One that reads nothing any more is ended, so that nobody waits for it for ever.
	if f, ok := in.(*os.File); ok {
		p.limit = f.SetWriteDeadline
	}
	p.broken = func() { cmd.Process.Kill() }
	go h.serve(p)
	return p, nil
}

// serve takes what the worker sends, until it ends, and then looks after what was under way in it.
func (h *Host) serve(p *process) {
	var err error
	for err == nil {
		var m message
		if m, err = p.receive(); err == nil {
			h.handle(p, m)
		}
	}
	p.cmd.Process.Kill() // it may only have closed its pipe
	werr := p.cmd.Wait()
	p.bury()
	close(p.gone)

	h.mu.Lock()
	if h.proc == p {
		h.proc = nil
	}
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return
	}
	h.o.Logger.Warn("the plugin worker has ended, it is started again", "err", errors.Join(err, werr))
	ctx, cancel := context.WithTimeout(context.Background(), 2*loadTime)
	defer cancel()
	if _, err := h.process(ctx); err != nil { // before it is needed again
		h.o.Logger.Error("the plugin worker can't be started", "err", err)
	}
}

// bury ends what was under way. The blame for the worker's end is on the calls that would not end; if there is none, it
// ran out of memory, and the blame is on the call that was there longest. The others were only unlucky.
func (p *process) bury() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest *pending
	late := false
	for _, c := range p.calls {
		late = late || c.late
		c.blamed = c.late
		if oldest == nil || c.began.Before(oldest.began) {
			oldest = c
		}
	}
	if oldest != nil && !late {
		oldest.blamed = true
	}
	for _, c := range p.calls {
		close(c.answer)
	}
	p.calls = nil
}

func (h *Host) handle(p *process, m message) {
	switch m.Op {
	case opDone:
		p.mu.Lock()
		c := p.calls[m.ID]
		delete(p.calls, m.ID)
		p.mu.Unlock()
		if c != nil {
			c.answer <- m
		}
	case opAsk:
		h.asked(p, m)
	}
}

// Func returns a function that calls the worker's.
func (u *unit) Func(point string) (hooks.Func, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
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

// call sends a message and waits for its answer. If ctx ends first, the worker is told, and if it doesn't end the call
// then, it is killed: the error is hooks.ErrKilled.
func (p *process) call(ctx context.Context, m message, granted *plugins.Granted) (message, error) {
	c := &pending{answer: make(chan message, 1), began: time.Now(), unit: m.Unit, ctx: ctx, granted: granted}
	if m.Op == opLoad {
		c.unit = m.ID
	}
	p.mu.Lock()
	if p.calls == nil {
		p.mu.Unlock()
		return m, errRestarting
	}
	p.calls[m.ID] = c
	p.mu.Unlock()
	if err := p.send(m); err != nil {
		p.mu.Lock()
		delete(p.calls, m.ID)
		p.mu.Unlock()
		return m, fmt.Errorf("plugin worker: %w", err)
	}
	done := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case r, ok := <-c.answer:
			switch {
			case !ok && c.blamed: // written before it was closed
				return m, fmt.Errorf("the plugin worker ended during the call: %w", hooks.ErrKilled)
			case !ok:
				return m, errRestarting
			case r.Error != "":
				return m, errors.New(r.Error)
			case m.Op == opCall && r.Event == nil:
				return m, errors.New("the plugin worker sent no event")
			}
			return r, nil
		case <-done:
			done = nil
			if err := p.send(message{Op: opCancel, ID: m.ID}); err != nil {
				return m, context.Cause(ctx)
			}
			timer := time.NewTimer(moment)
			defer timer.Stop()
			late = timer.C
		case <-late:
			p.mu.Lock()
			c.late = true
			p.mu.Unlock()
			p.cmd.Process.Kill() // then serve ends, and closes the answer
		}
	}
}

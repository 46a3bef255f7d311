// Package mcp brings in integrations: MCP servers that come with a manifest, and whose reserved tools voiceos_hook_* are
// hooks. It reads the manifests, holds them against what the user agreed to, and asks all that subscribe to an event at
// once, within one budget. It keeps no connection and offers no tools to the model: package tools/mcp does that for any
// MCP server. Whatever goes wrong with an integration, the turn goes on as if it were not there.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/tools"
)

const reservedPrefix = tools.ReservedPrefix

// A Server is the connection to an integration's MCP server, as tools/mcp keeps it.
type Server interface {
	// Run keeps the connection until ctx is over. Nothing that the server does makes it return before.
	Run(ctx context.Context) error

	// Hooks are the names of the reserved tools that it has at the moment: none, while it isn't connected.
	Hooks() []string

	// CallHook calls a reserved tool with one object, and returns the object that it answers, nil if there is none. It
	// returns when ctx ends.
	CallHook(ctx context.Context, tool string, input any) (json.RawMessage, error)

	// OwnName is the server's own name of a tool that is offered to the model under another one, perhaps.
	OwnName(offered string) (name string, ok bool)

	// Connected is whether it is there, and if not, why.
	Connected() (bool, error)
}

// Options are what a set works with.
type Options struct {
	Dir    string // has the integrations, each in a directory of its name
	Ledger *plugins.Ledger
	Runner *hooks.Runner

	// Connect makes the connection to the server of the integration in dir. It starts nothing.
	Connect func(m *Manifest, dir string) (Server, error)

	// Owns reports whether a tool, by the name that the model knows, is the integration's. Nil: none is.
	Owns func(integration, tool string) bool

	// Front is what is in front while nothing is dictated: the surface of the chat. Nil: "chat".
	Front func() string

	// OnView is told the view of a turn that an integration handled.
	OnView func(integration string, v View, private bool)

	// OnBreaker and OnTrace are those of hooks.Options, with the names of integrations in place of plugins.
	OnBreaker func(integration, point string, d time.Duration)
	OnTrace   func(hooks.Trace)

	Logger *slog.Logger // nil: none
}

// HandlerName is under which name the hooks of all integrations are registered together: no plugin can be called so.
const HandlerName = "MCP integrations"

// A Set is all integrations.
type Set struct {
	o      Options
	active atomic.Pointer[[]*integration] // that run, by name; replaced, not changed

	// What Run is asked for. It blocks until Run takes it.
	scans    chan chan error
	receipts chan func(ctx context.Context) // when full, one more is dropped

	mu  sync.Mutex
	all map[string]*integration
}

// An integration is one of the set.
type integration struct {
	*Manifest
	dir      string
	problem  string // why it doesn't run; ""
	agreed   bool
	server   Server
	end      context.CancelFunc
	ended    chan struct{} // closed when its server has
	silenced atomic.Bool
	breakers map[string]*hooks.Breaker // by hook; not changed
	calls    chan struct{}             // those under way
}

// maxReceipts is how many receipts may be under way, and how many may wait; one more is dropped.
const maxReceipts = 16

// New returns a set without integrations. Run brings them.
func New(o Options) *Set {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{o: o, all: make(map[string]*integration), scans: make(chan chan error), receipts: make(chan func(context.Context), maxReceipts)}
	s.active.Store(new([]*integration))
	return s
}

// Run runs the integrations that the user has agreed to, until ctx is over.
func (s *Set) Run(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	if err := s.scan(ctx); err != nil {
		s.o.Logger.Error("integrations", "err", err)
	}
	room := make(chan struct{}, maxReceipts)
	for {
		select {
		case done := <-s.scans:
			done <- s.scan(ctx)
		case f := <-s.receipts:
			select {
			case room <- struct{}{}:
				under.Go(func() { f(ctx); <-room })
			default:
				s.o.Logger.Warn("integrations: too many receipts are under way, one is dropped")
			}
		case <-ctx.Done():
			s.mu.Lock()
			gone := slices.Collect(maps.Values(s.all))
			s.all = make(map[string]*integration)
			s.arrange()
			s.mu.Unlock()
			for _, i := range gone {
				<-i.ended // all at once: their context is over
			}
			return nil
		}
	}
}

// Scan looks for integrations that came, changed or went, or to which the user has agreed by now. It is for a set that
// runs. What is wrong with one is in its Info, and stops no other.
func (s *Set) Scan(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case s.scans <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Set) scan(ctx context.Context) error {
	found, err := find(s.o.Dir, s.o.Ledger)
	if err != nil {
		return err
	}
	s.mu.Lock()
	var gone []*integration
	for name, old := range s.all {
		i := found[name]
		if i != nil && i.problem == "" && old.problem == "" && i.Hash == old.Hash {
			old.silenced.Store(i.silenced.Load())
			found[name] = old // it goes on
			continue
		}
		gone = append(gone, old)
	}
	s.mu.Unlock()
	for _, old := range gone {
		old.end()
		<-old.ended
	}
	for _, i := range found {
		if i.problem != "" {
			s.o.Logger.Warn("integration", "integration", i.Name, "err", i.problem)
		} else if i.server == nil {
			s.start(ctx, i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = found
	s.arrange()
	return nil
}

func (s *Set) start(ctx context.Context, i *integration) {
	server, err := s.o.Connect(i.Manifest, i.dir)
	if err != nil {
		i.problem = err.Error()
		s.o.Logger.Error("integration", "integration", i.Name, "err", err)
		return
	}
	i.server, i.ended = server, make(chan struct{})
	ctx, i.end = context.WithCancel(ctx)
	go func() {
		defer close(i.ended)
		if err := server.Run(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Error("integration", "integration", i.Name, "err", err)
		}
	}()
}

// arrange makes active what runs, and registers the hooks that any of them has.
func (s *Set) arrange() {
	var active []*integration
	wanted := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if i := s.all[name]; i.server != nil {
			active = append(active, i)
			for hook := range i.Hooks {
				wanted[hook] = true
			}
		}
	}
	s.active.Store(&active)
	s.o.Runner.Unregister(HandlerName)
	s.o.Runner.SetAware(HandlerName, true) // each round leaves out those who aren't
	for hook, f := range s.handlers() {
		if !wanted[hook] {
			continue
		}
		// The last of all: what they take of the budget they take from nobody.
		err := s.o.Runner.Register(hooks.Handler{Plugin: HandlerName, Point: events[hook].point, Band: hooks.User, Priority: 99, Func: f})
		if err != nil {
			s.o.Logger.Error("integrations", "err", err)
		}
	}
}

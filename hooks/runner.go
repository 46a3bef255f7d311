// Package hooks lets plugins see and change every step of a turn, and keeps them from doing harm: handlers run in order,
// each on a copy of the event that counts only if it returns in time, and all of one fire share a hard deadline. It
// knows nothing of how a handler is written (plugins and its runtimes do) nor of what a point is for (the pipeline does).
//
// What happens at a fire, in the order of the functions of fire.go:
//
//  1. Fire looks up the handlers. With none it returns.
//  2. resolve stamps the chat and whether it is private.
//  3. A goroutine goes through the handlers. Each is first held against what may withhold it: privacy, surface, voice
//     match, breaker. It gets a copy, which is committed when it returns in time without an error.
//  4. Fire waits for the goroutine, or for the deadline: then it goes on with what was committed, and leaves the
//     goroutine to its handler, whose result will be thrown away.
//  5. honour lets the event keep only the changes that its point honours.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Func handles a fire. ctx ends at the deadline; what is done to the event after that is lost. An error, or a panic,
// loses the changes too.
type Func func(ctx context.Context, e *Event) error

// ErrKilled is returned, or wrapped, by a handler that had to be ended by force, because it used up what it was given.
// Its breaker opens at once.
var ErrKilled = errors.New("killed")

// A Band is where a plugin's priorities lie.
type Band int

// The bands: a user's plugin can't come before one of the system's.
const (
	System Band = iota // 0 to 99
	User               // 100 to 199, which is the manifest's priority and 100
)

// DefaultPriority is that of a handler which names none.
const DefaultPriority = 50

// A Handler is a plugin's function at a point.
type Handler struct {
	Plugin   string
	Point    string
	Band     Band
	Priority int // 0 to 99, in its band; what is outside is clamped
	Func     Func

	// Match, if set, calls the handler only when the input is this voice command.
	Match *Match

	// FailClosed makes the fire a refusal if the handler fails: for guards of tools.
	FailClosed bool
}

// Options are what a runner works with. The zero value is usable.
type Options struct {
	// System and Config are put into the events of the points that have them, as they are.
	System any
	Config any

	// Private resolves the privacy of a chat: of the named one, or of the active one, which it then names. An error
	// means private. Nil means that no chat is private.
	Private func(ctx context.Context, name *string) (chat string, private bool, err error)

	// OnBreaker is called when a handler's breaker opened for the time d, after it missed its deadline.
	OnBreaker func(plugin, point string, d time.Duration)

	// OnTrace is called with the trace of each fire that had handlers, by whoever fired. It must not keep or change it.
	OnTrace func(Trace)

	Logger *slog.Logger // nil: none
}

// A Runner holds the handlers and fires. It may be used by several goroutines. Handlers may be registered and removed
// while it fires; that counts from the next fire on.
type Runner struct {
	o     Options
	table atomic.Pointer[table]
	later chan func()
	stop  chan struct{} // closed by Close
	ended sync.Once
	done  chan struct{}

	watches sync.Pool // of *watch

	mu    sync.Mutex // of those who change the table
	order int
}

// A table is what is registered. It is replaced, not changed.
type table struct {
	handlers map[string][]*handler
	aware    map[string]bool
	surfaces map[string][]string // only of plugins that are restricted
}

type handler struct {
	Handler
	priority int
	order    int
	breaker  Breaker
	running  atomic.Bool // also after it was given up
}

// laterQueue is how many fires nobody waits for may be pending; one more is dropped and counted as missed.
const laterQueue = 256

// New returns a runner without handlers. Close ends it.
func New(o Options) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{o: o, later: make(chan func(), laterQueue), stop: make(chan struct{}), done: make(chan struct{})}
	r.table.Store(&table{})
	go r.work()
	return r
}

// work runs the fires that nobody waits for.
func (r *Runner) work() {
	defer close(r.done)
	for {
		select {
		case f := <-r.later:
			f()
		case <-r.stop:
			for {
				select {
				case f := <-r.later:
					f()
				default:
					return
				}
			}
		}
	}
}

// Close waits for the fires that nobody waited for. Of those that come later nobody hears. More calls do nothing.
func (r *Runner) Close() {
	r.ended.Do(func() { close(r.stop) })
	<-r.done
}

// Register adds a handler. Among equal priorities the one registered first is called first.
func (r *Runner) Register(h Handler) error {
	switch {
	case h.Func == nil || h.Point == "" || h.Plugin == "":
		return fmt.Errorf("hook %q of plugin %q: incomplete", h.Point, h.Plugin)
	case h.Match != nil && h.Match.compiled == nil:
		return fmt.Errorf("hook %q of plugin %q: the voice match is not compiled", h.Point, h.Plugin)
	}
	r.change(func(t *table) {
		r.order++
		n := &handler{Handler: h, order: r.order, priority: int(h.Band)*100 + min(max(h.Priority, 0), 99)}
		list := append(slices.Clone(t.handlers[h.Point]), n)
		slices.SortFunc(list, func(a, b *handler) int {
			return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.order, b.order))
		})
		t.handlers[h.Point] = list
	})
	return nil
}

// SetAware says whether a plugin is aware of privacy. SetSurfaces restricts it to surfaces, of which there may be none;
// nil lifts the restriction.
func (r *Runner) SetAware(plugin string, aware bool) {
	r.change(func(t *table) { t.aware[plugin] = aware })
}

// SetSurfaces restricts a plugin's presence to surfaces, of which there may be none; nil lifts the restriction.
func (r *Runner) SetSurfaces(plugin string, surfaces []string) {
	r.change(func(t *table) {
		delete(t.surfaces, plugin)
		if surfaces != nil {
			t.surfaces[plugin] = slices.Clone(surfaces)
		}
	})
}

// Unregister removes all of a plugin: its handlers, its awareness, its surfaces.
func (r *Runner) Unregister(plugin string) {
	r.change(func(t *table) {
		delete(t.aware, plugin)
		delete(t.surfaces, plugin)
		for point, list := range t.handlers {
			list = slices.DeleteFunc(slices.Clone(list), func(h *handler) bool { return h.Plugin == plugin })
			t.handlers[point] = list
			if len(list) == 0 {
				delete(t.handlers, point)
			}
		}
	})
}

func (r *Runner) change(f func(*table)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.table.Load()
	t := &table{handlers: maps.Clone(old.handlers), aware: maps.Clone(old.aware), surfaces: maps.Clone(old.surfaces)}
	if t.handlers == nil {
		*t = table{make(map[string][]*handler), make(map[string]bool), make(map[string][]string)}
	}
	f(t)
	r.table.Store(t)
}

// Has reports whether a fire of the point would call anybody, so that an event need not be made if not.
func (r *Runner) Has(point string) bool { return len(r.table.Load().handlers[point]) > 0 }

// Fire calls the handlers of a point on e, which then has their changes, and returns what each of them did. For a point
// that isn't waited for it returns at once, and the handlers get a copy of e.
func (r *Runner) Fire(ctx context.Context, point string, e *Event) Trace {
	return r.FireWithin(ctx, point, e, 0)
}

// FireWithin is Fire with a budget of its own, if that is smaller than the point's: for the audio loop, whose patience is
// what is queued for the loudspeaker. A budget that is used up already calls nobody.
func (r *Runner) FireWithin(ctx context.Context, point string, e *Event, budget time.Duration) Trace {
	t := r.table.Load()
	handlers := t.handlers[point]
	if len(handlers) == 0 {
		return nil
	}
	p, _ := PointNamed(point)
	if budget == 0 || budget > p.Budget {
		budget = p.Budget
	}
	f := &fire{runner: r, point: p, table: t, handlers: handlers, event: e, budget: budget}
	if p.Waits {
		return f.run(ctx)
	}
	ctx = context.WithoutCancel(ctx) // it outlives the turn
	f.event = e.clone()
	select {
	case r.later <- func() { f.run(ctx) }:
	default:
		r.o.Logger.Warn("too many hooks are waiting, one is dropped", "point", point)
	}
	return nil
}

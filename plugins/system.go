package plugins

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// A System is what plugins may do with an appliance: those of the powers in the table that it has. Handlers find it in
// their event's metadata, at the points that have it, and a runtime shows it to them in its own way, through Grant.
type System struct {
	do    map[string]Func
	names []string
}

// A Func has a power done, with arguments that fit its row of the table, and returns what JSON can say. ctx is that of
// the handler: nothing must be done once it is over.
type Func func(ctx context.Context, c *Call) (any, error)

// maxCalls is how many powers a handler may use within one fire.
const maxCalls = 100

// NewSystem returns a system with these powers, and with the other names that they have in the table. A name that is not
// in the table is an error.
func NewSystem(do map[string]Func) (*System, error) {
	s := &System{do: make(map[string]Func)}
	for name, f := range do {
		if _, ok := powers[name]; !ok {
			return nil, fmt.Errorf("system.%s: it is not in the table of powers", name)
		}
		s.do[name] = f
	}
	for other, name := range otherNames {
		if f, ok := do[name]; ok {
			s.do[other] = f
		}
	}
	s.names = slices.Sorted(maps.Keys(s.do))
	return s, nil
}

// MarshalJSON is null: a system is no value that could be kept or sent.
func (s *System) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Grant lends the powers to one call of a handler of owner's.
func (s *System) Grant(owner *Owner) *Granted { return &Granted{system: s, owner: owner} }

// Granted are the powers in the hand of one call of a handler.
type Granted struct {
	system *System
	owner  *Owner
	calls  atomic.Int32
}

// Names are the powers' names, sorted. The slice must not be changed.
func (g *Granted) Names() []string { return g.system.names }

// Call uses a power. It does nothing when ctx is over.
func (g *Granted) Call(ctx context.Context, name string, args []any, kwargs map[string]any) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("system.%s: panic: %v", name, p)
		}
	}()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("system.%s: %w", name, context.Cause(ctx))
	}
	do, ok := g.system.do[name]
	if !ok {
		return nil, fmt.Errorf("system.%s: there is no such function here", name)
	}
	if g.calls.Add(1) > maxCalls {
		return nil, fmt.Errorf("system.%s: this is more than %d calls of the system in one hook", name, maxCalls)
	}
	bound, err := bind(powers[cmp.Or(otherNames[name], name)], args, kwargs)
	if err != nil {
		return nil, fmt.Errorf("system.%s: %w", name, err)
	}
	result, err = do(ctx, &Call{Owner: g.owner, args: bound})
	if err != nil {
		return nil, fmt.Errorf("system.%s: %w", name, err)
	}
	return result, nil
}

// A Call is one use of a power, by a plugin.
type Call struct {
	Owner *Owner
	args  map[string]any
}

// Has reports whether an optional argument was given.
func (c *Call) Has(name string) bool { _, ok := c.args[name]; return ok }

// Text is an argument; "" if it was not given. Number and Flag are so too, with 0 and false.
func (c *Call) Text(name string) string { s, _ := c.args[name].(string); return s }

// Number is an argument that is a number, whole or not; 0 if it was not given.
func (c *Call) Number(name string) float64 { n, _ := c.args[name].(float64); return n }

// Flag is an argument that is true or false; false if it was not given.
func (c *Call) Flag(name string) bool { b, _ := c.args[name].(bool); return b }

package tools

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"bellbird/dialog"
)

// appliance owns the tools that a set begins with.
const appliance = "the appliance"

// ReservedPrefix begins the names of tools that are hooks. A model never sees nor calls them.
const ReservedPrefix = "voiceos_hook_"

// Set is a set of tools, none of which share a name. Who owns tools may come, change and go while others call them.
type Set struct {
	log   *slog.Logger
	table atomic.Pointer[table] // replaced, not changed

	mu     sync.Mutex
	owners []string // in the order in which they first came, so that a model sees the same order from turn to turn
	offers map[string][]*entry
}

// A table is what is in the set.
type table struct {
	tools map[string]*entry
	specs []dialog.ToolSpec
}

type entry struct {
	Tool
	owner  string
	schema schema
}

// NewSet returns the set of the appliance's own tools, in that order. log may be nil.
func NewSet(log *slog.Logger, all ...Tool) (*Set, error) {
	s := &Set{log: orDiscard(log), offers: make(map[string][]*entry)}
	s.table.Store(new(table))
	if err := s.Put(appliance, all...); err != nil {
		return nil, err
	}
	return s, nil
}

// Specs describes the tools to a model, the appliance's own first. The slice must not be changed.
func (s *Set) Specs() []dialog.ToolSpec { return s.table.Load().specs }

// The names that the models' interfaces accept.
var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Put replaces all that an owner has in the set; with no tools, it has none any more. A tool whose name is taken, is
// reserved, or can't be a name, or whose schema can't be read, is left out. The error tells of each of these, with the
// names of both owners where there are two; the others are in the set all the same.
func (s *Set) Put(owner string, all ...Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.owners, owner) {
		s.owners = append(s.owners, owner)
	}
	taken := make(map[string]string) // by whom
	for o, offer := range s.offers {
		for _, e := range offer {
			if o != owner {
				taken[e.Spec.Name] = o
			}
		}
	}
	var offer []*entry
	var refused []error
	for _, t := range all {
		name := t.Spec.Name
		other, twice := taken[name]
		schema, err := newSchema(t.Spec.Parameters)
		switch {
		case twice && other == owner:
			err = fmt.Errorf("%s has two of that name, the second is left out", owner)
		case twice:
			err = fmt.Errorf("%s and %s both have one, that of %s is left out", other, owner, owner)
		case !namePattern.MatchString(name):
			err = fmt.Errorf("%s: a tool's name is made of letters, digits, - and _, 64 at most", owner)
		case strings.HasPrefix(strings.ToLower(name), ReservedPrefix):
			err = fmt.Errorf("%s: names that begin with %s are those of hooks", owner, ReservedPrefix)
		case err != nil:
			err = fmt.Errorf("%s: its parameters: %w", owner, err)
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("tool %q: %w", name, err))
			continue
		}
		taken[name] = owner
		offer = append(offer, &entry{t, owner, schema})
	}
	s.offers[owner] = offer
	s.rebuild()
	return errors.Join(refused...)
}

func (s *Set) rebuild() {
	t := &table{tools: make(map[string]*entry)}
	for _, owner := range s.owners {
		for _, e := range s.offers[owner] {
			t.tools[e.Spec.Name] = e
			t.specs = append(t.specs, e.Spec)
		}
	}
	t.specs = slices.Clip(t.specs)
	s.table.Store(t)
}

// Owner is whose tool the named one is; "" if there is none.
func (s *Set) Owner(name string) string {
	if e, ok := s.table.Load().tools[name]; ok {
		return e.owner
	}
	return ""
}

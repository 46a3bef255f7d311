package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"bellbird/hooks"
	"bellbird/plugins"
)

// What integrations there are, and what their user decides about them.

// find reads the manifests of the integrations in dir, each with what was decided about it. None is started.
func find(dir string, ledger *plugins.Ledger) (map[string]*integration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := make(map[string]*integration)
	for _, e := range entries {
		dir := filepath.Join(dir, e.Name())
		m, err := ReadManifest(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err == nil && m.Name != e.Name() {
			err = fmt.Errorf("%s: name: %q: the directory has another one", filepath.Join(dir, ManifestName), m.Name)
		}
		if err != nil {
			m = &Manifest{Name: e.Name()}
		}
		found[m.Name] = newIntegration(m, dir, ledger, err)
	}
	return found, nil
}

// newIntegration is one that can't run if there is an err.
func newIntegration(m *Manifest, dir string, ledger *plugins.Ledger, err error) *integration {
	i := &integration{
		Manifest: m, dir: dir, end: func() {}, ended: make(chan struct{}), breakers: make(map[string]*hooks.Breaker), calls: make(chan struct{}, inFlight),
	}
	close(i.ended) // start makes another
	for hook := range m.Hooks {
		i.breakers[hook] = new(hooks.Breaker)
	}
	decision, ledgerErr := ledger.Of(m.Name)
	i.silenced.Store(decision.Silenced)
	switch err := cmp.Or(err, ledgerErr); {
	case err != nil:
		i.problem = err.Error()
	default:
		i.problem = i.beyond(decision)
	}
	i.agreed = i.problem == ""
	return i
}

// beyond says what the user has not agreed to yet; "" if there is nothing.
func (i *integration) beyond(d plugins.Decision) string {
	if d.Agreed == nil {
		return "its user has not agreed to it yet"
	}
	if more := i.Consent().Beyond(*d.Agreed); len(more) > 0 {
		return "it asks for more than its user agreed to: " + strings.Join(more, ", ")
	}
	return ""
}

// An Info is what there is to know of an integration.
type Info struct {
	Name, Version, Summary, Author, Dir string

	Asks      plugins.Consent // what it asks for
	Agreed    bool            // its user has agreed to that
	Access    bool            // its transcript access: whether its hooks are called
	Connected bool
	Problem   string // why it doesn't run, or isn't connected; ""
}

func (i *integration) info() Info {
	info := Info{
		Name: i.Name, Version: i.Version, Summary: i.Summary, Author: i.Author, Dir: i.dir,
		Asks: i.Consent(), Agreed: i.agreed, Access: !i.silenced.Load(), Problem: i.problem,
	}
	if i.server != nil {
		connected, err := i.server.Connected()
		if info.Connected = connected; err != nil {
			info.Problem = err.Error()
		}
	}
	return info
}

// Find lists the integrations in dir, while none of them runs.
func Find(dir string, ledger *plugins.Ledger) ([]Info, error) {
	found, err := find(dir, ledger)
	return list(found), err
}

func list(all map[string]*integration) []Info {
	list := []Info{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name].info())
	}
	return list
}

// List returns the integrations by name.
func (s *Set) List() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return list(s.all)
}

// ErrUnknown is returned for the name of an integration that isn't there.
var ErrUnknown = errors.New("there is no such integration")

// SetAccess switches the transcript access of an integration: without it, none of its hooks is called any more, from now
// on, also by an appliance that is started again. Its tools stay.
func (s *Set) SetAccess(name string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.all[name]
	if i == nil {
		return fmt.Errorf("integration %q: %w", name, ErrUnknown)
	}
	if !on {
		i.silenced.Store(true) // whatever becomes of the file
	}
	if err := s.o.Ledger.Silence(name, !on); err != nil {
		return err
	}
	i.silenced.Store(!on)
	return nil
}

// Withheld reports whether a tool must not be offered in private chats: it is an integration's that isn't aware of privacy.
func (s *Set) Withheld(tool string) bool {
	for _, i := range *s.active.Load() {
		if !i.PrivacyAware && s.o.Owns != nil && s.o.Owns(i.Name, tool) {
			return true
		}
	}
	return false
}

// Agree notes that the user agrees to what the integration asks for, by the manifest with that hash, which is what was
// shown to him, and has it run.
func (s *Set) Agree(ctx context.Context, name, hash string) error {
	if err := Agree(s.o.Dir, s.o.Ledger, name, hash); err != nil {
		return err
	}
	return s.Scan(ctx)
}

// Agree is Set.Agree while nothing runs.
func Agree(dir string, ledger *plugins.Ledger, name, hash string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("integration %.50q: %w", name, ErrUnknown)
	}
	m, err := ReadManifest(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("integration %q: %w", name, ErrUnknown)
	case err != nil:
		return err
	case m.Name != name || m.Hash != hash:
		return fmt.Errorf("integration %q: its manifest has changed meanwhile: look at it again", name)
	}
	return ledger.Agree(name, m.Consent())
}

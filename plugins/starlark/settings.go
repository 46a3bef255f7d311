package starlark

import (
	"errors"
	"sync/atomic"

	"go.starlark.net/starlark"

	"bellbird/plugins"
)

// settings is the dict of the plugin's settings as they are when it is looked at. It can't be changed.
type settings struct {
	of     *plugins.Settings
	cached atomic.Pointer[settingsDict]
}

type settingsDict struct {
	of   *plugins.Values
	dict *starlark.Dict // frozen
}

var (
	_ starlark.IterableMapping = (*settings)(nil)
	_ starlark.Sequence        = (*settings)(nil)
	_ starlark.HasAttrs        = (*settings)(nil)
)

// dict is what the settings are now.
func (s *settings) dict() *starlark.Dict {
	now := s.of.Now()
	if c := s.cached.Load(); c != nil && c.of == now {
		return c.dict
	}
	v, err := toStarlark(now.ByKey)
	d, ok := v.(*starlark.Dict)
	if err != nil || !ok {
		d = new(starlark.Dict) // they were checked: this can't be
	}
	d.Freeze()
	s.cached.Store(&settingsDict{now, d})
	return d
}

func (s *settings) String() string        { return s.dict().String() }
func (s *settings) Type() string          { return "settings" }
func (s *settings) Freeze()               {}
func (s *settings) Truth() starlark.Bool  { return s.dict().Truth() }
func (s *settings) Hash() (uint32, error) { return 0, errors.New("settings are not hashable") }
func (s *settings) Len() int              { return s.dict().Len() }

func (s *settings) Get(key starlark.Value) (starlark.Value, bool, error) { return s.dict().Get(key) }
func (s *settings) Iterate() starlark.Iterator                           { return s.dict().Iterate() }
func (s *settings) Items() []starlark.Tuple                              { return s.dict().Items() }

// Attr is that of a dict: get, items, keys, values.
func (s *settings) Attr(name string) (starlark.Value, error) { return s.dict().Attr(name) }
func (s *settings) AttrNames() []string                      { return s.dict().AttrNames() }

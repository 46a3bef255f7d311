package starlark

import (
	"errors"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"bellbird/plugins"
)

// stateModule is state: get(key, default), save(key, value), delete(key), all(), clear(), and update(key, f, default), which
// is save(key, f(get(key, default))) while nobody else changes the state.
func stateModule(s plugins.State) *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "state", Members: starlark.StringDict{
		"get": starlark.NewBuiltin("get", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var key string
			var def starlark.Value = starlark.None
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key, "default?", &def); err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			v := s.Get(key, missing{})
			if v == any(missing{}) {
				return def, nil
			}
			return toStarlark(v)
		}),
		"all": starlark.NewBuiltin("all", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			return toStarlark(s.All())
		}),
		"save": starlark.NewBuiltin("save", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var key string
			var value starlark.Value
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key, "value", &value); err != nil {
				return nil, err
			}
			v, err := argument(value)
			if err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			return starlark.None, s.Save(key, v)
		}),
		"clear": starlark.NewBuiltin("clear", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			return starlark.None, s.Clear()
		}),
		"delete": starlark.NewBuiltin("delete", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var key string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key); err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			return starlark.None, s.Delete(key)
		}),
		"update": starlark.NewBuiltin("update", func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var key string
			var f starlark.Callable
			var def starlark.Value = starlark.None
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "key", &key, "f", &f, "default?", &def); err != nil {
				return nil, err
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			thread.SetLocal(updatingKey, true)
			defer thread.SetLocal(updatingKey, nil)
			v, err := s.Update(key, def, func(old any) (any, error) {
				arg, err := toStarlark(old)
				if err != nil {
					return nil, err
				}
				result, err := starlark.Call(thread, f, starlark.Tuple{arg}, nil)
				if err != nil {
					return nil, err
				}
				if err := inTime(thread); err != nil {
					return nil, err
				}
				return argument(result)
			})
			if err != nil {
				return nil, err
			}
			return toStarlark(v)
		}),
	}}
}

// missing is a default that no value is equal to.
type missing struct{}

// updatingKey marks a thread within an update, which has the state to itself.
const updatingKey = "updating"

// mayAct is an error if the deadline has passed, or if the state is locked by an update further up.
func mayAct(thread *starlark.Thread) error {
	if thread.Local(updatingKey) != nil {
		return errors.New("the function given to state.update must not use the state: it gets the old value and returns the new one")
	}
	return inTime(thread)
}

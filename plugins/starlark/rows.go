package starlark

import (
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"bellbird/plugins"
)

// rowsModule is chat_state: what the plugin keeps in chats. Its functions are those of plugins.CallRows, with the names
// and the arguments of the contract; get has a default besides.
func rowsModule(do RowsFunc) *starlarkstruct.Module {
	members := make(starlark.StringDict)
	for _, name := range plugins.RowCalls() {
		members[name] = starlark.NewBuiltin("chat_state."+name, func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var def starlark.Value = starlark.None
			if name == "get" { // its default need not be a value that could be kept
				var chat, key starlark.Value
				if err := starlark.UnpackArgs(b.Name(), args, kwargs, "chat", &chat, "key", &key, "default?", &def); err != nil {
					return nil, err
				}
				args, kwargs = starlark.Tuple{chat, key}, nil
			}
			if err := mayAct(thread); err != nil {
				return nil, err
			}
			values, named, err := arguments(b.Name(), args, kwargs)
			if err != nil {
				return nil, err
			}
			v, err := do(callContext(thread), name, values, named)
			if err != nil {
				return nil, err
			}
			if v == nil {
				return def, nil
			}
			return toStarlark(v)
		})
	}
	return &starlarkstruct.Module{Name: "chat_state", Members: members}
}

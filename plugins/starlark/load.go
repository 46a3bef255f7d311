package starlark

import (
	"context"
	"errors"
	"log/slog"

	"bellbird/plugins"
)

// Runtime loads handler files for a plugins.Loader.
type Runtime struct {
	Logger *slog.Logger // nil: none
}

var _ plugins.Runtime = Runtime{}

// Load runs the source, in this process.
func (r Runtime) Load(ctx context.Context, owner *plugins.Owner, file string, source []byte) (plugins.Unit, error) {
	o := Options{
		State: owner.State, Settings: owner.Settings,
		Grant: func(system any) Powers {
			if s, ok := system.(*plugins.System); ok && s != nil {
				return s.Grant(owner)
			}
			return nil
		},
		Fetch: func(ctx context.Context, r plugins.Request) (*plugins.Response, error) {
			if owner.Web == nil {
				return nil, errors.New("http: there is no network here")
			}
			return owner.Web.Fetch(ctx, owner.Manifest, r)
		},
	}
	if owner.Rows != nil {
		o.Rows = func(_ context.Context, name string, args []any, kwargs map[string]any) (any, error) {
			return plugins.CallRows(owner.Rows, name, args, kwargs)
		}
	}
	if r.Logger != nil {
		o.Logger = r.Logger.With("plugin", owner.Manifest.Name)
	}
	return Run(ctx, file, source, o)
}

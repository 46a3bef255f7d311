package starlark

import (
	"context"
	"log/slog"

	"bellbird/plugins"
)

// Runtime loads handler files for a plugins.Loader.
type Runtime struct {
	Logger *slog.Logger // nil: none
}

var _ plugins.Runtime = Runtime{}

// Load runs the source, in this process.
func (r Runtime) Load(ctx context.Context, m *plugins.Manifest, file string, source []byte, state *plugins.State) (plugins.Unit, error) {
	log := r.Logger
	if log != nil {
		log = log.With("plugin", m.Name)
	}
	return Run(ctx, file, source, Options{State: state, Logger: log})
}

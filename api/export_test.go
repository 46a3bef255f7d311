package api

import (
	"log/slog"
	"net/http"
)

// Patterns are those of all routes.
func Patterns(o Options) []string { return o.routes().patterns }

// HTTPHandler is what ListenHTTP serves.
func HTTPHandler(h HTTP, o Options) (http.Handler, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return h.guard(&o)
}

// MaxStreams is how many readers of events there can be.
const MaxStreams = maxStreams

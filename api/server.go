// Package api lets programs see and steer the running appliance: JSON over HTTP, on a Unix socket for the command line,
// and over TCP for everything else. It holds no state and knows no part of the appliance: each gives it an interface, or
// functions.
//
// A request is one of the routes that openapi.json describes, which is held against the handlers by the tests. An answer
// that is not in the two hundreds is {"error": "one line"}. Whoever may open the socket may do everything: its file mode
// is the guard. That of TCP is in guard.go.
package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"bellbird/event"
)

// Options are the parts that can be reached. What is nil answers that the appliance doesn't have it.
type Options struct {
	Turns   Turns
	Plugins Plugins
	Chats   Chats
	Vault   Vault
	Bus     *event.Bus // must be set

	// State is all that there is to see at a glance.
	State func() State
	// Volume is how loud it is; SetVolume changes what isn't nil.
	Volume    func() Volume
	SetVolume func(VolumeChange) error
	// Mute is whether the microphone is muted.
	Mute    func() Mute
	SetMute func(muted bool) error
	// Timers are the timers and alarms, the next to ring first. CancelTimer reports whether there was one of that number.
	Timers      func() []Timer
	SetTimer    func(name string, length time.Duration) error
	CancelTimer func(id int) bool
	// Models are the engines that think, hear and speak.
	Models func() []Model
	// Records are those of the last turns that are kept, the last first. None is of a private chat.
	Records func() ([]TurnRecord, error)
	// Metrics writes what is measured, in the text format of Prometheus.
	Metrics func(io.Writer) error

	// Pages is what is served over TCP outside of /api/, without a token: it has no secrets. Nil: nothing.
	Pages http.Handler

	Logger *slog.Logger // nil: none
}

const (
	maxBody       = 1 << 20 // bytes of a request
	readTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second // of an answer, or an event
	idleTimeout   = 2 * time.Minute
	shutdownGrace = time.Second
)

// A Server serves at one address.
type Server struct {
	name     string // for errors
	listener net.Listener
	handler  http.Handler
	log      *slog.Logger
}

// Addr is where it serves.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		// Streams end with the server.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what goes wrong there is the other side's doing
	}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	})
	defer stop()
	if err := srv.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// A table collects the routes.
type table struct {
	mux      *http.ServeMux
	patterns []string
}

func (t *table) handle(pattern string, f http.HandlerFunc) {
	t.patterns = append(t.patterns, pattern)
	t.mux.HandleFunc(pattern, f)
}

// Handler answers all routes, for anybody.
func Handler(o Options) http.Handler { return o.routes().mux }

func (o *Options) routes() *table {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &table{mux: http.NewServeMux()}
	t.handle("GET /api/openapi.json", describe)
	t.handle("GET /api/events", (&streams{o: o}).serve)
	o.deviceRoutes(t)
	o.recordRoutes(t)
	if o.Turns != nil {
		o.turnRoutes(t)
	}
	if o.Plugins != nil {
		o.pluginRoutes(t)
	}
	if o.Chats != nil {
		o.chatRoutes(t)
	}
	if o.Vault != nil {
		o.vaultRoutes(t)
	}
	t.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		o.fail(w, &Error{http.StatusNotFound, fmt.Sprintf("there is no %s %s here", r.Method, r.URL.Path)})
	})
	return t
}

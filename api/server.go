// Package api lets a program on the same machine, first of all the command line, see and steer the running appliance:
// JSON over HTTP on a Unix socket. It holds no state and knows no part of the appliance: each gives it an interface.
//
// A request is one of the routes below. An answer that is not in the two hundreds is {"error": "one line"}. Whoever may
// open the socket may do everything: its file mode is the guard.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

	Logger *slog.Logger // nil: none
}

const (
	maxBody       = 1 << 20 // bytes of a request
	readTimeout   = 10 * time.Second
	shutdownGrace = time.Second
)

// A Server serves on one socket.
type Server struct {
	o        Options
	listener net.Listener
}

// Listen opens the socket at path, for its owner and group, and takes the place of one that nobody serves any more. Run
// must follow, or Close.
func Listen(path string, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("local socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("local socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("local socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, fmt.Errorf("local socket: %w", err)
	}
	return &Server{o, l}, nil
}

// removeStale removes a socket that was left behind. One that answers is another appliance's, and what is no socket is
// not ours to remove.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file of that name which is no socket: remove it")
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return errors.New("another appliance is running: stop it first")
	}
	return os.Remove(path)
}

// Close closes the socket of a server that was never run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler:           Handler(s.o),
		ReadHeaderTimeout: readTimeout,
		MaxHeaderBytes:    1 << 16,
		// Streams end with the server.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelWarn),
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
		return fmt.Errorf("local socket: %w", err)
	}
	return nil
}

// Handler answers all routes.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/events", o.events)
	if o.Turns != nil {
		o.turnRoutes(mux)
	}
	if o.Plugins != nil {
		o.pluginRoutes(mux)
	}
	if o.Chats != nil {
		o.chatRoutes(mux)
	}
	if o.Vault != nil {
		o.vaultRoutes(mux)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		o.fail(w, &Error{http.StatusNotFound, fmt.Sprintf("there is no %s %s here", r.Method, r.URL.Path)})
	})
	return mux
}

// An Error is what a part answers when the caller is to blame, or has to know the status. Any other error is an internal
// one.
type Error struct {
	Status  int // of HTTP
	Message string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(status int, format string, args ...any) error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// A route reads a request and returns what to answer, nil being nothing, or an error.
type route func(r *http.Request) (any, error)

// serve makes a handler of a route.
func (o *Options) serve(f route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		v, err := f(r)
		switch {
		case err != nil:
			o.fail(w, err)
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			o.reply(w, http.StatusOK, v)
		}
	}
}

func (o *Options) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var e *Error
	if errors.As(err, &e) {
		status = e.Status
	} else {
		o.Logger.Error("local socket", "err", err)
	}
	o.reply(w, status, map[string]string{"error": err.Error()})
}

func (o *Options) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller is gone, if anything
}

// read decodes a request's body.
func read(r *http.Request, dst any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(dst)
	if err == nil {
		_, err = d.Token()
		if err == io.EOF {
			return nil
		}
		err = errors.New("there is more than one value")
	}
	return Errorf(http.StatusBadRequest, "the request can't be read: %v", err)
}

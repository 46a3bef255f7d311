// Package mcp brings in the tools of MCP servers: of child processes over their standard input and output, and of servers
// over HTTP. It keeps the connection to each, and offers what it has while it is there. It serves nothing itself. The
// reserved tools of servers that are hooks it offers to nobody: whoever has the server may call them.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bellbird/tools"
)

// Options say what a server is: a command or a URL.
type Options struct {
	Name string `toml:"name"` // in logs and in what is said: letters, digits, - and _

	// Command starts a server that speaks on its standard input and output. It gets PATH, HOME, LANG and TZ of the
	// appliance's environment and what is in Env.
	Command []string          `toml:"command"`
	Env     map[string]string `toml:"env"`
	Dir     string            `toml:"dir"` // where it runs; default: where the appliance does

	// URL is where a server speaks streamable HTTP. TokenFile holds what it wants as a bearer token; it is read again for
	// every connection.
	URL       string `toml:"url"`
	TokenFile string `toml:"token_file"`

	// Allow and Deny name tools as the server calls them. Without Allow, all that aren't denied are offered.
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`

	Timeout time.Duration `toml:"timeout"` // of a call; default 20 s

	// Put takes what is offered at the moment, in place of what was: tools.Set.Put.
	Put func(owner string, all ...tools.Tool) error `toml:"-"`

	Version string       `toml:"-"` // of the appliance, which servers are told
	Logger  *slog.Logger `toml:"-"` // nil: none
}

// The times that a connection obeys.
const (
	startTime    = 30 * time.Second // to connect and to list the tools: a package may have to be fetched first
	listTime     = 10 * time.Second // to list the tools again
	listInterval = time.Minute      // which is also how it is noticed that a server is gone
	listPause    = time.Second      // between two lists, however often a server says that its tools have changed
	firstRetry   = time.Second
	lastRetry    = 5 * time.Minute
	stable       = time.Minute     // a connection that lasted so long was a good one: the next is tried at once
	closeTime    = 2 * time.Second // to take leave, which a call that hangs would put off
)

// A Server is one MCP server, as long as Run runs.
type Server struct {
	o    Options
	log  *slog.Logger
	dial func() (*link, error)

	startTime, listTime time.Duration

	mu      sync.Mutex
	status  Status
	session *session // nil: it isn't connected
	listed  listing  // what it has then
	refused string   // what Put said last, so that it is logged once
}

// Status is how a server is doing.
type Status struct {
	Connected bool
	Tools     int   // that are offered
	Err       error // why it isn't connected
}

// A link is a way to a server that was opened.
type link struct {
	transport sdk.Transport
	end       func() // ends what is behind it; it must return in a bounded time
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

// New returns a server. It isn't started, nor is it asked anything: the error is about the options.
func New(o Options) (*Server, error) {
	if !namePattern.MatchString(o.Name) {
		return nil, fmt.Errorf("mcp server %q: a name is made of letters, digits, - and _, 32 at most", o.Name)
	}
	s := &Server{o: o, log: o.Logger, startTime: startTime, listTime: listTime}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("server", o.Name)
	s.o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	switch {
	case (len(o.Command) == 0) == (o.URL == ""):
		return nil, fmt.Errorf("mcp server %q: it needs a command or a url, and not both", o.Name)
	case o.Put == nil:
		return nil, fmt.Errorf("mcp server %q: nobody takes its tools", o.Name)
	case o.Timeout < 0:
		return nil, fmt.Errorf("mcp server %q: timeout %v is below zero", o.Name, o.Timeout)
	case o.URL == "":
		if o.TokenFile != "" {
			return nil, fmt.Errorf("mcp server %q: token_file is for a url; a command gets secrets by env", o.Name)
		}
		s.dial = s.start
		return s, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("mcp server %q: url %q is no http or https address", o.Name, o.URL)
	}
	s.dial = func() (*link, error) { return s.connect(u) }
	return s, nil
}

// Name is the server's name.
func (s *Server) Name() string { return s.o.Name }

// Status is how the server is doing now.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Run keeps the connection to the server until ctx is over, and begins anew when it breaks: after a second, and then
// after twice as long each time, up to five minutes.
func (s *Server) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			s.lost(context.Cause(ctx))
			return nil
		}
		if time.Since(began) >= stable {
			retry = firstRetry
		}
		s.lost(err)
		s.log.Warn("mcp server", "err", err, "again_in", retry)
		if !wait(ctx, retry) {
			return nil
		}
		retry = min(2*retry, lastRetry)
	}
}

// lost notes that there is no connection, and why.
func (s *Server) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.session, s.listed = Status{Err: err}, nil, listing{}
}

// wait lets time pass; false: ctx was over before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var errNoAnswer = errors.New("it doesn't answer")

// within calls f, and doesn't wait for it longer than d: what can't be written to a server blocks whatever the context.
func within(ctx context.Context, d time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errNoAnswer)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A session is one connection to the server.
type session struct {
	*sdk.ClientSession
	server *Server
	asked  chan struct{} // somebody wants the list of tools, which also shows whether the server is there
}

// ask wants the tools listed again.
func (s *session) ask() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// serve connects and offers the server's tools until the connection breaks or ctx is over.
func (s *Server) serve(ctx context.Context) error {
	l, err := s.dial()
	if err != nil {
		return err
	}
	defer l.end()
	c := &session{server: s, asked: make(chan struct{}, 1)}
	client := sdk.NewClient(&sdk.Implementation{Name: "bellbird", Version: cmp.Or(s.o.Version, "0")}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // none: nobody can be asked, no model lent, no files shown
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.ask() },
	})
	if c.ClientSession, err = s.open(ctx, client, l.transport); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- c.Wait() }()
	defer func() {
		s.put()
		l.end()
		within(context.WithoutCancel(ctx), closeTime, func(context.Context) error { return c.Close() })
	}()
	for began := false; ; began = true {
		if err := s.offer(ctx, c); err != nil {
			return fmt.Errorf("list its tools: %w", err)
		}
		if !began {
			s.log.Info("mcp server is connected", "tools", s.Status().Tools)
		}
		if !wait(ctx, listPause) {
			return nil
		}
		again := time.NewTimer(listInterval)
		select {
		case <-c.asked:
		case <-again.C:
		case err := <-gone:
			if err == nil {
				err = errors.New("it has ended")
			}
			return err
		case <-ctx.Done():
			return nil
		}
		again.Stop()
	}
}

// open begins a session, and gives up when that takes too long.
func (s *Server) open(ctx context.Context, client *sdk.Client, t sdk.Transport) (*sdk.ClientSession, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTime, errNoAnswer)
	defer cancel()
	type result struct {
		*sdk.ClientSession
		err error
	}
	opened := make(chan result)
	go func() {
		cs, err := client.Connect(ctx, t, nil)
		select {
		case opened <- result{cs, err}:
		case <-ctx.Done(): // nobody wants it any more
			if err == nil {
				cs.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		if r.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return r.ClientSession, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// offer lists the server's tools and puts them where they are called.
func (s *Server) offer(ctx context.Context, c *session) error {
	listed := make(chan listing, 1)
	err := within(ctx, s.listTime, func(ctx context.Context) error {
		found, err := c.list(ctx)
		listed <- found
		return err
	})
	if err != nil {
		return err
	}
	all := <-listed
	s.put(all.tools...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.session, s.listed = Status{Connected: true, Tools: len(all.tools)}, c, all
	return nil
}

// put offers tools, and logs what is refused of them if that is news.
func (s *Server) put(all ...tools.Tool) {
	refused := ""
	if err := s.o.Put("the MCP server "+s.o.Name, all...); err != nil {
		refused = err.Error()
	}
	s.mu.Lock()
	news := refused != "" && refused != s.refused
	if len(all) > 0 {
		s.refused = refused
	}
	s.mu.Unlock()
	if news {
		s.log.Warn("mcp server: not all of its tools can be offered", "err", refused)
	}
}

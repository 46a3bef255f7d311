package wyoming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// A Service says where a service is and how patient to be with it. Address must be set.
type Service struct {
	// Address is "host:port", "tcp://host:port" or "unix:///path". There is no encryption: whoever can listen on the
	// network hears what is said.
	Address string `toml:"address"`

	// Connect bounds how long a connection may take; default 2 s.
	Connect time.Duration `toml:"connect"`

	// Wait bounds how long the service may take for its answer, and for each further part of it; default 8 s.
	Wait time.Duration `toml:"wait"`
}

// SetDefaults fills in what is not set, and tells what is wrong with the rest.
func (s *Service) SetDefaults() error {
	if s.Connect <= 0 {
		s.Connect = 2 * time.Second
	}
	if s.Wait <= 0 {
		s.Wait = 8 * time.Second
	}
	_, _, err := s.where()
	return err
}

// where is the network and the address on it.
func (s *Service) where() (network, address string, err error) {
	example := `like "speech.local:10300" or "unix:///run/piper.sock"`
	if s.Address == "" {
		return "", "", errors.New("no address is set: it is " + example)
	}
	if !strings.Contains(s.Address, "://") {
		s.Address = "tcp://" + s.Address
	}
	u, err := url.Parse(s.Address)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("address: %w", err)
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		return "unix", u.Path, nil
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "" && u.Path == "":
		return "tcp", u.Host, nil
	}
	return "", "", fmt.Errorf("address = %q: it must be %s", s.Address, example)
}

// A Conn is a connection to a service, for one request. Send and Receive may run at the same time.
type Conn struct {
	conn    net.Conn
	reader  *Reader
	service Service
	stop    func() bool
}

// Dial connects. When ctx is done the connection breaks. SetDefaults must have been called. Every error here names the
// service, but for ctx's cause.
func (s Service) Dial(ctx context.Context) (*Conn, error) {
	network, address, err := s.where()
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: s.Connect}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", s.Address, plain(err, s.Connect))
	}
	c := &Conn{conn: conn, reader: NewReader(conn), service: s}
	c.stop = context.AfterFunc(ctx, func() { conn.Close() })
	return c, nil
}

// Close ends the connection.
func (c *Conn) Close() {
	c.stop()
	c.conn.Close()
}

// Send sends events. The service has Wait to take each. ctx is Dial's.
func (c *Conn) Send(ctx context.Context, events ...Event) error {
	for _, e := range events {
		c.conn.SetWriteDeadline(time.Now().Add(c.service.Wait))
		if err := Write(c.conn, e); err != nil {
			return c.fault(ctx, err)
		}
	}
	return nil
}

// Expect gives the service Wait, from now on, for what Receive waits for or is going to. At first it has for ever.
func (c *Conn) Expect() { c.conn.SetReadDeadline(time.Now().Add(c.service.Wait)) }

// Receive returns the next event. One that says that something went wrong is an error with a *Fault. ctx is Dial's.
func (c *Conn) Receive(ctx context.Context) (Event, error) {
	e, err := c.reader.Read()
	if err != nil {
		return Event{}, c.fault(ctx, err)
	}
	if e.Type != Failure {
		return e, nil
	}
	f := new(Fault)
	if err := e.Into(f); err != nil {
		return Event{}, c.fault(ctx, err)
	}
	return Event{}, c.fault(ctx, f)
}

// fault names the service.
func (c *Conn) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", c.service.Address, plain(err, c.service.Wait))
}

// errCutOff is a service that went away before its answer was complete.
var errCutOff = errors.New("the service closed the connection before its answer was complete")

// plain says in plain words what is wrong with a connection, after a wait.
func plain(err error, wait time.Duration) error {
	var unknown *net.DNSError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: %w", wait, os.ErrDeadlineExceeded)
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errCutOff
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return errors.New("no service listens there: is it running, and is the address right?")
	case errors.As(err, &unknown):
		return fmt.Errorf("no such host: %q", unknown.Name)
	}
	return err
}

// maxEvents is how many events a service may send before the one that was asked for.
const maxEvents = 1000

// Describe asks the service what it has.
func (s Service) Describe(ctx context.Context) (Info, error) {
	c, err := s.Dial(ctx)
	if err != nil {
		return Info{}, err
	}
	defer c.Close()
	if err := c.Send(ctx, Event{Type: Describe}); err != nil {
		return Info{}, err
	}
	c.Expect()
	for range maxEvents {
		e, err := c.Receive(ctx)
		if err != nil {
			return Info{}, err
		}
		if e.Type != InfoType {
			continue
		}
		var info Info
		if err := e.Into(&info); err != nil {
			return Info{}, c.fault(ctx, err)
		}
		return info, nil
	}
	return Info{}, fmt.Errorf("%s: it doesn't say what it has: is it a Wyoming service?", s.Address)
}

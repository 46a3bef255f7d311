package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"bellbird/hooks"
	"bellbird/plugins/starlark"
)

// Serve is the worker's side: it runs scripts for the host at the other end of the pipes, until they are closed. It is
// what the appliance's program does when it was started as a worker.
func Serve(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	c := &child{
		conn: newConn(in, out), log: log, units: make(map[uint64]*starlark.Script),
		calls: make(map[uint64]context.CancelFunc), replies: make(map[uint64]chan message),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		m, err := c.receive()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		c.handle(ctx, m)
	}
}

type child struct {
	*conn
	log *slog.Logger

	mu      sync.Mutex
	units   map[uint64]*starlark.Script
	calls   map[uint64]context.CancelFunc
	asked   uint64
	replies map[uint64]chan message
}

func (c *child) handle(ctx context.Context, m message) {
	switch m.Op {
	case opLoad, opCheck, opCall:
		ctx, cancel := context.WithCancel(ctx)
		c.mu.Lock()
		c.calls[m.ID] = cancel
		c.mu.Unlock()
		go func() { // calls of several fires may be under way; each is bounded by its deadline
			answer := message{Op: opDone, ID: m.ID}
			event, err := c.do(ctx, m)
			answer.Event = event
			if err != nil {
				answer.Error, answer.Event = err.Error(), nil
			}
			c.mu.Lock()
			delete(c.calls, m.ID)
			c.mu.Unlock()
			cancel()
			if err := c.send(answer); err != nil {
				// A result that can't be sent, because it is too large, say, is a failure of the handler.
				_ = c.send(message{Op: opDone, ID: m.ID, Error: err.Error()}) // nor can this: the host is gone
			}
		}()
	case opCancel:
		c.mu.Lock()
		defer c.mu.Unlock()
		if cancel := c.calls[m.ID]; cancel != nil {
			cancel()
		}
	case opReply:
		c.mu.Lock()
		reply := c.replies[m.ID]
		delete(c.replies, m.ID)
		c.mu.Unlock()
		if reply != nil {
			reply <- m
		}
	}
}

func (c *child) do(ctx context.Context, m message) (*hooks.Event, error) {
	if m.Op == opLoad {
		script, err := starlark.Run(ctx, m.File, []byte(m.Source), starlark.Options{
			State: &remoteState{c, m.ID}, Logger: c.log.With("plugin", m.Plugin),
		})
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.units[m.ID] = script
		return nil, nil
	}
	c.mu.Lock()
	script := c.units[m.Unit]
	c.mu.Unlock()
	if script == nil {
		return nil, errors.New("there is no such unit")
	}
	f, err := script.Func(m.Point)
	if err != nil || m.Op == opCheck {
		return nil, err
	}
	if m.Event == nil {
		return nil, errors.New("a call without an event")
	}
	if err := f(ctx, m.Event); err != nil {
		return nil, err
	}
	return m.Event, nil
}

// remoteState is a plugin's state, which the host keeps.
type remoteState struct {
	c    *child
	unit uint64
}

func (s *remoteState) ask(m message) (message, error) {
	reply := make(chan message, 1)
	s.c.mu.Lock()
	s.c.asked++
	m.Op, m.ID, m.Unit = opState, s.c.asked, s.unit
	s.c.replies[m.ID] = reply
	s.c.mu.Unlock()
	if err := s.c.send(m); err != nil {
		return message{}, err
	}
	r := <-reply // the host answers at once, or is gone, and then so are we
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (s *remoteState) Get(key string, def any) any {
	r, err := s.ask(message{Do: "get", Key: key})
	if err != nil || !r.Found {
		return def
	}
	return r.Value
}

func (s *remoteState) All() map[string]any {
	r, err := s.ask(message{Do: "all"})
	if err != nil {
		return nil
	}
	all, _ := r.Value.(map[string]any)
	return all
}

func (s *remoteState) Save(key string, value any) error {
	_, err := s.ask(message{Do: "save", Key: key, Value: value})
	return err
}

func (s *remoteState) Delete(key string) error {
	_, err := s.ask(message{Do: "delete", Key: key})
	return err
}

// updates keeps the updates of this process from coming between each other's reading and writing. The host's own code
// doesn't write to plugins' states.
var updates sync.Mutex

func (s *remoteState) Update(key string, def any, f func(any) (any, error)) (any, error) {
	updates.Lock()
	defer updates.Unlock()
	value, err := f(s.Get(key, def))
	if err != nil {
		return nil, err
	}
	return value, s.Save(key, value)
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"bellbird/plugins"
	"bellbird/plugins/starlark"
)

// Serve is the worker's side: it runs scripts for the host at the other end of the pipes, until they are closed. It is
// what the appliance's program does when it was started as a worker.
func Serve(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	if f, ok := in.(*os.File); ok {
		in = pollable(f)
	}
	c := &child{
		conn: newConn(in, out), log: log, units: make(map[uint64]*script),
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

// pollable is f as the runtime's poller takes it. A read that waits for the poller lets the call that it has just read
// go on in the same thread, while one that waits in the system makes it wait for another thread. Where that can't be had,
// f serves as it is.
func pollable(f *os.File) *os.File {
	if syscall.SetNonblock(int(f.Fd()), true) != nil {
		return f
	}
	return os.NewFile(f.Fd(), f.Name())
}

type child struct {
	*conn
	log *slog.Logger

	mu      sync.Mutex
	units   map[uint64]*script
	calls   map[uint64]context.CancelFunc
	asked   uint64
	replies map[uint64]chan message
}

func (c *child) handle(ctx context.Context, m message) {
	switch m.Op {
	case opLoad, opCheck, opCall, opTools, opExecute:
		ctx, cancel := context.WithCancel(ctx)
		c.mu.Lock()
		c.calls[m.ID] = cancel
		c.mu.Unlock()
		go func() { // calls of several fires may be under way; each is bounded by its deadline
			answer := message{Op: opDone, ID: m.ID}
			if err := c.do(ctx, m, &answer); err != nil {
				answer = message{Op: opDone, ID: m.ID, Error: err.Error()}
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
	case opSettings:
		c.mu.Lock()
		defer c.mu.Unlock()
		if script := c.units[m.Unit]; script != nil {
			script.settings.Set(m.Settings) // before the calls that come later
		}
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

// A script is what was loaded of a unit.
type script struct {
	*starlark.Script
	settings *plugins.Settings
	names    atomic.Pointer[[]string] // of the powers; nil: it has not asked yet
}

func (c *child) do(ctx context.Context, m message, answer *message) error {
	ctx = context.WithValue(ctx, callKey{}, m.ID)
	if m.Op == opLoad {
		return c.load(ctx, m)
	}
	c.mu.Lock()
	script := c.units[m.Unit]
	c.mu.Unlock()
	if script == nil {
		return errors.New("there is no such unit")
	}
	switch m.Op {
	case opTools:
		schemas, err := script.Tools(ctx)
		for _, s := range schemas {
			answer.Args = append(answer.Args, s)
		}
		return err
	case opExecute:
		text, ok, err := script.Execute(ctx, m.Key, m.Kwargs)
		answer.Value, answer.Found = text, ok
		return err
	}
	f, err := script.Func(m.Point)
	if err != nil || m.Op == opCheck {
		return err
	}
	if m.Event == nil {
		return errors.New("a call without an event")
	}
	if m.System {
		if m.Event.Metadata == nil {
			m.Event.Metadata = make(map[string]any)
		}
		m.Event.Metadata[systemKey] = &remotePowers{c, script, m.Unit, m.ID}
	}
	answer.Event = m.Event
	return f(ctx, m.Event)
}

func (c *child) load(ctx context.Context, m message) error {
	unit := &script{settings: plugins.NewSettings(m.Settings)}
	o := starlark.Options{
		State: &remoteState{c, m.ID}, Settings: unit.settings, Logger: c.log.With("plugin", m.Plugin),
		Grant: func(system any) starlark.Powers {
			if p, ok := system.(*remotePowers); ok {
				return p
			}
			return nil
		},
		Rows: func(ctx context.Context, name string, args []any, kwargs map[string]any) (any, error) {
			call, _ := ctx.Value(callKey{}).(uint64)
			reply, err := c.ask(ctx, message{Do: doRows, Unit: m.ID, Call: call, Key: name, Args: args, Kwargs: kwargs})
			return reply.Value, err
		},
		Fetch: func(ctx context.Context, r plugins.Request) (*plugins.Response, error) {
			call, _ := ctx.Value(callKey{}).(uint64)
			reply, err := c.ask(ctx, message{Do: doFetch, Unit: m.ID, Call: call, Request: &r})
			return reply.Response, err
		},
	}
	var err error
	if unit.Script, err = starlark.Run(ctx, m.File, []byte(m.Source), o); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units[m.ID] = unit
	return nil
}

// callKey is where the context of a call has its number.
type callKey struct{}

// ask asks the host for something. When ctx ends first, nobody waits for the answer any more.
func (c *child) ask(ctx context.Context, m message) (message, error) {
	if n := size(m.Args) + size(m.Kwargs) + size(m.Value); n > maxAsk {
		return message{}, fmt.Errorf("%d bytes are too large", n)
	}
	reply := make(chan message, 1)
	c.mu.Lock()
	c.asked++
	m.Op, m.ID = opAsk, c.asked
	c.replies[m.ID] = reply
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.replies, m.ID)
	}
	if err := c.send(m); err != nil {
		forget()
		return message{}, err
	}
	select {
	case r := <-reply:
		if r.Error != "" {
			return r, errors.New(r.Error)
		}
		return r, nil
	case <-ctx.Done():
		forget()
		return message{}, context.Cause(ctx)
	}
}

// size is about how large a value is when it is sent. That is asked first, since sending takes a few times the memory.
func size(v any) int {
	n := 8
	switch v := v.(type) {
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case []any:
		for _, x := range v {
			n += size(x)
		}
	case map[string]any:
		for k, x := range v {
			n += len(k) + size(x)
		}
	}
	return n
}

// remotePowers are what a call may have done by the host.
type remotePowers struct {
	c      *child
	script *script
	unit   uint64
	call   uint64
}

var _ starlark.Powers = (*remotePowers)(nil)

// Names asks for the names once for each unit.
func (p *remotePowers) Names() []string {
	if names := p.script.names.Load(); names != nil {
		return *names
	}
	r, err := p.c.ask(context.Background(), message{Do: doNames, Unit: p.unit, Call: p.call}) // answered at once
	if err != nil {
		return nil
	}
	p.script.names.Store(&r.Names)
	return r.Names
}

func (p *remotePowers) Call(ctx context.Context, name string, args []any, kwargs map[string]any) (any, error) {
	r, err := p.c.ask(ctx, message{Do: doPower, Unit: p.unit, Call: p.call, Key: name, Args: args, Kwargs: kwargs})
	return r.Value, err
}

// remoteState is a plugin's state, which the host keeps.
type remoteState struct {
	c    *child
	unit uint64
}

func (s *remoteState) ask(m message) (message, error) {
	m.Unit = s.unit
	return s.c.ask(context.Background(), m) // the host answers at once, or is gone, and then so are we
}

func (s *remoteState) Get(key string, def any) any {
	r, err := s.ask(message{Do: doGet, Key: key})
	if err != nil || !r.Found {
		return def
	}
	return r.Value
}

func (s *remoteState) All() map[string]any {
	r, err := s.ask(message{Do: doAll})
	if err != nil {
		return nil
	}
	all, _ := r.Value.(map[string]any)
	return all
}

func (s *remoteState) Save(key string, value any) error {
	_, err := s.ask(message{Do: doSave, Key: key, Value: value})
	return err
}

func (s *remoteState) Clear() error {
	_, err := s.ask(message{Do: doClear})
	return err
}

func (s *remoteState) Delete(key string) error {
	_, err := s.ask(message{Do: doDelete, Key: key})
	return err
}

// updates keeps the updates of this process from coming between each other's reading and writing. Of the host's own code
// only an answer that a plugin wanted to have saved writes to its state, under a key of its own.
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

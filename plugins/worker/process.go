package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// A process is one life of the worker.
type process struct {
	*conn
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout io.Closer
	began  time.Time
	gone   chan struct{} // closed when it has ended

	mu     sync.Mutex
	dead   bool // it was killed, and is waited for
	calls  map[uint64]*pending
	asking int // how much of what it asked for is under way
}

// A pending call waits for its answer.
type pending struct {
	answer chan message
	began  time.Time
	late   bool // it was told to end, and didn't
	blamed bool // for the end of the worker

	// What the worker asks for in this call is done in its context and with its powers.
	unit    uint64
	ctx     context.Context
	granted *plugins.Granted // nil: it has none
}

func (h *Host) spawn() (*process, error) {
	cmd := h.o.Command()
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = time.Second // for those who copy what it says
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("plugin worker: %w", err)
	}
	p := &process{
		conn: newConn(out, in), cmd: cmd, stdin: in, stdout: out, began: time.Now(),
		gone: make(chan struct{}), calls: make(map[uint64]*pending),
	}
	// One that reads nothing any more is ended, so that nobody waits for it for ever.
	if f, ok := in.(*os.File); ok {
		p.limit = f.SetWriteDeadline
	}
	p.broken = p.kill
	go h.serve(p)
	if h.o.Share > 0 {
		go h.meter(p)
	}
	return p, nil
}

// serve takes what the worker sends, until it ends, and then looks after what was under way in it.
func (h *Host) serve(p *process) {
	var err error
	for err == nil {
		var m message
		if m, err = p.receive(); err == nil {
			err = h.handle(p, m)
		}
	}
	p.kill() // it may only have closed its pipe
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	werr := p.cmd.Wait()
	p.bury()
	close(p.gone)

	h.mu.Lock()
	if h.proc == p {
		h.proc = nil
	}
	closed := h.closed
	pause := h.died(time.Since(p.began))
	h.mu.Unlock()
	if closed {
		return
	}
	h.o.Logger.Warn("the plugin worker has ended, it is started again", "after", pause, "err", errors.Join(err, werr))
	ctx, cancel := context.WithTimeout(context.Background(), pause+2*h.o.LoadTime)
	defer cancel()
	if _, err := h.process(ctx); err != nil && !errors.Is(err, errClosed) { // before it is needed again
		h.o.Logger.Error("the plugin worker can't be started", "err", err)
	}
}

// bury ends what was under way. The blame for the worker's end is on the calls that would not end; if there is none, it
// ran out of memory, and the blame is on the call that was there longest. The others were only unlucky.
func (p *process) bury() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest *pending
	late := false
	for _, c := range p.calls {
		late = late || c.late
		c.blamed = c.late
		if oldest == nil || c.began.Before(oldest.began) {
			oldest = c
		}
	}
	if oldest != nil && !late {
		oldest.blamed = true
	}
	for _, c := range p.calls {
		close(c.answer)
	}
	p.calls = nil
}

// handle takes a message. After an error the worker can't be relied on any more.
func (h *Host) handle(p *process, m message) error {
	switch m.Op {
	case opDone:
		p.mu.Lock()
		c := p.calls[m.ID]
		delete(p.calls, m.ID)
		p.mu.Unlock()
		if c == nil { // every call is waited for until it is answered
			return fmt.Errorf("it answered a call %d, which there is not, or not any more", m.ID)
		}
		c.answer <- m
	case opAsk:
		h.asked(p, m)
	default:
		return fmt.Errorf("it sent a message of kind %d, which is not for workers to send", m.Op)
	}
	return nil
}

// kill ends the worker, and lets serve see it, even if it left somebody behind who has its pipe.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return // its number may be another's by now
	}
	killAll(p.cmd)
	p.stdout.Close()
}

// call sends a message and waits for its answer. If ctx ends first, the worker is told, and if it doesn't end the call
// then, it is killed: the error is hooks.ErrKilled.
func (p *process) call(ctx context.Context, m message, granted *plugins.Granted) (message, error) {
	c := &pending{answer: make(chan message, 1), began: time.Now(), unit: m.Unit, ctx: ctx, granted: granted}
	if m.Op == opLoad {
		c.unit = m.ID
	}
	p.mu.Lock()
	if p.calls == nil {
		p.mu.Unlock()
		return m, errRestarting
	}
	p.calls[m.ID] = c
	p.mu.Unlock()
	if err := p.send(m); err != nil {
		p.mu.Lock()
		delete(p.calls, m.ID)
		p.mu.Unlock()
		return m, fmt.Errorf("plugin worker: %w", err)
	}
	done := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case r, ok := <-c.answer:
			switch {
			case !ok && c.blamed: // written before it was closed
				return m, fmt.Errorf("the plugin worker ended during the call: %w", hooks.ErrKilled)
			case !ok:
				return m, errRestarting
			case r.Error != "":
				return m, errors.New(r.Error)
			case m.Op == opCall && r.Event == nil:
				return m, errors.New("the plugin worker sent no event")
			}
			return r, nil
		case <-done:
			done = nil
			if err := p.send(message{Op: opCancel, ID: m.ID}); err != nil {
				return m, context.Cause(ctx)
			}
			timer := time.NewTimer(moment)
			defer timer.Stop()
			late = timer.C
		case <-late:
			p.mu.Lock()
			c.late = true
			p.mu.Unlock()
			p.kill() // then serve ends, and closes the answer
		}
	}
}

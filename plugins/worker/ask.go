package worker

import (
	"context"
	"errors"
	"fmt"

	"bellbird/plugins"
)

// This file is what the host does for the worker: it asks for what its plugins keep, for powers, and for requests to
// servers.

// maxAsking is how much of what a worker asks for may be under way. A script waits for each of its answers, so this is
// more than there ever are calls.
const maxAsking = 32

// asked has what the worker asks for done, since it may take its time.
func (h *Host) asked(p *process, m message) {
	h.mu.Lock()
	u := h.units[m.Unit]
	h.mu.Unlock()
	p.mu.Lock()
	c := p.calls[m.Call]
	busy := p.asking >= maxAsking
	if !busy {
		p.asking++
	}
	p.mu.Unlock()
	reply := message{Op: opReply, ID: m.ID}
	switch {
	case busy:
		reply.Error = "the plugins ask for too much at once"
	case u == nil:
		reply.Error = "there is no such unit"
	case size(m.Args)+size(m.Kwargs)+size(m.Value) > maxAsk: // not every worker looks
		reply.Error = "what is asked for is too large"
	}
	if busy {
		_ = p.send(reply) // the worker is gone, then
		return
	}
	go func() {
		if reply.Error == "" {
			var err error
			if m.Do == doPublish {
				err = h.publish(u, m)
			} else {
				err = u.answer(c, m, &reply)
			}
			if err != nil {
				reply.Error = err.Error()
			}
		}
		p.mu.Lock()
		p.asking--
		p.mu.Unlock()
		if err := p.send(reply); err != nil {
			_ = p.send(message{Op: opReply, ID: m.ID, Error: err.Error()}) // the answer was too large, or the worker is gone
		}
	}()
}

// publish tells everybody what a plugin has to say.
func (h *Host) publish(u *unit, m message) error {
	if h.o.Publish == nil {
		return nil // as when nobody listens
	}
	return h.o.Publish(u.owner.Manifest.Name, m.Key, m.Value)
}

// answer does what unit u asks for in call c, which is nil if that has ended.
func (u *unit) answer(c *pending, m message, reply *message) (err error) {
	switch m.Do {
	case doNames, doPower, doFetch, doRows:
		switch {
		case c == nil:
			return errors.New("the call in which this is asked for is over")
		case c.unit != u.id:
			return errors.New("the call in which this is asked for is another plugin's")
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case m.Do == doRows && u.owner.Rows == nil:
			return errors.New("this plugin can't keep anything in chats")
		case m.Do == doRows:
			reply.Value, err = plugins.CallRows(u.owner.Rows, m.Key, m.Args, m.Kwargs)
			return err
		case m.Do == doFetch && (u.owner.Web == nil || m.Request == nil):
			return errors.New("http: there is no network here")
		case m.Do == doFetch:
			reply.Response, err = u.owner.Web.Fetch(c.ctx, u.owner.Manifest, *m.Request)
			return err
		case c.granted == nil:
			return errors.New("there is no system at this point")
		case m.Do == doNames:
			reply.Names = c.granted.Names()
			return nil
		}
		reply.Value, err = c.granted.Call(c.ctx, m.Key, m.Args, m.Kwargs)
		return err
	}
	state := u.owner.State
	if state == nil {
		return errors.New("this plugin has no state")
	}
	type missing struct{}
	switch m.Do {
	case doGet:
		reply.Value = state.Get(m.Key, missing{})
		if reply.Found = reply.Value != any(missing{}); !reply.Found {
			reply.Value = nil
		}
	case doAll:
		reply.Value = state.All()
	case doSave:
		return state.Save(m.Key, m.Value)
	case doDelete:
		return state.Delete(m.Key)
	case doClear:
		return state.Clear()
	default:
		return fmt.Errorf("nothing can be done about %.20q", m.Do)
	}
	return nil
}

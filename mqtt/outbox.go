package mqtt

import (
	"slices"
	"sync"
)

// A message is one that is to be published.
type message struct {
	topic    string
	payload  string
	retained bool
}

// An item waits in an outbox. Of a state only the topic counts: its newest is sent.
type item struct {
	message
	state bool
}

// maxEvents bounds what waits in an outbox, its states aside: of those only the newest of each topic waits.
const maxEvents = 256

// An outbox is what waits to be published. Nobody who puts something into it waits. States are remembered, and all of
// them are sent again when a connection begins: of each topic the newest waits. Events are for those who listen now:
// while there is no connection, and when maxEvents wait already, new ones are dropped and counted.
type outbox struct {
	more chan struct{} // has one when something may wait

	mu      sync.Mutex
	open    bool
	states  map[string]message
	order   []string // of states: as they were first put
	queue   []item
	waiting map[string]bool // topics of states that are in the queue
	events  int             // in the queue
	dropped uint64
}

func newOutbox() *outbox {
	return &outbox{more: make(chan struct{}, 1), states: make(map[string]message), waiting: make(map[string]bool)}
}

// state puts the newest of a topic. One that is as it was is put only if again says so.
func (o *outbox) state(m message, again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, known := o.states[m.topic]
	if known && old == m && !again {
		return
	}
	if !known {
		o.order = append(o.order, m.topic)
	}
	o.states[m.topic] = m
	if o.open {
		o.enqueue(m)
	}
}

// enqueue is called with the lock held, for a state.
func (o *outbox) enqueue(m message) {
	if !o.waiting[m.topic] {
		o.waiting[m.topic] = true
		o.queue = append(o.queue, item{m, true})
	}
	o.signal()
}

// forget removes a state, so that it isn't sent any more.
func (o *outbox) forget(topic string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.states, topic)
	delete(o.waiting, topic)
	o.order = slices.DeleteFunc(o.order, func(t string) bool { return t == topic })
	o.queue = slices.DeleteFunc(o.queue, func(i item) bool { return i.state && i.topic == topic })
}

// send puts an event, if there is a connection and room for it.
func (o *outbox) send(m message) (ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open {
		o.dropped++
		return false
	}
	return o.event(m)
}

// event is called with the lock held.
func (o *outbox) event(m message) bool {
	if o.events == maxEvents {
		o.dropped++
		return false
	}
	o.events++
	o.queue = append(o.queue, item{message: m})
	o.signal()
	return true
}

func (o *outbox) signal() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// begin is called when a connection has begun: first is sent, then all states, then last.
func (o *outbox) begin(first []message, last message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = true
	o.refill(first, last)
}

// again sends everything again, if there is a connection.
func (o *outbox) again(first []message, last message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		o.refill(first, last)
	}
}

func (o *outbox) refill(first []message, last message) {
	events := slices.DeleteFunc(o.queue, func(i item) bool { return i.state })
	o.queue = nil
	for _, m := range first {
		o.queue = append(o.queue, item{message: m})
	}
	o.queue = append(o.queue, events...)
	clear(o.waiting)
	for _, topic := range o.order {
		o.enqueue(o.states[topic])
	}
	o.queue = append(o.queue, item{message: last})
	o.events = len(first) + len(events) + 1
	o.signal()
}

// end is called when the connection is lost. Events that wait are dropped.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = false
	o.dropped += uint64(o.events)
	o.queue, o.events = nil, 0
	clear(o.waiting)
}

// take removes what is to be sent next.
func (o *outbox) take() (m message, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return m, false
	}
	next := o.queue[0]
	o.queue = o.queue[1:]
	if !next.state {
		o.events--
		return next.message, true
	}
	delete(o.waiting, next.topic)
	return o.states[next.topic], true
}

func (o *outbox) drops() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

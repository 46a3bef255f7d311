// Package mqtt shows the appliance to Home Assistant, over an MQTT broker: it announces it as one device by discovery,
// tells its states, and does what it is told. It also settles with the other speakers of a house who answers, and lets
// plugins publish. It isn't a part of the turn: nobody who has something to tell waits for the broker, and without a
// broker all goes on. What can be shown and done is given to it as functions; it knows none of the other parts.
//
// The flow, from a fact to the broker and from a command to the appliance:
//
//	bus ─► loop ─► home (what the facts told) ─► entities ─► outbox ─► session ─► broker
//	broker ─► session ─► limiter ─► lanes ─► appliance ─► loop (the state that results)
//
// The loop owns what is known. A session is one connection, from its beginning to its loss.
package mqtt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/event"
)

// A Device is the appliance as Home Assistant sees it.
type Device struct {
	o        Options
	log      *slog.Logger
	id       string
	base     string // of its topics
	instance string // of this run: two that have the same id differ in it
	facts    *event.Subscription
	out      *outbox
	embedded string // where the embedded broker listens
	group    *group
	plugins  *pluginTopics
	lanes    map[lane]chan command
	announce *announcer
	backoff  backoff
	met      atomic.Bool // there was a session

	connected chan connection
	refresh   chan string // keys of entities whose state is told again
	births    chan struct{}
	twins     chan bool

	mu       sync.Mutex
	keys     map[string]entity // those that take commands
	limiters map[string]*limiter
	status   Status
}

// A Status is how the connection is.
type Status struct {
	Connected bool
	Since     time.Time // of either
	Err       string    // why not; "" if it is or hasn't been tried yet
	Twin      bool      // another device uses the same id
	Dropped   uint64    // events that weren't sent, because there was no connection or no room
	Refused   uint64    // commands that were not done: retained, too many at once, or not valid
}

// How often what no fact tells is looked at, and the appliance says that it is there.
const (
	lookEvery   = 10 * time.Second
	onlineEvery = time.Minute
	birthJitter = 10 * time.Second
)

// New returns a device that does nothing before Run, but hears the facts from now on. An error is of the options; it says
// which.
func New(o Options) (*Device, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("mqtt: %w", err)
	}
	id, err := o.id()
	if err != nil {
		return nil, fmt.Errorf("mqtt: %w", err)
	}
	if o.Bus == nil {
		o.Bus = new(event.Bus)
	}
	d := &Device{
		o: o, log: o.Logger, id: id, base: "bellbird/" + id, instance: rand.Text(), out: newOutbox(),
		connected: make(chan connection), refresh: make(chan string, 64), births: make(chan struct{}, 1), twins: make(chan bool, 1),
		lanes: make(map[lane]chan command), keys: make(map[string]entity), limiters: make(map[string]*limiter),
	}
	for _, l := range []lane{quick, slow, asks} {
		d.lanes[l] = make(chan command, 8)
	}
	d.announce = newAnnouncer(o.Appliance, d.log)
	d.plugins = newPluginTopics(d.base, d.out)
	d.group = newGroup(id, o.Window, func(payload string) bool { return d.out.send(message{topic: d.groupTopic(), payload: payload}) })
	d.facts = o.Bus.Subscribe(256)
	return d, nil
}

// ID is what the device is known by: in topics, and in what is unique in Home Assistant.
func (d *Device) ID() string { return d.id }

// Close ends the subscription of a device that isn't run.
func (d *Device) Close() { d.facts.Close() }

// Status says how it goes. It may be called at any time.
func (d *Device) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Dropped = d.out.drops() + d.facts.Dropped()
	return s
}

// Run keeps the device connected until ctx is done, and says then that it is offline. It can be called once. Only the
// embedded broker, if its address is taken, makes it fail: all else passes by itself.
func (d *Device) Run(ctx context.Context) error {
	defer d.facts.Close()
	if d.o.Broker == embedded {
		stop, err := d.listen(ctx)
		if err != nil {
			return fmt.Errorf("mqtt: %w", err)
		}
		defer stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { d.loop(ctx) })
	wg.Go(func() { d.announce.run(ctx) })
	for _, commands := range d.lanes {
		wg.Go(func() { d.work(ctx, commands) })
	}
	d.stay(ctx)
	return nil
}

// stay connects, again and again.
func (d *Device) stay(ctx context.Context) {
	said := ""
	for {
		began := time.Now()
		err := d.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= steadyAfter {
			d.backoff.next, said = 0, ""
		}
		if errors.Is(err, errTwin) {
			d.tellTwin(true)
			d.backoff.next = maxBackoff // whoever gives way lets the other work meanwhile
		}
		wait := d.backoff.wait()
		level := slog.LevelDebug
		if err.Error() != said { // once for each cause
			level, said = slog.LevelWarn, err.Error()
		}
		d.log.Log(ctx, level, "no connection to the broker", "broker", d.o.Broker, "err", err, "again_in", wait.Round(time.Millisecond))
		d.note(func(s *Status) { s.Connected, s.Since, s.Err = false, time.Now(), err.Error() })
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (d *Device) note(f func(*Status)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.status)
}

// The topics.
func (d *Device) topic(key string) string { return d.base + "/" + key }
func (d *Device) availability() string    { return d.topic("availability") }
func (d *Device) instanceTopic() string   { return d.topic("instance") }
func (d *Device) configTopic() string     { return d.o.DiscoveryPrefix + "/device/" + d.id + "/config" }
func (d *Device) birthTopic() string      { return d.o.DiscoveryPrefix + "/status" }
func (d *Device) groupTopic() string      { return "bellbird/group/" + d.o.Group + "/wake" }

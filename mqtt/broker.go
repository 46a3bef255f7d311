package mqtt

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// listen begins the embedded broker, for a house that has none. It keeps nothing beyond its end. close must be called.
func (d *Device) listen(ctx context.Context) (close func(), err error) {
	user, password, err := d.o.credentials()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.o.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	d.embedded = l.Addr().String()
	caps := mochi.NewDefaultServerCapabilities()
	caps.MaximumClients = 64
	caps.MaximumPacketSize = maxPacket
	caps.MaximumClientWritesPending = 1024
	caps.MaximumInflight = 1024
	caps.MaximumSessionExpiryInterval = 0
	server := mochi.New(&mochi.Options{Capabilities: caps, Logger: slog.New(slog.DiscardHandler)})
	if err := server.AddHook(&doorman{user: []byte(user), password: []byte(password)}, nil); err != nil {
		l.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := server.AddListener(listeners.NewNet("tcp", patient{l})); err != nil {
		l.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if err := server.Serve(); err != nil {
		l.Close()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	d.log.Info("the embedded broker listens", "address", d.embedded)
	return func() { server.Close() }, nil
}

// A doorman lets those in who know the password, if there is one. Who is in may do everything, but listen to the broker's
// own counts.
//
// It also lets only one client at a time subscribe or publish what is retained: the broker looks for what a subscription
// fits without a lock against those who change it.
type doorman struct {
	mochi.HookBase
	user, password []byte

	mu     sync.Mutex
	inside atomic.Pointer[mochi.Client]
}

func (*doorman) ID() string { return "doorman" }

func (*doorman) Provides(b byte) bool {
	switch b {
	case mochi.OnConnectAuthenticate, mochi.OnACLCheck, mochi.OnPacketRead, mochi.OnPacketProcessed, mochi.OnWill, mochi.OnWillSent, mochi.OnDisconnect:
		return true
	}
	return false
}

func (h *doorman) OnConnectAuthenticate(_ *mochi.Client, p packets.Packet) bool {
	if len(h.password) == 0 {
		return true
	}
	return subtle.ConstantTimeCompare(p.Connect.Username, h.user)&subtle.ConstantTimeCompare(p.Connect.Password, h.password) == 1
}

func (*doorman) OnACLCheck(_ *mochi.Client, topic string, _ bool) bool {
	return !strings.HasPrefix(topic, "$")
}

func (h *doorman) OnPacketRead(c *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if p.FixedHeader.Type == packets.Subscribe || p.FixedHeader.Type == packets.Publish && p.FixedHeader.Retain {
		h.enter(c)
	}
	return p, nil
}

func (h *doorman) OnPacketProcessed(c *mochi.Client, _ packets.Packet, _ error) { h.leave(c) }

func (h *doorman) OnWill(c *mochi.Client, w mochi.Will) (mochi.Will, error) {
	h.enter(c)
	return w, nil
}

func (h *doorman) OnWillSent(c *mochi.Client, _ packets.Packet) { h.leave(c) }

// OnDisconnect comes after everything else, also after a packet that was refused.
func (h *doorman) OnDisconnect(c *mochi.Client, _ error, _ bool) { h.leave(c) }

func (h *doorman) enter(c *mochi.Client) {
	h.leave(c)
	h.mu.Lock()
	h.inside.Store(c)
}

func (h *doorman) leave(c *mochi.Client) {
	if h.inside.CompareAndSwap(c, nil) {
		h.mu.Unlock()
	}
}

// A patient listener gives up a client that doesn't take what it is sent.
type patient struct{ net.Listener }

func (l patient) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return patientConn{c}, nil
}

type patientConn struct{ net.Conn }

func (c patientConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(takeWait)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// takeWait is how long a client of the embedded broker may not take what it is sent.
const takeWait = 5 * time.Second

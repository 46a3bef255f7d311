package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// How long the steps of a connection may take.
const (
	dialWait    = 10 * time.Second
	writeWait   = 10 * time.Second
	pingWait    = 5 * time.Second
	minBackoff  = time.Second
	maxBackoff  = time.Minute
	steadyAfter = 30 * time.Second // a connection that lasted is no failure
)

// A backoff says how long to wait before the next try: twice as long each time, and up to half of that less, so that the
// speakers of a house don't return all at once when the broker does.
type backoff struct{ next time.Duration }

func (b *backoff) wait() time.Duration {
	d := max(b.next, minBackoff)
	b.next = min(2*d, maxBackoff)
	return d/2 + rand.N(d/2+1)
}

// dial opens a connection to the broker, on which no packet may be longer than maxPacket.
func (d *Device) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	u, err := d.o.brokerURL()
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{KeepAlive: d.o.KeepAlive}
	switch {
	case u == nil:
		conn, err := dialer.DialContext(ctx, "tcp", d.embedded)
		return limit(conn, err)
	case u.Scheme == "mqtt":
		conn, err := dialer.DialContext(ctx, "tcp", u.Host)
		return limit(conn, err)
	}
	c, err := d.o.tls(u.Hostname())
	if err != nil {
		return nil, err
	}
	secure := tls.Dialer{NetDialer: &dialer, Config: c}
	conn, err := secure.DialContext(ctx, "tcp", u.Host)
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) {
		err = fmt.Errorf("the broker's certificate: %w: is ca_file that of this broker?", unverified.Err)
	}
	return limit(conn, err)
}

// A limited connection fails when the other side begins a packet that is too long, before anybody makes room for it.
type limited struct {
	net.Conn
	header int // bytes of the header read
	length int // of the packet, as far as its header is read
	left   int // of the packet
}

func limit(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &limited{Conn: c}, nil
}

var errTooLong = fmt.Errorf("the broker sends a packet of more than %d bytes", maxPacket)

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if !l.follow(p[:n]) {
		return 0, errTooLong
	}
	return n, err
}

// follow keeps count of the packets in a stream: a byte with the type, the length in one to four bytes of seven bits
// each, the lowest first, and so many bytes.
func (l *limited) follow(p []byte) (ok bool) {
	for len(p) > 0 {
		if l.left > 0 {
			n := min(l.left, len(p))
			l.left -= n
			p = p[n:]
			continue
		}
		b := p[0]
		p = p[1:]
		if l.header > 0 {
			l.length |= int(b&0x7f) << (7 * (l.header - 1))
			if l.length > maxPacket || l.header == 4 && b&0x80 != 0 {
				return false
			}
			if b&0x80 == 0 {
				l.left, l.length, l.header = l.length, 0, 0
				continue
			}
		}
		l.header++
	}
	return true
}

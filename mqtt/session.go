package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// A session is one connection to the broker.
type session struct {
	*Device
	client paho.Client
	lost   chan error    // has why it ended
	echo   chan struct{} // closed when the broker has told all that it had retained for us

	mu     sync.Mutex
	config []byte // the retained one, as it was when the session began
	echoed bool
	twin   bool
}

const (
	echoWait = 5 * time.Second  // for the broker's answer to what begins a session
	ackWait  = 20 * time.Second // for the acknowledgement of what was sent
	window   = 32               // messages that may be sent before the first of them is acknowledged
	byeWait  = 400 * time.Millisecond
)

// errTwin is why a session ends that found another device with the same id.
var errTwin = errors.New("another device has the same id: was its storage copied from this one? Remove /etc/machine-id on one of them, and start it again")

// connect makes one connection and keeps it until it is lost, or ctx is done.
func (d *Device) connect(ctx context.Context) error {
	s := &session{Device: d, lost: make(chan error, 1), echo: make(chan struct{})}
	user, password, err := d.o.credentials()
	if err != nil {
		return err
	}
	if err := s.open(ctx, user, password); err != nil {
		return err
	}
	err = s.live(ctx)
	d.out.end()
	if ctx.Err() != nil && s.client.IsConnectionOpen() {
		// The will isn't sent for who takes leave.
		s.client.Publish(d.availability(), 1, true, "offline").WaitTimeout(byeWait)
	}
	s.client.Disconnect(uint(byeWait.Milliseconds()))
	return err
}

// open connects.
func (s *session) open(ctx context.Context, user, password string) error {
	var mu sync.Mutex
	var conn net.Conn
	o := paho.NewClientOptions().AddBroker("tcp://broker").SetClientID(s.id).SetUsername(user).SetPassword(password).
		SetProtocolVersion(4).SetCleanSession(true).SetWill(s.availability(), "offline", 1, true).
		SetKeepAlive(s.o.KeepAlive).SetPingTimeout(min(pingWait, s.o.KeepAlive)).SetConnectTimeout(dialWait).SetWriteTimeout(writeWait).
		SetAutoReconnect(false).SetConnectRetry(false).SetOrderMatters(true).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { s.incoming(m) }).
		SetConnectionLostHandler(func(_ paho.Client, err error) { s.lost <- err }).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
			c, err := s.dial(ctx)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			conn = c
			return c, nil
		})
	s.client = paho.NewClient(o)
	token := s.client.Connect()
	select {
	case <-token.Done():
	case <-ctx.Done():
		mu.Lock()
		if conn != nil {
			conn.Close()
		}
		mu.Unlock()
		<-token.Done()
	}
	err := token.Error()
	if ctx.Err() != nil {
		s.client.Disconnect(0)
		return ctx.Err()
	}
	if errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword) || errors.Is(err, packets.ErrorRefusedNotAuthorised) {
		return fmt.Errorf("the broker refuses user %q: %w: are user and password_file right, and may this user connect?", user, err)
	}
	return err
}

// live is what a session does: it subscribes, waits for what the broker has retained, announces, and sends.
func (s *session) live(ctx context.Context) error {
	subs := map[string]byte{
		s.configTopic(): 1, s.instanceTopic(): 1, s.availability(): 1, s.birthTopic(): 1, s.topic("+/set"): 1, s.topic("plugin/#"): 1, s.groupTopic(): 1,
	}
	token := s.client.SubscribeMultiple(subs, nil)
	if err := s.wait(ctx, token.Done(), echoWait, "the broker doesn't answer a subscription"); err != nil {
		return err
	}
	if err := token.Error(); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	for topic, code := range token.(*paho.SubscribeToken).Result() {
		if code > 2 {
			return fmt.Errorf("subscribe: the broker doesn't let this user read %q: change what its access list says of him", topic)
		}
	}
	// What comes back of this comes after all that was retained. It also tells others with the same id of us.
	s.client.Publish(s.instanceTopic(), 1, true, s.instance)
	if err := s.wait(ctx, s.echo, echoWait, "the broker doesn't let this user write below "+s.base); err != nil {
		return err
	}
	s.mu.Lock()
	config, twin := s.config, s.twin
	s.mu.Unlock()
	if twin {
		s.tellTwin(true)
	}
	c := connection{config: config, done: make(chan struct{})}
	select {
	case s.connected <- c:
		<-c.done
	case <-ctx.Done():
		return ctx.Err()
	}
	s.met.Store(true)
	s.log.Info("connected to the broker", "broker", s.o.Broker, "id", s.id)
	s.note(func(st *Status) { st.Connected, st.Since, st.Err = true, time.Now(), "" })
	return s.send(ctx)
}

// wait waits for done, at most for d.
func (s *session) wait(ctx context.Context, done <-chan struct{}, d time.Duration, what string) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case err := <-s.lost:
		return s.why(err)
	case <-t.C:
		return errors.New(what)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// why is what a lost connection is reported as.
func (s *session) why(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.twin {
		return errTwin
	}
	return fmt.Errorf("connection lost: %w", err)
}

// send sends what the outbox has, until the session ends. If the broker acknowledges too slowly this waits; the outbox
// doesn't.
func (s *session) send(ctx context.Context) error {
	var sent []paho.Token
	steady := time.NewTimer(5 * time.Minute) // so long nobody has taken the id
	defer steady.Stop()
	for {
		for len(sent) > 0 {
			if len(sent) < window && !isDone(sent[0]) {
				break
			}
			if err := s.wait(ctx, sent[0].Done(), ackWait, "the broker acknowledges nothing"); err != nil {
				return err
			}
			sent = sent[1:]
		}
		if m, ok := s.out.take(); ok {
			sent = append(sent, s.client.Publish(m.topic, 1, m.retained, m.payload))
			continue
		}
		select {
		case <-s.out.more:
		case err := <-s.lost:
			return s.why(err)
		case <-steady.C:
			s.tellTwin(false)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isDone(t paho.Token) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// incoming takes what the broker sends. It is called for one message after the other, and must not wait.
func (s *session) incoming(m paho.Message) {
	switch topic := m.Topic(); topic {
	case s.configTopic():
		s.mu.Lock()
		if !s.echoed {
			s.config = m.Payload()
		}
		s.mu.Unlock()
	case s.instanceTopic():
		s.meet(string(m.Payload()), m.Retained())
	case s.availability():
		// The will of an older session may come late, and must not be the last word.
		if string(m.Payload()) == "offline" && !m.Retained() {
			s.out.send(s.online())
		}
	case s.birthTopic():
		if string(m.Payload()) == "online" && !m.Retained() {
			select {
			case s.births <- struct{}{}:
			default:
			}
		}
	case s.groupTopic():
		if !m.Retained() {
			s.group.receive(m.Payload())
		}
	default:
		if rest, ok := strings.CutPrefix(topic, s.base+"/plugin/"); ok {
			s.plugins.receive(rest, m.Payload())
			return
		}
		if key, ok := strings.CutSuffix(strings.TrimPrefix(topic, s.base+"/"), "/set"); ok {
			s.take(key, m.Payload(), m.Retained())
		}
	}
}

// meet judges an instance that uses our topics. One that was here before this program began is that of an earlier run;
// any other is another device with our id, and the broker throws one of us out whenever the other connects.
func (s *session) meet(instance string, retained bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case instance == s.instance && !retained && !s.echoed:
		s.echoed = true
		close(s.echo)
	case instance != s.instance && instance != "" && (s.echoed || s.met.Load()):
		s.twin = true
	}
}

// tellTwin says whether another device has our id.
func (d *Device) tellTwin(twin bool) {
	d.mu.Lock()
	before := d.status.Twin
	d.status.Twin = twin
	d.mu.Unlock()
	if before == twin {
		return
	}
	if twin {
		d.log.Error("mqtt id", "err", errTwin, "id", d.id)
	}
	select { // only the newest counts, and only sessions send, one after the other
	case <-d.twins:
	default:
	}
	d.twins <- twin
}

func (d *Device) online() message {
	return message{topic: d.availability(), payload: "online", retained: true}
}

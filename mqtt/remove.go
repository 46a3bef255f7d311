package mqtt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Remove takes the device out of Home Assistant, and all that the broker has retained of it. The appliance must not be
// running, or it announces itself again. It returns how many topics it emptied.
func Remove(ctx context.Context, o Options) (emptied int, err error) {
	if o.Broker == "" || o.Broker == embedded {
		return 0, errors.New("mqtt: there is nothing to remove: the embedded broker keeps nothing, and no other is set in the configuration")
	}
	d, err := New(o)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	user, password, err := d.o.credentials()
	if err != nil {
		return 0, fmt.Errorf("mqtt: %w", err)
	}
	var mu sync.Mutex
	topics := map[string]bool{d.configTopic(): true}
	all := make(chan struct{})
	mark := d.instanceTopic() // what is published there comes back after all that is retained
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://broker").SetClientID(d.id + "_r").SetUsername(user).SetPassword(password).
		SetProtocolVersion(4).SetAutoReconnect(false).SetConnectTimeout(dialWait).SetOrderMatters(true).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return d.dial(ctx) }).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			mu.Lock()
			defer mu.Unlock()
			if m.Topic() == mark && !m.Retained() && string(m.Payload()) == d.instance {
				close(all)
			} else if m.Retained() && strings.HasPrefix(m.Topic(), d.base+"/") {
				topics[m.Topic()] = true
			}
		}))
	if err := finish(ctx, client.Connect()); err != nil {
		return 0, fmt.Errorf("mqtt: %w", err)
	}
	defer client.Disconnect(uint(byeWait.Milliseconds()))
	if err := finish(ctx, client.Subscribe(d.base+"/#", 1, nil)); err != nil {
		return 0, fmt.Errorf("mqtt: %w", err)
	}
	client.Publish(mark, 1, false, d.instance)
	ctx, cancel := context.WithTimeout(ctx, echoWait)
	defer cancel()
	select {
	case <-all:
	case <-ctx.Done():
		return 0, fmt.Errorf("mqtt: the broker doesn't let this user write below %s", d.base)
	}
	mu.Lock()
	found := slices.Sorted(maps.Keys(topics))
	mu.Unlock()
	for _, topic := range found {
		if err := finish(ctx, client.Publish(topic, 1, true, "")); err != nil {
			return emptied, fmt.Errorf("mqtt: %w", err)
		}
		emptied++
	}
	return emptied, nil
}

func finish(ctx context.Context, t paho.Token) error {
	select {
	case <-t.Done():
		return t.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

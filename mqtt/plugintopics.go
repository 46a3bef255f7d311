package mqtt

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// pluginTopics are what plugins publish and hear, each below its own topic: bellbird/ID/plugin/NAME/.
type pluginTopics struct {
	base string
	out  *outbox

	mu      sync.Mutex
	plugins map[string]*pluginTopic
}

type pluginTopic struct {
	limiter  limiter
	retained map[string]bool
	subs     []*subscription
}

type subscription struct {
	filter []string
	queue  chan [2]string
}

// What a plugin may do there.
const (
	maxPluginPayload  = 16 << 10
	maxPluginRetained = 32
	maxPluginSubs     = 16
	maxPluginQueue    = 16
)

func newPluginTopics(base string, out *outbox) *pluginTopics {
	return &pluginTopics{base: base, out: out, plugins: make(map[string]*pluginTopic)}
}

var (
	topicPattern  = regexp.MustCompile(`^[^/+#\x00-\x1f]{1,64}(/[^/+#\x00-\x1f]{1,64}){0,7}$`)
	filterPattern = regexp.MustCompile(`^(([^/+#\x00-\x1f]{1,64}|\+)(/([^/+#\x00-\x1f]{1,64}|\+)){0,7}(/#)?|#)$`)
)

// of is a plugin's; the lock is held.
func (p *pluginTopics) of(name string) (*pluginTopic, error) {
	if !plainKey.MatchString(name) {
		return nil, fmt.Errorf("plugin %q: only names of lower case letters, digits, _ and - have topics", name)
	}
	t := p.plugins[name]
	if t == nil {
		if len(p.plugins) == maxPlugins {
			return nil, errors.New("too many plugins have topics")
		}
		t = &pluginTopic{limiter: limiter{rate: 10, burst: 50}, retained: make(map[string]bool)}
		p.plugins[name] = t
	}
	return t, nil
}

// PluginPublish publishes below the topic of a plugin. What is retained is also sent again when a connection begins;
// with an empty payload it is removed. Without a connection, what isn't retained is dropped. It doesn't wait.
func (d *Device) PluginPublish(plugin, topic, payload string, retained bool) error {
	p := d.plugins
	if !topicPattern.MatchString(topic) {
		return fmt.Errorf("topic %q: it is of up to 8 parts with / between them, without + and #", topic)
	}
	if len(payload) > maxPluginPayload || !utf8.ValidString(payload) {
		return fmt.Errorf("payload: it is text of %d bytes at most", maxPluginPayload)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.of(plugin)
	if err != nil {
		return err
	}
	if !t.limiter.pass(time.Now()) {
		return errors.New("the plugin publishes too often: 10 a second are sent")
	}
	m := message{topic: p.base + "/plugin/" + plugin + "/" + topic, payload: payload, retained: retained}
	switch {
	case !retained:
		p.out.send(m)
	case payload == "":
		if !p.out.send(m) {
			return errors.New("there is no connection in which it could be removed")
		}
		delete(t.retained, topic)
		p.out.forget(m.topic)
	case !t.retained[topic] && len(t.retained) == maxPluginRetained:
		return fmt.Errorf("the plugin has %d retained topics already", maxPluginRetained)
	default:
		t.retained[topic] = true
		p.out.state(m, true)
	}
	return nil
}

// PluginSubscribe calls to with what is published below the topic of a plugin and fits a filter, which may have + and #.
// Topics are told without the plugin's own part. It is called from one goroutine; if it is slow, what comes meanwhile is
// dropped, beyond a few. cancel ends that, and waits until to has returned: to must not call it.
func (d *Device) PluginSubscribe(plugin, filter string, to func(topic, payload string)) (cancel func(), err error) {
	p := d.plugins
	if !filterPattern.MatchString(filter) {
		return nil, fmt.Errorf("filter %q: it is of up to 8 parts with / between them, + for any one, # at the end for any more", filter)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.of(plugin)
	if err != nil {
		return nil, err
	}
	if len(t.subs) == maxPluginSubs {
		return nil, fmt.Errorf("the plugin has %d subscriptions already", maxPluginSubs)
	}
	s := &subscription{filter: strings.Split(filter, "/"), queue: make(chan [2]string, maxPluginQueue)}
	t.subs = append(t.subs, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range s.queue {
			to(m[0], m[1])
		}
	}()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		t.subs = slices.DeleteFunc(t.subs, func(o *subscription) bool { return o == s })
		close(s.queue)
		p.mu.Unlock()
		<-done
	}), nil
}

// receive takes a message; topic is the part below plugin/.
func (p *pluginTopics) receive(topic string, payload []byte) {
	name, topic, ok := strings.Cut(topic, "/")
	if !ok || len(payload) > maxPluginPayload || !utf8.Valid(payload) {
		return
	}
	parts := strings.Split(topic, "/")
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.plugins[name]
	if t == nil {
		return
	}
	for _, s := range t.subs {
		if s.fits(parts) {
			select {
			case s.queue <- [2]string{topic, string(payload)}:
			default:
			}
		}
	}
}

func (s *subscription) fits(parts []string) bool {
	for i, f := range s.filter {
		if f == "#" {
			return true
		}
		if i >= len(parts) || f != "+" && f != parts[i] {
			return false
		}
	}
	return len(parts) == len(s.filter)
}

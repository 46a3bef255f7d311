package mqtt

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"bellbird/event"
)

// A connection is told to the loop when it has begun, with what the broker had retained as our config. done is closed
// when all that is to be told waits in the outbox.
type connection struct {
	config []byte
	done   chan struct{}
}

// announced is what Home Assistant was last told to show.
type announced struct {
	config   string
	platform map[string]string // of each component
}

// loop owns what is known of the appliance, until ctx is done.
func (d *Device) loop(ctx context.Context) {
	h := newHome()
	look, online := time.NewTicker(lookEvery), time.NewTicker(onlineEvery)
	defer look.Stop()
	defer online.Stop()
	birth := time.NewTimer(0)
	birth.Stop()
	var was announced
	table := d.entities(h)
	d.took(table)
	d.tell(h, table, false, nil)

	// shown keeps the config up to date with what there is.
	shown := func() {
		table = d.entities(h)
		d.took(table)
		first, now := d.announcement(table, was)
		d.tell(h, table, false, nil)
		if now.config != was.config {
			d.forget(was, now)
			was = now
			d.out.again(first, d.online())
		}
	}
	for {
		select {
		case f := <-d.facts.C:
			changed, happened := h.learn(f)
			if b, ok := f.(event.ButtonPressed); ok {
				happened = d.press(b)
			}
			for _, m := range happened {
				d.out.send(message{topic: d.topic(m.topic), payload: m.payload})
			}
			if len(changed) > 0 {
				d.tell(h, table, true, changed)
			}
			if slices.Contains(changed, settings) {
				shown()
			}
		case c := <-d.connected:
			was = d.known(c.config, was)
			table = d.entities(h)
			d.took(table)
			d.tell(h, table, false, nil)
			first, now := d.announcement(table, was)
			d.forget(was, now)
			was = now
			d.out.begin(first, d.online())
			close(c.done)
		case key := <-d.refresh:
			shown()
			d.tell(h, table, true, []string{key})
		case <-d.births:
			birth.Reset(rand.N(birthJitter))
		case <-birth.C:
			first, _ := d.announcement(table, was)
			d.out.again(first, d.online())
		case h.twin = <-d.twins:
			d.tell(h, table, false, []string{"problem"})
		case <-look.C:
			shown()
		case <-online.C:
			d.out.send(d.online())
		case <-ctx.Done():
			return
		}
	}
}

// took makes known which entities take commands.
func (d *Device) took(table []entity) {
	keys := make(map[string]entity)
	for _, e := range table {
		if e.command != nil {
			keys[e.key] = e
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = keys
	maps.DeleteFunc(d.limiters, func(key string, _ *limiter) bool { return keys[key].command == nil })
}

// tell puts the states of entities into the outbox: of those in keys, or of all if that is nil.
func (d *Device) tell(h *home, table []entity, again bool, keys []string) {
	for _, e := range table {
		if keys != nil && !slices.Contains(keys, e.key) {
			continue
		}
		if e.state != nil {
			if s, ok := e.state(); ok {
				d.out.state(message{topic: d.topic(e.key), payload: s, retained: !e.speech}, again)
			}
		}
		if e.attributes != nil {
			if a := e.attributes(); a != nil {
				d.out.state(message{topic: d.topic(e.key) + "/attributes", payload: encode(a), retained: !e.speech}, again)
			}
		}
	}
}

// known adds to what was announced what the broker has retained as our config: it may be that of an earlier run, which
// had entities that this one hasn't.
func (d *Device) known(config []byte, was announced) announced {
	var old struct {
		Components map[string]struct {
			Platform string `json:"p"`
		} `json:"cmps"`
	}
	all := announced{config: was.config, platform: make(map[string]string)}
	for key, p := range was.platform {
		all.platform[key] = p
	}
	if json.Unmarshal(config, &old) == nil && len(old.Components) <= maxComponents {
		for key, c := range old.Components {
			all.platform[key] = c.Platform
		}
	}
	return all
}

// announcement is the config. If anything has vanished it is preceded by one that removes that, since Home Assistant
// keeps an entity until its component comes with nothing but its platform, and followed by what empties its states.
func (d *Device) announcement(table []entity, was announced) ([]message, announced) {
	now := announced{platform: make(map[string]string)}
	components := make(map[string]any)
	for _, e := range table {
		now.platform[e.key] = e.platform
		components[e.key] = d.component(e)
	}
	now.config = encode(d.config(components))
	var vanished []message // their states
	changed := false
	for _, key := range slices.Sorted(maps.Keys(was.platform)) {
		platform := was.platform[key]
		if now.platform[key] == platform {
			continue
		}
		changed = true
		components[key] = fields{"p": platform}
		if now.platform[key] == "" {
			vanished = append(vanished, message{topic: d.topic(key), retained: true}, message{topic: d.topic(key) + "/attributes", retained: true})
		}
	}
	config := message{topic: d.configTopic(), payload: now.config, retained: true}
	if !changed {
		return []message{config}, now
	}
	removal := message{topic: d.configTopic(), payload: encode(d.config(components)), retained: true}
	return append([]message{removal, config}, vanished...), now
}

// forget drops the states of what has vanished.
func (d *Device) forget(was, now announced) {
	for key := range was.platform {
		if _, still := now.platform[key]; !still {
			d.out.forget(d.topic(key))
			d.out.forget(d.topic(key) + "/attributes")
		}
	}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "{}" // there is nothing in it that can't be encoded
	}
	return string(text)
}

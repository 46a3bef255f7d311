package mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// A lane is where commands wait that are done one after the other. A full one refuses.
type lane int

// The lanes. What takes long doesn't hold up what doesn't.
const (
	quick lane = iota
	slow
	asks
)

// A command is one that was let in.
type command struct {
	entity  entity
	payload string
}

// A limiter lets a burst pass, and then so many a second.
type limiter struct {
	mu          sync.Mutex
	rate, burst float64
	used        float64
	last        time.Time
}

func (l *limiter) pass(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = max(0, l.used-now.Sub(l.last).Seconds()*l.rate)
	l.last = now
	if l.used+1 > l.burst {
		return false
	}
	l.used++
	return true
}

// How many commands each entity takes: a burst, and then so many a second. Those of others aren't held up by too many of
// one.
const (
	commandRate  = 5
	commandBurst = 10
)

// take lets a command in, or counts that it doesn't: one that is retained was meant for another time, and more than can
// be meant by people are not done.
func (d *Device) take(key string, payload []byte, retained bool) {
	d.mu.Lock()
	e, known := d.keys[key]
	var l *limiter
	if known {
		if l = d.limiters[key]; l == nil {
			l = &limiter{rate: commandRate, burst: commandBurst}
			d.limiters[key] = l
		}
	}
	d.mu.Unlock()
	if !known || retained || len(payload) > maxPayload || !utf8.Valid(payload) || !l.pass(time.Now()) {
		d.refuse()
		return
	}
	select {
	case d.lanes[e.lane] <- command{e, string(payload)}:
	default:
		d.refuse()
	}
}

func (d *Device) refuse() { d.note(func(s *Status) { s.Refused++ }) }

// work does the commands of a lane. The state that results is told, also if it is the same, since who commanded may show
// another already.
func (d *Device) work(ctx context.Context, commands <-chan command) {
	for {
		select {
		case c := <-commands:
			if err := c.entity.command(ctx, c.payload); err != nil && ctx.Err() == nil {
				d.refuse()
				d.log.Warn("a command over MQTT was not done", "entity", c.entity.key, "err", err)
			}
			select {
			case d.refresh <- c.entity.key:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}

// maxSpoken bounds what is announced or asked.
const maxSpoken = 2000

// spoken is a text as it can be spoken.
func spoken(s string) (string, error) {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s))
	switch {
	case s == "":
		return "", errors.New("there is nothing in it")
	case len(s) > maxSpoken:
		return "", errors.New("it is too long to be spoken")
	}
	return s, nil
}

// questions is where a turn can be begun. Its answer is spoken, and published unless the chat is private.
func (d *Device) questions(a *Appliance) entity {
	if a.Ask == nil {
		return entity{}
	}
	return entity{key: "ask", platform: "text", name: "Ask", lane: asks, fields: fields{"min": 1, "max": 255},
		command: func(ctx context.Context, payload string) error {
			text, err := spoken(payload)
			if err != nil {
				return err
			}
			answer, private, err := a.Ask(ctx, text)
			if err == nil && !private {
				d.out.send(message{topic: d.topic("ask/answer"), payload: encode(fields{"text": short(answer, maxText)})})
			}
			return err
		}}
}

// announcements is where a text can be had spoken: itself, or a JSON object with a message and a priority.
func (d *Device) announcements(a *Appliance) entity {
	if a.Announce == nil {
		return entity{}
	}
	return entity{key: "announce", platform: "notify", name: "Announce", command: func(_ context.Context, payload string) error {
		in := struct{ Message, Priority string }{Message: payload}
		if strings.HasPrefix(strings.TrimSpace(payload), "{") {
			in.Message = ""
			if err := json.Unmarshal([]byte(payload), &in); err != nil {
				return err
			}
			if in.Priority != "" && in.Priority != "normal" && in.Priority != "urgent" {
				return errors.New("its priority is normal or urgent")
			}
		}
		text, err := spoken(in.Message)
		if err != nil {
			return err
		}
		return d.announce.add(announcement{text, in.Priority == "urgent"})
	}}
}

package mqtt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"bellbird/event"
)

func TestCommands(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	for _, c := range []struct{ key, payload, state string }{
		{"volume", "42", "42"},
		{"volume", "101", "42"}, // refused: the state that results is told all the same
		{"volume", "NaN", "42"},
		{"volume", "loud", "42"},
		{"mute", "ON", "ON"},
		{"mute", "off", "ON"},
		{"mute", "OFF", "OFF"},
		{"chat", "kitchen", "kitchen"},
		{"chat", "cellar", "kitchen"},
		{"sensitivity", "0.75", "0.75"},
		{"ring", `{"state":"ON","brightness":128}`, `{"state":"ON","brightness":128,"color_mode":"rgb","color":{"r":0,"g":0,"b":0},"effect":"auto"}`},
		{"ring", `{"state":"ON","brightness":256}`, `{"state":"ON","brightness":128,"color_mode":"rgb","color":{"r":0,"g":0,"b":0},"effect":"auto"}`},
		{"ring", `{"effect":"unknown"}`, `{"state":"ON","brightness":128,"color_mode":"rgb","color":{"r":0,"g":0,"b":0},"effect":"auto"}`},
		{"plugin_weather", "OFF", "OFF"},
	} {
		w.publish(d.base+"/"+c.key+"/set", c.payload, false)
		n = w.payload(n, d.base+"/"+c.key, c.state)
	}
	for key, call := range map[string]string{"listen": "listen", "stop": "stop", "restart": "restart", "identify": "identify"} {
		w.publish(d.base+"/"+key+"/set", "PRESS", false)
		h.await(t, call)
	}
	w.publish(d.base+"/firmware/set", "install", false)
	h.await(t, "install")
	w.publish(d.base+"/announce/set", "Dinner\nis ready.", false)
	h.await(t, "announce Dinner is ready.")
	w.publish(d.base+"/ask/set", "what time is it", false)
	h.await(t, "ask what time is it")
	w.payload(n, d.base+"/ask/answer", `{"text":"answer to what time is it"}`)
}

func TestMuteSwitchWins(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	h.settings["mute"], h.hardware = true, true
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	w.publish(d.base+"/mute/set", "OFF", false)
	h.await(t, "refused mute")
	w.payload(n, d.base+"/mute", "ON")
	d.log.await(t, "the mute switch is on")
}

func TestRefusedUnseen(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	h.private = true
	w.publish("bellbird/bellbird_0443d17cd8c4/restart/set", "PRESS", true) // retained, before it comes
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	w.publish(d.base+"/ask/set", strings.Repeat("x", 9<<10), false)
	w.publish(d.base+"/ask/set", "\xff\xfe", false)
	w.publish(d.base+"/nothing/set", "ON", false)
	w.publish(d.base+"/announce/set", `{"message":"x","priority":"highest"}`, false)
	w.publish(d.base+"/ask/set", "what is private", false)
	w.publish(d.base+"/volume/set", "1", false)
	h.await(t, "ask what is private")
	n = w.payload(n, d.base+"/volume", "1")
	d.stop() // so that nothing is under way any more
	n = w.payload(n, d.availability(), "offline")
	for _, heard := range w.all(0, n) {
		if heard.topic == d.base+"/ask/answer" {
			t.Error("the answer of a private chat is published")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.Join(h.calls, ", ") != "ask what is private, set volume" && strings.Join(h.calls, ", ") != "set volume, ask what is private" {
		t.Errorf("called: %q", h.calls)
	}
	if s := d.Status(); s.Refused != 5 {
		t.Errorf("%d were refused", s.Refused)
	}
}

// TestFlood: a thousand commands at once, of two kinds, don't reach the appliance, and nothing else waits for them.
func TestFlood(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr(), "bellbird/+/state", "bellbird/+/availability", "bellbird/+/mute")
	h := newHouse()
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	began := time.Now()
	const each = 500
	for range each {
		w.client.Publish(d.base+"/volume/set", 1, false, "10")
		w.client.Publish(d.base+"/ask/set", 1, false, "again")
	}
	w.publish(d.base+"/mute/set", "ON", false) // comes after all of them
	n = w.payload(n, d.base+"/mute", "ON")
	d.bus.Publish(event.StateChanged{To: event.Thinking})
	w.payload(n, d.base+"/state", "thinking")
	most := 2 * (10 + 5*(int(time.Since(began).Seconds())+1))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.calls) > most+1 {
		t.Errorf("%d of %d commands were done, more than %d", len(h.calls), 2*each, most)
	}
	if s := d.Status(); int(s.Refused) < 2*each-most || s.Dropped != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestUrgent(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	spoken := make(chan struct{}) // each is spoken until it is received from, or ended
	h.speaking = func(ctx context.Context, text string) error {
		select {
		case <-spoken:
			return nil
		case <-ctx.Done():
			h.call("ended " + text)
			return ctx.Err()
		}
	}
	d := begin(t, h.appliance(), at(m.url()))
	w.payload(0, d.availability(), "online")
	w.publish(d.base+"/announce/set", "one", false)
	h.await(t, "announce one")
	w.publish(d.base+"/announce/set", "two", false)
	w.publish(d.base+"/announce/set", `{"message":"fire","priority":"urgent"}`, false)
	h.await(t, "announce fire")
	w.publish(d.base+"/announce/set", `{"message":"flood","priority":"urgent"}`, false)
	w.publish(d.base+"/volume/set", "1", false)
	h.await(t, "set volume") // the lane has done them all
	spoken <- struct{}{}
	h.await(t, "announce flood")
	spoken <- struct{}{}
	h.await(t, "announce two")
	spoken <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	got := strings.Join(h.calls, ", ")
	for _, want := range []string{"announce one, stop, ended one, announce fire, set volume, announce flood, announce two", "announce one, ended one, stop, announce fire, set volume, announce flood, announce two"} {
		if got == want {
			return
		}
	}
	t.Errorf("called: %s", got)
}

package mqtt_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"bellbird/event"
	"bellbird/mqtt"
)

// components are those of an announcement.
func components(t testing.TB, payload string) map[string]map[string]any {
	t.Helper()
	var c struct {
		Components map[string]map[string]any `json:"cmps"`
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		t.Fatal(err)
	}
	return c.Components
}

func TestLife(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	d := begin(t, h.appliance(), at(m.url()))

	// The config comes before any state, and the device is available after both.
	n := w.payload(0, d.availability(), "online")
	order := map[string]int{}
	for i, m := range w.all(0, n) {
		if _, known := order[m.topic]; !known {
			order[m.topic] = i
		}
	}
	if order[d.config()] > order[d.base+"/state"] || order[d.base+"/state"] > order[d.availability()] {
		t.Errorf("order of the announcement: config %d, state %d, online %d", order[d.config()], order[d.base+"/state"], order[d.availability()])
	}
	for _, topic := range []string{d.config(), d.base + "/state", d.availability()} {
		if got := retained(t, m, topic); got == "" {
			t.Errorf("%s is not retained", topic)
		}
	}

	// Facts become states.
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for range 2 {
		d.bus.Publish(event.Woke{At: at, Word: "okay_nabu", Score: 0.97})
		w.payload(n, d.base+"/woke", "okay_nabu")
	}
	d.bus.Publish(event.StateChanged{At: at, From: event.Idle, To: "dancing"}) // is not announced, so it isn't told
	d.bus.Publish(event.StateChanged{At: at, From: event.Idle, To: event.Listening})
	d.bus.Publish(event.Heard{At: at, Text: "what time is it"})
	d.bus.Publish(event.ButtonPressed{At: at, Button: "top", Gesture: event.Double})
	d.bus.Publish(event.TurnEnded{Record: event.Record{Run: 7, Began: at, Outcome: event.Completed, Heard: "what time is it", Answer: "It's nine."}})
	n = w.payload(n, d.base+"/woke", "okay_nabu")
	n = w.payload(n, d.base+"/woke", "okay_nabu") // the same once more is told once more
	n = w.payload(n, d.base+"/state", "listening")
	n = w.payload(n, d.base+"/heard", "what time is it")
	n = w.payload(n, d.base+"/button_1", `{"button":"top","event_type":"double"}`)
	n = w.payload(n, d.base+"/turn", "completed")
	d.bus.Publish(event.TurnEnded{Record: event.Record{Run: 8, Began: at, Outcome: "danced"}})
	d.bus.Publish(event.TurnEnded{Record: event.Record{Run: 9, Began: at, Outcome: event.Yielded}})
	n = w.payload(n, d.base+"/turn", "yielded")
	d.bus.Publish(event.TurnEnded{Record: event.Record{Run: 10, Began: at, Outcome: event.Completed, Answer: "It's nine."}})
	n = w.payload(n, d.base+"/turn", "completed")

	// Home Assistant starts again.
	w.publish("homeassistant/status", "online", false)
	_, n = w.await(n, "announced again", func(h heard) bool { return h.topic == d.config() })
	n = w.payload(n, d.base+"/answered", "It's nine.")
	n = w.payload(n, d.base+"/turn", "completed")
	n = w.payload(n, d.availability(), "online")
	for _, topic := range []string{"/heard", "/answered", "/heard/attributes", "/answered/attributes", "/button_1"} {
		if got := retained(t, m, d.base+topic); got != "" {
			t.Errorf("%s is retained: %q", topic, got)
		}
	}

	// The will of an older session comes late.
	w.publish(d.availability(), "offline", false)
	n = w.payload(n, d.availability(), "offline")
	n = w.payload(n, d.availability(), "online")

	d.stop()
	n = w.payload(n, d.availability(), "offline")
	for _, m := range w.all(0, n) {
		if m.payload == "dancing" || m.payload == "danced" {
			t.Errorf("%s: %s", m.topic, m.payload)
		}
	}
	if got := retained(t, m, d.availability()); got != "offline" {
		t.Errorf("when it was stopped, its availability was %q", got)
	}
}

// retained is what the broker has retained of a topic: "" if nothing.
func retained(t testing.TB, m *mosquitto, topic string) string {
	t.Helper()
	w := watch(t, m.addr(), topic, "test/mark")
	w.publish("test/mark", "", false)
	_, n := w.await(0, "mark", func(h heard) bool { return h.topic == "test/mark" })
	w.client.Disconnect(0)
	for _, h := range w.all(0, n) {
		if h.topic == topic && h.retained {
			return h.payload
		}
	}
	return ""
}

func TestPrivate(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	d := begin(t, newHouse().appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	d.bus.Publish(event.Heard{Text: "secret", Private: true})
	d.bus.Publish(event.Said{Text: "secret", Private: true})
	d.bus.Publish(event.TurnEnded{Record: event.Record{Run: 1, Outcome: event.Completed, Heard: "secret", Answer: "secret", Chat: "secret", Private: true}})
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	d.bus.Publish(event.TimerChanged{At: at, ID: 1, Name: "secret", Private: true, What: event.TimerSet, Ends: at.Add(time.Minute), Total: time.Minute})
	d.bus.Publish(event.TimerChanged{At: at, ID: 1, Name: "secret", Private: true, What: event.TimerRinging, Ends: at.Add(time.Minute), Total: time.Minute})
	d.bus.Publish(event.Said{Text: "open"})
	d.bus.Publish(event.Heard{Text: "open"})
	w.payload(n, d.base+"/timer", `{"alarm":false,"event_type":"ringing","id":1,"late":false,"name":""}`)
	n = w.payload(n, d.base+"/heard", "open")
	w.publish("homeassistant/status", "online", false) // all states again
	n = w.payload(n, d.availability(), "online")
	for _, h := range w.all(0, n) {
		if h.topic == d.base+"/turn" || strings.Contains(h.payload, "secret") {
			t.Errorf("of a private chat: %s %s", h.topic, h.payload)
		}
	}
}

func TestVanished(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	h := newHouse()
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")

	// While it runs.
	h.mu.Lock()
	h.plugins = h.plugins[:1]
	h.mu.Unlock()
	d.bus.Publish(event.HookMissed{At: time.Now(), Plugin: "weather", Point: "pre_chat", For: time.Hour})
	removal, n := w.await(n, "removal", func(h heard) bool { return h.topic == d.config() })
	gone := 0
	for key, c := range components(t, removal.payload) {
		if len(c) == 1 {
			gone++
			if c["p"] == nil {
				t.Errorf("%s is removed without its platform", key)
			}
		}
	}
	if gone != 2 {
		t.Errorf("%d entities were removed, not the two of a plugin", gone)
	}
	config, n := w.await(n, "config", func(h heard) bool { return h.topic == d.config() })
	for key, c := range components(t, config.payload) {
		if len(c) == 1 {
			t.Errorf("%s is still there", key)
		}
	}
	n = w.payload(n, d.base+"/problem_plugin_weather", "ON")

	// And between two runs.
	d.stop()
	a := h.appliance()
	a.Ring, a.Volume = nil, nil
	d = begin(t, a, at(m.url()))
	removal, n = w.await(n, "removal", func(h heard) bool { return h.topic == d.config() })
	list := components(t, removal.payload)
	if len(list["ring"]) != 1 || len(list["volume"]) != 1 || list["ring"]["p"] != "light" {
		t.Errorf("removed: ring %v, volume %v", list["ring"], list["volume"])
	}
	config, n = w.await(n, "config", func(h heard) bool { return h.topic == d.config() })
	if list = components(t, config.payload); list["ring"] != nil || list["mute"] == nil {
		t.Errorf("afterwards: ring %v, mute %v", list["ring"], list["mute"])
	}
	w.payload(n, d.availability(), "online")
	if got := retained(t, m, d.base+"/ring"); got != "" {
		t.Errorf("the state of the ring is still %s", got)
	}
}

func TestRemove(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr())
	d := begin(t, newHouse().appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	w.publish(d.base+"/plugin/weather/old", "1", true)
	w.publish("bellbird/bellbird_of_another/state", "idle", true)
	d.stop()
	n = w.payload(n, d.availability(), "offline")
	emptied, err := mqtt.Remove(t.Context(), mqtt.Options{Broker: m.url(), MachineID: "00112233445566778899aabbccddeeff"})
	if err != nil || emptied < 30 {
		t.Errorf("%d topics emptied, error %v", emptied, err)
	}
	w.payload(n, d.config(), "")
	rest := watch(t, m.addr())
	rest.publish("test/mark", "", false)
	_, n = rest.await(0, "mark", func(h heard) bool { return h.topic == "test/mark" })
	for _, h := range rest.all(0, n) {
		if h.retained && h.topic != "bellbird/bellbird_of_another/state" {
			t.Errorf("still retained: %s", h.topic)
		}
	}
}

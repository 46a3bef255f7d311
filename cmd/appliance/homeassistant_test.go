package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestHomeAssistant is the appliance, with a virtual body in a virtual room and otherwise as it is wired, and Home
// Assistant itself, with mosquitto between them. It follows one life: both meet, each is set by the other, Home Assistant
// is started again, the appliance goes, and is removed.
func TestHomeAssistant(t *testing.T) {
	checkout := os.Getenv("BELLBIRD_HA")
	if checkout == "" {
		t.Skip(`it needs Home Assistant, and minutes: run "make test-ha"`)
	}
	needDemo(t)
	broker := mosquitto(t)
	ha := newHA(t, checkout)
	a := newRoomed(t, filepath.Join(ha.kept, "appliance.log"), broker, "")
	id := a.id
	entity := func(platform, key string) string {
		return platform + "." + id + "_" + strings.ReplaceAll(key, "-", "_")
	}

	ha.start()
	ha.onboard()
	ha.addBroker(broker)
	a.begin()
	ha.is(entity("sensor", "state"), "idle")

	// What is set there is done here, and what is done here is shown there.
	ha.do("number.set_value", entity("number", "volume"), "value", 35)
	ha.is(entity("number", "volume"), "35")
	if v := a.output.Volume(); v != 35 {
		t.Errorf("the volume is %d", v)
	}
	loudness{a.output, a.bus, a.clock}.SetVolume(60)
	ha.is(entity("number", "volume"), "60")
	ha.do("number.set_value", entity("number", "sensitivity"), "value", 0.7)
	ha.is(entity("number", "sensitivity"), "0.7")
	ha.do("number.set_value", entity("number", "follow_up"), "value", 0)
	ha.is(entity("number", "follow_up"), "0")
	if d := a.turns.FollowUpTime(); d != 0 {
		t.Errorf("the follow-up time is %v", d)
	}
	ha.do("number.set_value", entity("number", "night"), "value", 40)
	ha.is(entity("number", "night"), "40")
	if b := a.body.NightBrightness(); b != 0.4 {
		t.Errorf("the ring keeps %v of its light at night", b)
	}
	ha.is(entity("switch", "mute"), "off")
	ha.do("switch.turn_on", entity("switch", "mute"))
	ha.is(entity("switch", "mute"), "on")
	if !a.body.mute.Muted() {
		t.Error("it isn't muted")
	}
	ha.do("switch.turn_off", entity("switch", "mute"))
	ha.is(entity("switch", "mute"), "off")
	a.press <- 'm' // the slide switch
	ha.is(entity("switch", "mute"), "on")
	ha.do("switch.turn_off", entity("switch", "mute"))
	ha.is(entity("switch", "mute"), "on")
	a.press <- 'm'
	ha.is(entity("switch", "mute"), "off")
	a.press <- '+' // the dial
	ha.is(entity("number", "volume"), "65")
	plugin := entity("switch", "plugin_polite")
	ha.is(plugin, "off")
	ha.do("switch.turn_on", plugin)
	ha.is(plugin, "on")
	ha.do("light.turn_on", entity("light", "ring"), "brightness", 128, "rgb_color", []int{0, 0, 255}, "effect", "spin")
	ha.await(entity("light", "ring"), func(s haState) bool {
		return s.State == "on" && fmt.Sprint(s.Attributes["brightness"]) == "128" && s.Attributes["effect"] == "spin"
	})
	if err := a.store.Create("kitchen"); err != nil {
		t.Fatal(err)
	}
	ha.await(entity("select", "chat"), func(s haState) bool {
		options, _ := s.Attributes["options"].([]any)
		return slices.Contains(options, any("kitchen"))
	})
	ha.do("select.select_option", entity("select", "chat"), "option", "kitchen")
	ha.is(entity("select", "chat"), "kitchen")
	ha.is(entity("binary_sensor", "problem"), "off")

	// A turn, of which only "Ask" is told, and a timer.
	ha.do("text.set_value", entity("text", "ask"), "value", "set a timer for one second")
	ha.is(entity("sensor", "turn"), "completed")
	ha.await(entity("event", "timer"), func(s haState) bool { return s.Attributes["event_type"] == "ringing" })
	ha.do("button.press", entity("button", "stop"))
	ha.await(entity("event", "timer"), func(s haState) bool { return s.Attributes["event_type"] == "silenced" })
	ha.is(entity("sensor", "timers"), "0")
	ha.is(entity("sensor", "state"), "idle")

	// Somebody calls.
	a.room.Say(spokenBy(t, userVoice, "okay nabu, what time is it"))
	ha.is(entity("sensor", "woke"), "okay_nabu")
	ha.is(entity("sensor", "state"), "speaking")
	ha.is(entity("sensor", "state"), "idle")

	// An announcement is spoken.
	before := a.mark()
	ha.do("notify.send_message", entity("notify", "announce"), "message", "Timer set for twenty seconds.")
	ha.is(entity("sensor", "state"), "speaking")
	ha.is(entity("sensor", "state"), "idle")
	if said := recognizePieces(t, a.since(before)); !slices.Equal(said, []string{"timer set for twenty seconds"}) {
		t.Errorf("announced was %q", said)
	}
	ha.do("button.press", entity("button", "identify"))
	ha.do("button.press", entity("button", "listen"))
	ha.is(entity("sensor", "state"), "listening")
	ha.do("button.press", entity("button", "stop"))
	ha.is(entity("sensor", "state"), "idle")

	// The button's event begins an automation, and so does a device trigger of it.
	ha.automate(entity("event", "button_1"))
	a.press <- 'd'
	ha.await(entity("event", "button_1"), func(s haState) bool { return s.Attributes["event_type"] == "double" })
	ha.is("counter.double", "1")
	a.press <- 'l'
	ha.is("counter.held", "1")
	ha.is(entity("switch", "private"), "on") // what a long press does here
	ha.is(entity("select", "chat"), "unknown")
	ha.do("switch.turn_off", entity("switch", "private"))
	ha.is(entity("select", "chat"), "kitchen")
	if s, err := ha.get("counter.double"); err != nil || s.State != "1" {
		t.Errorf("the automation ran %s times, error %v", s.State, err)
	}

	// Home Assistant starts again.
	shown := ha.ofDevice(id)
	took := ha.restart(broker, func() bool { return len(ha.unavailable(id)) == 0 && slices.Equal(ha.ofDevice(id), shown) })
	t.Logf("%d entities were available again %v after the start of Home Assistant", len(shown), took.Round(10*time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("all was available again only after %v: %q", took, ha.unavailable(id))
	}
	ha.is(entity("number", "volume"), "65")
	ha.is(entity("select", "chat"), "kitchen")
	ha.is(entity("light", "ring"), "on")

	// A plugin goes, with its entities and no others.
	shown = slices.DeleteFunc(shown, func(entity string) bool {
		return strings.HasSuffix(entity, "plugin_polite") || strings.HasSuffix(entity, "plugin_polite_problem")
	})
	if err := os.RemoveAll(a.plugin); err != nil {
		t.Fatal(err)
	}
	ha.until("the removal of the plugin", func() bool { return slices.Equal(ha.ofDevice(id), shown) })

	// The appliance goes, since here nobody starts it again, and is removed.
	ha.do("button.press", entity("button", "restart"))
	ha.is(entity("sensor", "state"), "unavailable")
	a.stop()
	ha.stop() // it keeps its list of entities when it ends
	ha.holdEntities(id, a.absent)
	ha.start()
	ha.await(entity("sensor", "state"), func(s haState) bool { // it has heard of the device, and doesn't only remember it
		return s.State == "unavailable" && s.Attributes["restored"] == nil
	})
	ha.judgeLog(id)
	a.remove()
	ha.until("the removal of the device", func() bool { return len(ha.ofDevice(id)) == 0 })
	ha.stop()
	if list := ha.entities(id); len(list) > 0 {
		t.Errorf("after the removal there are still %q", list)
	}
	ha.judgeLog(id, "No device components to cleanup for "+id) // for each disabled entity it empties the topic once more itself
}

// holdEntities holds what Home Assistant has of the device against the golden list.
func (h *hass) holdEntities(id string, absent []string) {
	h.t.Helper()
	got := h.entities(id)
	if err := os.WriteFile(filepath.Join(h.kept, "entities.txt"), []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
		h.t.Fatal(err)
	}
	golden, err := os.ReadFile(filepath.Join(h.checkout, "deploy/ha/entities.txt"))
	if err != nil {
		h.t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(golden)), "\n"), func(line string) bool {
		return slices.ContainsFunc(absent, func(entity string) bool { return strings.HasPrefix(line, entity+" ") })
	})
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("the entities (-want, of deploy/ha/entities.txt, +got, of build/ha/entities.txt):\n%s", diff)
	}
}

// entities is what Home Assistant keeps of the device's entities, in the order of their names. It must have been stopped.
func (h *hass) entities(id string) []string {
	h.t.Helper()
	var registry struct {
		Data struct {
			Entities []struct {
				Entity   string  `json:"entity_id"`
				Unique   string  `json:"unique_id"`
				Platform string  `json:"platform"`
				Name     string  `json:"original_name"`
				Class    *string `json:"original_device_class"`
				Category *string `json:"entity_category"`
				Disabled *string `json:"disabled_by"`
			} `json:"entities"`
		} `json:"data"`
	}
	text, err := fs.ReadFile(os.DirFS(h.config), ".storage/core.entity_registry")
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &registry); err != nil {
		h.t.Fatal(err)
	}
	var list []string
	for _, e := range registry.Data.Entities {
		if e.Platform != "mqtt" {
			continue
		}
		line := strings.Replace(e.Entity, id, "ID", 1) + " \"" + e.Name + "\""
		for _, more := range []*string{e.Category, e.Class} {
			if more != nil {
				line += " " + *more
			}
		}
		if e.Disabled != nil {
			line += " disabled by " + *e.Disabled
		}
		if !strings.HasPrefix(e.Unique, id+"_") {
			line += " unique id " + e.Unique
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

// judgeLog finds what Home Assistant has to complain about, but for its complaints about itself.
func (h *hass) judgeLog(id string, itself ...string) {
	h.t.Helper()
	text, err := os.ReadFile(h.logPath())
	if err != nil {
		h.t.Fatal(err)
	}
	begins := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	at := begins.FindAllIndex(text, -1)
	for i, span := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		entry := string(text[span[0]:end])
		bad := strings.Contains(entry, " WARNING ") || strings.Contains(entry, " ERROR ") || strings.Contains(entry, " CRITICAL ")
		if slices.ContainsFunc(itself, func(s string) bool { return strings.Contains(entry, s) }) {
			continue
		}
		for _, name := range []string{id, "bellbird", deviceName, "components.mqtt"} {
			if bad && strings.Contains(strings.ToLower(entry), strings.ToLower(name)) {
				h.t.Errorf("in the log of Home Assistant: %s", entry)
				break
			}
		}
	}
	if len(at) == 0 {
		h.t.Error("the log of Home Assistant is empty")
	}
}

// ofDevice are the entities of the device that have a state.
func (h *hass) ofDevice(id string) []string {
	return slices.Sorted(maps.Keys(h.states(id)))
}

// unavailable are those that have none now.
func (h *hass) unavailable(id string) []string {
	var list []string
	for entity, s := range h.states(id) {
		if s.State == "unavailable" {
			list = append(list, entity)
		}
	}
	return list
}

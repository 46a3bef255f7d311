package mqtt_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"bellbird/event"
	"bellbird/mqtt"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A contract is what Home Assistant takes.
type contract struct{ compiler *jsonschema.Compiler }

func readContract(t testing.TB) contract {
	t.Helper()
	f, err := os.Open("testdata/contract.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("contract.json", doc); err != nil {
		t.Fatal(err)
	}
	return contract{c}
}

// check holds a value, in JSON, against a part of the contract; "" is a config.
func (c contract) check(part, value string) error {
	at := "contract.json"
	if part != "" {
		at += "#/$defs/payload/" + part
	}
	s, err := c.compiler.Compile(at)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// state holds a state against the contract.
func (c contract) state(platform, payload string) error {
	if !slices.Contains([]string{"light", "update", "event"}, platform) {
		text, _ := json.Marshal(payload)
		payload = string(text)
	}
	return c.check(platform, payload)
}

func TestContractRefuses(t *testing.T) {
	c := readContract(t)
	const rest = `"dev":{"ids":["x"],"name":"X"},"o":{"name":"bellbird"}`
	entity := `"uniq_id":"x_a","def_ent_id":"sensor.x_a","name":"A"`
	for what, config := range map[string]string{
		"no origin":              `{"dev":{"ids":["x"],"name":"X"},"cmps":{}}`,
		"an extra key":           `{` + rest + `,"~":"bellbird/x","cmps":{}}`,
		"an unknown platform":    `{` + rest + `,"cmps":{"a":{"p":"media_player",` + entity + `}}}`,
		"no unique id":           `{` + rest + `,"cmps":{"a":{"p":"sensor","stat_t":"a","name":"A"}}}`,
		"a sensor for config":    `{` + rest + `,"cmps":{"a":{"p":"sensor","stat_t":"a","ent_cat":"config",` + entity + `}}}`,
		"an object_id":           `{` + rest + `,"cmps":{"a":{"p":"sensor","stat_t":"a","object_id":"a",` + entity + `}}}`,
		"options and a unit":     `{` + rest + `,"cmps":{"a":{"p":"sensor","stat_t":"a","dev_cla":"enum","ops":["a"],"unit_of_meas":"s",` + entity + `}}}`,
		"install without topic":  `{` + rest + `,"cmps":{"a":{"p":"update","stat_t":"a","pl_inst":"install",` + entity + `}}}`,
		"a key with a space":     `{` + rest + `,"cmps":{"a b":{"p":"sensor","stat_t":"a",` + entity + `}}}`,
		"an event without types": `{` + rest + `,"cmps":{"a":{"p":"event","stat_t":"a","evt_typ":[],` + entity + `}}}`,
	} {
		if c.check("", config) == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if err := c.check("", `{`+rest+`,"cmps":{"a":{"p":"sensor","stat_t":"a",`+entity+`},"b":{"p":"light"}}}`); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if c.state("light", `{"state":"on"}`) == nil || c.state("number", "1e9") == nil || c.state("update", `{"in_progress":40}`) == nil {
		t.Error("a bad state is taken")
	}
}

// TestPayloads holds everything that a device publishes in its life against the contract, and shows it.
func TestPayloads(t *testing.T) {
	m := broker(t)
	w := watch(t, m.addr(), "homeassistant/#", "bellbird/#")
	c := readContract(t)
	h := newHouse()
	d := begin(t, h.appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	told := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	facts := []event.Fact{
		event.Woke{At: told, Word: "okay_nabu", Score: 0.97},
		event.Woke{At: told, Word: "stop", Stops: true},
		event.Heard{At: told, Text: strings.Repeat("what ", 100)},
		event.TimerChanged{At: told, ID: 1, Name: "pizza", What: event.TimerSet, Ends: told.Add(10 * time.Minute), Total: 10 * time.Minute},
		event.TimerChanged{At: told, ID: 2, What: event.TimerSet, Ends: told.Add(time.Hour), Alarm: true},
		event.TimerChanged{At: told.Add(10 * time.Minute), ID: 1, Name: "pizza", What: event.TimerRinging, Ends: told.Add(10 * time.Minute), Total: 10 * time.Minute},
		event.HookFired{At: told, Calls: []event.HookCall{{Point: "pre_chat", Plugin: "weather", Outcome: "missed"}}},
		event.HookMissed{At: told, Plugin: "weather", Point: "pre_chat", For: time.Minute},
		event.MicrophoneFault{At: told, Reason: "no_frames"},
		event.LoudspeakerFault{At: told, Reason: "missing"},
		event.ProviderSwitched{At: told, Kind: "llm", Name: "offline", Instead: true},
		event.ProviderSwitched{At: told, Kind: "tts", Name: "espeak", Instead: true},
		event.ProviderSwitched{At: told, Kind: "tts", Name: "piper"},
		event.BodyFault{At: told, Part: "ring", Reason: "SPI0.0: no such device"},
		event.ButtonPressed{At: told, Button: "top", Gesture: event.Long},
		event.ButtonPressed{At: told, Button: "top", Gesture: event.ResetArmed},
		event.ButtonPressed{At: told, Button: "unknown", Gesture: event.Press},
		event.TurnEnded{Record: event.Record{
			Run: 7, Began: told, Outcome: event.Completed, WakeWord: "okay_nabu", Heard: "what time is it", Answer: "It's nine.", Chat: "default",
			Stages: event.Stages{Endpoint: event.Millis(1200 * time.Millisecond), End: event.Millis(3 * time.Second)},
			Hooks:  []event.HookCall{{Point: "pre_chat", Plugin: "weather", Outcome: "missed", Took: event.Millis(500 * time.Millisecond)}},
			Model:  &event.ModelUse{Requests: 1, Input: 900, Output: 20},
		}},
		event.StateChanged{At: told, From: event.Speaking, To: event.Idle},
		event.StateChanged{At: told, From: event.Idle, To: event.Failed},
	}
	for _, f := range facts {
		d.bus.Publish(f)
	}
	n = w.payload(n, d.base+"/state", "error")
	w.publish(d.base+"/ring/set", `{"state":"ON","brightness":128,"color":{"r":255,"g":0,"b":10}}`, false)
	_, n = w.await(n, "ring", func(h heard) bool { return h.topic == d.base+"/ring" })

	platforms := make(map[string]string)
	newest := make(map[string]string)
	order := []string{}
	for _, h := range w.all(0, n) {
		if _, known := newest[h.topic]; !known {
			order = append(order, h.topic)
		}
		if strings.HasPrefix(h.topic, d.base+"/button") || strings.HasSuffix(h.topic, "/timer") {
			newest[h.topic] += h.payload + "\n" // each counts
		} else {
			newest[h.topic] = h.payload
		}
		if h.topic == d.config() {
			if err := c.check("", h.payload); err != nil {
				t.Errorf("config: %v", err)
			}
			for key, c := range components(t, h.payload) {
				platforms[key] = c["p"].(string)
			}
			continue
		}
		key := strings.TrimPrefix(h.topic, d.base+"/")
		switch {
		case strings.HasSuffix(key, "/attributes"):
			if !json.Valid([]byte(h.payload)) || !strings.HasPrefix(h.payload, "{") {
				t.Errorf("%s: %s", key, h.payload)
			}
		case key == "availability", key == "instance", strings.HasSuffix(key, "/set"):
		default:
			if platforms[key] == "" {
				t.Errorf("%s: no such entity", key)
			} else if err := c.state(platforms[key], h.payload); err != nil {
				t.Errorf("%s: %s: %v", key, h.payload, err)
			}
		}
	}

	slices.Sort(order)
	var golden bytes.Buffer
	for _, topic := range order {
		if strings.HasSuffix(topic, "/instance") || strings.HasSuffix(topic, "/set") {
			continue
		}
		payload := newest[topic]
		var indented bytes.Buffer
		if topic == d.config() && json.Indent(&indented, []byte(payload), "", " ") == nil {
			payload = indented.String()
		}
		fmt.Fprintf(&golden, "-- %s --\n%s\n", topic, strings.TrimSuffix(payload, "\n"))
	}
	hold(t, "testdata/payloads.txtar", golden.String())
}

// hold holds text against a golden file.
func hold(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", file, diff)
	}
}

// TestTable holds the table of entities in the documentation against those there are.
func TestTable(t *testing.T) {
	const file = "../docs/home-assistant.md"
	d, err := mqtt.New(mqtt.Options{MachineID: "x", Broker: "embedded", Appliance: newHouse().appliance()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- entities -->\n", "<!-- end of entities -->"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the entities", file)
	}
	hold(t, file, before+begin+d.Table()+end+after)
}

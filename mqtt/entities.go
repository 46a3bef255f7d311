package mqtt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"time"

	"bellbird/event"
)

// fields are those of the discovery contract.
type fields map[string]any

// An entity is a component of the device. One without a platform isn't there.
type entity struct {
	key      string // for ever: it is part of topics and of the unique id
	platform string
	name     string
	category string // "config" or "diagnostic", or neither
	disabled bool   // until the user enables it
	speech   bool   // its state is what was said: the broker doesn't keep it
	fields   fields // what the contract has for its platform

	state      func() (payload string, known bool)
	attributes func() any // nil: none yet
	command    func(ctx context.Context, payload string) error
	lane       lane // where commands wait
}

// How many of what the appliance has are shown.
const (
	maxComponents = 256
	maxPlugins    = 64
	maxButtons    = 8
	maxOptions    = 64
)

// What the assistant can be doing, and how a turn can end. Home Assistant refuses what isn't announced.
var (
	states = []string{
		string(event.Idle), string(event.Listening), "follow_up", string(event.Thinking), string(event.Speaking), string(event.Failed),
	}
	outcomes = []string{
		string(event.Completed), string(event.NotUnderstood), string(event.NothingHeard), string(event.Yielded), string(event.Handled),
		string(event.Interrupted), string(event.FailedTurn),
	}
)

// entities is the table of what the device has at the moment. docs/home-assistant.md shows it.
func (d *Device) entities(h *home) []entity {
	a := &d.o.Appliance
	table := []entity{
		{key: "state", platform: "sensor", name: "Assistant state", fields: enum(states...),
			state: func() (string, bool) { return string(h.state), slices.Contains(states, string(h.state)) }},
		{key: "woke", platform: "sensor", name: "Wake word heard", fields: eachTime(fields{}), state: func() (string, bool) { return short(h.woke.Word, maxState), h.woke.Word != "" },
			attributes: func() any { return wokeAttributes(h.woke) }},
		{key: "heard", platform: "sensor", name: "Heard", disabled: true, speech: true, fields: eachTime(fields{}), state: text(&h.heard), attributes: whole(&h.heard)},
		{key: "answered", platform: "sensor", name: "Answered", disabled: true, speech: true, fields: eachTime(fields{}), state: text(&h.answered), attributes: whole(&h.answered)},
		{key: "turn", platform: "sensor", name: "Last turn", category: "diagnostic",
			fields: eachTime(enum(outcomes...)),
			state: func() (string, bool) {
				if h.last == nil {
					return "", false
				}
				return string(h.last.Outcome), slices.Contains(outcomes, string(h.last.Outcome))
			}, attributes: h.turn},
		{key: "problem", platform: "binary_sensor", name: "Problem", category: "diagnostic", fields: fields{"dev_cla": "problem"},
			state:      func() (string, bool) { return onOff(len(h.problem(a.Problems)) > 0), true },
			attributes: func() any { return fields{"reasons": h.problem(a.Problems)} }},

		a.Chat.entity("chat", "Chat", ""),
		a.Private.entity("private", "Private", ""),
		a.Mute.entity("mute", "Mute", ""),
		a.WakeSound.entity("wake_sound", "Wake sound", "config"),
		a.Volume.entity("volume", "Volume", ""),
		a.Gain.entity("gain", "Microphone gain", "config"),
		a.Sensitivity.entity("sensitivity", "Wake word sensitivity", "config"),
		a.FollowUp.entity("follow_up", "Follow-up time", "config"),
		a.Night.entity("night", "Night brightness", "config"),
		a.WakeWord.entity("wake_word", "Wake word", "config"),
		a.Voice.entity("voice", "Voice", "config"),
		a.Ring.entity("ring", "LED ring"),

		button("listen", "Listen", "", "", quick, a.Listen),
		button("stop", "Stop", "", "", quick, a.Stop),
		button("restart", "Restart", "config", "restart", slow, a.Restart),
		button("identify", "Identify", "diagnostic", "identify", quick, a.Identify),
		d.announcements(a),
		d.questions(a),
		updates(a),
	}
	if a.Timers {
		table = append(table,
			entity{key: "timers", platform: "sensor", name: "Timers", fields: fields{"stat_cla": "measurement"},
				state: func() (string, bool) { return strconv.Itoa(len(h.timers)), true }, attributes: h.timerList},
			entity{key: "timer", platform: "event", name: "Timer", fields: fields{"evt_typ": []string{"ringing", "silenced", "missed"}}})
	}
	table = append(table, diagnostics(&a.Diagnostics, h)...)
	for i := range a.Buttons[:min(len(a.Buttons), maxButtons)] {
		table = append(table, buttonEntities(i, a.Buttons[i], len(a.Buttons))...)
	}
	if a.Plugins != nil {
		plugins := a.Plugins()
		for _, p := range plugins[:min(len(plugins), maxPlugins)] {
			table = append(table, pluginEntities(p, h, a.SetPlugin)...)
		}
	}
	there := table[:0]
	for _, e := range table {
		if e.platform != "" {
			there = append(there, e)
		}
	}
	return there
}

func enum(options ...string) fields { return fields{"dev_cla": "enum", "ops": options} }

// eachTime has Home Assistant take note also of a state that is as it was: it happened once more.
func eachTime(f fields) fields {
	f["frc_upd"] = true
	return f
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// text is what was said last, as far as a state has room for it.
func text(of **string) func() (string, bool) {
	return func() (string, bool) {
		if *of == nil {
			return "", false
		}
		return short(**of, maxState), true
	}
}

func whole(of **string) func() any {
	return func() any {
		if *of == nil {
			return nil
		}
		return fields{"text": short(**of, maxText)}
	}
}

func wokeAttributes(w event.Woke) any {
	if w.Word == "" {
		return nil
	}
	return fields{"score": w.Score, "at": w.At.Format(time.RFC3339Nano)}
}

// The gestures that Home Assistant is told of, with what its device triggers call them.
var gestures = []struct {
	gesture event.Gesture
	trigger string
}{
	{event.Press, "button_short_press"}, {event.Double, "button_double_press"}, {event.Triple, "button_triple_press"}, {event.Long, "button_long_press"},
}

func buttonKey(i int) string { return "button_" + strconv.Itoa(i+1) }

// buttonEntities are an event, and a device trigger for each gesture, which listens to the same topic. A button is known
// by its place: its name can be changed.
func buttonEntities(i int, name string, of int) []entity {
	key := buttonKey(i)
	title := "Button"
	if of > 1 {
		title += " " + short(name, 64)
	}
	var types []string
	var list []entity
	for _, g := range gestures {
		types = append(types, string(g.gesture))
		list = append(list, entity{key: key + "_" + string(g.gesture), platform: "device_automation", fields: fields{
			"atype": "trigger", "t": "~/" + key, "type": g.trigger, "stype": key, "pl": string(g.gesture), "val_tpl": "{{ value_json.event_type }}",
		}})
	}
	return append([]entity{{key: key, platform: "event", name: title, fields: fields{"dev_cla": "button", "evt_typ": types}}}, list...)
}

// press is the event of a button, if it is one that is shown.
func (d *Device) press(b event.ButtonPressed) []message {
	for i, name := range d.o.Appliance.Buttons[:min(len(d.o.Appliance.Buttons), maxButtons)] {
		if name != b.Button {
			continue
		}
		for _, g := range gestures {
			if g.gesture == b.Gesture {
				return []message{{topic: buttonKey(i), payload: encode(fields{"event_type": string(b.Gesture), "button": short(name, 64)})}}
			}
		}
	}
	return nil
}

var plainKey = regexp.MustCompile(`^[a-z0-9_-]{1,48}$`)

// pluginKey is a plugin's name, as far as it can stand in a topic.
func pluginKey(name string) string {
	if plainKey.MatchString(name) {
		return "plugin_" + name
	}
	sum := sha256.Sum256([]byte(name))
	return "plugin_" + hex.EncodeToString(sum[:6])
}

func pluginEntities(p Plugin, h *home, set func(string, bool) error) []entity {
	key := pluginKey(p.Name)
	reason := p.Problem
	if until := h.breakers[p.Name]; reason == "" && time.Now().Before(until) {
		reason = "Its hooks missed their deadlines. They are left out until " + until.Format(time.RFC3339) + "."
	}
	list := []entity{{key: "problem_" + key, platform: "binary_sensor", name: "Plugin " + short(p.Name, 64) + " problem", category: "diagnostic",
		fields:     fields{"dev_cla": "problem"},
		state:      func() (string, bool) { return onOff(reason != ""), true },
		attributes: func() any { return fields{"reason": short(reason, maxState)} }}}
	if set != nil {
		s := &Switch{Get: func() bool { return p.Enabled }, Set: func(on bool) error { return set(p.Name, on) }}
		e := s.entity(key, "Plugin "+short(p.Name, 64), "config")
		e.lane = slow
		list = append(list, e)
	}
	return list
}

func diagnostics(m *Diagnostics, h *home) []entity {
	number := func(key, name, unit, class, kind string, digits int, get func() (float64, error)) entity {
		if get == nil {
			return entity{}
		}
		f := fields{"stat_cla": kind}
		for k, v := range map[string]string{"unit_of_meas": unit, "dev_cla": class} {
			if v != "" {
				f[k] = v
			}
		}
		return entity{key: key, platform: "sensor", name: name, category: "diagnostic", fields: f, state: func() (string, bool) {
			v, err := get()
			if err != nil {
				return "None", true
			}
			return strconv.FormatFloat(v, 'f', digits, 64), true
		}}
	}
	list := []entity{
		number("signal", "Wi-Fi signal", "dBm", "signal_strength", "measurement", 0, m.Signal),
		number("temperature", "Processor temperature", "°C", "temperature", "measurement", 0, m.Temperature),
		number("load", "Load", "", "", "measurement", 2, m.Load),
		number("memory", "Memory used", "%", "", "measurement", 0, m.Memory),
		number("free", "Free space", "MiB", "data_size", "measurement", 0, m.Free),
		number("underruns", "Sound underruns", "", "", "total_increasing", 0, m.Underruns),
		{key: "hook_misses", platform: "sensor", name: "Hook misses", category: "diagnostic", fields: fields{"stat_cla": "total_increasing"},
			state: func() (string, bool) { return strconv.Itoa(h.misses), true }},
	}
	if m.Started != nil {
		list = append(list, entity{key: "started", platform: "sensor", name: "Up since", category: "diagnostic", fields: fields{"dev_cla": "timestamp"},
			state: func() (string, bool) {
				at, err := m.Started()
				if err != nil {
					return "None", true
				}
				return at.Format(time.RFC3339), true
			}})
	}
	if m.Address != nil {
		list = append(list, entity{key: "address", platform: "sensor", name: "Address", category: "diagnostic", state: func() (string, bool) {
			s, err := m.Address()
			if err != nil || s == "" {
				return "None", true
			}
			return short(s, maxState), true
		}})
	}
	return list
}

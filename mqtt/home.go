package mqtt

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"bellbird/event"
)

// A home is what the facts have told so far. It belongs to the loop.
type home struct {
	state    event.State
	woke     event.Woke
	heard    *string
	answered *string
	last     *event.Record
	timers   map[int]event.TimerChanged
	faults   map[string]string    // by the part that has one
	breakers map[string]time.Time // of plugins: until when a hook of theirs is left out
	misses   int                  // of hooks
	twin     bool
}

func newHome() *home {
	return &home{
		state: event.Idle, timers: make(map[int]event.TimerChanged), faults: make(map[string]string), breakers: make(map[string]time.Time),
	}
}

// What is kept of what comes from outside this package.
const (
	maxTimers   = 64
	maxFaults   = 32
	maxBreakers = 64
	maxState    = 255  // characters of a state, as Home Assistant has it
	maxText     = 4096 // bytes of an attribute
)

// settings stands for all that is set by functions of the appliance, and may have been changed by others.
const settings = "settings"

// learn takes a fact, and says which entities have another state by it, and what happened that is no state. The topics
// of these are keys. What is of a private chat isn't told.
func (h *home) learn(f event.Fact) (changed []string, happened []message) {
	if p, ok := f.(interface{ OfPrivateChat() bool }); ok && p.OfPrivateChat() {
		return nil, nil
	}
	switch f := f.(type) {
	case event.StateChanged:
		h.state = f.To
		return []string{"state"}, nil
	case event.Woke:
		if f.Stops {
			return nil, nil
		}
		h.woke = f
		return []string{"woke"}, nil
	case event.Heard:
		h.heard = &f.Text
		return []string{"heard"}, nil
	case event.TurnEnded:
		h.last, h.answered = &f.Record, &f.Record.Answer
		return []string{"turn", "answered", settings}, nil
	case event.HookFired:
		before := h.misses
		for _, c := range f.Calls {
			if c.Outcome == "missed" {
				h.misses++
			}
		}
		if h.misses != before {
			return []string{"hook_misses"}, nil
		}
	case event.HookMissed:
		if len(h.breakers) < maxBreakers || !h.breakers[f.Plugin].IsZero() {
			h.breakers[f.Plugin] = f.At.Add(f.For)
		}
		return []string{settings}, nil
	case event.TimerChanged:
		return h.timer(f)
	case event.VolumeChanged:
		return []string{"volume"}, nil
	case event.MuteChanged:
		return []string{"mute"}, nil
	case event.PrivacyChanged:
		return []string{"private", "chat"}, nil
	case event.UpdateChanged, event.UpdateEnded:
		return []string{"firmware"}, nil
	case event.MicrophoneFault:
		return h.fault("microphone", map[string]string{
			"no_frames": "The microphone delivers no sound.", "constant": "The microphone delivers nothing but one value.",
		}[f.Reason], "The microphone doesn't work.")
	case event.MicrophoneWell:
		return h.well("microphone")
	case event.LoudspeakerFault:
		return h.fault("loudspeaker", "The loudspeaker doesn't work: "+f.Reason+".", "")
	case event.LoudspeakerWell:
		return h.well("loudspeaker")
	case event.ProviderSwitched:
		if !f.Instead {
			return h.well("provider " + f.Kind)
		}
		engine := map[string]string{"llm": "language model", "stt": "recogniser", "tts": "voice"}[f.Kind]
		if engine == "" {
			engine = f.Kind
		}
		return h.fault("provider "+f.Kind, "The "+engine+" can't be reached: "+f.Name+" stands in for it.", "")
	case event.BodyFault:
		return h.fault(f.Part, f.Part+": "+f.Reason, "")
	case event.BodyWell:
		return h.well(f.Part)
	}
	return nil, nil
}

func (h *home) fault(part, reason, otherwise string) ([]string, []message) {
	if reason == "" {
		reason = otherwise
	}
	if _, known := h.faults[part]; known || len(h.faults) < maxFaults {
		h.faults[part] = short(reason, maxState)
	}
	return []string{"problem"}, nil
}

func (h *home) well(part string) ([]string, []message) {
	delete(h.faults, part)
	return []string{"problem"}, nil
}

func (h *home) timer(f event.TimerChanged) ([]string, []message) {
	if f.Private {
		f.Name = "" // that there is one can be heard by everybody
	}
	switch f.What {
	case event.TimerCancelled:
		delete(h.timers, f.ID)
	case event.TimerSilenced, event.TimerMissed:
		if f.Ends.After(f.At) { // it rings again another day
			h.timers[f.ID] = f
		} else {
			delete(h.timers, f.ID)
		}
	default:
		if _, known := h.timers[f.ID]; known || len(h.timers) < maxTimers {
			h.timers[f.ID] = f
		}
	}
	happening := map[event.TimerChange]string{event.TimerRinging: "ringing", event.TimerSilenced: "silenced", event.TimerMissed: "missed"}
	var happened []message
	if kind := happening[f.What]; kind != "" {
		happened = []message{{topic: "timer", payload: encode(fields{
			"event_type": kind, "id": f.ID, "name": short(f.Name, maxState), "alarm": f.Alarm, "late": f.Late,
		})}}
	}
	return []string{"timers"}, happened
}

// timerList is the attributes of the timers, the next to ring first.
func (h *home) timerList() any {
	list := slices.SortedFunc(maps.Values(h.timers), func(a, b event.TimerChanged) int {
		if c := a.Ends.Compare(b.Ends); c != 0 {
			return c
		}
		return a.ID - b.ID
	})
	items := []fields{}
	for _, t := range list {
		item := fields{"id": t.ID, "name": short(t.Name, maxState), "alarm": t.Alarm, "ringing": t.What == event.TimerRinging}
		if !t.Ends.IsZero() {
			item["ends"] = t.Ends.Format(time.RFC3339)
		}
		if t.Total > 0 {
			item["seconds"] = t.Total.Seconds()
		}
		items = append(items, item)
	}
	return fields{"timers": items}
}

// turn is the attributes of the last turn. What was said is not in them.
func (h *home) turn() any {
	r := h.last
	if r == nil {
		return nil
	}
	misses := []fields{}
	for _, c := range r.Hooks {
		if c.Outcome == "missed" && len(misses) < 16 {
			misses = append(misses, fields{"point": short(c.Point, 64), "plugin": short(c.Plugin, 64), "took_ms": c.Took})
		}
	}
	a := fields{"run": r.Run, "began": r.Began.Format(time.RFC3339Nano), "stages": r.Stages, "hook_misses": misses}
	if r.Error != "" {
		a["error"] = r.Error
	}
	if r.WakeWord != "" {
		a["wake_word"] = r.WakeWord
	}
	if r.Model != nil {
		a["model"] = r.Model
	}
	return a
}

// problem is what is wrong, of what was told and of what the appliance says besides.
func (h *home) problem(more func() []string) []string {
	reasons := []string{}
	for _, part := range slices.Sorted(maps.Keys(h.faults)) {
		reasons = append(reasons, h.faults[part])
	}
	if h.twin {
		reasons = append(reasons, "Another device uses the same MQTT id.")
	}
	if more != nil {
		for _, r := range more() {
			reasons = append(reasons, short(r, maxState))
		}
	}
	return reasons[:min(len(reasons), maxFaults)]
}

// short is s, or so many of its first characters that n bytes are not exceeded, with an ellipsis.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

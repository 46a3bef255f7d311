package intents_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"bellbird/intents"
)

// homeAssistant are sentences that Home Assistant understands, written by its community (CC-BY-4.0; they are data for
// measuring and not part of the repository).
const homeAssistant = "../../shared/data/speech/text/ha_intents_2026_en.jsonl"

// A haSentence is a line of that file.
type haSentence struct {
	Sentence string
	Intent   string
	Slots    map[string]any
}

var haIntents = map[string][]string{
	"HassStartTimer":        {"set_timer"},
	"HassCancelTimer":       {"cancel_timer"},
	"HassCancelAllTimers":   {"cancel_timer"},
	"HassTimerStatus":       {"query_timer"},
	"HassGetCurrentTime":    {"get_time"},
	"HassGetCurrentDate":    {"get_date"},
	"HassSetVolume":         {"set_volume"},
	"HassSetVolumeRelative": {"volume_up", "volume_down"},
	"HassMediaPlayerMute":   {"mute"},
	"HassMediaPlayerUnmute": {"unmute"},
	"HassNevermind":         {"stop"},
}

// haElse are intents that we don't have, but something that will do for them.
var haElse = map[string][]string{"HassMediaPause": {"stop"}, "HassRespond": {"help"}}

// ours reports whether a sentence asks for something we have: no other rooms, no other devices, no commands for later.
func (s haSentence) ours() bool {
	if haIntents[s.Intent] == nil {
		return false
	}
	for _, slot := range []string{"area", "floor", "conversation_command"} {
		if s.Slots[slot] != nil {
			return false
		}
	}
	timers := s.Intent == "HassStartTimer" || s.Intent == "HassCancelTimer" || s.Intent == "HassTimerStatus"
	return timers || s.Slots["name"] == nil
}

// understood reports whether a match is what the sentence means.
func (s haSentence) understood(m intents.Match) bool {
	if !slices.Contains(haIntents[s.Intent], m.Intent) {
		return false
	}
	number := func(slot string) int { n, _ := s.Slots[slot].(float64); return int(n) }
	want := time.Duration(0)
	for slot, unit := range map[string]time.Duration{"hours": time.Hour, "minutes": time.Minute, "seconds": time.Second} {
		want += time.Duration(number(slot)+number("start_"+slot)) * unit
	}
	name, _ := s.Slots["name"].(string)
	if m.Slots["duration"].Duration != want || m.Slots["name"].Text != name {
		return false
	}
	switch step := s.Slots["volume_step"].(type) {
	case float64:
		if m.Intent == "volume_down" {
			step = -step
		}
		return m.Slots["percent"].Number == int(step)
	case string:
		return m.Intent == "volume_"+step
	}
	return m.Slots["percent"].Number == number("volume_level")
}

func TestHomeAssistantSentences(t *testing.T) {
	f, err := os.Open(homeAssistant)
	if err != nil {
		t.Skipf("no sentences to compare with: %v", err)
	}
	defer f.Close()
	s := english(t)
	total, understood := 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var h haSentence
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if !h.ours() {
			// What we lack must not be taken for something else, such as a light for a timer. Rooms and devices are
			// names that a timer may have, so only other intents count.
			if m, ok := s.Match(h.Sentence); ok && !slices.Contains(haElse[h.Intent], m.Intent) && haIntents[h.Intent] == nil {
				t.Errorf("%s: %q is taken for %s", h.Intent, h.Sentence, m.Intent)
			}
			continue
		}
		total++
		if m, _ := s.Match(h.Sentence); h.understood(m) {
			understood++
		} else {
			t.Logf("%s: %q is %q %v", h.Intent, h.Sentence, m.Intent, m.Slots)
		}
	}
	t.Logf("%d of %d sentences are understood", understood, total)
	if understood*100 < total*97 {
		t.Errorf("%d of %d sentences are understood, want 97 %%", understood, total)
	}
}

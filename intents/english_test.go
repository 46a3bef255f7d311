package intents_test

import (
	"testing"
	"time"

	"bellbird/intents"
)

func english(t testing.TB) *intents.Set {
	t.Helper()
	s, err := intents.English()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEnglish(t *testing.T) {
	type slots = map[string]any
	type clock = intents.TimeOfDay
	const minutes = time.Minute
	tests := []struct {
		text   string
		intent string
		slots  slots
	}{
		{"set a timer for ten minutes", "set_timer", slots{"duration": 10 * minutes}},
		{"Set a pasta timer for 10 minutes.", "set_timer", slots{"duration": 10 * minutes, "name": "pasta"}},
		{"ten minute timer", "set_timer", slots{"duration": 10 * minutes}},
		{"start a timer for an hour and a half", "set_timer", slots{"duration": 90 * minutes}},
		{"one minute thirty seconds", "set_timer", slots{"duration": 90 * time.Second}},
		{"set a timer for 90 minutes", "set_timer", slots{"duration": 90 * minutes}},
		{"set a 90-minute timer", "set_timer", slots{"duration": 90 * minutes}},
		{"timer 1 hour 30 minutes", "set_timer", slots{"duration": 90 * minutes}},
		{"timer for 1.5 hours", "set_timer", slots{"duration": 90 * minutes}},
		{"half an hour", "set_timer", slots{"duration": 30 * minutes}},
		{"10 min", "set_timer", slots{"duration": 10 * minutes}},
		{"10min", "set_timer", slots{"duration": 10 * minutes}},
		{"1h 5m 30s", "set_timer", slots{"duration": time.Hour + 5*minutes + 30*time.Second}},
		{"set a timer for three quarters of an hour", "set_timer", slots{"duration": 45 * minutes}},
		{"set a timer for one hour and a quarter", "set_timer", slots{"duration": 75 * minutes}},
		{"set a timer for two and a half minutes", "set_timer", slots{"duration": 150 * time.Second}},
		{"set a timer for a hundred and twenty seconds", "set_timer", slots{"duration": 2 * minutes}},
		{"set a 7 minute timer for the soft boiled eggs", "set_timer", slots{"duration": 7 * minutes, "name": "soft boiled eggs"}},
		{"Okay Nabu, could you please set a timer for 5 minutes?", "set_timer", slots{"duration": 5 * minutes}},
		{"nabu set a timer for five minutes please", "set_timer", slots{"duration": 5 * minutes}},
		{"set a timer", "set_timer", slots{}},
		{"set a pizza timer", "set_timer", slots{"name": "pizza"}},
		{"remind me in 20 minutes", "set_timer", slots{"duration": 20 * minutes}},
		{"cancel the timer", "cancel_timer", slots{}},
		{"stop the timer", "cancel_timer", slots{}},
		{"cancel the pasta timer", "cancel_timer", slots{"name": "pasta"}},
		{"cancel the ten minute timer", "cancel_timer", slots{"duration": 10 * minutes}},
		{"cancel the timer called apple pie", "cancel_timer", slots{"name": "apple pie"}},
		{"cancel all timers", "cancel_timer", slots{"all": "true"}},
		{"stop all of my timers", "cancel_timer", slots{"all": "true"}},
		{"how long is left", "query_timer", slots{}},
		{"how long is left on the timer", "query_timer", slots{}},
		{"how much time is left?", "query_timer", slots{}},
		{"how long is left on my pizza timer", "query_timer", slots{"name": "pizza"}},
		{"set an alarm for seven", "set_alarm", slots{"time": clock{7, 0, true}}},
		{"Set an alarm for 6:30 on weekdays.", "set_alarm", slots{"time": clock{6, 30, true}, "repeat": "weekdays"}},
		{"set an alarm for 6:30 a.m. every day", "set_alarm", slots{"time": clock{6, 30, false}, "repeat": "daily"}},
		{"set an alarm for seven in the morning", "set_alarm", slots{"time": clock{7, 0, false}}},
		{"wake me at seven", "set_alarm", slots{"time": clock{7, 0, true}, "wake": "true"}},
		{"wake me up at seven o'clock", "set_alarm", slots{"time": clock{7, 0, true}, "wake": "true"}},
		{"wake me up tomorrow morning at quarter to six", "set_alarm", slots{"time": clock{5, 45, true}, "tomorrow": "true", "half": "am", "wake": "true"}},
		{"wake me every saturday at nine", "set_alarm", slots{"time": clock{9, 0, true}, "each": "saturday", "wake": "true"}},
		{"set an alarm for half past nine on sunday", "set_alarm", slots{"time": clock{9, 30, true}, "day": "sunday"}},
		{"set a 7am alarm on weekends", "set_alarm", slots{"time": clock{7, 0, false}, "repeat": "weekends"}},
		{"alarm at noon", "set_alarm", slots{"time": clock{12, 0, false}}},
		{"set a school alarm for 7:05", "set_alarm", slots{"time": clock{7, 5, true}, "name": "school"}},
		{"set an alarm", "set_alarm", slots{}},
		{"set an alarm for ten minutes", "set_timer", slots{"duration": 10 * minutes}},
		{"snooze", "snooze", slots{}},
		{"snooze for five minutes", "snooze", slots{"duration": 5 * minutes}},
		{"ten more minutes", "snooze", slots{"duration": 10 * minutes}},
		{"cancel the alarm", "cancel_alarm", slots{}},
		{"delete my 6:30 alarm", "cancel_alarm", slots{"time": clock{6, 30, true}}},
		{"cancel the alarm for 7 pm", "cancel_alarm", slots{"time": clock{19, 0, false}}},
		{"cancel the school alarm", "cancel_alarm", slots{"name": "school"}},
		{"cancel all alarms", "cancel_alarm", slots{"all": "true"}},
		{"turn off the alarm", "stop", slots{}},
		{"stop the alarm", "stop", slots{}},
		{"what alarms are set", "query_alarm", slots{}},
		{"when is my alarm", "query_alarm", slots{}},
		{"when is my next alarm set for?", "query_alarm", slots{}},
		{"what time is it", "get_time", slots{}},
		{"What's the time?", "get_time", slots{}},
		{"whats the time", "get_time", slots{}},
		{"can you tell me the time please", "get_time", slots{}},
		{"what’s the date", "get_date", slots{}},
		{"what day is it today", "get_date", slots{}},
		{"set the volume to fifty percent", "set_volume", slots{"percent": 50}},
		{"set the volume to 50%", "set_volume", slots{"percent": 50}},
		{"set the volume to seven", "set_volume", slots{"percent": 7}},
		{"volume 100 percent", "set_volume", slots{"percent": 100}},
		{"full volume", "set_volume", slots{"percent": 100}},
		{"set the volume to zero", "set_volume", slots{"percent": 0}},
		{"turn it up", "volume_up", slots{}},
		{"turn the volume up by 20 percent", "volume_up", slots{"percent": 20}},
		{"turn up the volume 15%", "volume_up", slots{"percent": 15}},
		{"speak louder", "volume_up", slots{}},
		{"volume down", "volume_down", slots{}},
		{"a bit quieter please", "volume_down", slots{}},
		{"mute", "mute", slots{}},
		{"mute the sound", "mute", slots{}},
		{"unmute", "unmute", slots{}},
		{"turn the sound back on", "unmute", slots{}},
		{"Stop.", "stop", slots{}},
		{"cancel", "stop", slots{}},
		{"be quiet", "stop", slots{}},
		{"never mind", "stop", slots{}},
		{"say that again", "repeat", slots{}},
		{"repeat that", "repeat", slots{}},
		{"what can you do", "help", slots{}},
		{"help", "help", slots{}},
	}
	s := english(t)
	for _, test := range tests {
		m, ok := s.Match(test.text)
		if !ok || m.Intent != test.intent {
			t.Errorf("%q is %q, want %q", test.text, m.Intent, test.intent)
			continue
		}
		if len(m.Slots) != len(test.slots) {
			t.Errorf("%q has slots %v, want %v", test.text, m.Slots, test.slots)
		}
		for name, want := range test.slots {
			got := m.Slots[name]
			var value any = got.Text
			switch want.(type) {
			case int:
				value = got.Number
			case time.Duration:
				value = got.Duration
			case clock:
				value = got.Time
			}
			if value != want {
				t.Errorf("%q: %s is %v, want %v", test.text, name, value, want)
			}
		}
	}
}

func TestEnglishDoesNotMatch(t *testing.T) {
	s := english(t)
	for _, text := range []string{
		"", " ", "?", "please", "okay nabu", "what is the meaning of life", "turn on the kitchen light",
		"set the volume to 101", "set the volume to 1000 percent", "set a timer for 1000000000000000000000 minutes",
		"what time is it in tokyo", "cancel the meeting", "who won the game yesterday", "set an alarm for twenty five",
		"wake me at the station", "set an alarm for seven sixty", "snooze fest",
		"how long is the coast of norway", "stop the vacuum cleaner", "what day is christmas", "timer for pasta",
	} {
		if m, ok := s.Match(text); ok {
			t.Errorf("%q is %s %v, want nothing", text, m.Intent, m.Slots)
		}
	}
}

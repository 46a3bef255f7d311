package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"bellbird/event"
)

func TestBusNeverWaits(t *testing.T) {
	var bus event.Bus
	bus.Publish(event.Woke{}) // to nobody
	slow, quick := bus.Subscribe(1), bus.Subscribe(3)
	for i := range 3 {
		bus.Publish(event.Heard{Run: uint64(i)})
	}
	if slow.Dropped() != 2 || quick.Dropped() != 0 {
		t.Errorf("dropped %d and %d", slow.Dropped(), quick.Dropped())
	}
	slow.Close()
	slow.Close()
	bus.Publish(event.Woke{})
	var got []uint64
	for f := range slow.C {
		got = append(got, f.(event.Heard).Run)
	}
	if len(got) != 1 || got[0] != 0 {
		t.Errorf("the slow one got %v", got)
	}
}

func TestRecordInJSON(t *testing.T) {
	r := event.Record{
		Run: 3, Began: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Outcome: event.Completed, WakeWord: "okay_nabu",
		Heard: "what time is it", Answer: "It's noon.", Stages: event.Stages{Endpoint: event.Millis(1500*time.Millisecond + 1500)},
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"run":3,"began":"2026-11-30T12:00:00Z","outcome":"completed","wake_word":"okay_nabu","heard":"what time is it",` +
		`"answer":"It's noon.","stages":{"voiced_ms":0,"endpoint_ms":1500.002,"recognised_ms":0,"first_word_ms":0,"first_sound_ms":0,"end_ms":0}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back event.Record
	if err := json.Unmarshal(got, &back); err != nil || back.Stages.Endpoint != event.Millis(1500*time.Millisecond+2*time.Microsecond) {
		t.Errorf("read again: %+v, error %v", back, err)
	}
}

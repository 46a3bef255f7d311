package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"bellbird/event"
)

// TestTwoSpeakers: two appliances hear the same call, one of them from farther away. One answers, and has heard every
// word; the other is silent. It is measured how long a call takes to the other one.
func TestTwoSpeakers(t *testing.T) {
	if os.Getenv("BELLBIRD_HA") == "" {
		t.Skip(`it needs a quiet machine: run "make test-ha"`)
	}
	needDemo(t)
	broker := mosquitto(t)
	type bid struct {
		From         string
		Score, Level float64
		Claim        bool
		at           time.Time
	}
	var mu sync.Mutex
	var bids []bid
	there := make(map[string]bool) // availability topics of those that are connected
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + broker).SetClientID("test"))
	finish := func(token paho.Token) {
		t.Helper()
		if !token.WaitTimeout(30*time.Second) || token.Error() != nil {
			t.Fatal(token.Error())
		}
	}
	finish(client.Connect())
	finish(client.Subscribe("bellbird/group/home/wake", 1, func(_ paho.Client, m paho.Message) {
		b := bid{at: time.Now()}
		if err := json.Unmarshal(m.Payload(), &b); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		bids = append(bids, b)
	}))
	finish(client.Subscribe("bellbird/+/availability", 1, func(_ paho.Client, m paho.Message) {
		mu.Lock()
		defer mu.Unlock()
		there[m.Topic()] = string(m.Payload()) == "online"
	}))
	defer client.Disconnect(0)

	dir := t.TempDir()
	var both []*roomed
	var facts []*event.Subscription
	for _, name := range []string{"near", "far"} {
		r := newRoomed(t, filepath.Join(dir, name+".log"), broker, name)
		facts = append(facts, r.bus.Subscribe(1024))
		both = append(both, r)
		r.begin()
	}
	for _, r := range both {
		patiently(t, "the connection of "+r.id, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return there["bellbird/"+r.id+"/availability"]
		})
	}

	words := spokenBy(t, userVoice, "okay nabu, set a timer for twenty seconds")
	far := slices.Clone(words)
	for i := range far {
		far[i] = far[i] * 2 / 3
	}
	both[0].room.Say(words)
	both[1].room.Say(far)
	var answers string
	first := make(map[string]bid)
	for i, r := range both {
		var woke time.Time
		var ended event.Record
		late := time.After(time.Minute)
		for ended.Run == 0 {
			select {
			case f := <-facts[i].C:
				switch f := f.(type) {
				case event.Woke:
					woke = f.At
				case event.TurnEnded:
					ended = f.Record
				}
			case <-late:
				t.Fatal("the turn doesn't end")
			}
		}
		mu.Lock()
		at := slices.IndexFunc(bids, func(b bid) bool { return b.From == r.id })
		if at < 0 {
			t.Fatalf("%s told nothing", r.id)
		}
		b := bids[at]
		mu.Unlock()
		t.Logf("speaker %d: score %.2f, level %.0f dB, told %v after it heard the call; %s; %d frames were lost",
			i, b.Score, b.Level, b.at.Sub(woke).Round(10*time.Microsecond), ended.Outcome, r.room.Dropped())
		first[r.id] = b
		if ended.Outcome == event.Completed {
			if answers != "" {
				t.Error("both answer")
			}
			answers = r.id
			if ended.Heard != "set a timer for twenty seconds" {
				t.Errorf("heard was %q", ended.Heard)
			}
			continue
		}
		if loud := slices.ContainsFunc(r.since(0), func(s int16) bool { return s != 0 }); loud || ended.Heard != "" {
			t.Errorf("the one that doesn't answer played something: %v, and heard %q", loud, ended.Heard)
		}
	}
	near, distant := first[both[0].id], first[both[1].id]
	step := func(b bid) [2]float64 { return [2]float64{math.Round(b.Score * 20), math.Round(b.Level)} }
	better := near.From
	if a, b := step(near), step(distant); a[0] < b[0] || a[0] == b[0] && a[1] < b[1] || a == b && distant.From < near.From {
		better = distant.From
	}
	if answers != better {
		t.Errorf("%q answers, and not %q", answers, better)
	}
}

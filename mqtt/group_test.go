package mqtt_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/mqtt"
)

// A speaker is one of a virtual house. Its bid reaches the others when the broker has had it for a while.
type speaker struct {
	*mqtt.Group
	id           string
	score, level float64
	mu           sync.Mutex
	told         []bool
	when         []time.Time
}

func (s *speaker) tell(goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.when = append(s.told, goOn), append(s.when, time.Now())
}

// goesOn is what it was told last.
func (s *speaker) goesOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.told) > 0 && s.told[len(s.told)-1]
}

// room makes speakers whose bids take up to latency to each of the others.
func room(n int, window time.Duration, latency func() time.Duration) []*speaker {
	speakers := make([]*speaker, n)
	for i := range speakers {
		s := &speaker{id: fmt.Sprintf("speaker_%02d", i)}
		s.Group = mqtt.NewGroup(s.id, window, func(payload string) bool {
			for _, other := range speakers {
				time.AfterFunc(latency(), func() { other.Receive([]byte(payload)) })
			}
			return true
		})
		speakers[i] = s
	}
	return speakers
}

// best is the one that the rule chooses.
func best(speakers []*speaker) *speaker {
	round := func(x float64) int { return int(x + 0.5) }
	b := speakers[0]
	for _, s := range speakers[1:] {
		if x, y := round(s.score*20), round(b.score*20); x > y || x == y && round(s.level+200) > round(b.level+200) {
			b = s
		}
	}
	return b
}

func TestOneAnswers(t *testing.T) {
	const window = 200 * time.Millisecond
	for _, c := range []struct {
		speakers       int
		apart, latency time.Duration // at most
		always         bool          // the best one answers
		words          int
		answers        int // how many go on in the end
	}{
		{speakers: 1, always: true, answers: 1},
		{speakers: 2, apart: 100 * time.Millisecond, latency: 50 * time.Millisecond, always: true, answers: 1},
		{speakers: 5, apart: 100 * time.Millisecond, latency: 50 * time.Millisecond, always: true, answers: 1},
		{speakers: 20, apart: 100 * time.Millisecond, latency: 50 * time.Millisecond, always: true, answers: 1},
		{speakers: 20, apart: 600 * time.Millisecond, latency: 50 * time.Millisecond, answers: 1}, // the first, of those far apart
		{speakers: 5, apart: 100 * time.Millisecond, latency: 500 * time.Millisecond, answers: 1}, // a slow broker
		{speakers: 6, apart: 100 * time.Millisecond, latency: 50 * time.Millisecond, words: 2, answers: 2},
	} {
		for seed := range uint64(50) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(c.speakers)))
				var mu sync.Mutex
				upTo := func(most float64) float64 {
					mu.Lock()
					defer mu.Unlock()
					return most * r.Float64()
				}
				speakers := room(c.speakers, window, func() time.Duration { return time.Duration(upTo(float64(c.latency))) })
				for i, s := range speakers {
					word := "okay_nabu"
					if c.words > 1 {
						word = fmt.Sprint("word", i%c.words)
					}
					s.score, s.level = 0.8+upTo(0.2), -upTo(50)
					time.AfterFunc(time.Duration(upTo(float64(c.apart))), func() { s.Call(word, s.score, s.level, s.tell) })
				}
				time.Sleep(10 * time.Second)
				going := 0
				for _, s := range speakers {
					if s.goesOn() {
						going++
						if c.always && s != best(speakers) {
							t.Errorf("%d speakers, seed %d: %s answers, but %s is the best", c.speakers, seed, s.id, best(speakers).id)
						}
					}
					if len(s.told) == 0 || len(s.told) == 2 && (!s.told[0] || c.latency < window/2) || len(s.told) > 2 {
						t.Errorf("%d speakers, seed %d: %s was told %v", c.speakers, seed, s.id, s.told)
					}
				}
				if going != c.answers {
					t.Errorf("%d speakers, %v apart, latency %v, seed %d: %d answer", c.speakers, c.apart, c.latency, seed, going)
				}
			})
		}
	}
}

func TestAnswersWithoutABroker(t *testing.T) {
	g := mqtt.NewGroup("a", time.Second, func(string) bool { return false })
	var told []bool
	g.Call("okay_nabu", 0.9, -20, func(goOn bool) { told = append(told, goOn) })
	if len(told) != 1 || !told[0] {
		t.Errorf("told %v", told)
	}
}

func TestSilencedOnlyByTheSameCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := room(1, 200*time.Millisecond, func() time.Duration { return 0 })[0]
		for _, bid := range []string{
			`{"from":"b","word":"hey_jarvis","score":1,"claim":true}`, // another word
			`{"from":"b","word":"okay_nabu","score":2,"claim":true}`,  // not valid
			`{"from":"","word":"okay_nabu","score":1,"claim":true}`,
			`{"from":"speaker_00","word":"okay_nabu","score":1,"claim":true}`, // its own
			`{`,
		} {
			s.Receive([]byte(bid))
		}
		s.Call("okay_nabu", 0.5, 0, s.tell)
		time.Sleep(time.Second)
		if !s.goesOn() {
			t.Errorf("told %v", s.told)
		}
		s.Receive([]byte(`{"from":"b","word":"okay_nabu","score":1,"claim":true}`))
		time.Sleep(2 * time.Second) // the claim is over
		s.told = nil
		s.Call("okay_nabu", 0.5, 0, s.tell)
		s.Receive([]byte(`{"from":"b","word":"okay_nabu","score":0.1,"claim":true}`)) // not better, but it answers already
		if len(s.told) != 1 || s.told[0] {
			t.Errorf("told %v", s.told)
		}
		time.Sleep(2 * time.Second)
		s.told = nil
		s.Call("okay_nabu", 0.5, 0, s.tell)
		time.Sleep(100 * time.Millisecond)
		s.Call("okay_nabu", 0.5, 0, s.tell) // takes the place of the one before
		time.Sleep(time.Second)
		if !s.goesOn() || len(s.told) != 1 {
			t.Errorf("told %v", s.told)
		}
	})
}

// household runs devices of one group on a broker.
func household(t testing.TB, n int, window time.Duration) []*device {
	m := broker(t)
	w := watch(t, m.addr(), "bellbird/+/availability")
	var all []*device
	for i := range n {
		d := begin(t, mqtt.Appliance{}, func(o *mqtt.Options) { o.Broker, o.MachineID, o.Window = m.url(), fmt.Sprint("machine ", i), window })
		w.payload(0, d.availability(), "online")
		all = append(all, d)
	}
	return all
}

// contend has all hear a call, and returns which go on, and how long each waited to be told first.
func contend(t testing.TB, all []*device, bids []*speaker, word string) {
	var first sync.WaitGroup
	for i, d := range all {
		s := bids[i]
		first.Add(1)
		go d.Contend(word, s.score, s.level, func(goOn bool) {
			s.tell(goOn)
			if len(s.told) == 1 {
				first.Done()
			}
		})
	}
	first.Wait()
}

// TestOneAnswersOverABroker uses a window so long that a busy machine doesn't matter: here it is about the wire.
func TestOneAnswersOverABroker(t *testing.T) {
	for _, n := range []int{2, 5, 20} {
		all := household(t, n, 2*time.Second)
		bids := make([]*speaker, n)
		for i := range bids {
			bids[i] = &speaker{id: all[i].ID(), score: 0.9, level: -20 - 2*float64((i*7)%n)}
		}
		contend(t, all, bids, "okay_nabu")
		for _, b := range bids {
			if b.goesOn() != (b == best(bids)) {
				t.Errorf("%d speakers: %s at %v dB goes on: %v", n, b.id, b.level, b.goesOn())
			}
		}
	}
}

func BenchmarkArbitration(b *testing.B) {
	for _, n := range []int{2, 5, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := household(b, n, 200*time.Millisecond)
			right, turns := 0, 0
			var winner, loser, losers time.Duration
			for b.Loop() {
				bids := make([]*speaker, n)
				for i := range bids {
					bids[i] = &speaker{id: all[i].ID(), score: 0.9, level: -20 - 2*float64((i*7+turns)%n)}
				}
				began := time.Now()
				contend(b, all, bids, fmt.Sprint("word", turns)) // each time another, so that no claim stands
				turns++
				ok := true
				for _, s := range bids {
					ok = ok && s.goesOn() == (s == best(bids))
					if waited := s.when[0].Sub(began); s.goesOn() {
						winner += waited
					} else {
						loser += waited
						losers++
					}
				}
				if ok {
					right++
				}
			}
			b.ReportMetric(100*float64(right)/float64(turns), "right_%")
			b.ReportMetric(float64(winner.Microseconds())/1000/float64(turns), "winner_ms")
			b.ReportMetric(float64(loser.Microseconds())/1000/float64(max(losers, 1)), "loser_ms")
		})
	}
}

// TestUnknownLevel: who knows how loud it heard the call goes before who doesn't.
func TestUnknownLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speakers := room(2, 200*time.Millisecond, func() time.Duration { return 10 * time.Millisecond })
		speakers[0].Call("okay_nabu", 0.9, 0, speakers[0].tell) // the one with the smaller id
		speakers[1].Call("okay_nabu", 0.9, -50, speakers[1].tell)
		time.Sleep(time.Second)
		if speakers[0].goesOn() || !speakers[1].goesOn() {
			t.Errorf("told %v and %v", speakers[0].told, speakers[1].told)
		}
	})
}

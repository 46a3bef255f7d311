package mqtt

import (
	"encoding/json"
	"math"
	"sync"
	"time"
)

// A bid is what a speaker tells its group when it hears a wake word, and again, as a claim, when it goes on.
type bid struct {
	From  string    `json:"from"`
	Word  string    `json:"word"`
	Score float64   `json:"score"` // 0 to 1
	Level float64   `json:"level"` // dB relative to full scale; 0 if it isn't known
	Claim bool      `json:"claim"`
	At    time.Time `json:"at"` // by its own clock, for people to read: nothing is decided by it
}

// better is the rule by which one speaker answers: the one whose model is surest, in steps of 0.05, within which the
// score says little; of those the one that heard it loudest, in whole decibels; of those the one with the smaller id. It
// orders all bids, so that all who know the same bids come to the same end.
func (b *bid) better(c *bid) bool {
	if x, y := math.Round(b.Score*20), math.Round(c.Score*20); x != y {
		return x > y
	}
	if x, y := b.level(), c.level(); x != y {
		return x > y
	}
	return b.From < c.From
}

// level is in whole decibels. One that isn't known is lower than any other.
func (b *bid) level() float64 {
	if b.Level == 0 {
		return math.Inf(-1)
	}
	return math.Round(b.Level)
}

// hold is how long a claim stands: for so long those who hear the same call later are silent.
const hold = time.Second

// maxSpeakers bounds a group.
const maxSpeakers = 64

// A group settles which one of several speakers answers a call. Each tells its bid at once. Whoever knows of a better one
// is silent; whoever knows of none after the window claims the call and goes on. A claim silences all who haven't claimed
// yet, also those with a better bid, which came too late. If two claim because the broker is slow, the worse one gives
// way when it learns of the other. Clocks need not agree: what counts is when a bid arrives.
type group struct {
	id     string
	window time.Duration
	send   func(payload string) bool // false: there is no connection

	mu    sync.Mutex
	heard map[string]arrival // the newest of each speaker
	own   *contest
}

type arrival struct {
	bid
	at time.Time
}

type contest struct {
	bid
	began   time.Time
	claimed bool
	lost    bool
	tell    func(goOn bool)
	end     *time.Timer
}

func newGroup(id string, window time.Duration, send func(string) bool) *group {
	return &group{id: id, window: window, send: send, heard: make(map[string]arrival)}
}

// call begins a contest.
func (g *group) call(word string, score, level float64, tell func(goOn bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.own != nil {
		g.own.end.Stop()
		g.own = nil
	}
	now := time.Now()
	b := bid{From: g.id, Word: word, Score: score, Level: level, At: now}
	if !g.send(encode(b)) {
		tell(true)
		return
	}
	c := &contest{bid: b, began: now, tell: tell}
	for from, a := range g.heard {
		switch age := now.Sub(a.at); {
		case age > hold:
			delete(g.heard, from)
		case a.Word == word && (a.Claim || age <= g.window && a.better(&c.bid)):
			c.lost = true
		}
	}
	if c.lost {
		tell(false)
		return
	}
	g.own = c
	c.end = time.AfterFunc(g.window, func() { g.claim(c) })
}

// claim ends the window of a contest.
func (g *group) claim(c *contest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.own != c || c.lost {
		return
	}
	c.claimed, c.Claim = true, true
	g.send(encode(c.bid))
	c.tell(true)
}

// receive takes what a speaker of the group told.
func (g *group) receive(payload []byte) {
	var b bid
	if len(payload) > 1024 || json.Unmarshal(payload, &b) != nil {
		return
	}
	if b.From == "" || b.From == g.id || len(b.From) > 64 || len(b.Word) > 64 || !(b.Score >= 0 && b.Score <= 1) || !(math.Abs(b.Level) <= 200) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.heard[b.From]; !known && len(g.heard) == maxSpeakers {
		return
	}
	now := time.Now()
	g.heard[b.From] = arrival{b, now}
	c := g.own
	if c == nil || c.lost || c.Word != b.Word || c.claimed && (!b.Claim || now.Sub(c.began) > g.window+hold) {
		return
	}
	if b.better(&c.bid) || b.Claim && !c.claimed {
		c.lost = true
		c.end.Stop()
		c.tell(false)
	}
}

// Contend tells the other speakers of the group that a wake word was heard, with its score from 0 to 1 and its level in
// dB relative to full scale, 0 if that isn't known. tell is called with true when this one shall go on, or with false when
// another one answers, once; rarely it is called with false after it was with true, when the other one was learnt of
// late. Without a connection tell(true) is called at once. Contend doesn't wait; tell must not either, nor call Contend.
// A new call takes the place of an older one, of which nothing more is told.
func (d *Device) Contend(word string, score, level float64, tell func(goOn bool)) {
	d.group.call(word, score, level, tell)
}

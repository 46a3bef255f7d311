// Package event has the facts that the parts of the appliance tell each other, and the bus that carries them. A fact
// is told after it happened, to anybody, and nobody waits for an answer: what may change or refuse something is a
// hook, not a fact.
package event

import (
	"sync"
	"sync/atomic"
	"time"
)

// A State is what the appliance is doing, seen from outside.
type State string

// The states of a turn.
const (
	Idle      State = "idle"
	Listening State = "listening"
	Thinking  State = "thinking" // recognising, running hooks, waiting for the model
	Speaking  State = "speaking"
	FollowUp  State = "follow_up" // listening for a reply, without having been called
	Failed    State = "error"     // shown for a moment after a turn that failed
)

// A Fact is one of the types below.
type Fact interface{ fact() }

// StateChanged tells that the appliance went from one state to another.
type StateChanged struct {
	At       time.Time
	From, To State
	Run      uint64 // the turn concerned
}

// Woke tells that a wake word was heard, or a word that stops.
type Woke struct {
	At    time.Time
	Word  string
	Score float64 // 0 to 1
	Stops bool    // it stopped what sounded, and no turn begins
}

// NearMiss tells that a wake word was nearly heard. Scores say how sure its model was, from first to last, 0 to 1; what
// was said is not in them.
type NearMiss struct {
	At       time.Time
	Word     string
	Peak     float64 // the highest score
	Bar      float64 // what it had to exceed
	Duration time.Duration
	Scores   []float64
	Untold   int // further ones since the last that was told
}

// MicrophoneFault tells that nothing can be heard any more, and why.
type MicrophoneFault struct {
	At     time.Time
	Reason string // "no_frames": it delivers nothing; "constant": always the same value
}

// MicrophoneWell tells that a fault of the microphone is over.
type MicrophoneWell struct{ At time.Time }

// Heard tells what the recogniser made of an utterance. Text is speech: it must not be logged above debug level, and if
// it is of a private chat it must not leave the appliance.
type Heard struct {
	At      time.Time
	Run     uint64
	Text    string // empty: nothing was understood
	Private bool
}

// Said tells the words that have just been handed to the voice. Text is speech, as in Heard.
type Said struct {
	At      time.Time
	Run     uint64
	Text    string
	Private bool
}

// TurnEnded tells that a turn is over, however it ended.
type TurnEnded struct{ Record Record }

// OfPrivateChat reports whether the fact may not leave the appliance, nor be kept.
func (f Heard) OfPrivateChat() bool     { return f.Private }
func (f Said) OfPrivateChat() bool      { return f.Private }
func (f TurnEnded) OfPrivateChat() bool { return f.Record.Private }

// TimerChanged tells what became of a timer or an alarm.
type TimerChanged struct {
	At    time.Time
	ID    int // timers and alarms share their numbers
	Name  string
	What  TimerChange
	Ends  time.Time     // when it rings next; if it rings or has rung, when it should have; zero: never again
	Total time.Duration // of a timer
	Alarm bool          // it is an alarm
	Late  bool          // it rings later than it should have
	// Private is set if it was set in a private chat: then its name must not leave the appliance, for what it may say.
	Private bool
}

// A TimerChange is what can happen to a timer or an alarm.
type TimerChange string

// The changes of a timer or an alarm.
const (
	TimerSet       TimerChange = "set"
	TimerRestored  TimerChange = "restored" // it was set before the program was started
	TimerMoved     TimerChange = "moved"    // the clock or its zone was set: Ends is another time now
	TimerCancelled TimerChange = "cancelled"
	TimerRinging   TimerChange = "ringing"
	TimerSnoozed   TimerChange = "snoozed"
	TimerSilenced  TimerChange = "silenced" // by somebody, or because it rang for long enough
	TimerMissed    TimerChange = "missed"   // so long ago that it won't ring for it
)

// HookMissed tells that a plugin's hook is left out for a while, because it missed its deadlines or broke its worker.
type HookMissed struct {
	At     time.Time
	Plugin string
	Point  string
	For    time.Duration
}

// VolumeChanged tells the volume, 0 to 100, and whether the sound is muted.
type VolumeChanged struct {
	At      time.Time
	Percent int
	Muted   bool
}

func (StateChanged) fact()    {}
func (Woke) fact()            {}
func (NearMiss) fact()        {}
func (MicrophoneFault) fact() {}
func (MicrophoneWell) fact()  {}
func (Heard) fact()           {}
func (Said) fact()            {}
func (TurnEnded) fact()       {}
func (TimerChanged) fact()    {}
func (HookMissed) fact()      {}
func (VolumeChanged) fact()   {}

// A Bus hands every fact to every subscriber. The zero value is ready for use.
type Bus struct {
	mu   sync.Mutex
	subs map[*Subscription]struct{}
}

// A Subscription is one listener's queue of facts.
type Subscription struct {
	C <-chan Fact // closed by Close

	c       chan Fact
	bus     *Bus
	dropped atomic.Uint64
}

// Subscribe opens a queue of the given size. When it is full, new facts are dropped for this listener, and counted:
// whoever publishes never waits.
func (b *Bus) Subscribe(size int) *Subscription {
	c := make(chan Fact, size)
	s := &Subscription{C: c, c: c, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = make(map[*Subscription]struct{})
	}
	b.subs[s] = struct{}{}
	return s
}

// Publish tells all subscribers f.
func (b *Bus) Publish(f Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		select {
		case s.c <- f:
		default:
			s.dropped.Add(1)
		}
	}
}

// Dropped is the number of facts that this listener missed because its queue was full.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription and closes C. It may be called more than once.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if _, open := s.bus.subs[s]; open {
		delete(s.bus.subs, s)
		close(s.c)
	}
}

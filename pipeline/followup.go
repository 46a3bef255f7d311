package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"bellbird/event"
)

// This file is follow-up listening: after an answer that asks something, the microphone opens without a call.
//
//  1. ended, in the loop, asks follows whether the turn that has just ended is followed up. It has ended because the
//     loudspeaker has played its last frame, its latency included.
//  2. The follow-up is a turn of its own, in the same chat. It begins with settle, in which the echo of the room dies
//     away, and then says that it listens. Nothing is played: the question was the sign.
//  3. It is heard like any other. If nobody speaks in time, or it can't be heard at all, it ends in silence.
//
// A call while it waits ends it and begins a turn of its own; a button or Stop ends it.

// byFollowUp stands in a record where the wake word would.
const byFollowUp = "follow_up"

// Follow says after which answers the microphone opens without a call.
type Follow string

// After which answers.
const (
	FollowNone      Follow = "off"
	FollowQuestions Follow = "question" // those whose last sentence ends in a question mark
	FollowAll       Follow = "always"
)

// UnmarshalText reads one of the above.
func (f *Follow) UnmarshalText(text []byte) error {
	switch w := Follow(text); w {
	case FollowNone, FollowQuestions, FollowAll:
		*f = w
		return nil
	}
	return fmt.Errorf("%q: choose %q, %q or %q", text, FollowNone, FollowQuestions, FollowAll)
}

const (
	// MostFollowUpTime is how long a follow-up may wait for somebody to speak.
	MostFollowUpTime = 30 * time.Second

	// mostFollowUps is how many may come one after the other. Nobody talks for so long without a call, but a television
	// that is taken for an answer does.
	mostFollowUps = 25
)

// SetFollow sets after which answers the microphone opens without a call. Like all these it may be called at any time,
// from any goroutine, and holds from the next end of a turn on.
func (p *Pipeline) SetFollow(f Follow) { p.follow.Store(f) }

// Follow is what is set.
func (p *Pipeline) Follow() Follow { return p.follow.Load().(Follow) }

// SetFollowUpTime sets how long a follow-up waits for somebody to speak, up to MostFollowUpTime. With 0 there is none.
func (p *Pipeline) SetFollowUpTime(d time.Duration) {
	p.followTime.Store(int64(min(max(d, 0), MostFollowUpTime)))
}

// FollowUpTime is how long it waits.
func (p *Pipeline) FollowUpTime() time.Duration { return time.Duration(p.followTime.Load()) }

// follows reports whether a turn that has ended with r is followed up: only one that was spoken, and whose answer was
// played by a loudspeaker that can be heard.
func (p *Pipeline) follows(t *turn, r event.Record) bool {
	switch {
	case !t.listen, r.Outcome != event.Completed && r.Outcome != event.Handled,
		t.followed >= mostFollowUps, p.FollowUpTime() == 0, !p.o.MayFollowUp(), !p.o.Output.Audible():
		return false
	}
	said := t.speech.spoken()
	switch p.Follow() {
	case FollowAll:
		return said != ""
	case FollowQuestions:
		return asks(said)
	}
	return false
}

// newFollowUp is the turn that follows one.
func (p *Pipeline) newFollowUp(after *turn) *turn {
	t := p.newTurn(p.o.Clock.Now())
	t.listen, t.followed, t.asked, t.chatName = true, after.followed+1, asks(after.speech.spoken()), after.chatName
	t.record.WakeWord = byFollowUp
	return t
}

// settle waits until nothing of the answer is left in the room, and opens the microphone: what it has heard up to then
// is not listened to.
func (t *turn) settle(ctx context.Context) error {
	o := &t.p.o
	settled := make(chan func(), 1)
	halt := o.Clock.AfterFunc(o.Settling, func() { settled <- o.Clock.Work() })
	t.working() // time passes
	select {
	case t.working = <-settled:
	case <-ctx.Done():
		if !halt() {
			(<-settled)()
		}
		return context.Cause(ctx)
	}
	t.patience = t.p.FollowUpTime()
	if t.patience == 0 || !o.MayFollowUp() { // meanwhile
		return errNothingHeard
	}
	t.from = o.Ears.Heard()
	t.p.post(phaseMsg{t.record.Run, event.FollowUp})
	return nil
}

// unanswered reports whether the turn is a follow-up in which nobody has spoken. Then nobody expects to hear of it,
// whatever went wrong.
func (t *turn) unanswered() bool { return t.followed > 0 && t.record.Stages.Voiced == 0 }

// asks reports whether the last sentence of a text is a question, whatever comes after it that isn't spoken.
func asks(text string) bool {
	i := strings.LastIndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	return strings.ContainsAny(text[i+1:], "?？؟\u037e՞")
}

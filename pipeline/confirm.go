package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/spoken"
)

// This file is how the user is asked before a tool runs:
//
//  1. confirm finds out whether he has to be: a hook wants it, or he himself does.
//  2. say has the question spoken, once what the turn has said already is over.
//  3. await waits for a button, or a spoken yes or no, for ConfirmTime. Without a yes the tool doesn't run.
//
// No hook has any part in it: neither in what is asked, nor in what was heard. So none can soften a question or answer it.

// ConfirmTime is how long a question waits for its answer.
const ConfirmTime = 10 * time.Second

// Confirmations are how the user is asked. It may be used by several goroutines.
type Confirmations struct {
	// Locked reports whether the user wants to be asked before a tool, whatever hooks say. Nil: before none.
	Locked func(tool string) bool

	// Means says what a text means as an answer. Nil: a spoken answer is not listened for.
	Means func(text string) (yes, no bool)

	mu      sync.Mutex
	waiting chan bool // takes one answer; nil: nothing is asked

	asking sync.Mutex // one question after the other; held for a bounded time
}

// Answer answers the question that waits, by a button that was pressed, and reports whether there is one. It is for the
// user alone: nothing that a plugin or a model can reach may call it.
func (c *Confirmations) Answer(yes bool) (taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		return false
	}
	select {
	case c.waiting <- yes:
		return true
	default:
		return false // it has been answered
	}
}

// open begins to take an answer, and close ends that.
func (c *Confirmations) open() chan bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = make(chan bool, 1)
	return c.waiting
}

func (c *Confirmations) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
}

// What the model reads of a tool that didn't run. Why the user was asked is not for it.
const (
	refusedResult    = "The user was asked, and said no. It was not done."
	unansweredResult = "The user was asked to confirm this, and didn't. It was not done."
	unaskableResult  = "This needs the user's confirmation, and there is no way to ask for it. It was not done."
)

var (
	errNobodyConfirmed = errors.New("nobody answered the question in time")
	errAnswered        = errors.New("the question is answered")
)

// confirm asks the user whether a tool may run, if he has to be asked: because a hook wants that and gives a reason, or
// because he has locked the tool. It returns what the model reads in place of a result, "" if the tool may run. The error
// is the end of the turn. A nil c can't ask.
func (c *Confirmations) confirm(ctx context.Context, t *turn, call dialog.ToolCall, reason *string) (refusal string, err error) {
	locked := c != nil && c.Locked != nil && c.Locked(call.Name)
	switch {
	case reason == nil && !locked:
		return "", nil
	case c == nil:
		return unaskableResult, nil
	}
	c.asking.Lock() // tools may run side by side, but the user has two ears
	defer c.asking.Unlock()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	o := &t.p.o
	text := confirmQuestion(call.Name, reason)
	o.Bus.Publish(event.ConfirmationAsked{At: o.Clock.Now(), Run: t.record.Run, Tool: call.Name, Text: text, Private: t.private})
	yes, by, err := c.ask(ctx, t, text)
	o.Bus.Publish(event.ConfirmationEnded{At: o.Clock.Now(), Run: t.record.Run, Tool: call.Name, Confirmed: yes && err == nil, By: by})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		o.Logger.Error("a confirmation could not be asked for", "run", t.record.Run, "tool", call.Name, "err", err)
		return unaskableResult, nil
	case yes:
		return "", nil
	case by != "":
		return refusedResult, nil
	}
	return unansweredResult, nil
}

// maxReason bounds what a plugin has spoken of why it asks, in bytes.
const maxReason = 300

// confirmQuestion is what is asked. The appliance asks it, whatever a plugin gives as its reason.
func confirmQuestion(tool string, reason *string) string {
	name := strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(tool)
	text := "Shall I really do this: " + name + "?"
	if reason == nil {
		return text
	}
	why := strings.Join(strings.Fields(*reason), " ")
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "") + "."
	}
	if why == "" {
		return text
	}
	return why + " " + text
}

// ask asks, and waits for the answer. by says how it came, "" if it didn't.
func (c *Confirmations) ask(ctx context.Context, t *turn, text string) (yes bool, by string, err error) {
	answers := c.open() // who knows what comes need not hear it to its end
	defer c.close()
	said, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- t.ask(said, text) }()
	select {
	case err = <-done:
	case yes = <-answers:
		stop()
		<-done
		return yes, "button", nil
	}
	if err != nil {
		return false, "", err
	}
	return c.await(ctx, t, answers)
}

// settled is how often, one time after the other, the turn must be found to have nothing more to say.
const (
	settled     = 2
	settleEvery = 40 * time.Millisecond
)

// ask has a question spoken, on the plane of sounds, when what the turn has said before is over: the stream of speech is
// the answer's, which goes on later. It returns when it was heard.
func (t *turn) ask(ctx context.Context, text string) error {
	o := &t.p.o
	for n := 0; n < settled; n++ {
		if t.speech.pending() {
			n = -1
		}
		if err := pause(ctx, o.Clock, settleEvery); err != nil {
			return err
		}
	}
	var frames []audio.Frame
	voiceCtx, cancel := clock.WithTimeout(ctx, o.Clock, o.VoiceTimeout, errNoSpeech)
	defer cancel()
	result := make(chan error, 1)
	var made []audio.Frame
	go func() {
		result <- t.voice.Synthesize(voiceCtx, text, func(f audio.Frame) error {
			made = append(made, f)
			return context.Cause(voiceCtx)
		})
	}()
	select {
	case err := <-result:
		if err != nil {
			return err
		}
		frames = made
	case <-voiceCtx.Done():
		return context.Cause(voiceCtx)
	}
	o.Bus.Publish(event.Said{At: o.Clock.Now(), Run: t.record.Run, Text: text, Private: t.private})
	t.p.post(phaseMsg{t.record.Run, event.Speaking})
	stop := o.Output.Sound(frames, false)
	defer stop()
	// It has been heard when it was played; then the room dies away.
	return pause(ctx, o.Clock, time.Duration(len(frames))*audio.FrameDuration+o.Settling)
}

// flush has spoken what was pushed, also if it is half a sentence: nothing more comes before tools have run.
func (s *speech) flush(ctx context.Context) {
	s.add(ctx, s.chunker.push(s.cleaner.Flush()+"\n\n"))
	s.add(ctx, s.chunker.flush())
	s.cleaner = spoken.Cleaner{}
}

// pending reports whether something that was pushed has not been played yet.
func (s *speech) pending() bool {
	stream := s.t.stream.Load()
	if stream == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	making := len(s.spans) > 0 && !s.spans[len(s.spans)-1].whole
	return s.err == nil && (len(s.chunks) > 0 || making || stream.Written() > stream.Played())
}

// pause lets time pass.
func pause(ctx context.Context, c clock.Clock, d time.Duration) error {
	over := make(chan struct{})
	halt := c.AfterFunc(d, func() { close(over) })
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		halt()
		return context.Cause(ctx)
	}
}

// await waits for the answer of a button or of the user's voice, whichever comes first.
func (c *Confirmations) await(ctx context.Context, t *turn, answers <-chan bool) (yes bool, by string, err error) {
	o := &t.p.o
	waitCtx, cancel := clock.WithTimeout(ctx, o.Clock, ConfirmTime, errNobodyConfirmed)
	defer cancel()
	defer t.p.post(phaseMsg{t.record.Run, event.Thinking})
	spoken := make(chan bool, 1)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		if c.Means == nil || o.Ears == nil || o.Recognizer == nil || !o.MayFollowUp() {
			return
		}
		t.p.post(phaseMsg{t.record.Run, event.FollowUp})
		for waitCtx.Err() == nil {
			text, err := t.overhear(waitCtx, ConfirmTime)
			if err != nil {
				return // a button is left
			}
			if yes, no := c.Means(text); yes != no {
				spoken <- yes
				return
			}
		}
	}()
	select {
	case yes = <-answers:
		by = "button"
	case yes = <-spoken:
		by = "voice"
	case <-waitCtx.Done():
	}
	cancel()
	<-listening // the ears hear one utterance at a time
	return yes, by, nil
}

// overhear is what is said next, as it was recognised: no hook sees it. An error means that nothing can be heard.
func (t *turn) overhear(ctx context.Context, patience time.Duration) (text string, err error) {
	o := &t.p.o
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errAnswered)
	type result struct {
		text string
		err  error
	}
	frames := make(chan audio.Frame)
	recognised := make(chan result, 1)
	go func() {
		text, err := o.Recognizer.Recognize(ctx, frames)
		if err != nil {
			cancel(err)
		}
		recognised <- result{text, err}
	}()
	voiced, _, err := o.Ears.Listen(ctx, o.Ears.Heard(), patience, func(f audio.Frame) {
		select {
		case frames <- f:
		case <-ctx.Done():
		}
	})
	close(frames)
	if err != nil {
		return "", err
	}
	if !voiced {
		return "", errNothingHeard
	}
	textCtx, cancelText := clock.WithTimeout(ctx, o.Clock, o.RecognizeTimeout, errNoText)
	defer cancelText()
	select {
	case r := <-recognised:
		return r.text, r.err
	case <-textCtx.Done():
		return "", context.Cause(textCtx)
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/hooks"
)

// A turn is one exchange, from the wake word to the last sound of the answer. Its steps, in order, are the methods of
// this file; they run on one goroutine.
type turn struct {
	p      *Pipeline
	began  time.Time
	record event.Record
	reply  chan event.Record // nil: nobody waits for the end
	cancel context.CancelCauseFunc

	// What begins the turn: an utterance from frame number from on, or record.Heard, or words to say as they are.
	listen bool
	from   uint64
	say    string

	taken  bool // a plugin answered in the model's place
	speech speech

	traceMu sync.Mutex
	trace   []event.HookCall

	stream     atomic.Pointer[audio.Stream]
	firstSound atomic.Int64 // stage, in nanoseconds
	working    func()       // ends the turn's share of the clock's work
}

func (p *Pipeline) newTurn(began time.Time) *turn {
	t := &turn{p: p, began: began, record: event.Record{Began: began}, working: func() {}}
	t.speech.t = t
	return t
}

// A failure is an error of a turn with its kind, which chooses what is said of it.
type failure struct {
	kind event.ErrorKind
	err  error
}

func (f *failure) Error() string { return fmt.Sprintf("%s: %v", f.kind, f.err) }
func (f *failure) Unwrap() error { return f.err }

var (
	errNothingHeard = errors.New("nobody spoke")
	errNoFrames     = errors.New("no end of the utterance came: does the microphone deliver?")
	errNoText       = errors.New("the recogniser gave no text in time")
	errNoAnswer     = errors.New("the model wrote nothing in time")
	errNoResult     = errors.New("the tool did not end in time")
	errNoSpeech     = errors.New("the voice or the speaker made no progress in time")
)

// What is said when a turn ends without an answer. It is chosen by kind; the error's text is for the log.
const notUnderstoodSentence = "Sorry, I didn't catch that."

var failureSentences = map[event.ErrorKind]string{
	event.RecognizerFailed: "Sorry, I can't understand speech at the moment.",
	event.ModelFailed:      "Sorry, I can't answer that at the moment.",
	event.MicrophoneFailed: "I can't hear anything. Please check the microphone.",
	event.TurnTooLong:      "Sorry, that took too long.",
}

// since is the age of the turn.
func (t *turn) since() event.Millis { return event.Millis(t.p.o.Clock.Now().Sub(t.began)) }

func (t *turn) run(ctx context.Context) event.Record {
	defer func() { t.working() }()
	err := t.steps(ctx)
	t.conclude(ctx, err)
	t.record.Stages.FirstSound = event.Millis(t.firstSound.Load())
	t.record.Stages.End = t.since()
	t.traceMu.Lock()
	defer t.traceMu.Unlock()
	t.record.Hooks = slices.Clone(t.trace)
	return t.record
}

func (t *turn) steps(ctx context.Context) error {
	if t.listen {
		text, err := t.hear(ctx)
		if err != nil {
			return err
		}
		understood := text != ""
		if understood {
			text = t.postSTT(ctx, text)
		}
		t.p.o.Bus.Publish(event.Heard{At: t.p.o.Clock.Now(), Run: t.record.Run, Text: text})
		t.record.Heard = text
		switch {
		case !understood:
			return dialog.ErrNotUnderstood
		case strings.TrimSpace(text) == "": // a plugin emptied it
			t.taken = true
			return nil
		}
	}
	if t.say != "" {
		t.record.Answer = t.say
		return t.heard(t.speech.whole(ctx, t.say), false)
	}
	return t.converse(ctx)
}

// work marks that the turn has something to do: until it listens, and then until the first sound of its answer is heard,
// or it ends.
func (t *turn) work() { t.working = t.p.o.Clock.Work() }

// hear collects an utterance, which is recognised while it is being spoken.
func (t *turn) hear(ctx context.Context) (string, error) {
	o := &t.p.o
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if len(o.WakeSound) > 0 {
		o.Output.Sound(o.WakeSound, false)
	}
	t.onWake(ctx) // while the sound plays; what is said meanwhile is remembered by the ears

	type result struct {
		text string
		err  error
	}
	frames := make(chan audio.Frame)
	recognised := make(chan result, 1)
	go func() {
		text, err := o.Recognizer.Recognize(ctx, frames)
		if err != nil {
			cancel(&failure{event.RecognizerFailed, err}) // no use listening on
		}
		recognised <- result{text, err}
	}()

	listenCtx, cancelListen := clock.WithTimeout(ctx, o.Clock, o.ListenTimeout, &failure{event.MicrophoneFailed, errNoFrames})
	defer cancelListen()
	voiced, silence, err := o.Ears.Listen(listenCtx, t.from, func(f audio.Frame) {
		t.working() // from the first frame on the ears have begun, and time is theirs
		select {
		case frames <- f: // waits for the recogniser, on nobody's account but its own: Listen has its queue
		case <-listenCtx.Done():
		}
	})
	close(frames)
	t.work()
	if err != nil {
		if cause := context.Cause(listenCtx); cause != nil {
			return "", cause
		}
		return "", &failure{event.MicrophoneFailed, err}
	}
	t.record.Stages.Endpoint = t.since()
	if !voiced {
		return "", errNothingHeard
	}
	t.record.Stages.Voiced = t.record.Stages.Endpoint - event.Millis(silence)
	t.p.post(phaseMsg{t.record.Run, event.Thinking})

	textCtx, cancelText := clock.WithTimeout(ctx, o.Clock, o.RecognizeTimeout, &failure{event.RecognizerFailed, errNoText})
	defer cancelText()
	select {
	case r := <-recognised:
		if r.err != nil {
			return "", context.Cause(ctx)
		}
		t.record.Stages.Recognised = t.since()
		return r.text, nil
	case <-textCtx.Done():
		return "", context.Cause(textCtx)
	}
}

// maxAnswer bounds what a model may write in one turn, in bytes: about twenty minutes of speech.
const maxAnswer = 16 << 10

// converse asks the model, runs the tools that it wants, and speaks what it writes while it writes.
func (t *turn) converse(ctx context.Context) error {
	o := &t.p.o
	said := t.record.Heard
	pre := t.preChat(ctx)
	if pre.SkipLLM {
		return t.handled(ctx, said, pre)
	}
	var messages []dialog.Message
	if prompt := t.promptInject(ctx, pre.ContextParts); prompt != "" {
		messages = append(messages, dialog.Message{Role: dialog.System, Content: prompt})
	}
	messages = append(messages, o.Chat.Messages()...)
	if contributions := t.ghostInject(ctx, pre.Input); o.Ghost != nil {
		if text := o.Ghost(contributions); text != "" {
			messages = append(messages, dialog.Message{Role: dialog.User, Content: text}) // into this request, and nowhere else
		}
	}
	user := dialog.Message{Role: dialog.User, Content: pre.Input, Time: t.began}
	t.save(user)

	written, err := t.rounds(ctx, append(messages, user))
	if errors.Is(err, dialog.ErrNotUnderstood) {
		return err
	}
	answer := dialog.Message{Role: dialog.Assistant, Content: strings.TrimSpace(written), Time: o.Clock.Now()}
	if err != nil {
		// An answer that was cut short is remembered as far as it was heard: that is what the user will refer to.
		answer.Content = t.speech.spoken()
		t.record.Answer = answer.Content
		t.save(answer)
		return err
	}
	answer.Content = t.postLLM(ctx, pre.Input, answer.Content)
	t.record.Answer = answer.Content
	t.save(answer)
	t.postChat(ctx, pre.Input, answer.Content)
	if o.streams() {
		err = t.speech.finish(ctx)
	} else {
		err = t.speech.whole(ctx, answer.Content)
	}
	return t.heard(err, true)
}

// heard keeps of an answer that was cut short, with err, only what was heard.
func (t *turn) heard(err error, saved bool) error {
	if err == nil {
		return nil
	}
	t.record.Answer = t.speech.spoken()
	if saved {
		if err := t.p.o.Chat.Amend(t.record.Answer); err != nil {
			t.p.o.Logger.Error("the turn could not be saved", "run", t.record.Run, "err", err)
		}
	}
	return err
}

// handled speaks what a plugin answered in the model's place.
func (t *turn) handled(ctx context.Context, said string, e *hooks.Event) error {
	t.taken = true
	if e.Response == nil || strings.TrimSpace(*e.Response) == "" {
		return nil
	}
	t.record.Answer = strings.TrimSpace(*e.Response)
	if !e.Ephemeral {
		t.save(
			dialog.Message{Role: dialog.User, Content: said, Time: t.began},
			dialog.Message{Role: dialog.Assistant, Content: t.record.Answer, Time: t.p.o.Clock.Now()},
		)
	}
	return t.heard(t.speech.whole(ctx, t.record.Answer), !e.Ephemeral)
}

func (t *turn) save(rows ...dialog.Message) {
	if err := t.p.o.Chat.Append(rows...); err != nil {
		t.p.o.Logger.Error("the turn could not be saved", "run", t.record.Run, "err", err)
	}
}

// rounds has the model write, and runs the tools that it asks for, until it asks for none. Without tools it must answer
// with what it knows: that is the last round.
func (t *turn) rounds(ctx context.Context, messages []dialog.Message) (written string, err error) {
	o := &t.p.o
	for round := 0; ; round++ {
		req := dialog.Request{Messages: messages}
		if round < o.ToolRounds {
			req.Tools = t.toolsFilter(ctx, o.Tools.Specs())
		}
		text, calls, err := t.generate(ctx, req, maxAnswer-len(written))
		written += text
		if err != nil || len(calls) == 0 || len(req.Tools) == 0 {
			return written, err
		}
		messages = append(messages, dialog.Message{Role: dialog.Assistant, Content: text, Calls: calls, Time: o.Clock.Now()})
		for _, call := range calls {
			result, err := t.execute(ctx, call, req.Tools)
			if err != nil {
				return written, err
			}
			messages = append(messages, dialog.Message{
				Role: dialog.Tool, Content: result.Content, CallID: call.ID, Name: call.Name, Time: o.Clock.Now(),
			})
		}
	}
}

// generate has the model write until it ends, and hands its words to the speech.
func (t *turn) generate(ctx context.Context, req dialog.Request, limit int) (text string, calls []dialog.ToolCall, err error) {
	o := &t.p.o
	speechCtx := ctx // the speech goes on when this round of the model is over
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := newWatchdog(o.Clock, o.ModelTimeout, func() { cancel(&failure{event.ModelFailed, errNoAnswer}) })
	defer watchdog.stop()

	// The model has a goroutine of its own, so that one which doesn't look at its context can't hold up the turn.
	type piece struct {
		dialog.Delta
		err error
	}
	pieces := make(chan piece)
	go func() {
		defer close(pieces)
		for delta, err := range o.Model.Generate(ctx, req) {
			select {
			case pieces <- piece{delta, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()

	var written strings.Builder
	for {
		select {
		case p, more := <-pieces:
			switch {
			case ctx.Err() != nil:
				return written.String(), nil, context.Cause(ctx)
			case !more:
				return written.String(), calls, nil
			case errors.Is(p.err, dialog.ErrNotUnderstood):
				return written.String(), nil, p.err
			case p.err != nil:
				return written.String(), nil, &failure{event.ModelFailed, p.err}
			}
			watchdog.reset()
			if p.Text != "" {
				if t.record.Stages.FirstWord == 0 {
					t.record.Stages.FirstWord = t.since()
				}
				written.WriteString(p.Text)
				if o.streams() {
					watchdog.stop() // while the voice can't keep up, the model waits for us
					t.speech.push(speechCtx, p.Text)
					watchdog.reset()
				}
				if written.Len() > limit {
					return written.String(), nil, nil
				}
			}
			if p.Call != nil {
				calls = append(calls, *p.Call)
			}
		case <-ctx.Done():
			return written.String(), nil, context.Cause(ctx)
		}
	}
}

// callTool runs one tool. Only the end of the turn is an error: what goes wrong in a tool is for the model to hear of.
func (t *turn) callTool(ctx context.Context, call dialog.ToolCall) (dialog.ToolResult, error) {
	o := &t.p.o
	toolCtx, cancel := clock.WithTimeout(ctx, o.Clock, o.ToolTimeout, errNoResult)
	defer cancel()
	result := make(chan dialog.ToolResult, 1)
	go func() { result <- o.Tools.Call(toolCtx, call) }()
	select {
	case r := <-result:
		return r, nil
	case <-toolCtx.Done():
		if ctx.Err() != nil {
			return dialog.ToolResult{}, context.Cause(ctx)
		}
		o.Logger.Warn("tool", "run", t.record.Run, "tool", call.Name, "err", errNoResult)
		return dialog.ToolResult{CallID: call.ID, Content: "Sorry, that took too long."}, nil
	}
}

// conclude says what is to be said of a turn that ended with err, and sets its outcome.
func (t *turn) conclude(ctx context.Context, err error) {
	r := &t.record
	var f *failure
	switch {
	case err == nil:
		r.Outcome = event.Completed
		if t.taken {
			r.Outcome = event.Handled
		}
		return
	case ctx.Err() != nil:
		r.Outcome = event.Interrupted
		if errors.Is(context.Cause(ctx), errTooLong) {
			r.Outcome, r.Error = event.FailedTurn, event.TurnTooLong
		}
		t.speech.abandon()
		return
	case errors.Is(err, errNothingHeard):
		r.Outcome = event.NothingHeard
		return
	case errors.Is(err, dialog.ErrNotUnderstood):
		r.Outcome = event.NotUnderstood
		t.explain(ctx, notUnderstoodSentence)
		return
	case errors.As(err, &f):
		r.Error = f.kind
	default:
		r.Error = event.ModelFailed
	}
	r.Outcome = event.FailedTurn
	t.p.o.Logger.Error("turn failed", "run", r.Run, "kind", string(r.Error), "err", err)
	t.explain(ctx, failureSentences[r.Error])
}

// explain says sentence, after what is being said already. Without a voice there is a sound instead.
func (t *turn) explain(ctx context.Context, sentence string) {
	o := &t.p.o
	if sentence != "" && !t.speech.failed() {
		t.speech.chunker.flush() // half a sentence of the model's is left out
		t.speech.push(ctx, sentence)
		err := t.speech.finish(ctx)
		t.record.Answer = t.speech.spoken()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.record.Outcome = event.Interrupted
			return
		}
		o.Logger.Error("what went wrong could not be said", "run", t.record.Run, "err", err)
		t.record.Outcome, t.record.Error = event.FailedTurn, event.VoiceFailed
	}
	t.speech.abandon()
	if len(o.ErrorSound) > 0 {
		o.Output.Sound(o.ErrorSound, false)
	}
}

// cut silences the turn at once. Unlike everything else here it may be called by the loop.
func (t *turn) cut() {
	if s := t.stream.Load(); s != nil {
		s.Cut()
	}
}

// A watchdog calls f when it was not reset for the time d.
type watchdog struct {
	c    clock.Clock
	d    time.Duration
	f    func()
	halt func() bool
}

func newWatchdog(c clock.Clock, d time.Duration, f func()) *watchdog {
	return &watchdog{c, d, f, c.AfterFunc(d, f)}
}

func (w *watchdog) stop() { w.halt() }

func (w *watchdog) reset() {
	w.halt()
	w.halt = w.c.AfterFunc(w.d, w.f)
}

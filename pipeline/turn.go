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
	score  float64 // of the wake word
	say    string

	// Of a turn that follows another one without a call.
	followed int           // how many there were in a row, with it; 0: it is none
	asked    bool          // the answer before was a question
	patience time.Duration // how long it waits for somebody to speak; 0: as long as the ears find right

	chatName string // "": the active one
	chat     Chat   // nil: it can't be read, and only what needs none is done
	private  bool   // the chat was when the turn began
	voice    Voice
	saved    bool            // something of the turn is in the chat
	saving   <-chan struct{} // closed when what is being saved is; nil: nothing is

	taken     bool   // a plugin answered in the model's place
	usedTools []any  // the tools that the model asked for so far, by name
	earlier   string // what was said before the model asked for tools; it is in the chat already
	speech    speech

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

	errAnotherAnswers = errors.New("another appliance is nearer to whoever called")

	errNoFrames = errors.New("no end of the utterance came: does the microphone deliver?")
	errNoText   = errors.New("the recogniser gave no text in time")
	errNoAnswer = errors.New("the model wrote nothing in time")
	errNoResult = errors.New("the tool did not end in time")
	errNoSpeech = errors.New("the voice or the speaker made no progress in time")
)

// since is the age of the turn.
func (t *turn) since() event.Millis { return event.Millis(t.p.o.Clock.Now().Sub(t.began)) }

func (t *turn) run(ctx context.Context) event.Record {
	defer func() { t.working() }()
	before := t.p.o.Output.Stats()
	err := t.steps(ctx)
	t.conclude(ctx, err)
	t.leave()
	t.record.Gaps = t.p.o.Output.Stats().Since(before).Gaps
	t.record.Stages.FirstSound = event.Millis(t.firstSound.Load())
	t.record.Stages.End = t.since()
	t.traceMu.Lock()
	defer t.traceMu.Unlock()
	t.record.Hooks = slices.Clone(t.trace)
	return t.record
}

func (t *turn) steps(ctx context.Context) error {
	if err := t.enter(); err != nil && t.say == "" {
		return err
	}
	if t.listen {
		text, err := t.hear(ctx)
		if err != nil {
			return err
		}
		understood := text != ""
		if understood {
			text = t.postSTT(ctx, text)
		}
		t.p.o.Bus.Publish(event.Heard{At: t.p.o.Clock.Now(), Run: t.record.Run, Text: text, Private: t.private})
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

// enter finds the turn's chat, and its voice.
func (t *turn) enter() (err error) {
	t.voice = t.p.o.Voice
	if t.chatName == "" {
		t.chat, err = t.p.o.Chats.Active()
	} else {
		t.chat, err = t.p.o.Chats.Named(t.chatName)
	}
	if err != nil {
		t.chat, t.private, t.record.Private = nil, true, true // who knows
		kind := event.ChatUnknown
		if errors.Is(err, ErrLocked) {
			kind = event.ChatLocked
		}
		return &failure{kind, err}
	}
	t.private = t.chat.Private()
	t.p.private.Store(t.private)
	if t.record.Private = t.private; !t.private {
		t.record.Chat = t.chat.Name()
	}
	if t.p.o.VoiceFor != nil {
		if v := t.p.o.VoiceFor(t.chat); v != nil {
			t.voice = v
		}
	}
	return nil
}

// leave notes in the chat how the turn ended. A chat that was made private meanwhile makes the turn so.
func (t *turn) leave() {
	if t.chat == nil {
		return
	}
	t.allSaved()
	if t.chat.Private() {
		t.record.Chat, t.record.Private = "", true
	}
	if t.saved {
		if err := t.chat.End(string(t.record.Outcome)); err != nil {
			t.p.o.Logger.Error("how the turn ended could not be saved", "run", t.record.Run, "err", err)
		}
	}
}

// work marks that the turn has something to do: until it listens, and then until the first sound of its answer is heard,
// or it ends.
func (t *turn) work() { t.working = t.p.o.Clock.Work() }

// called answers the call, with a sound. If several appliances were called, the one that isn't to go on is cancelled.
func (t *turn) called(ctx context.Context, cancel context.CancelCauseFunc) {
	o := &t.p.o
	sound := func() {
		if o.WakeSound == nil {
			return
		}
		if frames := o.WakeSound(); len(frames) > 0 {
			o.Output.Sound(frames, false)
		}
	}
	if o.Contend == nil {
		sound()
	} else {
		o.Contend(t.record.WakeWord, t.score, func(goOn bool) {
			if goOn {
				sound()
			} else {
				cancel(errAnotherAnswers)
			}
		})
	}
	t.onWake(ctx) // while the sound plays; what is said meanwhile is remembered by the ears
}

// hear collects an utterance, which is recognised while it is being spoken.
func (t *turn) hear(ctx context.Context) (string, error) {
	o := &t.p.o
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t.followed > 0 {
		if err := t.settle(ctx); err != nil {
			return "", err
		}
	} else {
		t.called(ctx, cancel)
	}

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

	limit := o.ListenTimeout + t.patience
	listenCtx, cancelListen := clock.WithTimeout(ctx, o.Clock, limit, &failure{event.MicrophoneFailed, errNoFrames})
	defer cancelListen()
	voiced, silence, err := o.Ears.Listen(listenCtx, t.from, t.patience, func(f audio.Frame) {
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

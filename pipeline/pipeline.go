// Package pipeline owns the order of a turn: it listens, has recognised what was said, asks the model, runs the tools
// that the model wants, and speaks the answer while it is still being written. It knows none of the engines: it has an
// interface for each. What must be heard, understood or synthesized is theirs.
//
// The flow of a turn:
//
//	Wake, Ask, Say ─► loop ─► turn: listen ─► recognise ─► converse ⇄ tools
//	                   ▲                                      │ text
//	                   │ phases, end                          ▼
//	                   └───────────── speech: chunker ─► voice ─► output
//
// One goroutine, the loop, owns the state. Everything that starts or ends a turn is a message to it. A turn is a
// context and a run number; whatever an older run still sends is dropped and counted.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
)

// Ears collect utterances.
type Ears interface {
	// Listen passes the frames of one utterance to to, in order, beginning with frame number from or as far back as is
	// remembered, and returns when it is over: voiced tells whether anybody spoke, silence how long it had then been
	// quiet. It waits so long for somebody to speak; 0: as long as it finds right. It returns at once when ctx is done.
	Listen(ctx context.Context, from uint64, wait time.Duration, to func(audio.Frame)) (voiced bool, silence time.Duration, err error)

	// Heard is the number of the frame that will be heard next.
	Heard() uint64
}

// A Recognizer turns an utterance into text.
type Recognizer interface {
	// Recognize reads frames until the channel is closed. An empty text without an error means that nothing was
	// understood.
	Recognize(ctx context.Context, frames <-chan audio.Frame) (text string, err error)
}

// A Model answers.
type Model interface {
	// Generate yields the answer as it is written. It ends early with an error; dialog.ErrNotUnderstood is one.
	Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error]
}

// Tools are what a model may use.
type Tools interface {
	Specs() []dialog.ToolSpec
	// Prepare makes the arguments of a call fit the tool. Its error is for the model to read.
	Prepare(call dialog.ToolCall) (dialog.ToolCall, error)
	// Timeout is how long a tool may run; 0: as long as any.
	Timeout(name string) time.Duration
	// Call runs a tool. What goes wrong is told in the result, for the model to read.
	Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult
}

// A Voice turns text into speech.
type Voice interface {
	// Synthesize hands over frames as they come, and ends with the first error that to returns.
	Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error
}

// A Chat remembers one conversation.
type Chat interface {
	Name() string    // as it is now; "" if the chat is gone
	Private() bool   // nothing of it may be told to anybody but the user
	Surface() string // where it is shown: "chat" or "game"
	Messages() []dialog.Message
	Append(...dialog.Message) error
	// Amend replaces the text of the last message, an answer of which only the beginning was heard.
	Amend(content string) error
	// End notes how the turn ended that the last message belongs to.
	End(outcome string) error
}

// Chats are the conversations. An error of theirs is ErrLocked, or means that there is no chat of that name.
type Chats interface {
	Active() (Chat, error)
	Named(name string) (Chat, error)
}

// ErrLocked is returned by Chats for a private chat that can't be read at the moment.
var ErrLocked = errors.New("the chat is private and locked")

// A Pipeline runs turns, one at a time.
type Pipeline struct {
	o     Options
	inbox chan message
	done  chan struct{} // closed when Run has returned
	stats struct{ dropped, late atomic.Uint64 }

	private    atomic.Bool  // the turn that runs is of a private chat
	follow     atomic.Value // a Follow
	followTime atomic.Int64 // in nanoseconds

	// Owned by the loop.
	state   event.State
	runs    uint64 // number of the newest run
	turn    *turn  // nil: none
	pending *turn  // to begin when turn has ended
	queue   []*turn
	unshow  func() bool // cancels the end of a failure being shown
}

// Causes with which a turn is cancelled.
var (
	errBargeIn  = errors.New("interrupted by the user")
	errStopped  = errors.New("stopped")
	errShutdown = errors.New("the appliance is shutting down")
	errTooLong  = errors.New("the turn took too long")
)

// ErrBusy is returned by Ask and Say when too many turns are waiting already.
var ErrBusy = errors.New("too many turns are waiting")

// errEnded is returned by Ask and Say when the pipeline stopped before the turn ended.
var errEnded = errors.New("the appliance stopped before the turn ended")

const maxQueue = 8

// New returns a pipeline, which does nothing before Run.
func New(o Options) *Pipeline {
	o.setDefaults()
	p := &Pipeline{
		o: o,
		// Wake words and commands are rare; whoever sends waits for nothing: when the inbox is full the message is
		// dropped and counted.
		inbox: make(chan message, 64),
		done:  make(chan struct{}),
		state: event.Idle,
	}
	p.SetFollow(o.Follow)
	p.SetFollowUpTime(o.FollowUpTime)
	return p
}

// Private reports whether a turn runs that is of a private chat, whichever chat is the active one.
func (p *Pipeline) Private() bool { return p.private.Load() }

// A message is one of the types in loop.
type message struct {
	what any
	done func() // ends the message's share of the clock's work
}

type (
	wakeMsg  struct{ begin *turn }
	askMsg   struct{ begin *turn }
	stopMsg  struct{}
	phaseMsg struct {
		run uint64
		to  event.State
	}
	endedMsg struct {
		run    uint64
		record event.Record
	}
	tooLongMsg struct{ run uint64 } // a turn goes on and on
	overdueMsg struct{ run uint64 } // a cancelled turn did not end
	unshowMsg  struct{}
)

// post sends the loop a message without waiting. It reports whether there was room for it.
func (p *Pipeline) post(what any) bool {
	m := message{what, p.o.Clock.Work()}
	select {
	case p.inbox <- m:
		return true
	default:
		m.done()
		p.stats.dropped.Add(1)
		return false
	}
}

// Wake begins a spoken turn, because the wake word was heard, which ended with frame number frame. While the appliance
// is thinking or speaking this is a barge-in; while it is listening it is ignored. Wake never waits.
func (p *Pipeline) Wake(word string, score float64, frame uint64) { p.WakeIn("", word, score, frame) }

// WakeIn is Wake for a turn in the chat of that name, which need not be the active one.
func (p *Pipeline) WakeIn(chat, word string, score float64, frame uint64) {
	now := p.o.Clock.Now()
	p.o.Bus.Publish(event.Woke{At: now, Word: word, Score: score})
	t := p.newTurn(now)
	t.listen, t.from, t.record.WakeWord, t.chatName, t.score = true, frame, word, chat, score
	p.post(wakeMsg{t})
}

// Ask runs a turn in the active chat as if text had been heard, when the appliance is idle, and waits for its end.
func (p *Pipeline) Ask(ctx context.Context, text string) (event.Record, error) {
	return p.AskIn(ctx, "", text)
}

// AskIn is Ask in the chat of that name, which need not be the active one; that one is then not touched.
func (p *Pipeline) AskIn(ctx context.Context, chat, text string) (event.Record, error) {
	t := p.newTurn(p.o.Clock.Now())
	t.record.Heard, t.chatName = text, chat
	return p.await(ctx, t)
}

// Say speaks text, when the appliance is idle, and waits for its end. It asks no model and is not remembered.
func (p *Pipeline) Say(ctx context.Context, text string) (event.Record, error) {
	t := p.newTurn(p.o.Clock.Now())
	t.say = text
	return p.await(ctx, t)
}

func (p *Pipeline) await(ctx context.Context, t *turn) (event.Record, error) {
	t.reply = make(chan event.Record, 1)
	if !p.post(askMsg{t}) {
		return event.Record{}, ErrBusy
	}
	select {
	case r := <-t.reply:
		if r.Outcome == "" {
			return event.Record{}, ErrBusy
		}
		return r, nil
	case <-p.done:
		return event.Record{}, errEnded
	case <-ctx.Done():
		return event.Record{}, ctx.Err()
	}
}

// Stop ends the turn that is going on, if any. It never waits.
func (p *Pipeline) Stop() { p.post(stopMsg{}) }

// Late is the number of messages of older runs that were dropped, Dropped that of messages for which there was no room.
func (p *Pipeline) Late() uint64    { return p.stats.late.Load() }
func (p *Pipeline) Dropped() uint64 { return p.stats.dropped.Load() }

// Run is the loop. It returns when ctx is done and the last turn has ended. It can be called once.
func (p *Pipeline) Run(ctx context.Context) error {
	defer close(p.done)
	for {
		select {
		case m := <-p.inbox:
			p.handle(ctx, m.what)
			m.done()
		case <-ctx.Done():
			p.shutdown()
			return nil
		}
	}
}

func (p *Pipeline) handle(ctx context.Context, what any) {
	switch m := what.(type) {
	case wakeMsg:
		switch {
		case p.turn == nil:
			p.begin(ctx, m.begin)
		case p.state == event.Listening && p.pending == nil:
			// He says it again while we listen: it is part of the utterance.
		default:
			p.pending = m.begin
			p.cancel(errBargeIn)
		}
	case askMsg:
		switch {
		case p.turn == nil:
			p.begin(ctx, m.begin)
		case len(p.queue) < maxQueue:
			p.queue = append(p.queue, m.begin)
		default:
			m.begin.reply <- event.Record{}
		}
	case stopMsg:
		p.pending = nil
		p.cancel(errStopped)
	case phaseMsg:
		if p.current(m.run) {
			p.show(m.to)
		}
	case endedMsg:
		if p.current(m.run) {
			p.ended(ctx, m.record)
		}
	case tooLongMsg:
		if p.current(m.run) {
			p.cancel(errTooLong)
		}
	case overdueMsg:
		if p.turn != nil && p.turn.record.Run == m.run {
			p.o.Logger.Error("a cancelled turn does not end, it is left behind", "run", m.run)
			r := event.Record{Run: m.run, Began: p.turn.record.Began, WakeWord: p.turn.record.WakeWord}
			r.Outcome, r.Error = event.FailedTurn, event.TurnTooLong
			p.ended(ctx, r)
		}
	case unshowMsg:
		if p.turn == nil && p.state == event.Failed {
			p.show(event.Idle)
		}
	default:
		panic(fmt.Sprintf("pipeline: message %T", m))
	}
}

// current reports whether run is the turn that is going on, and counts what comes late.
func (p *Pipeline) current(run uint64) bool {
	if p.turn != nil && p.turn.record.Run == run {
		return true
	}
	p.stats.late.Add(1)
	return false
}

func (p *Pipeline) begin(ctx context.Context, t *turn) {
	if p.unshow != nil {
		p.unshow()
		p.unshow = nil
	}
	p.runs++
	t.record.Run = p.runs
	p.turn = t
	turnCtx, cancel := context.WithCancelCause(ctx)
	t.cancel = cancel
	switch {
	case t.followed > 0: // it shows itself when it listens
	case t.listen:
		p.show(event.Listening)
	default:
		p.show(event.Thinking)
	}
	t.work()
	run := t.record.Run
	unlimit := p.o.Clock.AfterFunc(p.o.TurnTimeout, func() { p.post(tooLongMsg{run}) })
	go func() {
		defer cancel(nil)
		record := t.run(turnCtx)
		unlimit()
		m := message{endedMsg{run, record}, p.o.Clock.Work()}
		select {
		case p.inbox <- m: // waits: the end of a turn must not get lost
		case <-p.done:
			m.done()
		}
	}()
}

// cancel ends the turn that is going on. What it was saying is silent from the next frame on.
func (p *Pipeline) cancel(cause error) {
	if p.turn == nil {
		return
	}
	run := p.turn.record.Run
	p.turn.cancel(cause)
	p.turn.cut()
	p.o.Clock.AfterFunc(overdueAfter, func() { p.post(overdueMsg{run}) })
}

// overdueAfter is how long engines have to notice that their turn was cancelled. They return at once; this is for the
// one that doesn't.
const overdueAfter = 2 * time.Second

func (p *Pipeline) ended(ctx context.Context, r event.Record) {
	t := p.turn
	p.turn = nil
	p.private.Store(false)
	p.o.Bus.Publish(event.TurnEnded{Record: r})
	if t.reply != nil {
		t.reply <- r
	}
	switch next := p.next(); {
	case next != nil:
		p.begin(ctx, next)
	case p.follows(t, r):
		p.begin(ctx, p.newFollowUp(t))
	case r.Outcome == event.FailedTurn:
		p.show(event.Failed)
		p.unshow = p.o.Clock.AfterFunc(p.o.ErrorShown, func() { p.post(unshowMsg{}) })
	default:
		p.show(event.Idle)
	}
}

func (p *Pipeline) next() (t *turn) {
	switch {
	case p.pending != nil:
		t, p.pending = p.pending, nil
	case len(p.queue) > 0:
		t, p.queue = p.queue[0], p.queue[1:]
	}
	return t
}

func (p *Pipeline) show(to event.State) {
	if p.state == to {
		return
	}
	f := event.StateChanged{At: p.o.Clock.Now(), From: p.state, To: to, Run: p.runs}
	p.state = to
	p.o.Bus.Publish(f)
}

// shutdown cancels what goes on and waits for its end.
func (p *Pipeline) shutdown() {
	p.pending = nil
	if p.turn != nil {
		p.turn.cancel(errShutdown)
		p.turn.cut()
	}
	for p.turn != nil {
		m := <-p.inbox
		if e, ok := m.what.(endedMsg); ok && p.current(e.run) {
			p.o.Bus.Publish(event.TurnEnded{Record: e.record})
			if p.turn.reply != nil {
				p.turn.reply <- e.record
			}
			p.turn = nil
		}
		m.done()
	}
}

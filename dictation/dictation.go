// Package dictation takes what is said next for an app instead of for the agent, and delivers it: a note into a chat, a
// text to an MQTT topic or to a plugin. It decides which utterance that is, and has the hooks of the point dictation see
// the text. It recognises nothing itself, and knows no target: those are functions of whoever wires it up.
//
// A dictation begins with Expect, within a turn, or with Start; the microphone is opened once. Then:
//
//  1. listening, at the point post_stt, takes the text out of the turn, which ends there: no agent hears of it.
//  2. Run fires dictation with the text, delivers what has become of it, and says so.
package dictation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/hooks"
)

// A Target is where the text for an app goes.
type Target struct {
	App string // its id, such as "notes"

	// Deliver takes the text, within DeliverTime.
	Deliver func(ctx context.Context, t Text) error
}

// A Text is what was dictated.
type Text struct {
	App, Text string
	Chat      *string // the chat in which it was said; nil: the active one
	Private   bool    // that is a private one
}

// Options are what a Dictation works with.
type Options struct {
	Targets []Target // the first is the one for those who name none
	Runner  *hooks.Runner
	Bus     *event.Bus

	// Free reports whether what is said can be understood whatever it is. Nil: it can't, as by a recogniser that listens
	// for commands only.
	Free func() bool

	// Listen opens the microphone without a call. It must not wait.
	Listen func()

	// Say has a sentence spoken, and waits for its end.
	Say func(ctx context.Context, text string) error

	Clock  clock.Clock  // nil: clock.System
	Logger *slog.Logger // nil: none
}

const (
	// WaitTime is how long a dictation waits for what is to be written; then it is over.
	WaitTime = time.Minute

	// DeliverTime is how long a target may take.
	DeliverTime = 10 * time.Second

	maxText  = 16 << 10 // bytes
	maxQueue = 4        // texts that wait for their delivery
)

// What is said of it. A question, so that the microphone opens for the answer.
const (
	ask       = "What shall I write down?"
	delivered = "It's written down."
	failed    = "I couldn't deliver that."
)

// Errors of those who begin a dictation. Their texts can be spoken as they are.
var (
	ErrNotFree = errors.New("by myself I understand commands only. To write down what you say I need a speech recogniser on a server: " +
		"set one up in my configuration")
	ErrNobody = errors.New("there is nothing that I could dictate to")
)

// A Dictation is at most one dictation at a time.
type Dictation struct {
	o     Options
	texts chan Text // when full, another text is refused, and said so

	mu     sync.Mutex
	app    string // "": nothing is dictated
	opened bool   // the microphone was opened for it
	forget func() bool
}

// HandlerName is under which name the handler is registered: no plugin can be called so.
const HandlerName = "Dictation"

// New returns one, which listens once it runs.
func New(o Options) (*Dictation, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var apps []string
	for _, t := range o.Targets {
		if strings.TrimSpace(t.App) == "" || strings.ContainsAny(t.App, "*:") || t.Deliver == nil || slices.Contains(apps, t.App) {
			return nil, fmt.Errorf("dictation: target %q: it is no name of an app, or there are two of it", t.App)
		}
		apps = append(apps, t.App)
	}
	d := &Dictation{o: o, texts: make(chan Text, maxQueue)}
	o.Runner.SetAware(HandlerName, true)
	// After the system's own corrections, and before every plugin of the user's: what is dictated they hear at the point
	// dictation, or not at all.
	err := o.Runner.Register(hooks.Handler{Plugin: HandlerName, Point: "post_stt", Band: hooks.System, Priority: 99, Func: d.listening})
	return d, err
}

// Apps are the ids of the apps that can be dictated to.
func (d *Dictation) Apps() []string {
	var apps []string
	for _, t := range d.o.Targets {
		apps = append(apps, t.App)
	}
	return apps
}

// Front is the app that is dictated to at the moment; "" if none is.
func (d *Dictation) Front() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.app
}

// Start begins a dictation for an app, "" being the first one, and opens the microphone.
func (d *Dictation) Start(app string) error {
	if err := d.begin(app, true); err != nil {
		return err
	}
	d.o.Listen()
	return nil
}

// Expect begins a dictation that takes what is said when the turn that is going on has ended, and returns the question to
// end it with.
func (d *Dictation) Expect(app string) (question string, err error) {
	if err := d.begin(app, false); err != nil {
		return "", err
	}
	return ask, nil
}

func (d *Dictation) begin(app string, opened bool) error {
	if len(d.o.Targets) == 0 {
		return ErrNobody
	}
	if app == "" {
		app = d.o.Targets[0].App
	}
	if !slices.Contains(d.Apps(), app) {
		return fmt.Errorf("there is no app %q to dictate to, but %q", app, d.Apps())
	}
	if d.o.Free == nil || !d.o.Free() {
		return ErrNotFree
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
	d.app, d.opened = app, opened
	d.forget = d.o.Clock.AfterFunc(WaitTime, func() { d.abandon() })
	return nil
}

// end ends the dictation that is going on, if any. The caller holds the lock.
func (d *Dictation) end() (app string) {
	app, d.app = d.app, ""
	if d.forget != nil {
		d.forget()
		d.forget = nil
	}
	return app
}

// Stop ends the dictation that is going on, if any, without a text.
func (d *Dictation) Stop() { d.abandon() }

func (d *Dictation) abandon() {
	d.mu.Lock()
	app := d.end()
	d.mu.Unlock()
	if app != "" {
		d.tell(app, event.DictationAbandoned)
	}
}

func (d *Dictation) tell(app string, outcome event.Dictation) {
	d.o.Bus.Publish(event.Dictated{At: d.o.Clock.Now(), App: app, Outcome: outcome})
}

// backOut are what, said alone, is not dictated but meant: the turn goes on with it.
var backOut = []string{"stop", "cancel", "never mind", "nevermind", "forget it"}

// listening is the handler of post_stt. It never waits.
func (d *Dictation) listening(_ context.Context, e *hooks.Event) error {
	d.mu.Lock()
	app := d.end()
	d.mu.Unlock()
	switch text := strings.TrimSpace(e.Input); {
	case app == "":
		return nil
	case slices.Contains(backOut, strings.ToLower(strings.Trim(text, " .,!"))):
		d.tell(app, event.DictationAbandoned)
		return nil
	case len(text) > maxText:
		d.tell(app, event.DictationFailed)
		e.Input, e.StopPropagate = "", true
		return nil
	default:
		e.Input, e.StopPropagate = "", true // the turn is over
		select {
		case d.texts <- Text{app, text, e.ChatName, e.ChatPrivate == nil || *e.ChatPrivate}:
		default:
			d.o.Logger.Warn("dictation: too many texts wait, one is dropped", "app", app)
			d.tell(app, event.DictationFailed)
		}
		return nil
	}
}

// Run delivers what is dictated, until ctx is over.
func (d *Dictation) Run(ctx context.Context) error {
	facts := d.o.Bus.Subscribe(256)
	defer facts.Close()
	for {
		select {
		case f := <-facts.C:
			d.follow(f)
		case t := <-d.texts:
			outcome, said := d.deliver(ctx, t)
			d.tell(t.App, outcome)
			if err := d.o.Say(ctx, said); err != nil && ctx.Err() == nil {
				d.o.Logger.Warn("dictation", "app", t.App, "err", err)
			}
		case <-ctx.Done():
			d.abandon()
			return nil
		}
	}
}

// follow sees to it that the microphone is opened when the turn has ended that began the dictation, and gives up when the
// one that should have had the text ended without.
func (d *Dictation) follow(f event.Fact) {
	switch f := f.(type) {
	case event.StateChanged:
		d.mu.Lock()
		listen := d.app != "" && !d.opened && f.To == event.Idle
		switch f.To {
		case event.Thinking, event.Speaking, event.Failed: // of the turn that began it
		default:
			d.opened = true // by us now, or because the answer was a question
		}
		d.mu.Unlock()
		if listen {
			d.o.Listen()
		}
	case event.TurnEnded:
		switch f.Record.Outcome {
		case event.Completed, event.Handled:
		default:
			d.abandon()
		}
	}
}

// deliver has the hooks see a text, and then its target have it. It returns what is to be said of that.
func (d *Dictation) deliver(ctx context.Context, t Text) (event.Dictation, string) {
	e := &hooks.Event{Input: t.Text, ChatName: t.Chat, ChatPrivate: &t.Private, Metadata: map[string]any{"app": t.App}}
	d.o.Runner.Fire(ctx, "dictation", e)
	if e.SkipLLM {
		return event.DictationConsumed, delivered
	}
	t.Text = e.Input
	i := slices.IndexFunc(d.o.Targets, func(x Target) bool { return x.App == t.App })
	ctx, cancel := context.WithTimeout(ctx, DeliverTime)
	defer cancel()
	if err := d.o.Targets[i].Deliver(ctx, t); err != nil {
		d.o.Logger.Error("dictation", "app", t.App, "err", err)
		return event.DictationFailed, failed
	}
	return event.DictationDelivered, delivered
}

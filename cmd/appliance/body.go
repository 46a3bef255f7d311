package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/internal/run"
	"bellbird/pipeline"
	"bellbird/store"
)

// What the buttons do, what the ring shows, and when the microphone is muted.

// An embodiment is the appliance's body, and what it does with it.
type embodiment struct {
	*gpio.Body
	mute      *gpio.Mute
	admission admission
	reflexes  *reflexes
}

// embody gives the appliance its body. What it needs of the appliance may be made later, but before it runs. spoken is
// how loud the loudspeaker is, 0 to 1.
func (a *appliance) embody(o gpio.Options, spoken func() float64, log *slog.Logger) (*embodiment, error) {
	kept := record{a.store.Bucket("body"), "muted"}
	mute, err := gpio.NewMute(gpio.MuteOptions{
		Load: kept.loadFlag, Save: kept.saveFlag,
		Changed: func(e event.MuteChanged) { a.bus.Publish(e) },
	})
	if err != nil {
		log.Error("mute", "err", err)
	}
	e := &embodiment{mute: mute, admission: admission{muted: mute.Muted}, reflexes: newReflexes(a.bus, log.With("part", "reflexes"))}

	r := e.reflexes
	r.mute = mute
	r.silence = func() bool { return a.timers.Silence() }
	r.stopTurn = func() { a.turns.Stop() }
	r.listen = func() {
		if a.ears != nil {
			a.turns.Wake("button", 1, a.ears.Heard())
		}
	}
	r.private, r.secret = privateToggle(a.store), isPrivate(a.store)
	volume := loudness{a.output, a.bus, a.clock}
	r.louder = func(by int) { volume.SetVolume(min(max(volume.Volume()+by, 0), 100)) }

	o.Bus, o.Mute, o.Do, o.Logger = a.bus, mute, r.do, log.With("part", "body")
	o.Heard, o.Spoken = e.admission.heard, spoken
	e.Body, err = gpio.Open(o)
	return e, err
}

// parts are what runs of it.
func (e *embodiment) parts() []run.Part {
	return []run.Part{
		{Name: "body", Run: e.Run},
		{Name: "reflexes", Run: func(ctx context.Context) error {
			e.Ring().Hide(ring.Booting)
			return e.reflexes.run(ctx)
		}},
	}
}

// loadFlag reads what saveFlag kept; false if nothing was.
func (r record) loadFlag() (bool, error) {
	v, err := r.Load()
	return bytes.Equal(v, []byte{1}), err
}

func (r record) saveFlag(on bool) error {
	if on {
		return r.Save([]byte{1})
	}
	return r.Save([]byte{0})
}

// An admission decides which frames of the microphone are heard, before anything else sees them, and knows how loud they
// are.
type admission struct {
	muted func() bool
	level atomic.Uint64 // bits of a float64
}

// admit reports whether the frame may be heard. It never waits.
func (a *admission) admit(f *audio.Frame) bool {
	if a.muted() {
		a.level.Store(0)
		return false
	}
	a.level.Store(math.Float64bits(brightness(audio.Measure(f[:]).RMS)))
	return true
}

// heard is how loud the last frame was, 0 to 1.
func (a *admission) heard() float64 { return math.Float64frombits(a.level.Load()) }

// brightness makes light of loudness: the 40 dB from the murmur of a room to a loud voice.
func brightness(dB float64) float64 { return min(max((dB+55)/40, 0), 1) }

// Reflexes are what the body's gestures lead to. Each function may be nil, and none waits for long.
type reflexes struct {
	// What a press stops, in this order; each reports whether there was something to stop. The turn is known from facts.
	silence      func() bool // a ringing timer
	stopTurn     func()
	announcement func() bool
	music        func() bool

	listen  func()
	mute    *gpio.Mute
	private func() error // toggles the chat
	secret  func() bool  // whether the active chat is private
	louder  func(by int) // in percent
	reset   func()

	bus *event.Bus
	log *slog.Logger

	orders chan gpio.Action // full: the newest is dropped, since nobody means so many
}

// dialStep is how much one detent of the dial, or one press of a volume button, changes the volume.
const dialStep = 5

func newReflexes(bus *event.Bus, log *slog.Logger) *reflexes {
	return &reflexes{bus: bus, log: log, orders: make(chan gpio.Action, 8)}
}

// do is for gpio.Options: it asks for an action, and doesn't wait.
func (r *reflexes) do(_ string, a gpio.Action) {
	select {
	case r.orders <- a:
	default:
		r.log.Warn("a button's action is dropped", "action", string(a))
	}
}

// run does what is asked for until ctx is done.
func (r *reflexes) run(ctx context.Context) error {
	facts := r.bus.Subscribe(256)
	defer facts.Close()
	state := event.Idle
	private := false
	look := func() {
		if r.secret != nil && r.secret() != private {
			private = !private
			r.bus.Publish(event.PrivacyChanged{At: time.Now(), Private: private})
		}
	}
	look()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-r.orders:
			for len(facts.C) > 0 { // what the order is about has happened before it
				state = r.note(<-facts.C, state)
			}
			r.act(a, state)
			look()
		case f := <-facts.C:
			state = r.note(f, state)
			look()
		}
	}
}

// note follows the state of the turn, and does what facts lead to.
func (r *reflexes) note(f event.Fact, state event.State) event.State {
	switch f := f.(type) {
	case event.StateChanged:
		return f.To
	case event.DialTurned:
		r.turnUp(f.Steps)
	case event.MuteChanged:
		if f.Muted && state == event.Listening && r.stopTurn != nil {
			r.stopTurn() // nothing more of it will be heard
		}
	}
	return state
}

func (r *reflexes) act(a gpio.Action, state event.State) {
	switch a {
	case gpio.Listen:
		if !r.stop(state) && r.listen != nil && !r.mute.Muted() {
			r.listen()
		}
	case gpio.Stop:
		r.stop(state)
	case gpio.ToggleMute:
		if err := r.mute.Toggle(); err != nil {
			r.log.Warn("mute", "err", err)
		}
	case gpio.TogglePrivate:
		if r.private == nil {
			return
		}
		if err := r.private(); err != nil {
			r.log.Warn("private chat", "err", err)
			kind := event.ChatUnknown
			if errors.Is(err, pipeline.ErrLocked) {
				kind = event.ChatLocked
			}
			r.bus.Publish(event.TurnEnded{Record: event.Record{Began: time.Now(), Outcome: event.FailedTurn, Error: kind, Private: true}})
		}
	case gpio.VolumeUp:
		r.turnUp(1)
	case gpio.VolumeDown:
		r.turnUp(-1)
	case gpio.Reset:
		if r.reset == nil {
			r.log.Warn("a reset was asked for, and there is none")
			return
		}
		r.reset()
	}
}

// stop ends the first of what is going on, and reports whether there was anything.
func (r *reflexes) stop(state event.State) bool {
	is := func(f func() bool) bool { return f != nil && f() }
	switch {
	case is(r.silence):
	case state != event.Idle && state != event.Failed && r.stopTurn != nil:
		r.stopTurn()
	case is(r.announcement), is(r.music):
	default:
		return false
	}
	return true
}

func (r *reflexes) turnUp(steps int) {
	if r.louder != nil {
		r.louder(dialStep * steps)
	}
}

// privateToggle switches between the private chat and the one that was talked in before.
func privateToggle(s *store.Store) func() error {
	before := ""
	return func() error {
		c, err := s.Active()
		switch {
		case err == nil && c.Name() == privateChat:
			if before == "" {
				before = "default"
			}
			return s.Activate(before)
		case err == nil:
			before = c.Name()
		}
		if err := (conversations{s}).openPrivate(); err != nil {
			return err
		}
		return s.Activate(privateChat)
	}
}

// isPrivate reports whether the active chat is private. One that can't be looked at is.
func isPrivate(s *store.Store) func() bool {
	return func() bool {
		_, private, _ := s.Private(context.Background(), nil) // it says so of what it has an error for
		return private
	}
}

// reportBody prints what there is of the body, and returns how many parts don't work.
func reportBody(o gpio.Options, line func(what, found string, err error), skip func(what, why string)) error {
	b, err := gpio.Open(o)
	if err != nil {
		return err
	}
	defer b.Close()
	for _, s := range b.Report() {
		switch s.State {
		case gpio.Skipped:
			skip(s.Part, s.Detail)
		case gpio.Failed:
			line(s.Part, "", fmt.Errorf("%s (%s)", s.Detail, s.Remedy))
		default:
			line(s.Part, s.Detail, nil)
		}
	}
	return nil
}

// A liveScreen is a terminal whose last line is the virtual panel's ring. What is written appears above it, line by line.
type liveScreen struct {
	mu   sync.Mutex
	w    io.Writer
	line string
	rest []byte // of a line that is not complete
}

func (l *liveScreen) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	_, err := fmt.Fprintf(l.w, "\r\x1b[K%s%s", l.rest[:end], l.line)
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), err
}

// show is for gpio.Options: it draws the ring.
func (l *liveScreen) show(frame []led.Color) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = "          " + ring.Terminal(frame, true) + "  "
	_, err := fmt.Fprintf(l.w, "\r\x1b[K%s", l.line)
	return err
}

// close ends the live line.
func (l *liveScreen) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line != "" {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.line = ""
	}
}

// A panel is the virtual body of a demo, on its terminal.
type panel struct {
	*liveScreen
	panel *gpio.Panel
	keys  <-chan rune
	stop  context.CancelFunc
}

// newPanel returns the panel that in and out can be; nil if they are no terminal.
func newPanel(ctx context.Context, in *os.File, out io.Writer) *panel {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	keys, ok := gpio.Keys(ctx, in)
	if !ok {
		stop()
		return nil
	}
	fmt.Fprintf(out, "The panel: %s.\n\n", gpio.PanelKeys)
	return &panel{&liveScreen{w: out}, gpio.NewPanel(), keys, stop}
}

// fit connects a body to the panel.
func (p *panel) fit(o gpio.Options) gpio.Options {
	o = p.panel.Fit(o)
	o.Lights = p.show
	return o
}

// close leaves the terminal as it was.
func (p *panel) close() {
	p.stop()
	for range p.keys { // until they are closed
	}
	p.liveScreen.close()
}

// part presses what the keys say.
func (p *panel) part() run.Part {
	return run.Part{Name: "keys", Run: func(ctx context.Context) error {
		if err := p.panel.Run(ctx, p.keys); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}

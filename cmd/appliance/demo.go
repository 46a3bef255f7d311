package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/internal/run"
	"bellbird/tts/espeak"
)

type demoOptions struct {
	fast   bool
	json   bool
	wav    string
	record string
}

func demoCommand(f *flags) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the appliance on a virtual device, with a synthesized user",
		Long: `Run the whole appliance on a virtual device: a room in which a synthesized user speaks, a microphone that hears it
20 ms at a time, and a loudspeaker. The terminal shows the ring, what is heard and said, and when. The conversation is
written as a stereo WAV file: the room on the left, the loudspeaker on the right.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			return demo(cmd.Context(), c, o, f.logger(slog.LevelWarn), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.fast, "fast", false, "run on a virtual clock, as fast as this machine can")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a record of each turn, one JSON object on each line, and nothing else")
	cmd.Flags().StringVar(&o.wav, "wav", "", "a recording, WAV or FLAC, to be heard in the room instead of the synthesized user")
	cmd.Flags().StringVar(&o.record, "record", "demo.wav", "where to write the conversation; empty: nowhere")
	return cmd
}

func demo(ctx context.Context, c Config, o demoOptions, log *slog.Logger, stdout io.Writer) error {
	clk := clock.System
	virtual := clock.NewVirtual(time.Now())
	if o.fast {
		clk = virtual
	}
	s := senses{ears: true, timers: true}
	out := stdout
	var keys []run.Part
	if !o.fast && !o.json {
		if p := newPanel(ctx, os.Stdin, stdout); p != nil {
			defer p.close()
			s.body, out, keys = p.fit, p, []run.Part{p.part()}
		}
	}
	a, err := assemble(c, s, clk, log)
	if err != nil {
		return err
	}
	user, err := newUser(o.wav, c.TTS.Options)
	if err != nil {
		a.close()
		return err
	}

	options := audiotest.RoomOptions{Output: a.output, Script: user.script}
	if o.record != "" {
		w, err := audio.CreateWAV(o.record, 2)
		if err != nil {
			a.close()
			return err
		}
		defer func() {
			if err := w.Close(); err != nil {
				log.Error("recording", "err", err)
			} else if !o.json {
				fmt.Fprintf(stdout, "The conversation is in %s: the room on the left, the speaker on the right.\n", o.record)
			}
		}()
		// An error stays with the writer, and Close returns it.
		options.Record = func(room, speaker audio.Frame) { _ = w.Write(room, speaker) }
	}
	room := audiotest.NewRoom(options)
	user.room = room
	user.facts = a.bus.Subscribe(1024)

	view := viewer(a, clk, o.json, out)
	var d device = room
	if o.fast {
		d = virtualDevice{room, virtual}
	}
	err = a.run(ctx, d, append(keys, run.Part{Name: "user", Run: user.run})...)
	view.close()
	return err
}

// virtualDevice is a room on a virtual clock.
type virtualDevice struct {
	*audiotest.Room
	clock *clock.Virtual
}

func (d virtualDevice) Run(ctx context.Context) error { return d.RunVirtual(ctx, d.clock) }

// A view prints facts on a goroutine of its own.
type view struct {
	facts *event.Subscription
	done  chan struct{}
}

// viewer begins to show what a does: as pictures, or as records of turns in JSON.
func viewer(a *appliance, clk clock.Clock, asJSON bool, w io.Writer) *view {
	v := &view{facts: a.bus.Subscribe(1024), done: make(chan struct{})}
	screen := newScreen(w, clk.Now())
	show := screen.show
	if asJSON {
		enc := json.NewEncoder(w)
		show = func(f event.Fact) {
			if e, ok := f.(event.TurnEnded); ok {
				enc.Encode(e.Record) // nobody to tell if stdout is gone
			}
		}
	} else {
		screen.line(clk.Now(), looks[event.Idle].color, looks[event.Idle].leds, string(event.Idle))
	}
	go func() {
		defer close(v.done)
		for f := range v.facts.C {
			show(f)
		}
	}()
	return v
}

// close shows what is left.
func (v *view) close() {
	v.facts.Close()
	<-v.done
}

// A user is somebody in the room, who talks to the appliance as people do: he calls it, waits until it listens, says
// what he wants, and hears the answer out.
type user struct {
	room  *audiotest.Room
	facts *event.Subscription

	recording []int16 // if set, this is all that happens
	call      []int16
	orders    []order
	state     event.State
	ringing   bool

	tick, tock chan struct{} // from and to the room
	gone       chan struct{} // closed when the user has left
	acts       bool
}

type order struct {
	speech []int16
	// calls: the order begins with the wake word, in the same breath.
	calls bool
	// ring: afterwards a timer rings, and the user calls to silence it.
	ring bool
}

// The user speaks with another voice than the appliance.
const (
	userVoice = "en-us+m5"
	userCalls = "okay nabu"
)

func newUser(wav string, tts espeak.Options) (*user, error) {
	u := &user{state: event.Idle, tick: make(chan struct{}), tock: make(chan struct{}), gone: make(chan struct{})}
	if wav != "" {
		samples, format, err := audio.ReadFile(wav)
		if err != nil {
			return nil, &usageError{err}
		}
		if !format.Inner() {
			fmt.Fprintf(os.Stderr, "bellbird: %s: converted from %v\n", wav, format)
		}
		u.recording = samples
		return u, nil
	}
	voice, err := espeak.New(espeak.Options{Command: tts.Command, Voice: userVoice})
	if err != nil {
		return nil, err
	}
	say := func(text string) (samples []int16) {
		if err == nil {
			err = voice.Synthesize(context.Background(), text, func(f audio.Frame) error {
				samples = append(samples, f[:]...)
				return nil
			})
		}
		return samples
	}
	u.call = say(userCalls)
	u.orders = []order{
		{speech: say("what time is it")},
		{speech: say(userCalls + ", set a timer for twenty seconds"), calls: true},
		{speech: say("who won the football game yesterday"), ring: true},
	}
	return u, err
}

// run plays the user's part, and ends the demo.
func (u *user) run(ctx context.Context) error {
	defer close(u.gone)
	if u.recording != nil {
		u.room.Say(u.recording)
		if err := u.untilQuiet(ctx); err != nil {
			return err
		}
		return run.ErrFinished
	}
	for _, o := range u.orders {
		if err := u.pause(ctx, time.Second); err != nil {
			return err
		}
		if err := u.order(ctx, o); err != nil {
			return err
		}
		if o.ring {
			if err := u.silence(ctx); err != nil {
				return err
			}
		}
	}
	if err := u.pause(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	return run.ErrFinished
}

// order calls the appliance and says one thing, and waits for the end of the turn.
func (u *user) order(ctx context.Context, o order) error {
	listening := func(f event.Fact) bool { _, ok := f.(event.Woke); return ok }
	ended := func(f event.Fact) bool { _, ok := f.(event.TurnEnded); return ok }
	if o.calls {
		u.room.Say(o.speech)
		if err := u.await(ctx, "waking up", listening); err != nil {
			return err
		}
	} else {
		u.room.Say(u.call)
		if err := u.await(ctx, "waking up", listening); err != nil {
			return err
		}
		if err := u.pause(ctx, 400*time.Millisecond); err != nil {
			return err
		}
		u.room.Say(o.speech)
	}
	return u.await(ctx, "the end of the turn", ended)
}

// silence waits until a timer rings, listens to it for a while, and calls the appliance to make it stop.
func (u *user) silence(ctx context.Context) error {
	if !u.ringing {
		if err := u.await(ctx, "the timer's ring", func(event.Fact) bool { return u.ringing }); err != nil {
			return err
		}
	}
	if err := u.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	u.room.Say(u.call)
	if err := u.await(ctx, "the timer's silence", func(event.Fact) bool { return !u.ringing }); err != nil {
		return err
	}
	return u.await(ctx, "the end of the turn", func(f event.Fact) bool { _, ok := f.(event.TurnEnded); return ok })
}

// The user lives frame by frame, in step with the room: before each frame the room lets him act, and waits until he has.
// So he never comes too late, however fast the clock runs.

// script is the room's: it lets the user act.
func (u *user) script(*audiotest.Room, int) {
	select {
	case u.tick <- struct{}{}:
	case <-u.gone:
		return
	}
	select {
	case <-u.tock:
	case <-u.gone:
	}
}

// frame ends what the user does before this frame, and returns before the next.
func (u *user) frame(ctx context.Context) error {
	if u.acts {
		select {
		case u.tock <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-u.tick:
		u.acts = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// patience is how long the user waits for what he expects of the appliance.
const patience = 30 * time.Second

// await lets time pass until a fact is what the user waits for.
func (u *user) await(ctx context.Context, what string, is func(event.Fact) bool) error {
	for range audio.Frames(patience) {
		for more := true; more; {
			select {
			case f := <-u.facts.C:
				u.note(f)
				if is(f) {
					return nil
				}
			default:
				more = false
			}
		}
		if err := u.frame(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("waited %v for %s, in vain", patience, what)
}

// pause lets d pass.
func (u *user) pause(ctx context.Context, d time.Duration) error {
	for range audio.Frames(d) {
		if err := u.frame(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note keeps what the user has to remember.
func (u *user) note(f event.Fact) {
	switch f := f.(type) {
	case event.StateChanged:
		u.state = f.To
	case event.TimerChanged:
		switch f.What {
		case event.TimerRinging:
			u.ringing = true
		case event.TimerSilenced, event.TimerCancelled, event.TimerSnoozed:
			u.ringing = false
		}
	}
}

// untilQuiet waits until the recording is over and the appliance has answered what was in it.
func (u *user) untilQuiet(ctx context.Context) error {
	const enough = 2 * time.Second
	for quiet := 0; quiet < audio.Frames(enough); quiet++ {
		if err := u.frame(ctx); err != nil {
			return err
		}
		for len(u.facts.C) > 0 {
			u.note(<-u.facts.C)
		}
		if u.state != event.Idle || !u.room.Quiet() {
			quiet = 0
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bellbird/api"
	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/audio/malgo"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/internal/run"
)

func runCommand(f *flags) *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Be the appliance, on the sound card of this machine",
		Long: `Be the appliance, on the sound card of this machine. On a terminal it shows what it does, with what is said; elsewhere,
such as under systemd, it only logs, and nothing that is said gets into the log.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return startFailed(cmd.Context(), f, "configuration", err)
			}
			if err := c.API.Check(); err != nil { // not in load: other commands can't read what is the service's alone
				return startFailed(cmd.Context(), f, "configuration", usagef("api: %v", err))
			}
			log := f.logger(slog.LevelInfo)
			if err := resetIfAsked(c, log); err != nil {
				return err
			}
			a, err := assemble(c, senses{ears: true, timers: true, lasting: true, body: func(o gpio.Options) gpio.Options { return o }, sane: clock.Known}, clock.System, log)
			if err != nil {
				return startFailed(cmd.Context(), f, "appliance", err)
			}
			card, more, err := a.newCard(c, log)
			if err != nil {
				a.close()
				return &usageError{err}
			}
			updater, updates, err := a.updating(c.OTA, c, card, log)
			if err != nil {
				a.close()
				return &usageError{err}
			}
			home, err := a.joinHome(c, updater, log)
			if err != nil {
				a.close()
				return &usageError{err}
			}
			more = append(more, updates)
			more = append(more, home...)
			more = append(more, a.resetting(c, log))
			if out, ok := cmd.OutOrStdout().(*os.File); show || ok && term.IsTerminal(int(out.Fd())) {
				v := viewer(a, a.clock, false, cmd.OutOrStdout())
				defer v.close()
			}
			log.Info("begins to listen", "for", wakeWords(c))
			more = append(more, a.served(c, log)...)
			watched := supervision{bus: a.bus, flowing: func() bool { return !card.Wedged() }, begun: func() bool { return a.ears.Heard() > 0 }, words: wakeWords(c), log: log.With("part", "supervision")}
			return a.run(cmd.Context(), card, append(more, watched.part())...)
		},
	}
	cmd.Flags().BoolVar(&show, "show", false, "show what it does, with what is said, also if this is no terminal")
	return cmd
}

func askCommand(f *flags) *cobra.Command {
	var chat string
	cmd := &cobra.Command{
		Use:   "ask TEXT",
		Short: "Run one turn as if TEXT had been heard",
		Long: `Run one turn as if TEXT had been heard, by the running appliance if there is one. If not, there is only this turn: the
answer is printed, and spoken if there is a loudspeaker, nothing is remembered, and no timers can be set.`,
		Args: onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			var r event.Record
			body := map[string]string{"chat": chat, "text": strings.Join(args, " ")}
			err = c.API.dial().Do(cmd.Context(), http.MethodPost, "/api/ask", body, &r)
			switch {
			case err == nil:
				return report(cmd.OutOrStdout(), r, true)
			case !errors.Is(err, api.ErrNotRunning):
				return err
			case chat != "":
				return fmt.Errorf("--chat %s: %w", chat, err)
			}
			return f.turn(cmd, c, "", true, func(ctx context.Context, a *appliance) (event.Record, error) {
				return a.turns.Ask(ctx, strings.Join(args, " "))
			})
		},
	}
	cmd.Flags().StringVar(&chat, "chat", "", "run it in this chat of the running appliance, instead of the active one")
	return cmd
}

func sayCommand(f *flags) *cobra.Command {
	var wav string
	cmd := &cobra.Command{
		Use:   "say TEXT",
		Short: "Speak TEXT",
		Args:  onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			return f.turn(cmd, c, wav, false, func(ctx context.Context, a *appliance) (event.Record, error) {
				return a.turns.Say(ctx, strings.Join(args, " "))
			})
		},
	}
	cmd.Flags().StringVar(&wav, "wav", "", "write the speech to this WAV file instead")
	return cmd
}

// turn assembles an appliance without ears for a single turn. With wav the speech goes into that file. If there is no
// loudspeaker and the answer is also to be printed, it is only printed.
func (f *flags) turn(cmd *cobra.Command, c Config, wav string, printed bool, begin func(context.Context, *appliance) (event.Record, error)) (err error) {
	log := f.logger(slog.LevelWarn)
	virtual := clock.NewVirtual(time.Now())
	var card *malgo.Card
	clk := clock.System
	output := audio.NewOutput(0)
	if wav == "" {
		c.Sound.Logger = log.With("part", "sound")
		c.Sound.PlaybackOnly = true
		var err error
		if card, err = malgo.Open(c.Sound, output); err != nil && !printed {
			return fmt.Errorf("%w (or write a file: bellbird say --wav FILE TEXT)", err)
		} else if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "bellbird: the answer is not spoken:", err)
		}
	}
	if card == nil {
		clk = virtual
	}
	a, err := assemble(c, senses{output: output}, clk, log)
	if err != nil {
		if card != nil {
			card.Close()
		}
		return err
	}

	var d device = card
	if card == nil {
		o := audiotest.RoomOptions{Output: output}
		if wav != "" {
			w, err := audio.CreateWAV(wav, 1)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.Close()) }()
			o.Record = func(_, speaker audio.Frame) { _ = w.Write(speaker) } // Close tells of errors
		}
		d = deafDevice{audiotest.NewRoom(o), virtual}
	}
	var record event.Record
	err = a.run(cmd.Context(), d, run.Part{Name: "turn", Run: func(ctx context.Context) error {
		var err error
		if record, err = begin(ctx, a); err != nil {
			return err
		}
		return run.ErrFinished
	}})
	if err != nil {
		return err
	}
	return report(cmd.OutOrStdout(), record, printed)
}

// report prints the answer of a turn, if it is wanted, and makes an error of one that failed.
func report(w io.Writer, r event.Record, printed bool) error {
	if printed && r.Answer != "" {
		fmt.Fprintln(w, r.Answer)
	}
	switch r.Outcome {
	case event.Completed:
		return nil
	case event.NotUnderstood:
		return errors.New("not understood")
	case event.Interrupted:
		return errors.New("interrupted")
	}
	return fmt.Errorf("the turn failed: %s", r.Error)
}

// deafDevice is a virtual device whose microphone nobody listens to.
type deafDevice struct {
	*audiotest.Room
	clock *clock.Virtual
}

func (d deafDevice) Run(ctx context.Context) error {
	go func() {
		for range d.Frames() {
		}
	}()
	return d.RunVirtual(ctx, d.clock)
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/internal/run"
	"bellbird/pipeline"
)

// Recordings of turns, for finding out why the appliance didn't understand. They are off unless they are asked for.

// Debug says what is recorded.
type Debug struct {
	Recordings int    `toml:"recordings"` // how many turns are kept as WAV files; default 0: none is recorded
	Directory  string `toml:"directory"`  // default: recordings, in the state directory
}

// recordTurns has the appliance keep recordings of its turns, which is what the returned part does.
func (a *appliance) recordTurns(c *Config, state string, log *slog.Logger) (run.Part, error) {
	o := audio.TapeOptions{Dir: c.Debug.Directory, Turns: c.Debug.Recordings}
	if o.Dir == "" {
		o.Dir = filepath.Join(state, "recordings")
	}
	tape, err := audio.NewTape(o, a.output)
	if err != nil {
		return run.Part{}, err
	}
	a.onClose(tape.Close)
	log.Warn("turns are recorded, with what is said", "turns", o.Turns, "directory", o.Dir)
	admit := c.Wake.Admit
	c.Wake.Admit = func(f *audio.Frame) bool {
		if !admit(f) {
			return false // muted: never recorded
		}
		tape.Hear(*f)
		return true
	}
	c.Turn.Recognizer = tapedRecognizer{c.Turn.Recognizer, tape}
	facts := a.bus.Subscribe(256)
	return run.Part{Name: "recordings", Run: func(ctx context.Context) error {
		defer facts.Close()
		for {
			select {
			case <-ctx.Done():
				return nil
			case f := <-facts.C:
				if err := follow(tape, f); err != nil {
					log.Error("a turn could not be recorded", "err", err)
				}
			}
		}
	}}, nil
}

// follow begins and ends recordings with the turns. Of a private turn, and of what was said before the microphone was
// muted, nothing is left.
func follow(tape *audio.Tape, f event.Fact) error {
	switch f := f.(type) {
	case event.StateChanged:
		if f.To == event.Listening {
			tape.Begin(f.Run, f.At)
		}
	case event.MuteChanged:
		tape.Forget()
	case event.TurnEnded:
		if f.Record.Private {
			tape.Forget()
			return nil
		}
		record, err := json.MarshalIndent(f.Record, "", "  ")
		if err != nil {
			return err
		}
		return tape.End(record)
	}
	return nil
}

// tapedRecognizer records what the recogniser gets.
type tapedRecognizer struct {
	pipeline.Recognizer
	tape *audio.Tape
}

func (r tapedRecognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	taped := make(chan audio.Frame)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a recogniser that gave up reads no more
	go func() {
		defer close(taped)
		for f := range frames {
			r.tape.Recognise(f)
			select {
			case taped <- f:
			case <-ctx.Done():
				return
			}
		}
	}()
	return r.Recognizer.Recognize(ctx, taped)
}

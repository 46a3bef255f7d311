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
	"bellbird/wake"
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
	recordHeard(&c.Wake, tape)
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

// recordHeard has the tape hear what the wake words are found in, and nothing of what isn't admitted.
func recordHeard(o *wake.Options, tape *audio.Tape) {
	admit, split := o.Admit, o.Split
	admitted := true // of the ears' goroutine, as both functions are
	o.Admit = func(f *audio.Frame) bool {
		admitted = admit == nil || admit(f)
		return admitted
	}
	o.Split = func(mic audio.Frame) (words, order audio.Frame) {
		words, order = mic, mic
		if split != nil {
			words, order = split(mic)
		}
		if admitted {
			tape.Hear(words)
		}
		return words, order
	}
}

// follow begins and ends recordings with the turns. Of a private turn, and of what was said before the microphone was
// muted, nothing is left.
func follow(tape *audio.Tape, f event.Fact) error {
	switch f := f.(type) {
	case event.StateChanged:
		if f.To == event.Listening || f.To == event.FollowUp {
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

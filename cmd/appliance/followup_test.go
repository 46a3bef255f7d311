package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/internal/run"
	"bellbird/tts/espeak"
)

// A converser calls the appliance, gives an order, and when it listens again by itself he replies, or doesn't.
type converser struct {
	*user
	order []int16
	reply []int16 // nil: he says nothing
}

func (c *converser) run(ctx context.Context) error {
	defer close(c.gone)
	if err := c.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	c.room.Say(c.order)
	follows := func(f event.Fact) bool {
		s, ok := f.(event.StateChanged)
		return ok && s.To == event.FollowUp
	}
	ended := func(f event.Fact) bool { _, ok := f.(event.TurnEnded); return ok }
	if err := c.await(ctx, "a follow-up", follows); err != nil {
		return err
	}
	if c.reply != nil {
		if err := c.pause(ctx, time.Second); err != nil {
			return err
		}
		c.room.Say(c.reply)
	}
	if err := c.await(ctx, "its end", ended); err != nil {
		return err
	}
	if err := c.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	return run.ErrFinished
}

// The whole appliance in a room in which the microphone hears the loudspeaker, late and with the echo of the walls. After
// a question it listens, and what it hears then is the user, or nothing, but never itself.
func TestFollowUpNeverHearsItself(t *testing.T) {
	if underRace {
		t.Skip("it takes minutes under the race detector")
	}
	needDemo(t)
	voice, err := espeak.New(espeak.Options{Voice: userVoice})
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) (samples []int16) {
		err := voice.Synthesize(t.Context(), text, func(f audio.Frame) error {
			samples = append(samples, f[:]...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return samples
	}
	order := say(userCalls + ", set a timer for twenty seconds")
	for _, reply := range []string{"", "what time is it"} {
		for _, cancel := range []bool{true, false} {
			t.Run(fmt.Sprintf("reply %q, canceller %v", reply, cancel), func(t *testing.T) {
				state := t.TempDir()
				c, err := (&flags{config: os.DevNull, models: modelDirs[:1], state: state}).load()
				if err != nil {
					t.Fatal(err)
				}
				c.Echo.Cancel = &cancel
				c.Debug.Recordings = 5
				virtual := clock.NewVirtual(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
				a, err := assemble(c, senses{ears: true, timers: true}, virtual, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				const latency = 250 * time.Millisecond // a slow loudspeaker
				a.output.SetLatency(latency)
				err = a.hooks.Register(hooks.Handler{Plugin: "asker", Point: "pre_chat", Func: func(_ context.Context, e *hooks.Event) error {
					if strings.Contains(e.Input, "timer") {
						e.SkipLLM, e.Response = true, hooks.String("All right. Shall I tell you what time it is?")
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				u := &converser{order: order, user: &user{
					state: event.Idle, tick: make(chan struct{}), tock: make(chan struct{}), gone: make(chan struct{}),
				}}
				if reply != "" {
					u.reply = say(reply)
				}
				u.room = audiotest.NewRoom(audiotest.RoomOptions{
					Output: a.output, Script: u.script,
					Leak: 0.3, LeakDelay: latency + 40*time.Millisecond, Response: audiotest.Reverb(500*time.Millisecond, 0.7),
				})
				u.facts = a.bus.Subscribe(1024)
				facts := a.bus.Subscribe(1024)
				if err := a.run(t.Context(), virtualDevice{u.room, virtual}, run.Part{Name: "user", Run: u.run}); err != nil {
					t.Fatal(err)
				}
				facts.Close()
				var records []event.Record
				for f := range facts.C {
					switch f := f.(type) {
					case event.TurnEnded:
						records = append(records, f.Record)
					case event.StateChanged:
						t.Logf("%v %s", f.At.Format("05.000"), f.To)
					}
				}
				if len(records) != 2 || records[0].Outcome != event.Handled {
					t.Fatalf("turns: %+v", records)
				}
				r := records[1]
				if reply == "" && (r.Outcome != event.NothingHeard || r.Answer != "") {
					t.Errorf("it heard itself: %+v", r)
				}
				if reply != "" && (r.Outcome != event.Completed || r.Heard != reply) {
					t.Errorf("the reply: %+v", r)
				}

				// The recogniser got nothing if nobody replied, and else, before the reply, a room in which nobody speaks.
				files, err := filepath.Glob(filepath.Join(state, "recordings", "*-2", "recogniser.wav"))
				if err != nil || len(files) != 1 {
					t.Fatalf("recordings %q, error %v", files, err)
				}
				samples, _, err := audio.ReadFile(files[0])
				if err != nil || (len(samples) == 0) != (reply == "") {
					t.Fatalf("%d samples, error %v", len(samples), err)
				}
				for at := 0; at < min(10*audio.FrameSize, len(samples)); at += audio.FrameSize {
					if l := audio.Measure(samples[at : at+audio.FrameSize]).RMS; l > -55 {
						t.Fatalf("%.0f dB after %d samples: there is something in the follow-up that nobody said", l, at)
					}
				}
			})
		}
	}
}

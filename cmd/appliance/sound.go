package main

import (
	"context"
	"log/slog"

	"bellbird/audio"
	"bellbird/audio/echo"
	"bellbird/audio/malgo"
	"bellbird/event"
	"bellbird/internal/run"
	"bellbird/wake"
)

// What comes between the sound card and the ears: the choice among several microphones, and the canceller of the
// appliance's own voice.

// Echo says whether the appliance's own sound is taken out of what it hears.
type Echo struct {
	Cancel *bool `toml:"cancel"` // default true
}

// An ownVoice takes the appliance's own sound out of what the microphone hears. It is for the ears' goroutine.
type ownVoice struct {
	output    *audio.Output
	played    *audio.Tap
	canceller *echo.Canceller
}

// playedRoom is how many frames may be played before the microphone's next one: half a second.
const playedRoom = 25

func newOwnVoice(out *audio.Output) *ownVoice {
	return &ownVoice{output: out, played: out.Tap(playedRoom), canceller: echo.New()}
}

// split leaves of the microphone's frame what is not the appliance's own: once with nothing suppressed, so that wake
// words stay as they are, and once, a frame late, as clean as can be, for the recogniser.
func (o *ownVoice) split(mic audio.Frame) (words, order audio.Frame) {
	for played := (audio.Frame{}); o.played.Pop(&played); {
		o.canceller.Play(&played)
	}
	return o.canceller.Hear(&mic)
}

// mostlyOwn is the share of somebody else's voice below which all that is heard is taken for the appliance's own.
const mostlyOwn = 0.16

// alone reports whether nobody speaks but the appliance.
func (o *ownVoice) alone() bool { return o.output.Sounding() && o.canceller.Over() < mostlyOwn }

// attune has the ears hear only what they should: nothing while the appliance is muted, and never the appliance itself.
func (a *appliance) attune(c *Config) {
	muted := func() bool { return false }
	if a.body != nil {
		c.Wake.Admit, muted = a.body.admission.admit, a.body.mute.Muted
		a.more = append(a.more, run.Part{Name: "mute sounds", Run: a.muteSounds(a.bus.Subscribe(64))})
	}
	if *c.WakeSound {
		c.Turn.DoneSound = audio.DoneTone()
	}
	c.Turn.MayFollowUp = func() bool { return !muted() && a.recognises.Enabled() }
	if c.Echo.Cancel != nil && !*c.Echo.Cancel {
		return
	}
	own := newOwnVoice(a.output)
	a.onClose(own.played.Close)
	c.Wake.Split, c.Wake.Alone = own.split, own.alone
}

// muteSounds has the loudspeaker tell of each change of the microphone's switch.
func (a *appliance) muteSounds(facts *event.Subscription) func(context.Context) error {
	return func(ctx context.Context) error {
		defer facts.Close()
		muted := a.body.mute.Muted()
		for {
			select {
			case <-ctx.Done():
				return nil
			case f := <-facts.C:
				m, ok := f.(event.MuteChanged)
				if !ok || m.Muted == muted {
					continue // another switch says the same
				}
				if muted = m.Muted; muted {
					a.output.Sound(audio.MuteTone(), false)
				} else {
					a.output.Sound(audio.UnmuteTone(), false)
				}
			}
		}
	}
}

// A card is the sound card, or what there is of one.
type card struct {
	*malgo.Supervisor
	frames chan audio.Frame // nil: the supervisor's own
}

// newCard makes the appliance's sound card. Nothing is opened before it runs. The second part, if it has a function,
// chooses among the microphone's channels.
func (a *appliance) newCard(c Config, log *slog.Logger) (*card, []run.Part, error) {
	o := c.Sound
	o.Logger = log.With("part", "sound")
	o.OnTrouble = func(f *malgo.Fault) {
		if f.Side == malgo.Loudspeaker { // of the microphone the ears tell
			a.bus.Publish(event.LoudspeakerFault{At: a.clock.Now(), Reason: string(f.Reason)})
		}
	}
	o.OnWell = func(s malgo.Side) {
		if s == malgo.Loudspeaker {
			a.bus.Publish(event.LoudspeakerWell{At: a.clock.Now()})
		}
	}
	s, err := malgo.NewSupervisor(o, a.output)
	if err != nil {
		return nil, nil, err
	}
	if o.Channel != "best" {
		return &card{Supervisor: s}, nil, nil
	}
	model, err := wake.FindModel(c.Wake.All()[0].Name, c.Wake.ModelDirs)
	if err != nil {
		return nil, nil, err
	}
	chosen := &card{s, make(chan audio.Frame, 8)}
	choose := run.Part{Name: "channels", Run: func(ctx context.Context) error { return a.choose(ctx, model, s.Groups(), chosen.frames) }}
	return chosen, []run.Part{choose}, nil
}

// Frames are those of the chosen channel.
func (c *card) Frames() <-chan audio.Frame {
	if c.frames != nil {
		return c.frames
	}
	return c.Supervisor.Frames()
}

// maxChosen is among how many channels is chosen: each costs as much as a wake word.
const maxChosen = 4

// choose hands on the channel that hears the wake word best. It doesn't change while somebody is listened to.
func (a *appliance) choose(ctx context.Context, model *wake.Model, groups <-chan audio.Group, to chan<- audio.Frame) error {
	facts := a.bus.Subscribe(64)
	defer facts.Close()
	var chooser *wake.Chooser
	listening := false
	channels, at := 0, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-facts.C:
			if s, ok := f.(event.StateChanged); ok {
				listening = s.To == event.Listening || s.To == event.FollowUp
			}
		case g := <-groups:
			n := min(g.Channels, maxChosen)
			if n != channels { // the microphone is another one now
				var err error
				if chooser, err = wake.NewChooser(model, n); err != nil {
					return err
				}
				channels, at = n, 0
			}
			if best := chooser.Write(g.Frames[:n]); !listening {
				at = best
			}
			select {
			case to <- g.Frames[at]:
			default: // the ears are behind; they count the gap
			}
		}
	}
}

// Package wyoming speaks with a service that speaks the Wyoming protocol, such as Piper, somewhere on the network. The
// sound is handed on as it comes.
package wyoming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bellbird/audio"
	"bellbird/tts"
	"bellbird/wyoming"
)

// Options say which service it is. Address must be set.
type Options struct {
	wyoming.Service

	// Voice is the name of one that the service has; empty: the one it uses.
	Voice string `toml:"voice"`

	// Speaker is the name of one of the speakers of Voice, if that has several; empty: its first.
	Speaker string `toml:"speaker"`
}

// A Voice has a service speak, each text over a connection of its own.
type Voice struct {
	o      Options
	shared *shared

	mu     sync.Mutex
	chosen string // "": as configured
}

// shared is what all names of a voice have in common.
type shared struct {
	cutter tts.Cutter

	mu      sync.Mutex
	known   bool // what the service has
	streams bool // it takes text bit by bit, and begins to speak before it has all
	there   map[string]bool
}

var _ tts.Voice = (*Voice)(nil)

// New returns a voice. It connects to nothing.
func New(o Options) (*Voice, error) {
	if err := o.SetDefaults(); err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	if o.Speaker != "" && o.Voice == "" {
		return nil, fmt.Errorf("voice: speaker = %q: name the voice whose speaker that is", o.Speaker)
	}
	return &Voice{o: o, shared: new(shared)}, nil
}

const maxText = 20000 // bytes; more than 20 minutes

// Synthesize speaks text and hands it to to, frame by frame, as it comes; the last frame is filled up with silence. The
// service has the Wait of its options for its first sound and for each further piece; to may wait as long as it likes. It
// returns the first error of to, or ctx's cause when that ends.
func (v *Voice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	if len(text) > maxText {
		return fmt.Errorf("voice: a text of %d bytes is too long: cut it into pieces of at most %d", len(text), maxText)
	}
	var handed error
	err := v.speak(ctx, text, func(f audio.Frame) error {
		handed = to(f)
		return handed
	})
	switch {
	case handed != nil:
		return handed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if said := strings.TrimSpace(text); len(said) > 3 && strings.Contains(err.Error(), said) {
			return fmt.Errorf("voice: %s: the service says what is wrong, and repeats the text in it", v.o.Address) // which is nothing for a log
		}
		return fmt.Errorf("voice: %w", err)
	}
	return nil
}

func (v *Voice) speak(ctx context.Context, text string, to func(audio.Frame) error) error {
	streams, err := v.learn(ctx)
	if err != nil {
		return err
	}
	c, err := v.o.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	speech := wyoming.Speech{Text: text, Voice: v.named()}
	ask := []wyoming.Event{wyoming.NewEvent(wyoming.Synthesize, speech)}
	if streams {
		ask = []wyoming.Event{
			wyoming.NewEvent(wyoming.SynthesizeStart, wyoming.Speech{Voice: speech.Voice}),
			wyoming.NewEvent(wyoming.SynthesizeChunk, wyoming.Text{Text: text}),
			ask[0], // for services that don't stream after all; the others leave it out
			{Type: wyoming.SynthesizeStop},
		}
	}
	if err := c.Send(ctx, ask...); err != nil {
		return err
	}
	return v.hear(ctx, c, streams, v.shared.cutter.Cut(text, to))
}

// maxBlank is how many events in a row may come without any sound.
const maxBlank = 1000

// hear takes the sound of a text to its end. A service that streams says so behind the sound of its last sentence; one
// that doesn't has but one.
func (v *Voice) hear(ctx context.Context, c *wyoming.Conn, streams bool, sound *tts.Sound) error {
	for blank := 0; blank < maxBlank; blank++ {
		c.Expect()
		e, err := c.Receive(ctx)
		if err != nil {
			return err
		}
		switch e.Type {
		case wyoming.AudioStart, wyoming.AudioChunk:
			f := wyoming.Format{}
			if err := e.Into(&f); err != nil {
				return err
			}
			if f.Width != 2 {
				return fmt.Errorf("%s: samples of %d bytes: only those of 2 are possible", v.o.Address, f.Width)
			}
			if err := sound.Format(f.Rate, f.Channels); err != nil {
				return fmt.Errorf("%s: %w", v.o.Address, err)
			}
			if len(e.Payload) == 0 {
				continue
			}
			blank = -1
			if err := sound.Write(e.Payload); err != nil {
				return fmt.Errorf("%s: %w", v.o.Address, err)
			}
		case wyoming.AudioStop:
			if !streams {
				return sound.Close()
			}
		case wyoming.SynthesizeStopped:
			return sound.Close()
		}
	}
	return fmt.Errorf("%s: it sends everything but sound", v.o.Address)
}

// named is what to ask for.
func (v *Voice) named() *wyoming.Named {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case v.chosen != "" && v.chosen != v.o.Voice && (!s.known || s.there[v.chosen]):
		return &wyoming.Named{Name: v.chosen}
	case v.o.Voice != "":
		return &wyoming.Named{Name: v.o.Voice, Speaker: v.o.Speaker}
	}
	return nil
}

// learn asks the service what it has, unless it is known.
func (v *Voice) learn(ctx context.Context) (streams bool, err error) {
	s := v.shared
	s.mu.Lock()
	known, streams := s.known, s.streams
	s.mu.Unlock()
	if known {
		return streams, nil
	}
	p, err := v.ask(ctx)
	return p.StreamsSpeech, err
}

// ask asks the service what it has.
func (v *Voice) ask(ctx context.Context) (wyoming.Program, error) {
	info, err := v.o.Describe(ctx)
	if err != nil {
		return wyoming.Program{}, err
	}
	if len(info.Voices) == 0 {
		return wyoming.Program{}, fmt.Errorf("%s: that service has no voice: is it the right port?", v.o.Address)
	}
	p := info.Voices[0]
	there := make(map[string]bool, len(p.Voices))
	for _, voice := range p.Voices {
		there[voice.Name] = true
	}
	s := v.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.streams, s.there = true, p.StreamsSpeech, there
	return p, nil
}

// SetVoice chooses a voice for the texts to come, by its name; "" is the configured one. It asks nobody: as long as the
// service could not be reached any name is taken, and one that turns out not to be there leaves it to the configured one.
func (v *Voice) SetVoice(name string) error {
	if err := v.check(name); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.chosen = name
	return nil
}

func (v *Voice) check(name string) error {
	s := v.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || !s.known || s.there[name] {
		return nil
	}
	return fmt.Errorf("voice: %s has no voice %q", v.o.Address, name)
}

// What the protocol has no word for.
var (
	errSpeed = errors.New("voice: the speed of a Wyoming service can't be changed from here")
	errPitch = errors.New("voice: the pitch of a Wyoming service can't be changed from here")
)

// SetSpeed is an error, unless it is 1: the protocol doesn't know speed.
func (v *Voice) SetSpeed(factor float64) error {
	if factor != 1 {
		return errSpeed
	}
	return nil
}

// SetPitch is an error, unless it is 1: the protocol doesn't know pitch.
func (v *Voice) SetPitch(factor float64) error {
	if factor != 1 {
		return errPitch
	}
	return nil
}

// Settings are the name of the voice, "" if the service chooses it, and its speed, which is 1.
func (v *Voice) Settings() (name string, speed float64) {
	if n := v.named(); n != nil {
		return n.Name, 1
	}
	return "", 1
}

// Voices asks the service for the names of the voices that are installed there.
func (v *Voice) Voices(ctx context.Context) ([]string, error) {
	p, err := v.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	var names []string
	for _, voice := range p.Voices {
		if voice.Installed {
			names = append(names, voice.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Named is the same voice under another name; an error if it is known that there is none of it.
func (v *Voice) Named(name string) (tts.Voice, error) {
	if err := v.check(name); err != nil {
		return nil, err
	}
	return &Voice{o: v.o, shared: v.shared, chosen: name}, nil
}

// Check asks the service what it has, and tells which voice speaks. It is an error if it has none, or not the one of the
// options.
func (v *Voice) Check(ctx context.Context) (string, error) {
	p, err := v.ask(ctx)
	if err != nil {
		return "", fmt.Errorf("voice: %w", err)
	}
	if v.o.Voice == "" {
		return fmt.Sprintf("%s at %s", p.Name, v.o.Address), nil
	}
	if err := v.check(v.o.Voice); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s with %s at %s", p.Name, v.o.Voice, v.o.Address), nil
}

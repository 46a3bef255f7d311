package tts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"bellbird/audio"
	"bellbird/internal/standby"
)

// FallbackOptions are what a Fallback is made of. The voices and their names must be set.
type FallbackOptions struct {
	Primary, Second         Voice
	PrimaryName, SecondName string

	// Deadline is how long the primary may take to begin to speak; default 4 s.
	Deadline time.Duration

	// After the primary failed it is left alone for MinBackoff, twice as long after each further time, up to MaxBackoff;
	// default 5 s to 2 min.
	MinBackoff, MaxBackoff time.Duration

	// OnSwitch is told which voice speaks when that is another than the last time, and why if the first failed. At first
	// it is the primary. It must not wait.
	OnSwitch func(name string, why error)
}

// A Fallback speaks with its second voice while the first is out of reach. It is safe for use by several goroutines.
type Fallback struct {
	primary, second Voice
	deadline        time.Duration
	state           *standby.Switch // shared by all that are the same voice under another name
}

var _ Voice = (*Fallback)(nil)

// NewFallback returns a Fallback.
func NewFallback(o FallbackOptions) *Fallback {
	if o.Deadline <= 0 {
		o.Deadline = 4 * time.Second
	}
	return &Fallback{primary: o.Primary, second: o.Second, deadline: o.Deadline, state: standby.New(standby.Options{
		Primary: o.PrimaryName, Second: o.SecondName, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff, OnSwitch: o.OnSwitch,
	})}
}

// Why the primary failed when it said nothing of its own.
var (
	errSlow   = fmt.Errorf("the voice did not begin in time: %w", context.DeadlineExceeded)
	errSilent = errors.New("the voice made no sound of it")
)

// Synthesize speaks with the primary, or with the second if the primary fails or is too slow before the first frame. If it
// fails later the text just ends there, and the next is for the second: nobody wants to hear the beginning twice.
func (f *Fallback) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	if !f.state.Resting() {
		if over, err := f.speak(ctx, text, to); over {
			return err
		}
	}
	return f.second.Synthesize(ctx, text, to)
}

// speak has the primary speak. over is false if it made no sound and the second shall.
func (f *Fallback) speak(ctx context.Context, text string, to func(audio.Frame) error) (over bool, err error) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(f.deadline, func() { cancel(errSlow) })
	defer late.Stop()

	var begun bool
	var handed error
	err = f.primary.Synthesize(run, text, func(frame audio.Frame) error {
		if !begun {
			// Either it is late or it has begun, and not both.
			if !late.Stop() {
				return errSlow
			}
			begun = true
		}
		handed = to(frame)
		return handed
	})
	switch {
	case handed != nil:
		f.state.Works()
		return true, handed
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	case err == nil && (begun || !speakable(text)):
		f.state.Works()
		return true, nil
	case err == nil:
		err = errSilent
	}
	f.state.Failed(err)
	return begun, nil
}

// speakable reports whether there is anything in a text that makes a sound.
func speakable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// active is the voice that speaks now, and the other.
func (f *Fallback) active() (now, other Voice) {
	if f.state.Instead() {
		return f.second, f.primary
	}
	return f.primary, f.second
}

// SetVoice chooses the voice of that name in whichever of the two has one. It is an error if neither has.
func (f *Fallback) SetVoice(name string) error {
	now, other := f.active()
	err := now.SetVoice(name)
	if other.SetVoice(name) == nil {
		return nil
	}
	return err
}

// SetSpeed makes both voices slower or faster. The error is that of the one that speaks now.
func (f *Fallback) SetSpeed(factor float64) error {
	now, other := f.active()
	_ = other.SetSpeed(factor)
	return now.SetSpeed(factor)
}

// SetPitch makes both voices lower or higher. The error is that of the one that speaks now.
func (f *Fallback) SetPitch(factor float64) error {
	now, other := f.active()
	_ = other.SetPitch(factor)
	return now.SetPitch(factor)
}

// Settings are those of the voice that speaks now.
func (f *Fallback) Settings() (name string, speed float64) {
	now, _ := f.active()
	return now.Settings()
}

// Voices are the names that either has. That one can't be asked is no error as long as the other can.
func (f *Fallback) Voices(ctx context.Context) ([]string, error) {
	names, err := f.primary.Voices(ctx)
	more, errSecond := f.second.Voices(ctx)
	if err != nil && errSecond != nil {
		return nil, err
	}
	for _, n := range more {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, nil
}

// Named is the same two voices, of which that or those that have the name take it. It is an error if neither has it.
func (f *Fallback) Named(name string) (Voice, error) {
	other := *f
	primary, err := f.primary.Named(name)
	if err == nil {
		other.primary = primary
	}
	second, errSecond := f.second.Named(name)
	if errSecond == nil {
		other.second = second
	}
	if err != nil && errSecond != nil {
		return nil, err
	}
	return &other, nil
}

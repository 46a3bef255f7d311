// Package tts has what the voices have in common: how they can be changed while they are used, and what makes frames of
// the sound that comes from elsewhere; and Fallback, which has a second voice speak when the first doesn't. It speaks
// with nothing itself: each engine has a package below this one.
package tts

import (
	"context"

	"bellbird/audio"
)

// A Voice speaks, and can be changed while it is used. The changes are for the texts to come; factors are of what is
// configured, 0.25 to 4. It is safe for use by several goroutines.
type Voice interface {
	// Synthesize hands over frames as they come, and ends with the first error that to returns.
	Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error

	// SetVoice chooses a voice by its name; "" is the configured one. One that it knows not to be there is an error, and
	// then nothing changes.
	SetVoice(name string) error
	SetSpeed(factor float64) error
	SetPitch(factor float64) error

	// Settings are the name of the voice, "" if that is the service's business, and its speed as a factor.
	Settings() (name string, speed float64)

	// Voices are the names of those that there are, as far as it can find out.
	Voices(ctx context.Context) ([]string, error)

	// Named is the same voice under another name, with its present speed and pitch.
	Named(name string) (Voice, error)
}

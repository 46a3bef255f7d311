//go:build !cgo

package malgo

import (
	"context"
	"errors"

	"bellbird/audio"
)

var errNoCgo = errors.New(`no sound card: this binary was built without cgo: use one that was built with CGO_ENABLED=1, or try "bellbird demo"`)

// A Card is a microphone and a loudspeaker. Without cgo there is none.
type Card struct{}

// Open says that there is no cgo.
func Open(Options, *audio.Output) (*Card, error) { return nil, errNoCgo }

// Devices says that there is no cgo.
func Devices(string) (capture, playback []Device, err error) { return nil, nil, errNoCgo }

// Info is empty.
func (c *Card) Info() Info { return Info{} }

// Frames never delivers any.
func (c *Card) Frames() <-chan audio.Frame { return nil }

// Dropped is 0.
func (c *Card) Dropped() uint64 { return 0 }

// Heard is 0.
func (c *Card) Heard() uint64 { return 0 }

// Run says that there is no cgo.
func (c *Card) Run(context.Context) error { return errNoCgo }

// Close does nothing.
func (c *Card) Close() error { return nil }

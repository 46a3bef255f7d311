//go:build !cgo

package pocketsphinx

import (
	"context"
	"errors"

	"bellbird/audio"
)

// A Recognizer cannot exist in a binary that was built without cgo.
type Recognizer struct{}

var errNoCgo = errors.New("recogniser: this binary was built without cgo, which pocketsphinx needs; " +
	"build it with CGO_ENABLED=1, a C compiler and libpocketsphinx-dev, or use a recogniser in the network")

// New reports that there is no recogniser in this binary, and how to get one.
func New(Options, Grammar) (*Recognizer, error) { return nil, errNoCgo }

// Recognize reports the same as New.
func (*Recognizer) Recognize(context.Context, <-chan audio.Frame) (string, error) {
	return "", errNoCgo
}

// Pause does nothing.
func (*Recognizer) Pause() {}

// Close does nothing.
func (*Recognizer) Close() {}

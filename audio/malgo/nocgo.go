//go:build !cgo

package malgo

import (
	"errors"

	"bellbird/audio"
)

var errNoCgo = errors.New(`no sound card: this binary was built without cgo: use one that was built with CGO_ENABLED=1, or try "bellbird demo"`)

func openHalf(o Options, _ Side, _ *audio.Output) (*half, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return nil, errNoCgo
}

// Devices says that there is no cgo.
func Devices(string) (capture, playback []Device, err error) { return nil, nil, errNoCgo }

//go:build !linux

package worker

import (
	"errors"
	"runtime"
)

// Exec needs Linux.
func (p *Program) Exec(func([]Part)) error {
	return errors.New("plugin worker: other programs can't be confined on " + runtime.GOOS)
}

//go:build !linux

package gpio

import (
	"context"
	"os"
)

// Keys is only there on Linux.
func Keys(context.Context, *os.File) (keys <-chan rune, ok bool) { return nil, false }

package gpio

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// Keys reads keys from a terminal as they are pressed, without showing them, until ctx is done; then the terminal is as it
// was, and the channel is closed. ok is false if f is no terminal.
func Keys(ctx context.Context, f *os.File) (keys <-chan rune, ok bool) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, false
	}
	raw := *before
	raw.Lflag &^= unix.ICANON | unix.ECHO // ^C still interrupts
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 2
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, false
	}
	c := make(chan rune)
	go func() {
		defer close(c)
		defer unix.IoctlSetTermios(fd, unix.TCSETS, before)
		b := make([]byte, 1)
		for ctx.Err() == nil {
			n, err := unix.Read(fd, b) // waits for 0.2 s at most
			if err != nil && err != unix.EINTR {
				return
			}
			if n == 1 {
				select {
				case c <- rune(b[0]):
				case <-ctx.Done():
				}
			}
		}
	}()
	return c, true
}

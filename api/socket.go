package api

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Listen opens the socket at path, for its owner and group, and takes the place of one that nobody serves any more. Run
// must follow, or Close.
func Listen(path string, o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("local socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("local socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("local socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, fmt.Errorf("local socket: %w", err)
	}
	return &Server{"local socket", l, Handler(o), o.Logger}, nil
}

// removeStale removes a socket that was left behind. One that answers is another appliance's, and what is no socket is
// not ours to remove.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file of that name which is no socket: remove it")
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return errors.New("another appliance is running: stop it first")
	}
	return os.Remove(path)
}

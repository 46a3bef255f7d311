package install

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange puts new in the place of old in one step, so that a power cut finds one of them. A file system that can't do that
// gets two steps.
func exchange(new, old, aside string) error {
	err := unix.Renameat2(unix.AT_FDCWD, new, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return swap(new, old, aside)
	}
	return err
}

// flush has all files written that lie where dir does. One call for all of them spares a slow card.
func flush(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

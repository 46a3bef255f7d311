//go:build unix

package python

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a worker from the signals of the terminal, and lets all that it may have started be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

package worker

import (
	"os/exec"
	"syscall"
)

// killAll kills a worker that was started; one that has a process group of its own, with all in it.
func killAll(cmd *exec.Cmd) {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be nobody left
	}
	_ = cmd.Process.Kill() // it may have ended
}

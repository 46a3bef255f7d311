//go:build !linux

package worker

import "os/exec"

func killAll(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended

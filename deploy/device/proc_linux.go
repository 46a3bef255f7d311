package device

import "syscall"

// dieWithUs has a child killed when this process ends, however it ends.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

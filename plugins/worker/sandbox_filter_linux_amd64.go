package worker

import "golang.org/x/sys/unix"

const (
	arch      = unix.AUDIT_ARCH_X86_64
	mapCall   = unix.SYS_MMAP
	fcntlCall = unix.SYS_FCNTL
)

var allowedHere = []uint32{unix.SYS_EPOLL_WAIT}

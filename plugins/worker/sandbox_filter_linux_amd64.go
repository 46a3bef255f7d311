package worker

import "golang.org/x/sys/unix"

const (
	arch      = unix.AUDIT_ARCH_X86_64
	mapCall   = unix.SYS_MMAP
	fcntlCall = unix.SYS_FCNTL
)

var allowedHere = []uint32{unix.SYS_EPOLL_WAIT}

// Calls that newer architectures don't have any more.
var programCallsHere = []uint32{
	unix.SYS_ARCH_PRCTL, unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK,
	unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_EPOLL_CREATE, unix.SYS_GETPGRP, unix.SYS_TIME,
	unix.SYS_GETRLIMIT, unix.SYS_GETDENTS,
}

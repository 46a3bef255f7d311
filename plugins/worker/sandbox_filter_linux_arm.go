package worker

import "golang.org/x/sys/unix"

const (
	arch      = unix.AUDIT_ARCH_ARM
	mapCall   = unix.SYS_MMAP2
	fcntlCall = unix.SYS_FCNTL64
)

// Calls whose times have 64 bits came later here.
var allowedHere = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_FUTEX_TIME64, unix.SYS_CLOCK_GETTIME64, unix.SYS_CLOCK_NANOSLEEP_TIME64}

// Calls that newer architectures don't have any more, those with wider numbers, and two of the architecture's own: for the
// memory of threads, and for new code.
var programCallsHere = []uint32{
	unix.SYS_OPEN, unix.SYS_STAT64, unix.SYS_LSTAT64, unix.SYS_FSTAT64, unix.SYS_FSTATAT64, unix.SYS_STATFS64, unix.SYS_FSTATFS64,
	unix.SYS__LLSEEK, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_POLL, unix.SYS__NEWSELECT, unix.SYS_PIPE, unix.SYS_DUP2,
	unix.SYS_EPOLL_CREATE, unix.SYS_GETPGRP, unix.SYS_UGETRLIMIT, unix.SYS_GETDENTS, unix.SYS_SEND, unix.SYS_RECV,
	unix.SYS_GETUID32, unix.SYS_GETEUID32, unix.SYS_GETGID32, unix.SYS_GETEGID32, unix.SYS_GETGROUPS32,
	unix.SYS_PPOLL_TIME64, unix.SYS_PSELECT6_TIME64, unix.SYS_CLOCK_GETRES_TIME64, unix.SYS_TIMERFD_SETTIME64,
	unix.SYS_TIMERFD_GETTIME64, unix.SYS_RT_SIGTIMEDWAIT_TIME64,
	0xf0005, 0xf0002,
}

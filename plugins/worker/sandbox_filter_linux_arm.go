package worker

import "golang.org/x/sys/unix"

const (
	arch      = unix.AUDIT_ARCH_ARM
	mapCall   = unix.SYS_MMAP2
	fcntlCall = unix.SYS_FCNTL64
)

// Calls whose times have 64 bits came later here.
var allowedHere = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_FUTEX_TIME64, unix.SYS_CLOCK_GETTIME64, unix.SYS_CLOCK_NANOSLEEP_TIME64}

//go:build amd64 || arm64 || arm

package worker

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The filter for other programs has more on its list than ours: it reads files, as far as Landlock lets it, and loads
// libraries, so that what it runs can't be restricted. What is not there: new processes, whatever reaches another
// process, sockets without a network, and all that interpreters don't use, where the kernel's faults are.

// programCalls may be made with any arguments, besides those that this program may make.
var programCalls = append([]uint32{
	unix.SYS_EXECVE, // the program itself; of what Landlock lets it run there is nothing else
	mapCall, unix.SYS_MPROTECT, unix.SYS_MSYNC,
	// files
	unix.SYS_OPENAT, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_STATX, unix.SYS_FSTAT, unix.SYS_GETDENTS64,
	unix.SYS_LSEEK, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_GETCWD, unix.SYS_STATFS, unix.SYS_FSTATFS,
	// descriptors
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PSELECT6,
	unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SHUTDOWN,
	// itself
	unix.SYS_SET_TID_ADDRESS, unix.SYS_GETPPID, unix.SYS_GETPGID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_GETGROUPS, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_GETPRIORITY, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GETPARAM,
	unix.SYS_CLOCK_GETRES, unix.SYS_SETITIMER, unix.SYS_GETITIMER, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_WAIT4,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_UMASK, unix.SYS_MEMBARRIER, unix.SYS_GETCPU,
}, programCallsHere...)

// networkCalls are what there is besides, with a network.
var networkCalls = []uint32{
	unix.SYS_CONNECT, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT,
}

func (p *Program) filterCalls() error {
	const (
		kind        = 0xf // of a socket, without its flags
		getTerminal = 0x5401
		getWindow   = 0x5413
		nonBlocking = 0x5421
		howMuch     = 0x541b
		closeOnExec = 0x5451
		keepOnExec  = 0x5450
		ofThis      = 0 // process
	)
	calls := slices.Concat(allowed, programCalls)
	conditions := append(own(os.Getpid()),
		condition{unix.SYS_PRCTL, 0, every, []uint32{unix.PR_SET_VMA, unix.PR_SET_NAME, unix.PR_GET_NAME}},
		condition{fcntlCall, 1, every, []uint32{unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC}},
		condition{unix.SYS_IOCTL, 1, every, []uint32{getTerminal, getWindow, nonBlocking, howMuch, closeOnExec, keepOnExec}},
		condition{unix.SYS_PRLIMIT64, 0, every, []uint32{ofThis}},
		condition{unix.SYS_SOCKETPAIR, 1, kind, []uint32{unix.SOCK_STREAM}}, // one that can't be sent elsewhere from
	)
	if p.Network {
		calls = append(calls, networkCalls...)
		conditions = append(conditions, condition{unix.SYS_SOCKET, 0, every, []uint32{unix.AF_INET, unix.AF_INET6}})
	}
	return setFilter(filter(calls, conditions))
}

//go:build amd64 || arm64 || arm

package worker

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is a list of what may be called, because what the Go runtime needs is short and known, and what the kernel
// offers is neither. A call that is not on it fails as on a kernel that doesn't know it: that is what the runtime and C
// libraries are prepared for, so that one they begin to use one day makes them fall back rather than fail.
//
// Only calls that change nothing but this process are on it. There is none that makes a descriptor of anything outside.

// allowed are the calls that may be made with any arguments. Those with conditions are in program.
var allowed = append([]uint32{
	// memory
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_MREMAP, unix.SYS_BRK,
	// threads
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	// signals of its own
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	// time and chance
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETRANDOM,
	// the descriptors that there are, and those with which the runtime waits
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2,
}, allowedHere...)

// Where the kernel puts what a filter may look at. All three architectures are little endian: the lower half comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// program is the filter for a process.
func program(pid int) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		mask   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		end    = unix.BPF_RET | unix.BPF_K
		permit = unix.SECCOMP_RET_ALLOW
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	p := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: end, K: refuse}, // the calls of another architecture have other numbers
		{Code: load, K: offsetNumber},
	}
	for _, number := range allowed {
		p = append(p, unix.SockFilter{Code: equal, K: number, Jf: 1}, unix.SockFilter{Code: end, K: permit})
	}

	// A thread, but no process and nothing in a namespace of its own.
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
		unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP
	const every = 1<<32 - 1
	for _, c := range []struct {
		number          uint32
		arg             uint32
		mask, mustEqual uint32
		orEqual         uint32
	}{
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD | namespaces, unix.CLONE_THREAD, unix.CLONE_THREAD},
		{mapCall, 2, unix.PROT_EXEC, 0, 0}, // no new code
		{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, 0, 0},
		{unix.SYS_TGKILL, 0, every, uint32(pid), uint32(pid)}, // by which the runtime interrupts its threads
		{unix.SYS_KILL, 0, every, uint32(pid), uint32(pid)},
		{unix.SYS_PRCTL, 0, every, unix.PR_SET_VMA, unix.PR_SET_VMA}, // the runtime names its memory
		{fcntlCall, 1, every, unix.F_GETFL, unix.F_SETFL},            // whether a read blocks
	} {
		p = append(p,
			unix.SockFilter{Code: equal, K: c.number, Jf: 6},
			unix.SockFilter{Code: load, K: offsetArgs + 8*c.arg},
			unix.SockFilter{Code: mask, K: c.mask},
			unix.SockFilter{Code: equal, K: c.mustEqual, Jt: 1},
			unix.SockFilter{Code: equal, K: c.orEqual, Jf: 1},
			unix.SockFilter{Code: end, K: permit},
			unix.SockFilter{Code: end, K: refuse},
		)
	}
	return append(p, unix.SockFilter{Code: end, K: refuse})
}

// filterCalls lets all threads of this process make only the system calls that the filter allows.
func filterCalls() error {
	filter := program(os.Getpid())
	// The kernel reads the filter through a pointer in a struct, which nothing but this pins.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&filter[0])
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("seccomp: thread %d has a filter of its own", thread)
	}
	return nil
}

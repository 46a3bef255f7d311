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

// allowed are the calls that may be made with any arguments. Those with conditions are in own and program.
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

// A condition allows a call if an argument, masked, is one of a few values.
type condition struct {
	number, arg, mask uint32
	values            []uint32
}

const every = 1<<32 - 1

// A thread, but no process and nothing in a namespace of its own.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// own are the conditions that hold for everybody: for threads, and for signals to process pid itself.
func own(pid int) []condition {
	return []condition{
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD | namespaces, []uint32{unix.CLONE_THREAD}},
		{unix.SYS_TGKILL, 0, every, []uint32{uint32(pid)}}, // by which the runtime interrupts its threads
		{unix.SYS_KILL, 0, every, []uint32{uint32(pid)}},
	}
}

// program is the filter for a process that runs this program.
func program(pid int) []unix.SockFilter {
	return filter(allowed, append(own(pid),
		condition{mapCall, 2, unix.PROT_EXEC, []uint32{0}}, // no new code
		condition{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, []uint32{0}},
		condition{unix.SYS_PRCTL, 0, every, []uint32{unix.PR_SET_VMA}},       // the runtime names its memory
		condition{fcntlCall, 1, every, []uint32{unix.F_GETFL, unix.F_SETFL}}, // whether a read blocks
	))
}

// filter allows these calls.
func filter(allowed []uint32, conditions []condition) []unix.SockFilter {
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
	for _, c := range conditions {
		n := uint8(len(c.values))
		p = append(p,
			unix.SockFilter{Code: equal, K: c.number, Jf: n + 4},
			unix.SockFilter{Code: load, K: offsetArgs + 8*c.arg},
			unix.SockFilter{Code: mask, K: c.mask},
		)
		for i, v := range c.values {
			p = append(p, unix.SockFilter{Code: equal, K: v, Jt: n - uint8(i)})
		}
		p = append(p, unix.SockFilter{Code: end, K: refuse}, unix.SockFilter{Code: end, K: permit})
	}
	return append(p, unix.SockFilter{Code: end, K: refuse})
}

// filterCalls lets all threads of this process make only the system calls that the filter allows.
func filterCalls() error { return setFilter(program(os.Getpid())) }

func setFilter(filter []unix.SockFilter) error {
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

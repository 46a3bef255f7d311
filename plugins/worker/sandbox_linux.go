package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata" // scripts name time zones, and the worker can't read the system's

	"golang.org/x/sys/unix"
)

// sandboxEnv tells the program that it was started again, and what has been done for it.
const sandboxEnv = "BELLBIRD_SANDBOX"

// Sandbox takes from this process what a worker must not have, for good. It is called before anything that came from
// outside is read, by a program that has done nothing yet: it starts the program again, with the same arguments and the
// same standard descriptors, and returns only in the second life. memory is what the process may write to, in bytes; 0: no limit.
//
// The program is started again because most of what is taken away is taken from a single thread, and the runtime and C
// have threads already. The new program has only the one that started it.
//
// What the system lacks is left out, and said in the parts. An error means that the process must end.
func Sandbox(memory int64) ([]Part, error) {
	said, again := os.LookupEnv(sandboxEnv)
	if !again {
		return nil, startAgain()
	}
	var parts []Part
	if err := json.Unmarshal([]byte(said), &parts); err != nil {
		return nil, fmt.Errorf("plugin worker: %s=%q: %w", sandboxEnv, said, err)
	}
	_, _ = time.Now().Zone() // reads the local time zone, while that is possible
	os.Clearenv()
	if err := limitMemory(memory); err != nil {
		return parts, err
	}
	parts = append(parts,
		part(partLimits, limit()),
		part(partDump, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)),
		part(partCalls, filterCalls()), // last: it forbids the others
	)
	return parts, nil
}

// startAgain takes away what belongs to a thread, and then has the thread run the program anew. It returns only if that
// went wrong.
func startAgain() error {
	runtime.LockOSThread() // and never unlock it: nobody else may run on what is left of it
	parts := []Part{
		part(partPriority, lowerPriority()),
		part(partParent, unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)),
		part(partDescriptors, closeOnExec()),
		part(partPrivileges, dropPrivileges()),
	}
	parts = append(parts, restrictFiles()...)
	// The C library makes the stacks of threads as large as this, and they count as memory. It looks only at the start.
	const stack = 1 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_STACK, &syscall.Rlimit{Cur: stack, Max: stack}); err != nil {
		return fmt.Errorf("plugin worker: limit the stacks: %w", err)
	}
	said, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	env := append(os.Environ(), sandboxEnv+"="+string(said))
	if _, set := os.LookupEnv("GOMAXPROCS"); !set { // the runtime would look for it in files, and keep them open
		env = append(env, "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	}
	// Not by its path: there may be another program by now.
	return fmt.Errorf("plugin worker: start again in the sandbox: %w", syscall.Exec("/proc/self/exe", os.Args, env))
}

// lowerPriority lets everybody else go first. The worker of an appliance that runs in real time must not do so itself.
func lowerPriority() error {
	const nice = 10 // about a tenth of the time, beside one that is not nice
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: nice}
	return errors.Join(
		unix.SchedSetAttr(0, &attr, 0),
		os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0),
	)
}

// closeOnExec marks all descriptors but the standard ones to be closed when the program is started again.
func closeOnExec() error {
	const first = 3
	err := unix.CloseRange(first, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	dir, err := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	for _, e := range dir {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// dropPrivileges gives up all capabilities, and the way to get them back. It must come before the rules and the filter,
// which the kernel takes from an ordinary user only so.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return errors.Join(
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Capset(&header, &none[0]),
	)
}

// limit bounds what the process may use, besides memory. There is no limit of processes: the kernel would count all
// threads of the user, the appliance's too. The filter allows no new process.
func limit() error {
	limits := []struct {
		name  string
		which int
		most  uint64
	}{
		{"descriptors", syscall.RLIMIT_NOFILE, 16}, // the standard ones, and what the runtime waits for timers with
		{"core files", syscall.RLIMIT_CORE, 0},
		{"file size", syscall.RLIMIT_FSIZE, 0},
	}
	var errs []error
	for _, l := range limits {
		if l.which == syscall.RLIMIT_FSIZE && (isFile(os.Stdout) || isFile(os.Stderr)) {
			continue // a line for the log would end the process
		}
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

func isFile(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

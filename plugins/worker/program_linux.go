package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Exec confines this process and then has it run the program, with the same standard descriptors. It is called by a
// program that has done nothing yet, and returns only an error. What the system lacks of the sandbox is left out; told is
// told before the program runs.
func (p *Program) Exec(told func([]Part)) error {
	runtime.LockOSThread() // and never unlock it: nobody else may run on what is left of it
	parts := []Part{
		part(partPriority, lowerPriority()),
		part(partParent, unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)),
		part(partDescriptors, closeOnExec()),
		part(partPrivileges, dropPrivileges()),
	}
	parts = append(parts, restrict(p.rules)...)
	parts = append(parts,
		part(partLimits, p.limit()),
		part(partCalls, p.filterCalls()), // last: it forbids the others
	)
	told(parts)
	if p.Memory != 0 {
		limit := syscall.Rlimit{Cur: uint64(p.Memory), Max: uint64(p.Memory)}
		if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
			return fmt.Errorf("limit the worker's memory: %w", err)
		}
	}
	return fmt.Errorf("plugin worker: run %q in the sandbox: %w", p.Path, syscall.Exec(p.Path, p.Args, p.Env))
}

// What programs read that look for the time zone, and for hosts and certificates.
var (
	zoneFiles    = []string{"/usr/share/zoneinfo", "/usr/lib/locale"}
	networkFiles = []string{
		"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
		"/etc/ssl", "/usr/share/ca-certificates", "/usr/lib/ssl",
	}
)

// rules allow the program what it may read, run and connect to.
func (p *Program) rules(rules int) error {
	for _, path := range p.Run {
		if err := allow(rules, path, runFile); err != nil {
			return err
		}
	}
	read := append(append([]string{}, startFiles...), zoneFiles...)
	read = append(read, p.Read...)
	if p.Network {
		read = append(read, networkFiles...)
	}
	for _, path := range read {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // then it can't be read anyway
		}
		if err != nil {
			return err
		}
		access := uint64(readFile)
		if info.IsDir() {
			access |= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
		if err := allow(rules, path, access); err != nil {
			return err
		}
	}
	if err := allow(rules, os.DevNull, readFile|unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
		return err
	}
	if !p.Network {
		return nil
	}
	for _, port := range p.Ports {
		// An older kernel, which has no rules for TCP, refuses this. There the filter is what says whether there is a network.
		if err := allowPort(rules, port); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

// allowPort allows to connect to a port by TCP.
func allowPort(rules int, port uint16) error {
	const netPort = 2 // LANDLOCK_RULE_NET_PORT
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), netPort, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule, port %d: %w", port, errno)
	}
	return nil
}

// limit bounds what the program may use, besides memory.
func (p *Program) limit() error {
	descriptors := uint64(32)
	if p.Network {
		descriptors = 128
	}
	errs := []error{
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: descriptors, Max: descriptors}),
		syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}),
	}
	if !isFile(os.Stdout) && !isFile(os.Stderr) { // a line for the log would end the process
		errs = append(errs, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}))
	}
	return errors.Join(errs...)
}

package worker_test

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts are what a program in the sandbox can't do. The arguments are a file, the parent's process id, and a TCP address.
var attempts = map[string]func(file string, pid int, address string) error{
	"read a file":           func(file string, _ int, _ string) error { _, err := os.ReadFile(file); return err },
	"read a device":         func(string, int, string) error { _, err := os.Open("/dev/zero"); return err },
	"read its program":      func(string, int, string) error { _, err := os.Open("/proc/self/exe"); return err },
	"list a directory":      func(file string, _ int, _ string) error { _, err := os.ReadDir(filepath.Dir(file)); return err },
	"see a file":            func(file string, _ int, _ string) error { _, err := os.Stat(file); return err },
	"write to a file":       func(file string, _ int, _ string) error { return os.WriteFile(file, []byte("x"), 0o600) },
	"create a file":         func(file string, _ int, _ string) error { return os.WriteFile(file+".new", nil, 0o600) },
	"remove a file":         func(file string, _ int, _ string) error { return os.Remove(file) },
	"change a mode":         func(file string, _ int, _ string) error { return os.Chmod(file, 0o777) },
	"make a directory":      func(file string, _ int, _ string) error { return os.Mkdir(file+".dir", 0o700) },
	"change directory":      func(string, int, string) error { return os.Chdir("/") },
	"make a file in memory": func(string, int, string) error { _, err := unix.MemfdCreate("x", 0); return err },
	"connect": func(_ string, _ int, address string) error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	},
	"listen": func(string, int, string) error {
		var c net.ListenConfig
		c.SetMultipathTCP(false) // which Landlock doesn't know: only the filter refuses that
		_, err := c.Listen(context.Background(), "tcp", "127.0.0.1:0")
		return err
	},
	"listen by several paths": func(string, int, string) error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
	"send UDP":                func(_ string, _ int, address string) error { _, err := net.Dial("udp", address); return err },
	"make a pair": func(string, int, string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	},
	"make a raw socket": func(string, int, string) error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, 0); return err },
	"start a program":   func(string, int, string) error { return exec.Command("/bin/true").Run() },
	"become a program":  func(string, int, string) error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
	"become itself":     func(string, int, string) error { return syscall.Exec("/proc/self/exe", os.Args, nil) },
	"fork": func(string, int, string) error {
		return raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD))
	},
	"fork by clone3": func(string, int, string) error {
		args := [8]uint64{4: uint64(unix.SIGCHLD)} // struct clone_args
		return raw(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), unsafe.Sizeof(args))
	},
	"trace its parent": func(_ string, pid int, _ string) error { return unix.PtraceAttach(pid) },
	"read its parent's memory": func(_ string, pid int, _ string) error {
		var b [8]byte
		local, remote := unix.Iovec{Base: &b[0]}, unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&b[0])), Len: len(b)}
		local.SetLen(len(b))
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		return err
	},
	"kill its parent":             func(_ string, pid int, _ string) error { return unix.Kill(pid, 0) },
	"kill everybody":              func(string, int, string) error { return unix.Kill(-1, 0) },
	"kill its group":              func(string, int, string) error { return unix.Kill(0, 0) },
	"kill a thread of its parent": func(_ string, pid int, _ string) error { return unix.Tgkill(pid, pid, 0) },
	"open its parent":             func(_ string, pid int, _ string) error { _, err := unix.PidfdOpen(pid, 0); return err },
	"get code of its own": func(string, int, string) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"make code of data": func(string, int, string) error {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return nil // then this proves nothing, and is reported
		}
		return unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
	},
	"mount":                          func(string, int, string) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") },
	"leave its namespace":            func(string, int, string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"load a program into the kernel": func(string, int, string) error { return raw(unix.SYS_BPF, 0, 0, 0) },
	"use a keyring": func(string, int, string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return err
	},
	"restart the machine": func(string, int, string) error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) },
	"raise its limits": func(string, int, string) error {
		return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1000, Max: 1000})
	},
	"raise its priority": func(string, int, string) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 0) },
	"be dumped":          func(string, int, string) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
	"set up a ring":      func(string, int, string) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0) },
}

func raw(number uintptr, args ...uintptr) error {
	var a [4]uintptr
	copy(a[:], args)
	pid, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 && (number == unix.SYS_CLONE || number == unix.SYS_CLONE3) {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child, which there must not be
	}
	return nil
}

// attempt tries what is named, or everything, on each of several threads, and returns what succeeded.
func attempt(args []string) []string {
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		return []string{err.Error()}
	}
	names := args[3:]
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(attempts))
	}
	succeeded := []string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			runtime.LockOSThread() // so that each has its own
			defer runtime.UnlockOSThread()
			for _, name := range names {
				if attempts[name](args[0], pid, args[2]) == nil {
					mu.Lock()
					succeeded = append(succeeded, name)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(succeeded)
	return slices.Compact(succeeded)
}

package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restrictFiles confines this thread, and the program that it will run, by Landlock. The program may read itself and its
// libraries, which it must do to start; nothing else, and it may change nothing.
//
// The package for this, go-landlock, confines all threads at once, and needs another place with C for that in a program
// that has C already.
func restrictFiles() []Part { return restrict(allowSelf) }

// restrict forbids all that Landlock can, but for what add allows.
func restrict(add func(rules int) error) []Part {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		err := fmt.Errorf("the kernel has no Landlock: %w", errno)
		return []Part{part(partFiles, err), part(partTCP, err), part(partScope, err)}
	}
	attr, parts := handled(int(abi))
	if err := landlock(attr, add); err != nil {
		for i := range parts {
			parts[i] = part(parts[i].Name, err)
		}
	}
	return parts
}

// handled is what the rules of a kernel can be about, all of which is forbidden unless a rule allows it.
func handled(abi int) (unix.LandlockRulesetAttr, []Part) {
	const first = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // all rights that there were at first
	attr := unix.LandlockRulesetAttr{Handled_access_fs: first}
	for _, later := range []struct {
		abi   int
		right uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if abi >= later.abi {
			attr.Handled_access_fs |= later.right
		}
	}
	old := fmt.Errorf("the kernel's Landlock, version %d, is too old", abi)
	parts := []Part{part(partFiles, nil), part(partTCP, old), part(partScope, old)}
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		parts[1] = part(partTCP, nil)
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		parts[2] = part(partScope, nil)
	}
	return attr, parts
}

// landlock has the kernel keep to attr, with the rules that add makes.
func landlock(attr unix.LandlockRulesetAttr, add func(rules int) error) error {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	rules := int(fd)
	defer unix.Close(rules)
	if err := add(rules); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

const readFile, runFile = unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE

// startFiles are what every program reads when it starts.
var startFiles = []string{
	"/etc/ld.so.cache", // says where the libraries are
	"/proc/self/maps",  // tells the C library the bounds of its stack
	"/etc/localtime",
}

// allowSelf allows this program, and what it is made of.
func allowSelf(rules int) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for _, path := range append(mapped(maps), "/proc/self/exe") {
		if err := allow(rules, path, runFile); err != nil {
			return err
		}
	}
	for _, path := range startFiles {
		if err := allow(rules, path, readFile); err != nil {
			return err
		}
	}
	return nil
}

// allow allows access to a file, if there is one.
func allow(rules int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule %q: %w", path, errno)
	}
	return nil
}

// mapped returns the files in the text of /proc/self/maps: the program and its libraries.
func mapped(maps []byte) []string {
	var paths []string
	seen := make(map[string]bool)
	for line := range bytes.Lines(maps) {
		i := bytes.IndexByte(line, '/') // nothing before the path has one
		if i < 0 {
			continue
		}
		path := string(bytes.TrimSuffix(line[i:], []byte("\n")))
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	return paths
}

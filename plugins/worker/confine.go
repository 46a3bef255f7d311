package worker

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

// Memory is what a worker may use, in bytes, when nothing else is said.
const Memory = 128 << 20

// Confine takes from this process what a worker must not have. It is called by the worker, before it serves.
func Confine(memory int64) error {
	// The limit counts what the process can write to. The runtime keeps below it if it can, by collecting garbage early,
	// and ends the process if it can't: that is what a worker is for.
	debug.SetMemoryLimit(memory / 2)
	limit := syscall.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit the worker's memory: %w", err)
	}
	none := syscall.Rlimit{}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &none); err != nil {
		return fmt.Errorf("limit the worker's core files: %w", err)
	}
	return nil
}

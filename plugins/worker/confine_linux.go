package worker

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

// limitMemory bounds what this process can write to, in bytes; 0: no limit. The runtime keeps below it if it can, by
// collecting garbage early, and ends the process if it can't: that is what a worker is for.
func limitMemory(memory int64) error {
	if memory == 0 {
		return nil
	}
	debug.SetMemoryLimit(memory / 2)
	limit := syscall.Rlimit{Cur: uint64(memory), Max: uint64(memory)}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit the worker's memory: %w", err)
	}
	return nil
}

//go:build !linux

package worker

import "runtime/debug"

// limitMemory has the runtime try to use no more memory, in bytes; 0: no limit. Only Linux counts all that is written to.
func limitMemory(memory int64) error {
	if memory != 0 {
		debug.SetMemoryLimit(memory / 2)
	}
	return nil
}

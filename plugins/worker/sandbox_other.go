//go:build !linux

package worker

import "runtime"

// Sandbox bounds the memory of this process, in bytes, as far as the runtime can keep to it; 0: no limit. The rest needs Linux.
func Sandbox(memory int64) ([]Part, error) {
	var parts []Part
	for _, name := range []string{
		partPriority, partParent, partDescriptors, partPrivileges, partFiles, partTCP, partScope, partLimits, partDump, partCalls,
	} {
		parts = append(parts, Part{name, "not on " + runtime.GOOS})
	}
	return parts, limitMemory(memory)
}

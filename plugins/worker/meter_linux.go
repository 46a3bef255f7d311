package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/*/stat on every architecture that there is.
const tick = time.Second / 100

// cpuTime is what a process has had of the processor so far.
func cpuTime(pid int) (used time.Duration, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	return parseStat(text)
}

// parseStat finds the time in the text of a stat file: the 14th and 15th field. The second one, in brackets, is the name
// of the program, which may have anything in it.
func parseStat(text []byte) (used time.Duration, known bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, false
	}
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * tick
	}
	return used, true
}

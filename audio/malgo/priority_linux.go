package malgo

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// soundPriority is among the real-time priorities, 1 to 99: above what is usual, and below what the kernel and the
	// sound server have for themselves.
	soundPriority = 10

	// longestRun is how long a thread with such a priority may compute without a pause. A callback takes less than a
	// millisecond; one that never ends would take a core from everybody. The program is told when that time is over, and
	// killed if it goes on for so long again.
	longestRun = 200 * time.Millisecond
)

// runFirst has the calling thread run before all that have no real-time priority. Threads that it starts don't inherit
// that.
func runFirst() error {
	if err := boundRun(); err != nil {
		return err // without a bound it is better not to
	}
	err := unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: soundPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
	if err != nil {
		return fmt.Errorf("real-time priority %d: %w", soundPriority, err)
	}
	return nil
}

// boundRun has the kernel end the program if a thread with real-time priority doesn't pause. A bound that is there
// already, such as systemd's, stays.
func boundRun() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &l); err != nil {
		return fmt.Errorf("limit of real-time computing: %w", err)
	}
	const most = uint64(2 * longestRun / time.Microsecond)
	if uint64(l.Max) <= most {
		return nil
	}
	l.Cur, l.Max = min(l.Cur, uint64(longestRun/time.Microsecond)), most
	if err := unix.Setrlimit(unix.RLIMIT_RTTIME, &l); err != nil {
		return fmt.Errorf("limit of real-time computing: %w", err)
	}
	return nil
}

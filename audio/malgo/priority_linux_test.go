package malgo

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A device's thread runs first where it may, and is bounded then. Where it may not nothing changes. It asks once.
func TestPriority(t *testing.T) {
	var before, after, child *unix.SchedAttr
	var limit unix.Rlimit
	var p priority
	var asked *answer
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- func() (err error) {
			if before, err = unix.SchedGetAttr(0, 0); err != nil {
				return err
			}
			p.raise()
			asked = p.news()
			p.raise()
			if after, err = unix.SchedGetAttr(0, 0); err != nil {
				return err
			}
			if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil {
				return err
			}
			// A thread that this one starts.
			other := make(chan error)
			go func() {
				runtime.LockOSThread()
				var err error
				child, err = unix.SchedGetAttr(0, 0)
				other <- err
			}()
			return <-other
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if asked == nil || p.news() != nil {
		t.Fatalf("it was asked %v, and again %v", asked, p.news())
	}
	if asked.err != nil {
		if after.Policy != before.Policy || after.Priority != before.Priority {
			t.Errorf("%v, but %+v became %+v", asked.err, before, after)
		}
		t.Skipf("a thread may not have a higher priority here: %v", asked.err)
	}
	if after.Policy != unix.SCHED_FIFO || after.Priority != soundPriority || after.Flags&unix.SCHED_FLAG_RESET_ON_FORK == 0 {
		t.Errorf("%+v", after)
	}
	if child.Policy == unix.SCHED_FIFO {
		t.Error("another thread has it too")
	}
	if most := uint64(2 * longestRun / time.Microsecond); uint64(limit.Max) > most || uint64(limit.Cur) > most {
		t.Errorf("it may compute for %d to %d µs", limit.Cur, limit.Max)
	}
}

package worker

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "1234 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 30 10 1 0 99\n"
	if used, ok := parseStat([]byte(stat)); !ok || used != 1750*time.Millisecond {
		t.Errorf("%v, %v", used, ok)
	}
	for _, s := range []string{"", "1 (x", "1 (x) S 1 2 3", "1 (x) S 1 2 3 4 5 6 7 8 9 10 a b"} {
		if _, ok := parseStat([]byte(s)); ok {
			t.Errorf("%q: known", s)
		}
	}
	if _, ok := cpuTime(os.Getpid()); !ok {
		t.Error("that of this process is not known")
	}
}

// The first ends of a worker cost nothing, then its plugins wait, and no longer than a minute.
func TestDied(t *testing.T) {
	h := New(Options{})
	for i, want := range []time.Duration{0, 0, shortestWait, 2 * shortestWait, 4 * shortestWait} {
		if got := h.died(time.Second); got != want {
			t.Errorf("end %d: it waits %v, not %v", i+1, got, want)
		}
	}
	for range 100 {
		if got := h.died(0); got > longestWait {
			t.Fatalf("it waits %v", got)
		}
	}
	if got := h.died(time.Hour); got != 0 {
		t.Errorf("after an hour: it waits %v", got)
	}
}

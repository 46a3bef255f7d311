package clock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/clock"
)

func begin() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestVirtualCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(begin())
		var mu sync.Mutex
		var got []string
		note := func(s string) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, s+" at "+v.Now().Sub(begin()).String())
			}
		}
		v.AfterFunc(30*time.Millisecond, note("third"))
		v.AfterFunc(10*time.Millisecond, note("first"))
		v.AfterFunc(20*time.Millisecond, func() {
			note("second")()
			v.AfterFunc(20*time.Millisecond, note("fourth"))
		})
		v.AfterFunc(time.Hour, note("never"))
		for range 6 {
			v.Advance(10 * time.Millisecond)
			synctest.Wait()
		}
		want := []string{"first at 10ms", "second at 20ms", "third at 30ms", "fourth at 40ms"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if now := v.Now().Sub(begin()); now != 60*time.Millisecond {
			t.Errorf("the clock is at %v, want 60ms", now)
		}
	})
}

func TestVirtualStop(t *testing.T) {
	v := clock.NewVirtual(begin())
	called := make(chan int, 3)
	var stops []func() bool
	for i := range 3 {
		stops = append(stops, v.AfterFunc(time.Second, func() { called <- i }))
	}
	if !stops[1]() {
		t.Error("stopping in time is called too late")
	}
	if stops[1]() {
		t.Error("stopping twice worked twice")
	}
	v.Advance(time.Second)
	got := []int{<-called, <-called}
	slices.Sort(got)
	if !slices.Equal(got, []int{0, 2}) {
		t.Errorf("called %v, want 0 and 2", got)
	}
	if stops[0]() {
		t.Error("stopping too late is called in time")
	}
}

// While something works, a virtual second takes a second, and not longer; when nothing does, it takes no time.
func TestVirtualWaitsForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(begin())
		took := func() time.Duration {
			at := time.Now()
			v.Advance(time.Second)
			return time.Since(at)
		}
		if d := took(); d != 0 {
			t.Errorf("idle: %v", d)
		}
		a, b := v.Work(), v.Work()
		if d := took(); d != time.Second {
			t.Errorf("two at work: %v, want 1s", d)
		}
		a()
		a()
		if d := took(); d != time.Second {
			t.Errorf("one at work: %v, want 1s", d)
		}
		time.AfterFunc(300*time.Millisecond, b)
		if d := took(); d != 300*time.Millisecond {
			t.Errorf("work that ends after 300ms: %v", d)
		}
		if d := took(); d != 0 {
			t.Errorf("idle again: %v", d)
		}

		// What a timer calls is work too.
		v.AfterFunc(time.Second, func() { time.Sleep(200 * time.Millisecond) })
		if d := took(); d != 0 {
			t.Errorf("until the timer: %v", d)
		}
		if d := took(); d != 200*time.Millisecond {
			t.Errorf("while the timer's function works: %v, want 200ms", d)
		}
	})
}

func TestWithTimeout(t *testing.T) {
	cause := errors.New("too slow")
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(begin())
		ctx, cancel := clock.WithTimeout(t.Context(), v, time.Second, cause)
		defer cancel()
		v.Advance(999 * time.Millisecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended too soon")
		}
		v.Advance(time.Millisecond)
		<-ctx.Done()
		if context.Cause(ctx) != cause {
			t.Errorf("cause %v", context.Cause(ctx))
		}

		ctx, cancel = clock.WithTimeout(t.Context(), v, time.Second, cause)
		cancel()
		v.Advance(time.Hour)
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Errorf("cancelled, but the cause is %v", context.Cause(ctx))
		}

		// The machine's own clock does the same, in real time.
		at := time.Now()
		ctx, cancel = clock.WithTimeout(t.Context(), clock.System, time.Second, cause)
		defer cancel()
		<-ctx.Done()
		if d := clock.System.Now().Sub(at); d != time.Second || context.Cause(ctx) != cause {
			t.Errorf("after %v: %v", d, context.Cause(ctx))
		}
		clock.System.Work()()
		if clock.System.AfterFunc(time.Hour, func() {})() == false {
			t.Error("stopping in time is called too late")
		}
	})
}

// A step changes the time of day; what was to be called after a while still is.
func TestVirtualStep(t *testing.T) {
	v := clock.NewVirtual(begin())
	called := make(chan string, 2)
	v.AfterFunc(time.Minute, func() { called <- "a minute" })
	v.Step(24 * time.Hour)
	v.AfterFunc(2*time.Minute, func() { called <- "two minutes" })
	v.Step(-time.Hour)
	v.Advance(time.Minute)
	if got := <-called; got != "a minute" || len(called) > 0 {
		t.Errorf("called %q, then %d more", got, len(called))
	}
	if now, elapsed := v.Now().Sub(begin()), v.Elapsed(); now != 23*time.Hour+time.Minute || elapsed != time.Minute {
		t.Errorf("the clock is at %v, and %v have passed", now, elapsed)
	}
	before := clock.System.Elapsed()
	if clock.System.Elapsed() < before {
		t.Error("the machine's clock goes back")
	}
}

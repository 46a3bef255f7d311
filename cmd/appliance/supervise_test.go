package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"bellbird/event"
)

// A notifySocket is systemd's end, as a service finds it.
type notifySocket int

func listenNotify(t *testing.T) notifySocket {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	path := filepath.Join(t.TempDir(), "notify")
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	return notifySocket(fd)
}

// told is what has come since the last call, one datagram each.
func (s notifySocket) told(t *testing.T) (all []string) {
	for b := make([]byte, 4096); ; {
		n, _, err := unix.Recvfrom(int(s), b, unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b[:n]))
	}
}

// expect compares what has come with what should have.
func (s notifySocket) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := s.told(t); !slices.Equal(got, want) {
		t.Errorf("%s: told %q, want %q", when, got, want)
	}
}

func TestSupervision(t *testing.T) {
	socket := listenNotify(t)
	t.Setenv("WATCHDOG_USEC", "10000000")
	t.Setenv("WATCHDOG_PID", "")
	synctest.Test(t, func(t *testing.T) {
		var flowing atomic.Bool
		bus := new(event.Bus)
		s := supervision{bus: bus, flowing: flowing.Load, words: `["okay_nabu"]`, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.part().Run(ctx) }()

		time.Sleep(5*time.Second + time.Millisecond)
		socket.expect(t, "before sound flows")
		flowing.Store(true)
		time.Sleep(time.Second)
		socket.expect(t, "when sound flows", "READY=1\nWATCHDOG=1\nSTATUS=waiting for [\"okay_nabu\"]")
		time.Sleep(2 * time.Second)
		socket.expect(t, "while it flows", "WATCHDOG=1", "WATCHDOG=1")

		bus.Publish(event.Heard{Text: "a secret"})
		bus.Publish(event.StateChanged{To: event.Listening})
		socket.expect(t, "at a turn", "STATUS=listening")
		bus.Publish(event.StateChanged{To: event.Idle})
		socket.expect(t, "after a turn", "STATUS=waiting for [\"okay_nabu\"]")
		bus.Publish(event.MicrophoneFault{Reason: "constant"})
		socket.expect(t, "at a fault", "STATUS=idle, the microphone is deaf (constant)")
		bus.Publish(event.MicrophoneWell{})
		socket.expect(t, "after it", "STATUS=waiting for [\"okay_nabu\"]")

		flowing.Store(false)
		time.Sleep(time.Second)
		socket.expect(t, "when no sound flows", "STATUS=idle, no sound flows")
		time.Sleep(time.Minute)
		socket.expect(t, "while none flows") // so that the watchdog bites
		flowing.Store(true)
		time.Sleep(time.Second)
		socket.expect(t, "when it flows again", "WATCHDOG=1\nSTATUS=waiting for [\"okay_nabu\"]")

		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		socket.expect(t, "in the end", "STOPPING=1\nSTATUS=stopping")
	})
}

// An appliance without sound is ready all the same, since it can still be asked what is wrong.
func TestReadyWithoutSound(t *testing.T) {
	socket := listenNotify(t)
	t.Setenv("WATCHDOG_USEC", "")
	synctest.Test(t, func(t *testing.T) {
		s := supervision{bus: new(event.Bus), flowing: func() bool { return false }, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.run(ctx) }()
		time.Sleep(readyAnyway - time.Millisecond)
		socket.expect(t, "before")
		time.Sleep(time.Millisecond)
		socket.expect(t, "after", "READY=1\nSTATUS=idle, no sound flows")
		stop()
		<-ended
	})
}

// A manager that is gone is one line in the log, and the appliance goes on.
func TestManagerGone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nowhere"))
	t.Setenv("WATCHDOG_USEC", "10000000")
	t.Setenv("WATCHDOG_PID", "")
	var log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		s := supervision{bus: new(event.Bus), flowing: func() bool { return true }, log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		if err := s.run(ctx); err != nil {
			t.Error(err)
		}
	})
	if n := strings.Count(log.String(), "systemd can't be told"); n != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", n, log.String())
	}
}

func TestNoSupervision(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	synctest.Test(t, func(t *testing.T) {
		looked := false
		s := supervision{bus: new(event.Bus), flowing: func() bool { looked = true; return true }}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := s.run(ctx); err != nil || looked {
			t.Errorf("error %v, looked at the sound: %v", err, looked)
		}
	})
}

func TestCondition(t *testing.T) {
	for _, test := range []struct {
		facts []event.Fact
		still bool
		want  string
	}{
		{nil, false, "waiting for it"},
		{[]event.Fact{event.StateChanged{To: event.Failed}}, false, "a turn failed"},
		{[]event.Fact{event.MuteChanged{Muted: true}}, false, "idle, the microphone is muted"},
		{[]event.Fact{event.MuteChanged{Muted: true}, event.MuteChanged{}}, false, "waiting for it"},
		{[]event.Fact{event.TimerChanged{ID: 1, What: event.TimerRinging}}, false, "ringing"},
		{[]event.Fact{event.TimerChanged{ID: 1, What: event.TimerRinging}, event.TimerChanged{ID: 2, What: event.TimerSet}}, false, "ringing"},
		{[]event.Fact{event.TimerChanged{ID: 1, What: event.TimerRinging}, event.TimerChanged{ID: 1, What: event.TimerSilenced}}, false, "waiting for it"},
		{[]event.Fact{event.StateChanged{To: event.Speaking}, event.MicrophoneFault{Reason: "no_frames"}}, true, "speaking, the microphone is deaf (no_frames), no sound flows"},
	} {
		c := condition{state: event.Idle, words: "it", still: test.still}
		for _, f := range test.facts {
			c.learn(f)
		}
		if got := c.String(); got != test.want {
			t.Errorf("%v: %q, want %q", test.facts, got, test.want)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	pin "periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"
	"periph.io/x/conn/v3/spi"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
	"bellbird/pipeline"
	"bellbird/store"
)

// What a press stops, in its order, and what else the actions do.
func TestReflexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bus event.Bus
		r := newReflexes(&bus, slog.New(slog.DiscardHandler))
		var done []string
		going := map[string]bool{}
		note := func(what string) func() { return func() { done = append(done, what) } }
		stop := func(what string) func() bool {
			return func() bool {
				if going[what] {
					going[what] = false
					done = append(done, what)
					return true
				}
				return false
			}
		}
		r.silence = stop("ringing")
		r.stopTurn, r.listen, r.reset = note("turn"), note("listen"), note("reset")
		r.private = func() error { note("private")(); return nil }
		r.louder = func(by int) { note(map[bool]string{true: "louder", false: "softer"}[by > 0])() }
		r.mute, _ = gpio.NewMute(gpio.MuteOptions{Changed: func(e event.MuteChanged) { bus.Publish(e) }})

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.run(ctx) }()
		synctest.Wait()
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Join(done, " "); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
			done = nil
		}

		going["ringing"] = true
		bus.Publish(event.StateChanged{To: event.Speaking})
		for _, want := range []string{"ringing", "turn", "listen"} {
			r.do("", event.Press, gpio.Listen)
			expect("press", want)
			if want == "turn" {
				bus.Publish(event.StateChanged{To: event.Idle})
			}
		}
		r.do("", event.Press, gpio.Stop)
		expect("stop with nothing to stop", "")
		asked := true
		r.confirm = func() bool {
			is := asked
			if asked = false; is {
				done = append(done, "yes")
			}
			return is
		}
		r.do("", event.Double, gpio.Listen)
		expect("double press while something is asked", "yes")
		r.do("", event.Double, gpio.Listen)
		expect("double press", "listen")
		r.do("", event.Double, gpio.None)
		expect("double press for nothing", "")
		for a, want := range map[gpio.Action]string{
			gpio.TogglePrivate: "private", gpio.VolumeUp: "louder", gpio.VolumeDown: "softer", gpio.Reset: "reset", gpio.None: "",
		} {
			r.do("", event.Press, a)
			expect(string(a), want)
		}
		bus.Publish(event.DialTurned{Steps: 2})
		expect("dial", "louder")

		bus.Publish(event.StateChanged{To: event.Listening})
		synctest.Wait()
		r.do("", event.Press, gpio.ToggleMute)
		expect("muted while it listens", "turn")
		bus.Publish(event.StateChanged{To: event.Idle})
		r.do("", event.Press, gpio.Listen)
		expect("press while it is muted", "")
		r.do("", event.Press, gpio.ToggleMute)
		r.do("", event.Press, gpio.Listen)
		expect("unmuted and pressed", "listen")

		facts := bus.Subscribe(10)
		r.private = func() error { return pipeline.ErrLocked }
		r.do("", event.Press, gpio.TogglePrivate)
		synctest.Wait()
		if f, ok := (<-facts.C).(event.TurnEnded); !ok || f.Record.Error != event.ChatLocked {
			t.Errorf("told %v", f)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPrivateToggle(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	toggle, private := privateToggle(s), isPrivate(s)
	active := func() string {
		c, err := s.Active()
		if err != nil {
			t.Fatal(err)
		}
		return c.Name()
	}
	if err := s.Create("kitchen"); err != nil {
		t.Fatal(err)
	}
	if err := s.Activate("kitchen"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{privateChat, "kitchen", privateChat} {
		if err := toggle(); err != nil {
			t.Fatal(err)
		}
		if active() != want || private() != (want == privateChat) {
			t.Errorf("the active chat is %q, private %v", active(), private())
		}
	}

	if err := s.SetUp("open sesame"); err != nil {
		t.Fatal(err)
	}
	s.Lock()
	if !private() {
		t.Error("a chat that can't be looked at is not taken for private")
	}
	if err := toggle(); !errors.Is(err, pipeline.ErrLocked) {
		t.Errorf("with the vault locked: error %v", err)
	}
}

func TestMutedFramesAreNotAdmitted(t *testing.T) {
	mute, err := gpio.NewMute(gpio.MuteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := admission{muted: mute.Muted}
	var loud audio.Frame
	for i := range loud {
		loud[i] = 20000 * int16(i%2*2-1)
	}
	if !a.admit(&loud) || a.heard() != 1 {
		t.Errorf("a loud frame is heard as %v", a.heard())
	}
	if !a.admit(&audio.Frame{}) || a.heard() != 0 {
		t.Errorf("silence is heard as %v", a.heard())
	}
	a.admit(&loud)
	mute.Set(true)
	if a.admit(&loud) || a.heard() != 0 {
		t.Error("a muted frame is heard")
	}
	mute.Set(false)
	if n := testing.AllocsPerRun(100, func() { a.admit(&loud) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFlagsAreKept(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := record{s.Bucket("body"), "muted"}
	for _, want := range []bool{false, true, false} {
		if want {
			if err := k.saveFlag(true); err != nil {
				t.Fatal(err)
			}
		} else if err := k.saveFlag(false); err != nil {
			t.Fatal(err)
		}
		if got, err := k.loadFlag(); got != want || err != nil {
			t.Errorf("kept %v, error %v", got, err)
		}
	}
	if got, err := (record{s.Bucket("body"), "other"}).loadFlag(); got || err != nil {
		t.Errorf("what was never kept is %v, error %v", got, err)
	}
}

func TestLiveScreen(t *testing.T) {
	var b bytes.Buffer
	l := &liveScreen{w: &b}
	l.show([]led.Color{{R: 1}})
	l.Write([]byte("one\ntw"))
	l.Write([]byte("o\n"))
	l.close()
	ringLine := "          " + ring.Terminal([]led.Color{{R: 1}}, true) + "  "
	want := "\r\x1b[K" + ringLine + "\r\x1b[Kone\n" + ringLine + "\r\x1b[Ktwo\n" + ringLine + "\r\x1b[K"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestRingCommand(t *testing.T) {
	execute := func(args ...string) (string, error) {
		var b bytes.Buffer
		cmd := ringCommand()
		cmd.SetArgs(args)
		cmd.SetOut(&b)
		cmd.SetErr(&b)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		return b.String(), err
	}
	list, err := execute()
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, name := range []string{"muted", "reset armed", "timer ringing", "listening", "borrowed", "idle"} {
		at := strings.Index(list, name)
		if at <= last {
			t.Errorf("%s is not in its place in:\n%s", name, list)
		}
		last = at
	}
	path := filepath.Join(t.TempDir(), "ring.png")
	if _, err := execute("--png", path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	var usage *usageError
	if _, err := execute("--leds", "0"); !errors.As(err, &usage) {
		t.Errorf("no LEDs: error %v", err)
	}
	if _, err := execute("--png", filepath.Join(t.TempDir(), "no", "ring.png")); err == nil {
		t.Error("written to a directory that isn't there")
	}
}

// onePin is a host that has whatever pin it is asked for, and no SPI.
type onePin struct{}

func (onePin) Pin(name string) (pin.PinIO, error) {
	return &gpiotest.Pin{N: name, EdgesChan: make(chan pin.Level)}, nil
}

func (onePin) SPI(string) (spi.PortCloser, error) { return nil, errors.New("there is none") }

func TestReportBody(t *testing.T) {
	var report []string
	line := func(what, _ string, err error) {
		if err != nil {
			what = "missing " + what
		}
		report = append(report, what)
	}
	skip := func(what, _ string) { report = append(report, "skipped "+what) }
	if err := reportBody(gpio.Options{}, line, skip); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(report, ", "), "skipped mute switch, skipped ring, skipped buttons, skipped dial"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	report = nil
	if err := reportBody(gpio.Options{Host: onePin{}, Switch: gpio.Switch{Pin: "GPIO5"}}, line, skip); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(report, ", "), "mute switch, skipped ring, skipped buttons, skipped dial"; got != want {
		t.Errorf("with a switch: got %s, want %s", got, want)
	}
	if err := reportBody(gpio.Options{Board: "toaster"}, line, skip); err == nil {
		t.Error("a toaster is a body")
	}
}

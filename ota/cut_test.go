package ota_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"bellbird/ota"
)

// A powerCut is what a step panics with.
type powerCut struct{}

// A supply cuts the power at certain steps.
type supply struct {
	step int
	cuts []int // steps since the one before
}

func (s *supply) tick() {
	s.step++
	if len(s.cuts) > 0 && s.step == s.cuts[0] {
		s.step, s.cuts = 0, s.cuts[1:]
		panic(powerCut{})
	}
}

// powered does something that a power cut may end, and tells whether one did.
func powered(f func()) (cut bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, cut = r.(powerCut); !cut {
				panic(r)
			}
		}
	}()
	f()
	return false
}

// live lets a device live on until its update is over, and returns the last of its programs.
func live(w *world, s *supply, healthy bool) *ota.Updater {
	w.machine.Step = s.tick
	for range 20 {
		var u *ota.Updater
		cut := powered(func() {
			u = w.start()
			u.OnSaved(s.tick)
			w.fault("microphone", nil)
			if !healthy && w.machine.Running() == "1.1.0" {
				w.fault("microphone", errors.New("no frames"))
			}
			w.settle(u)
			if st := u.Status(); !st.InProgress() && st.Last == nil {
				if err := u.Install(w.t.Context(), ota.Request{Asked: true}); err != nil {
					w.t.Errorf("install: %v", err)
				}
			}
			for before := w.restarts; u.Status().InProgress() && w.restarts == before; {
				u.Step(w.t.Context())
			}
		})
		if !cut && !u.Status().InProgress() && u.Status().Last != nil {
			powered(func() { u.Step(w.t.Context()) }) // which reports
			return u
		}
		w.machine.Boot()
	}
	w.t.Fatal("the update has no end")
	return nil
}

// Whenever the power is cut, the device comes up with a version that works, the update comes to its end, and what became of
// it is told.
func TestPowerCuts(t *testing.T) {
	for _, healthy := range []bool{true, false} {
		t.Run(fmt.Sprintf("healthy=%v", healthy), func(t *testing.T) {
			try := func(cuts ...int) (steps int) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					s := &supply{cuts: cuts}
					w.server.body = func(rest []byte) io.ReadCloser { return &parts{rest: rest} }
					w.server.read = s.tick
					u := live(w, s, healthy)
					steps = s.step
					if healthy {
						w.is(u, "1.1.0", ota.Committed, "")
					} else {
						w.is(u, "1.0.0", ota.RolledBack, ota.Unhealthy)
					}
					s.cuts = nil
					u = w.boot()
					u.Step(t.Context())
					if n := len(w.reports); n != 1 {
						t.Errorf("cut at %v: told %d times", cuts, n)
					}
					if t.Failed() {
						t.Fatalf("cut at %v", cuts)
					}
				})
				return steps
			}
			steps := try()
			if steps < 20 {
				t.Fatalf("%d steps", steps)
			}
			for n := 1; n <= steps; n++ {
				try(n)
				if n%3 == 0 {
					try(n, 2) // and again soon after
				}
			}
			t.Logf("the power was cut at each of %d steps", steps)
		})
	}
}

// parts are the pieces in which a bundle comes.
type parts struct{ rest []byte }

func (p *parts) Read(q []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(q, p.rest[:min(len(p.rest), 64<<10)])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *parts) Close() error { return nil }

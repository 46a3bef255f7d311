package gpio_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"bellbird/event"
	body "bellbird/gpio"
)

// kept is what a Mute keeps.
type kept struct {
	muted bool
	err   error
	told  []event.MuteChanged
}

func (k *kept) options() body.MuteOptions {
	return body.MuteOptions{
		Load:    func() (bool, error) { return k.muted, k.err },
		Save:    func(m bool) error { k.muted = m; return k.err },
		Changed: func(e event.MuteChanged) { e.At = time.Time{}; k.told = append(k.told, e) },
	}
}

func mute(t *testing.T, k *kept) *body.Mute {
	t.Helper()
	m, err := body.NewMute(k.options())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMuteSurvivesRestart(t *testing.T) {
	var k kept
	m := mute(t, &k)
	if m.Muted() {
		t.Fatal("it is muted at first")
	}
	if err := m.Set(true); err != nil || !m.Muted() || !k.muted {
		t.Fatalf("muted: %v, kept %v, error %v", m.Muted(), k.muted, err)
	}
	m = mute(t, &k)
	if !m.Muted() {
		t.Error("it is not muted after a restart")
	}
	if err := m.Toggle(); err != nil || m.Muted() || k.muted {
		t.Errorf("toggled: %v, kept %v, error %v", m.Muted(), k.muted, err)
	}
	if want := []event.MuteChanged{{Muted: true}, {}}; len(k.told) != 2 || k.told[0] != want[0] || k.told[1] != want[1] {
		t.Errorf("told %v", k.told)
	}
}

func TestMuteWithBrokenStorage(t *testing.T) {
	broken := errors.New("disk on fire")
	k := kept{err: broken}
	m, err := body.NewMute(k.options())
	if !errors.Is(err, broken) || !m.Muted() {
		t.Errorf("error %v, muted %v", err, m.Muted())
	}
	if err := m.Set(false); !errors.Is(err, broken) || m.Muted() {
		t.Errorf("unmuted: error %v, muted %v", err, m.Muted())
	}
	if err := m.Set(true); !errors.Is(err, broken) || !m.Muted() {
		t.Errorf("muted again: error %v, muted %v", err, m.Muted())
	}
}

// withSwitch is a body with a slide switch on pin M, that is at l when the body starts.
func withSwitch(m *body.Mute, l gpio.Level) func(*subject) body.Options {
	return func(s *subject) body.Options {
		p := &strictPin{input("M"), s.t}
		s.bench.pins["M"] = p
		if l == gpio.Low {
			s.bench.pins["M"] = &lowPin{p}
		}
		return body.Options{Switch: body.Switch{Pin: "M"}, Mute: m}
	}
}

func (s *subject) slide(l gpio.Level) {
	switch p := s.bench.pins["M"].(type) {
	case *strictPin:
		p.EdgesChan <- l
	case *lowPin:
		p.EdgesChan <- l
	}
	time.Sleep(200 * ms)
	synctest.Wait()
}

func TestSwitchIsReadAtStart(t *testing.T) {
	var k kept
	m := mute(t, &k)
	try(t, body.Options{}, withSwitch(m, gpio.Low), func(s *subject) {
		if !m.Muted() || !m.BySwitch() {
			t.Error("it is not muted, although the switch says so")
		}
		for _, unmute := range []func() error{func() error { return m.Set(false) }, m.Toggle} {
			if err := unmute(); !errors.Is(err, body.ErrSwitch) || !m.Muted() {
				t.Errorf("unmuted: error %v, muted %v", err, m.Muted())
			}
		}
		s.slide(gpio.High)
		if m.Muted() {
			t.Error("the switch doesn't unmute")
		}
	})
}

func TestSlidingBackEndsAllMute(t *testing.T) {
	k := kept{muted: true}
	m := mute(t, &k)
	try(t, body.Options{}, withSwitch(m, gpio.High), func(s *subject) {
		if !m.Muted() {
			t.Error("that the switch doesn't say mute has unmuted it")
		}
		s.slide(gpio.Low)
		if !m.Muted() || !m.BySwitch() || !k.muted {
			t.Error("it is not muted")
		}
		s.slide(gpio.High)
		if m.Muted() || k.muted {
			t.Error("it is still muted")
		}
	})
}

// Whatever software asks for, and in whatever order, the microphone is muted while the switch says so.
func TestNothingUnmutesAgainstTheSwitch(t *testing.T) {
	var k kept
	m := mute(t, &k)
	rnd := rand.New(rand.NewPCG(7, 8))
	try(t, body.Options{}, withSwitch(m, gpio.High), func(s *subject) {
		said := false
		for range 2000 {
			switch rnd.IntN(6) {
			case 0:
				said = !said
				s.slide(gpio.Level(!said))
			case 1, 2:
				_ = m.Set(false)
			case 3, 4:
				_ = m.Toggle()
			default:
				_ = m.Set(true)
			}
			if said && !m.Muted() {
				t.Fatal("it was unmuted against the switch")
			}
		}
	})
}

func TestSwitchThatCannotBeRead(t *testing.T) {
	var k kept
	m := mute(t, &k)
	try(t, body.Options{}, func(*subject) body.Options { return body.Options{Switch: body.Switch{Pin: "M"}, Mute: m} }, func(s *subject) {
		if !m.Muted() {
			t.Error("it is not muted")
		}
		if r := s.Report()[0]; r.State != body.Failed || r.Part != "mute switch" {
			t.Errorf("reported %v", r)
		}
	})

	m = mute(t, &k)
	try(t, body.Options{}, func(s *subject) body.Options {
		s.bench.pins["M"] = &frailPin{strictPin: &strictPin{input("M"), s.t}}
		return body.Options{Switch: body.Switch{Pin: "M"}, Mute: m}
	}, func(s *subject) {
		p := s.bench.pins["M"].(*frailPin)
		if m.Muted() {
			t.Error("it is muted")
		}
		p.gone.Store(true)
		time.Sleep(time.Second)
		if !m.Muted() {
			t.Error("it is not muted when the switch has vanished")
		}
		p.gone.Store(false)
		time.Sleep(time.Minute)
		if m.Muted() {
			t.Error("it is muted when the switch is back, which doesn't say so")
		}
	})
}

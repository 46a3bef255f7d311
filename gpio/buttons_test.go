package gpio_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"bellbird/event"
	body "bellbird/gpio"
)

// oneButton is a body with a button on pin B.
func oneButton(b body.Button) func(*subject) body.Options {
	return func(s *subject) body.Options {
		s.bench.pins["B"] = &strictPin{input("B"), s.t}
		b.Pin = "B"
		return body.Options{Buttons: []body.Button{b}}
	}
}

// A tap is how long a button is down, and then up.
type tap struct{ down, up time.Duration }

const ms = time.Millisecond

func TestGestures(t *testing.T) {
	short, next := tap{120 * ms, 150 * ms}, time.Second
	tests := []struct {
		name   string
		button body.Button
		taps   []tap
		want   string // the gestures
		acts   string
	}{
		{"press", body.Button{}, []tap{{120 * ms, next}}, "press", "listen"},
		{"a long short press", body.Button{}, []tap{{950 * ms, next}}, "press", "listen"},
		{"double", body.Button{}, []tap{short, {120 * ms, next}}, "double", ""},
		{"triple", body.Button{}, []tap{short, short, {120 * ms, next}}, "triple", ""},
		{"four are a triple and one", body.Button{}, []tap{short, short, short, {120 * ms, next}}, "triple press", "listen"},
		{"two presses", body.Button{}, []tap{{120 * ms, 350 * ms}, {120 * ms, next}}, "press press", "listen listen"},
		{"long", body.Button{}, []tap{{1100 * ms, next}}, "long", "private"},
		{"long after a press", body.Button{}, []tap{short, {1100 * ms, next}}, "long", "private"},
		{"held", body.Button{}, []tap{{9900 * ms, next}}, "long", "private"},
		{"warned", body.Button{}, []tap{{10100 * ms, next}}, "reset_warned reset_abandoned", ""},
		{"reset", body.Button{}, []tap{{22100 * ms, next}}, "reset_warned reset_armed reset", "reset"},
		{"stuck", body.Button{}, []tap{{61 * time.Second, next}}, "reset_warned reset_armed reset_abandoned", ""},
		{"pressed after it was stuck", body.Button{}, []tap{{61 * time.Second, next}, {120 * ms, next}}, "reset_warned reset_armed reset_abandoned press", "listen"},
		{"no reset", body.Button{NoReset: true}, []tap{{30 * time.Second, next}}, "long", "private"},
		{"single", body.Button{Single: true}, []tap{short, {120 * ms, next}}, "press press", "listen listen"},
		{"spikes", body.Button{}, []tap{{2 * ms, next}, {20 * ms, next}}, "", ""},
		{"mapped", body.Button{Press: body.Stop, Double: body.VolumeUp, Triple: body.ToggleMute, Long: body.None},
			[]tap{{120 * ms, next}, short, {120 * ms, next}, short, short, {120 * ms, next}, {2000 * ms, next}},
			"press double triple long", "stop volume_up mute"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			try(t, body.Options{}, oneButton(test.button), func(s *subject) {
				for _, tap := range test.taps {
					s.move("B", gpio.Low)
					time.Sleep(tap.down)
					s.move("B", gpio.High)
					time.Sleep(tap.up)
				}
				var gestures, acts []string
				for _, f := range s.told() {
					if p, ok := f.(event.ButtonPressed); ok {
						gestures = append(gestures, string(p.Gesture))
					}
				}
				for _, a := range s.did() {
					acts = append(acts, string(a))
				}
				if got := strings.Join(gestures, " "); got != test.want {
					t.Errorf("gestures %q, want %q", got, test.want)
				}
				if got := strings.Join(acts, " "); got != test.acts {
					t.Errorf("actions %q, want %q", got, test.acts)
				}
			})
		})
	}
}

func moves(facts []event.Fact) (list []event.ButtonMoved) {
	for _, f := range facts {
		if m, ok := f.(event.ButtonMoved); ok {
			list = append(list, m)
		}
	}
	return list
}

func TestBouncesAreRemoved(t *testing.T) {
	for _, debounce := range []time.Duration{20 * ms, 40 * ms, 80 * ms} {
		try(t, body.Options{}, oneButton(body.Button{Debounce: debounce}), func(s *subject) {
			for i := range 20 {
				began := time.Now()
				l := gpio.Low
				if i%2 == 1 {
					l = gpio.High
				}
				for range 5 { // it bounces for 10 ms
					s.move("B", l)
					time.Sleep(ms)
					s.move("B", !l)
					time.Sleep(ms)
				}
				s.move("B", l)
				settled := time.Now()
				time.Sleep(debounce - ms)
				if early := moves(s.told()); len(early) != 0 {
					t.Fatalf("debounce %v: told %v before it settled", debounce, early)
				}
				time.Sleep(ms + time.Microsecond)
				got := moves(s.told())
				if len(got) != 1 || got[0].Down != (l == gpio.Low) || !got[0].At.Equal(began) {
					t.Fatalf("debounce %v: told %v; it began at %v and settled at %v", debounce, got, began, settled)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// A contact that opens again for long, 81 ms after it closed, is still one press; and so is one that closes again within
// 100 ms of the press.
func TestLateBounces(t *testing.T) {
	try(t, body.Options{}, oneButton(body.Button{Debounce: 20 * ms}), func(s *subject) {
		steps := []struct {
			l    gpio.Level
			wait time.Duration
		}{{gpio.Low, 81 * ms}, {gpio.High, 3 * ms}, {gpio.Low, 100 * ms}, {gpio.High, time.Second}, {gpio.Low, 30 * ms}, {gpio.High, 30 * ms}, {gpio.Low, 100 * ms}, {gpio.High, time.Second}}
		for _, step := range steps {
			s.move("B", step.l)
			time.Sleep(step.wait)
		}
		if got := s.did(); !slices.Equal(got, []body.Action{body.Listen, body.Listen}) {
			t.Errorf("two presses lead to %v", got)
		}
	})
}

// A button whose edge the driver missed is noticed all the same.
func TestMissedEdge(t *testing.T) {
	try(t, body.Options{}, oneButton(body.Button{}), func(s *subject) {
		p := s.bench.pins["B"].(*strictPin)
		p.Out(gpio.Low)
		time.Sleep(500 * ms)
		p.Out(gpio.High)
		time.Sleep(time.Second)
		if got := s.did(); !slices.Equal(got, []body.Action{body.Listen}) {
			t.Errorf("it leads to %v", got)
		}
	})
}

// A pin that is low from the start, and whose fake doesn't change that.
type lowPin struct{ *strictPin }

func (p *lowPin) In(pull gpio.Pull, edge gpio.Edge) error {
	err := p.strictPin.In(pull, edge)
	p.Out(gpio.Low)
	return err
}

func TestStuckFromTheStart(t *testing.T) {
	try(t, body.Options{}, func(s *subject) body.Options {
		s.bench.pins["B"] = &lowPin{&strictPin{input("B"), s.t}}
		return body.Options{Buttons: []body.Button{{Pin: "B"}}}
	}, func(s *subject) {
		time.Sleep(10 * time.Minute)
		if facts := s.told(); len(facts) != 0 {
			t.Errorf("told %v", facts)
		}
		p := s.bench.pins["B"].(*lowPin)
		for _, l := range []gpio.Level{gpio.High, gpio.Low, gpio.High} {
			p.EdgesChan <- l
			time.Sleep(500 * ms)
		}
		if got := s.did(); !slices.Equal(got, []body.Action{body.Listen}) {
			t.Errorf("when it works again it leads to %v", got)
		}
	})
}

func TestStuckIsTold(t *testing.T) {
	try(t, body.Options{}, oneButton(body.Button{Name: "top"}), func(s *subject) {
		s.move("B", gpio.Low)
		time.Sleep(time.Hour)
		var faults []event.BodyFault
		for _, f := range s.told() {
			if b, ok := f.(event.BodyFault); ok {
				faults = append(faults, b)
			}
		}
		if len(faults) != 1 || faults[0].Part != "top" || len(s.did()) != 0 {
			t.Errorf("told %v", faults)
		}
	})
}

// A pin that can be made to vanish: then waits end at once, as they do in the driver, and reads say low.
type frailPin struct {
	*strictPin
	gone  atomic.Bool
	waits atomic.Int32
}

func (p *frailPin) WaitForEdge(d time.Duration) bool {
	p.waits.Add(1)
	if p.gone.Load() {
		return false
	}
	return p.strictPin.WaitForEdge(d)
}

func (p *frailPin) Read() gpio.Level {
	if p.gone.Load() {
		return gpio.Low
	}
	return p.strictPin.Read()
}

func TestLineThatVanishes(t *testing.T) {
	for _, held := range []bool{false, true} {
		try(t, body.Options{}, func(s *subject) body.Options {
			s.bench.pins["B"] = &frailPin{strictPin: &strictPin{input("B"), s.t}}
			return body.Options{Buttons: []body.Button{{Pin: "B"}}}
		}, func(s *subject) {
			p := s.bench.pins["B"].(*frailPin)
			if held {
				p.EdgesChan <- gpio.Low
			}
			time.Sleep(11 * time.Second)
			s.told()
			p.gone.Store(true)
			time.Sleep(time.Second)
			before := p.waits.Load()
			time.Sleep(time.Hour)
			if n := p.waits.Load() - before; n > 200 {
				t.Errorf("it was waited for %d times in an hour", n)
			}
			var story []string
			for _, f := range s.told() {
				switch f := f.(type) {
				case event.BodyFault:
					story = append(story, "fault of "+f.Part)
				case event.BodyWell:
					story = append(story, "well "+f.Part)
				case event.ButtonPressed:
					story = append(story, string(f.Gesture))
				case event.ButtonMoved:
					story = append(story, map[bool]string{true: "down", false: "up"}[f.Down])
				}
			}
			want := "fault of button B"
			if held {
				want = "fault of button B, up, reset_abandoned" // a vanished button resets nothing
			}
			if got := strings.Join(story, ", "); got != want {
				t.Errorf("held %v: %s, want %s", held, got, want)
			}
			s.did()

			p.strictPin.Out(gpio.High)
			p.gone.Store(false)
			time.Sleep(time.Minute)
			p.EdgesChan <- gpio.Low
			time.Sleep(100 * ms)
			p.EdgesChan <- gpio.High
			time.Sleep(time.Second)
			if got := s.did(); !slices.Equal(got, []body.Action{body.Listen}) {
				t.Errorf("when it is back it leads to %v", got)
			}
		})
	}
}

// A line that never rests costs nothing after a while, and presses nothing.
type noisyPin struct{ *strictPin }

func (p *noisyPin) WaitForEdge(time.Duration) bool {
	time.Sleep(10 * time.Microsecond)
	return true
}

func TestLineThatNeverRests(t *testing.T) {
	try(t, body.Options{}, func(s *subject) body.Options {
		s.bench.pins["B"] = &noisyPin{&strictPin{input("B"), s.t}}
		return body.Options{Buttons: []body.Button{{Pin: "B"}}}
	}, func(s *subject) {
		time.Sleep(10 * time.Second)
		fault := false
		for _, f := range s.told() {
			if b, ok := f.(event.BodyFault); ok && strings.Contains(b.Reason, "never rests") {
				fault = true
			}
		}
		if !fault || len(s.did()) != 0 {
			t.Error("it is not told, or pressed something")
		}
	})
}

func TestDial(t *testing.T) {
	forward := [4][2]gpio.Level{{gpio.High, gpio.Low}, {gpio.Low, gpio.Low}, {gpio.Low, gpio.High}, {gpio.High, gpio.High}}
	for _, reverse := range []bool{false, true} {
		try(t, body.Options{}, func(s *subject) body.Options {
			s.bench.pins["A"], s.bench.pins["B"] = &strictPin{input("A"), s.t}, &strictPin{input("B"), s.t}
			return body.Options{Dial: body.Dial{A: "A", B: "B", Reverse: reverse}}
		}, func(s *subject) {
			at := [2]gpio.Level{gpio.High, gpio.High}
			set := func(to [2]gpio.Level) {
				for i, pin := range []string{"A", "B"} {
					if to[i] != at[i] {
						for range 3 { // it bounces
							s.move(pin, to[i])
							synctest.Wait()
							s.move(pin, !to[i])
							synctest.Wait()
						}
						s.move(pin, to[i])
						synctest.Wait()
					}
				}
				at = to
			}
			for range 5 {
				for _, phase := range forward {
					set(phase)
				}
			}
			for range 2 {
				for _, i := range []int{2, 1, 0, 3} {
					set(forward[i])
				}
			}
			set(forward[0]) // a quarter is none
			plus, minus := 0, 0
			for _, f := range s.told() {
				if d, ok := f.(event.DialTurned); ok {
					plus += max(d.Steps, 0)
					minus += min(d.Steps, 0)
				}
			}
			want := [2]int{5, -2}
			if reverse {
				want = [2]int{2, -5}
			}
			if got := [2]int{plus, minus}; got != want {
				t.Errorf("reverse %v: turned by %v, want %v", reverse, got, want)
			}
		})
	}
}

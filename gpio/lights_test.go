package gpio_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"periph.io/x/conn/v3/conntest"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpiotest"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spitest"

	"bellbird/event"
	body "bellbird/gpio"
	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

func wire(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What goes over the wire of each kind of LED: muted from the start, a volume, muted again, and dark at the end.
func TestRingOnTheWire(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("00", n) }
	tests := []struct {
		name   string
		o      led.Options
		frames []string
	}{
		{"apa102", led.Options{Chip: led.APA102, Count: 2, Brightness: 1, Gamma: 1}, []string{
			"00000000 ee0000fe ee0000fe 00000000 00",
			"00000000 ee0000fe f9f8f8f8 00000000 00",
			"00000000 ee0000fe ee0000fe 00000000 00",
			"00000000 e1000000 e1000000 00000000 00",
		}},
		{"ws2812", led.Options{Chip: led.WS2812, Count: 1, Brightness: 1, Gamma: 1, Bits: 3}, []string{
			// green, red, blue: 0, 115, 0
			zeros(90) + "924924 9b6936 924924" + zeros(90),
			zeros(90) + "924924 924924 924924" + zeros(90),
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var k kept
			k.muted = true
			m := mute(t, &k)
			var port spitest.Playback
			port.Playback.DontPanic = true
			for _, f := range test.frames {
				port.Ops = append(port.Ops, conntest.IO{W: wire(t, f)})
			}
			try(t, body.Options{}, func(s *subject) body.Options {
				s.bench.port = &port
				return body.Options{Ring: body.Ring{Options: test.o, SPI: "SPI0.0"}, Mute: m}
			}, func(s *subject) {
				s.bus.Publish(event.VolumeChanged{Percent: 100})
				time.Sleep(time.Minute)
			})
			if port.Count != len(test.frames) {
				t.Errorf("%d frames were sent, want %d", port.Count, len(test.frames))
			}
			if err := port.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A port that knows how it was asked to be.
type clockedPort struct {
	spitest.Record
	at     physic.Frequency
	closed bool
}

func (p *clockedPort) Connect(f physic.Frequency, m spi.Mode, bits int) (spi.Conn, error) {
	p.at = f
	return p.Record.Connect(f, m, bits)
}

func (p *clockedPort) Close() error { p.closed = true; return nil }

func (p *clockedPort) bytes() (n int) {
	p.Lock()
	defer p.Unlock()
	for _, op := range p.Ops {
		n += len(op.W)
	}
	return n
}

func TestPowerClockAndClose(t *testing.T) {
	port := new(clockedPort)
	power := &gpiotest.Pin{N: "GPIO5"}
	try(t, body.Options{}, func(s *subject) body.Options {
		s.bench.port, s.bench.pins["GPIO5"] = port, power
		return body.Options{Board: "respeaker-6mic-circular"}
	}, func(s *subject) {
		if power.Read() != gpio.High || port.at != 4*physic.MegaHertz {
			t.Errorf("power %v, clock %v", power.Read(), port.at)
		}
	})
	if power.Read() != gpio.Low || !port.closed {
		t.Errorf("at the end: power %v, closed %v", power.Read(), port.closed)
	}
}

// Idle is silence on the wire; animations take what is written in docs/ring.md.
func TestTraffic(t *testing.T) {
	for _, chip := range []led.Chip{led.APA102, led.WS2812} {
		port := new(clockedPort)
		try(t, body.Options{}, func(s *subject) body.Options {
			s.bench.port = port
			return body.Options{Ring: body.Ring{Options: led.Options{Chip: chip, Count: 12}, SPI: "SPI0.0"}}
		}, func(s *subject) {
			time.Sleep(time.Second)
			before := port.bytes()
			time.Sleep(time.Hour)
			if n := port.bytes() - before; n != 0 {
				t.Errorf("%s: %d bytes in an hour of idling", chip, n)
			}
			s.bus.Publish(event.StateChanged{To: event.Thinking})
			time.Sleep(10 * time.Second)
			n := (port.bytes() - before) / 10
			most := map[led.Chip]int{led.APA102: 50 * 58, led.WS2812: 50 * 390}[chip]
			if n == 0 || n > most {
				t.Errorf("%s: %d bytes a second while thinking", chip, n)
			}
			t.Logf("%s: 0 bytes a second while idle, %d while thinking", chip, n)
		})
	}
}

// A wire is two pins whose levels are read as a LED reads them: the data at each rising edge of the clock.
type wirePin struct {
	gpiotest.Pin
	data *wirePin // of the clock
	bits *[]byte
}

func (p *wirePin) Out(l gpio.Level) error {
	if p.data != nil && l && !p.Read() {
		*p.bits = append(*p.bits, map[gpio.Level]byte{gpio.Low: '0', gpio.High: '1'}[p.data.Read()])
	}
	return p.Pin.Out(l)
}

func TestVoiceBonnetNeedsNoSPI(t *testing.T) {
	var bits []byte
	data := &wirePin{Pin: gpiotest.Pin{N: "GPIO5"}}
	clock := &wirePin{Pin: gpiotest.Pin{N: "GPIO6"}, data: data, bits: &bits}
	k := kept{muted: true}
	m := mute(t, &k)
	try(t, body.Options{}, func(s *subject) body.Options {
		s.bench.pins["GPIO5"], s.bench.pins["GPIO6"], s.bench.pins["GPIO17"] = data, clock, input("GPIO17")
		return body.Options{Board: "voice-bonnet", Ring: body.Ring{Options: led.Options{Brightness: 1, Gamma: 1}}, Mute: m}
	}, func(s *subject) {
		time.Sleep(time.Second)
		want := new(strings.Builder)
		for _, v := range wire(t, "00 00000000 ee0000fe ee0000fe ee0000fe 00000000 00") {
			for bit := 7; bit >= 0; bit-- {
				want.WriteByte('0' + v>>bit&1)
			}
		}
		if string(bits) != want.String() {
			t.Errorf("on the wire: %s\nwant         %s", bits, want)
		}
	})
}

func TestPlainLEDs(t *testing.T) {
	k := kept{muted: true}
	pins := map[string]*gpiotest.Pin{"R": {N: "R"}, "G": {N: "G"}, "B": {N: "B"}}
	for _, low := range []bool{false, true} {
		m := mute(t, &k)
		try(t, body.Options{}, func(s *subject) body.Options {
			for name, p := range pins {
				s.bench.pins[name] = p
			}
			return body.Options{Ring: body.Ring{Pins: []string{"R", "G", "B"}, RGB: true, ActiveLow: low}, Mute: m}
		}, func(s *subject) {
			time.Sleep(time.Second)
			got := [3]bool{bool(pins["R"].Read()), bool(pins["G"].Read()), bool(pins["B"].Read())}
			if want := [3]bool{!low, low, low}; got != want {
				t.Errorf("active low %v: muted is %v", low, got)
			}
		})
		if pins["R"].Read() != gpio.Level(low) {
			t.Error("it is left lit")
		}
	}
}

func TestAbsentHardwareIsNoError(t *testing.T) {
	try(t, body.Options{}, nil, func(s *subject) {
		for _, r := range s.Report() {
			if r.State != body.Skipped || r.Remedy != "" {
				t.Errorf("reported %v", r)
			}
		}
		s.Ring().Show(ring.Thinking, ring.Args{}, 0) // nobody sees it
		if s.Ring().Showing().Rung != ring.Thinking {
			t.Errorf("shows %v", s.Ring().Showing())
		}
	})

	for _, test := range []struct {
		err    error
		remedy string
	}{
		{errors.New("sysfs-spi: open /dev/spidev0.0: permission denied"), "groups"},
		{errors.New("line_request ioctl: device or resource busy"), "another program"},
		{errors.New("something else"), "docs/hardware.md"},
	} {
		try(t, body.Options{}, func(s *subject) body.Options {
			s.bench.err = test.err
			return body.Options{Board: "respeaker-2mic"}
		}, func(s *subject) {
			failed := 0
			for _, r := range s.Report() {
				if r.State != body.Failed {
					continue
				}
				failed++
				if !strings.Contains(r.Remedy, test.remedy) || !strings.Contains(r.String(), test.err.Error()) {
					t.Errorf("reported %v", r)
				}
			}
			if failed != 2 { // the ring and the button
				t.Errorf("reported %v", s.Report())
			}
			s.bus.Publish(event.StateChanged{To: event.Listening})
			time.Sleep(time.Second)
		})
	}
}

// On a machine without pins everything is there to say so.
func TestThisMachine(t *testing.T) {
	b, err := body.Open(body.Options{Board: "respeaker-6mic-circular"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, r := range b.Report() {
		if r.State == body.Failed && r.Remedy == "" {
			t.Errorf("no remedy: %v", r)
		}
		t.Log(r)
	}
}

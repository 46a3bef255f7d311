package gpio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellbird/gpio/led"
)

// boards are the hats that are known by name, wired as their makers and the public pin maps say. See docs/hardware.md.
var boards = map[string]Options{
	"none": {},
	// All of it is in the configuration.
	"custom": {},
	"respeaker-2mic": {
		Ring:    Ring{Options: led.Options{Chip: led.APA102, Count: 3}, SPI: "SPI0.0"},
		Buttons: []Button{{Pin: "GPIO17"}},
	},
	"respeaker-4mic": {
		Ring: Ring{Options: led.Options{Chip: led.APA102, Count: 12}, SPI: "SPI0.0", Power: "GPIO5"},
	},
	// Its only LED is wired to its supply. The button is that of the accessory hat.
	"respeaker-4mic-linear": {
		Buttons: []Button{{Pin: "GPIO26"}},
	},
	"respeaker-6mic-circular": {
		Ring:    Ring{Options: led.Options{Chip: led.APA102, Count: 12}, SPI: "SPI0.0", Power: "GPIO5"},
		Buttons: []Button{{Pin: "GPIO26"}},
	},
	// Its LEDs are not on pins that can do SPI. Its slide switch stops the clock of the microphones; no pin tells.
	"voice-bonnet": {
		Ring:    Ring{Options: led.Options{Chip: led.APA102, Count: 3}, Data: "GPIO5", Clock: "GPIO6"},
		Buttons: []Button{{Pin: "GPIO17"}},
	},
}

// Boards are the names of the known boards.
func Boards() []string { return slices.Sorted(maps.Keys(boards)) }

// Resolve fills in what the board and the defaults say, and checks it all. It touches no hardware.
func (o Options) Resolve() (Options, error) {
	board, ok := boards[o.Board]
	if !ok && o.Board != "" {
		return o, fmt.Errorf("board %q: there are %s", o.Board, strings.Join(Boards(), ", "))
	}
	o.Ring = o.Ring.over(board.Ring)
	if err := o.Ring.check(); err != nil {
		return o, fmt.Errorf("ring: %w", err)
	}

	if len(o.Buttons) > maxButtons {
		return o, fmt.Errorf("%d buttons: there can be up to %d", len(o.Buttons), maxButtons)
	}
	buttons := slices.Clone(o.Buttons)
	for i, b := range board.Buttons {
		if i >= len(buttons) {
			buttons = append(buttons, b)
		} else if buttons[i].Pin == "" {
			buttons[i].Pin = b.Pin
		}
	}
	o.Buttons = buttons
	names := make(map[string]bool)
	for i := range o.Buttons {
		b := &o.Buttons[i]
		if err := b.fill(); err != nil {
			return o, fmt.Errorf("button %d: %w", i+1, err)
		}
		if names[b.Name] {
			return o, fmt.Errorf("button %d: there is another of the name %q", i+1, b.Name)
		}
		names[b.Name] = true
	}

	if err := o.Night.check(); err != nil {
		return o, err
	}
	if o.Switch.Pin != "" {
		if err := bounce(&o.Switch.Debounce); err != nil {
			return o, fmt.Errorf("mute_switch: %w", err)
		}
	}
	if o.Dial != (Dial{}) {
		d := dial{Dial: o.Dial}
		if err := d.check(); err != nil {
			return o, err
		}
		o.Dial = d.Dial
	}
	return o, o.pinsOnce()
}

// fill checks a button, and gives it its defaults.
func (b *Button) fill() error {
	if b.Pin == "" {
		return fmt.Errorf("it has no pin: set pin, such as \"GPIO17\"")
	}
	if b.Name == "" {
		b.Name = b.Pin
	}
	if err := bounce(&b.Debounce); err != nil {
		return err
	}
	for _, a := range []struct {
		action *Action
		usual  Action
	}{{&b.Press, Listen}, {&b.Double, None}, {&b.Triple, None}, {&b.Long, TogglePrivate}} {
		if *a.action == "" {
			*a.action = a.usual
		}
		if !slices.Contains(actions, *a.action) {
			return fmt.Errorf("action %q: there are %q", *a.action, actions)
		}
	}
	return nil
}

// over is r with what it doesn't say filled in from what the board says. Where the LEDs are is said as a whole.
func (r Ring) over(board Ring) Ring {
	if r.SPI == "" && r.Data == "" && r.Clock == "" && len(r.Pins) == 0 {
		r.SPI, r.Data, r.Clock, r.Pins, r.RGB = board.SPI, board.Data, board.Clock, board.Pins, r.RGB || board.RGB
		if r.Power == "" {
			r.Power = board.Power
		}
		if r.Count == 0 {
			r.Count = board.Count
		}
		if r.Chip == "" {
			r.Chip = board.Chip
		}
	}
	return r
}

// there tells whether there are LEDs.
func (r *Ring) there() bool {
	return !r.Off && (r.SPI != "" || r.Data != "" || r.Clock != "" || len(r.Pins) > 0)
}

func (r *Ring) check() error {
	if !r.there() {
		return nil
	}
	ways := 0
	for _, way := range []bool{r.SPI != "", r.Data != "" || r.Clock != "", len(r.Pins) > 0} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return fmt.Errorf("it can't be on spi, on data and clock, and on pins: choose one")
	case len(r.Pins) > 0:
		per := 1
		if r.RGB {
			per = 3
		}
		if len(r.Pins) > maxPins || len(r.Pins)%per != 0 {
			return fmt.Errorf("%d pins: there can be up to %d, three for each LED if rgb is set", len(r.Pins), maxPins)
		}
		r.Count = len(r.Pins) / per
		return nil
	case r.SPI == "" && (r.Data == "" || r.Clock == ""):
		return fmt.Errorf("it has a pin for data and one for the clock: set both")
	case r.SPI == "" && r.Chip == led.WS2812:
		return fmt.Errorf("chip ws2812: it needs the timing of spi")
	}
	_, err := led.New(r.Options)
	return err
}

// Bounds of what can be configured.
const (
	maxButtons = 16
	maxPins    = 24
)

// pinsOnce refuses a pin that is to do two things.
func (o *Options) pinsOnce() error {
	used := make(map[string]string)
	claim := func(pin, by string) error {
		if pin == "" {
			return nil
		}
		if other := used[pin]; other != "" {
			return fmt.Errorf("pin %s: it is for %s and for %s", pin, other, by)
		}
		used[pin] = by
		return nil
	}
	var pins [][2]string
	if o.Ring.there() {
		for _, p := range append([]string{o.Ring.Data, o.Ring.Clock, o.Ring.Power}, o.Ring.Pins...) {
			pins = append(pins, [2]string{p, "the ring"})
		}
	}
	for _, b := range o.Buttons {
		pins = append(pins, [2]string{b.Pin, "a button"})
	}
	pins = append(pins, [2]string{o.Switch.Pin, "the mute switch"}, [2]string{o.Dial.A, "the dial"}, [2]string{o.Dial.B, "the dial"})
	for _, p := range pins {
		if err := claim(p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

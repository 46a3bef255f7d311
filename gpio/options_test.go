package gpio_test

import (
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"periph.io/x/conn/v3/gpio"

	body "bellbird/gpio"
	"bellbird/gpio/led"
)

const example = `
board = "respeaker-6mic-circular"

[ring]
brightness = 0.3
max_current = 200
offset = 3
reverse = true

[[button]]
name = "top"
debounce = "60ms"
double = "volume_up"

[[button]]
pin = "GPIO12"
active_high = true
press = "mute"

[mute_switch]
pin = "GPIO22"

[dial]
a = "GPIO23"
b = "GPIO24"
`

func TestConfiguration(t *testing.T) {
	var o body.Options
	meta, err := toml.Decode(example, &o)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatalf("error %v, unknown %v", err, meta.Undecoded())
	}
	o, err = o.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	want := led.Options{Chip: led.APA102, Count: 12, Brightness: 0.3, MaxCurrent: 200, Offset: 3, Reverse: true}
	if o.Ring.Options != want || o.Ring.SPI != "SPI0.0" || o.Ring.Power != "GPIO5" {
		t.Errorf("the ring is %+v", o.Ring)
	}
	first := body.Button{Name: "top", Pin: "GPIO26", Debounce: 60 * ms, Press: body.Listen, Double: body.VolumeUp, Triple: body.None, Long: body.TogglePrivate}
	second := body.Button{Name: "GPIO12", Pin: "GPIO12", ActiveHigh: true, Debounce: 40 * ms, Press: body.ToggleMute, Double: body.None, Triple: body.None, Long: body.TogglePrivate}
	if len(o.Buttons) != 2 || o.Buttons[0] != first || o.Buttons[1] != second {
		t.Errorf("the buttons are %+v", o.Buttons)
	}
	if o.Switch.Debounce != 40*ms || o.Dial.Steps != 4 {
		t.Errorf("switch %+v, dial %+v", o.Switch, o.Dial)
	}
}

func TestBoards(t *testing.T) {
	for _, name := range body.Boards() {
		if _, err := (body.Options{Board: name}).Resolve(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	leds := led.Options{Count: 3}
	tests := map[string]body.Options{
		`board "respeaker"`:   {Board: "respeaker"},
		"ring: count 300":     {Ring: body.Ring{SPI: "SPI0.0", Options: led.Options{Count: 300}}},
		"choose one":          {Ring: body.Ring{SPI: "SPI0.0", Data: "X", Options: leds}},
		"set both":            {Ring: body.Ring{Data: "X", Options: leds}},
		"the timing of spi":   {Ring: body.Ring{Data: "X", Clock: "Y", Options: led.Options{Chip: led.WS2812, Count: 3}}},
		"2 pins":              {Ring: body.Ring{Pins: []string{"A", "B"}, RGB: true}},
		"button 1: it has no": {Buttons: []body.Button{{}}},
		"debounce 10ms":       {Buttons: []body.Button{{Pin: "B", Debounce: 10 * ms}}},
		"debounce 1s":         {Switch: body.Switch{Pin: "B", Debounce: time.Second}},
		`action "dance"`:      {Buttons: []body.Button{{Pin: "B", Press: "dance"}}},
		`action "reset"`:      {Buttons: []body.Button{{Pin: "B", Press: body.Reset}}},
		"of the name":         {Buttons: []body.Button{{Pin: "B"}, {Pin: "C", Name: "B"}}},
		"pin B":               {Buttons: []body.Button{{Pin: "B"}}, Switch: body.Switch{Pin: "B"}},
		"steps 3":             {Dial: body.Dial{A: "A", B: "B", Steps: 3}},
		"17 buttons":          {Buttons: make([]body.Button, 17)},
		`pins "A" and ""`:     {Dial: body.Dial{A: "A"}},
	}
	for want, o := range tests {
		if _, err := body.Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// Whatever is configured, it is refused, or opened and closed.
func FuzzOptions(f *testing.F) {
	f.Add(example)
	f.Add("board = \"voice-bonnet\"\n[ring]\ncount = 5\n")
	f.Add("[ring]\npins = [\"GPIO1\", \"GPIO2\"]\n")
	f.Add("[ring]\nspi = \"SPI0.0\"\nchip = \"ws2812\"\ncount = 256\nbits = 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		var o body.Options
		if _, err := toml.Decode(text, &o); err != nil {
			return
		}
		port := new(clockedPort)
		o.Host = &bench{pins: map[string]gpio.PinIO{"GPIO5": input("GPIO5"), "GPIO26": input("GPIO26")}, port: port}
		b, err := body.Open(o)
		if err != nil {
			return
		}
		b.Ring().Showing()
		b.Close()
	})
}

package ring_test

import (
	"bytes"
	"testing"

	"bellbird/gpio/led"
	"bellbird/gpio/ring"
)

func TestTerminal(t *testing.T) {
	leds := []led.Color{{R: 1, G: 2, B: 3}, {}}
	if got := ring.Terminal(leds, false); got != "●○" {
		t.Errorf("plain: %q", got)
	}
	if got := ring.Terminal(leds, true); got != "\x1b[38;2;1;2;3m●\x1b[90m○\x1b[0m" {
		t.Errorf("in colour: %q", got)
	}
}

func TestSheetOfNothing(t *testing.T) {
	for _, count := range []int{0, -1, led.MaxCount + 1} {
		if err := ring.Sheet(new(bytes.Buffer), count); err == nil {
			t.Errorf("a ring of %d LEDs has a picture", count)
		}
	}
}

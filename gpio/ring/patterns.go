package ring

import (
	"math"
	"time"

	"bellbird/gpio/led"
)

// The colours, as bright as they get.
var (
	white  = led.Color{R: 200, G: 200, B: 200}
	cyan   = led.Color{R: 0, G: 170, B: 255}
	green  = led.Color{R: 0, G: 230, B: 120}
	amber  = led.Color{R: 255, G: 140, B: 0}
	red    = led.Color{R: 255, G: 0, B: 0}
	orange = led.Color{R: 255, G: 70, B: 0}
	yellow = led.Color{R: 240, G: 200, B: 0}
	blue   = led.Color{R: 20, G: 60, B: 255}
	violet = led.Color{R: 170, G: 0, B: 255}
)

// How the mute shows: on all LEDs, or on every fourth.
var muteColor = red.Scale(0.45)

const muteStep = 4

// Night is how bright the ring is at night if nobody says otherwise. Mute keeps nightMute of its light at least, so that
// it is always seen.
const (
	Night     = 0.4
	nightMute = 0.7
)

// Draw draws a frame of the scene: one colour for each LED of the ring, clockwise from the top. It depends on nothing
// else, and allocates nothing.
func Draw(dst []led.Color, s Scene) {
	clear(dst)
	row := &ladder[s.Rung]
	if !s.Muted || row.withMute {
		row.draw(dst, s)
		if s.Night > 0 {
			for i, c := range dst {
				dst[i] = c.Scale(s.Night)
			}
		}
	}
	if s.Muted {
		drawMute(dst, s)
	}
}

// drawMute marks every fourth LED, or all of them if there is nothing else to show.
func drawMute(dst []led.Color, s Scene) {
	step := muteStep
	if !ladder[s.Rung].withMute {
		step = 1
	}
	c := muteColor
	if s.Night > 0 {
		c = c.Scale(max(nightMute, s.Night))
	}
	for i := 0; i < len(dst); i += step {
		dst[i] = c
	}
}

func fill(dst []led.Color, c led.Color) {
	for i := range dst {
		dst[i] = c
	}
}

// wave goes from 0 to 1 and back in a period.
func wave(t, period time.Duration) float64 {
	return 0.5 - 0.5*math.Cos(2*math.Pi*float64(t%period)/float64(period))
}

// on reports whether a light that blinks is lit: for the first half of each period.
func on(t, period time.Duration) bool { return t%period < period/2 }

// arc lights a part of the ring, clockwise from the top. Its last LED is as bright as it is covered.
func arc(dst []led.Color, c led.Color, fraction float64) {
	covered := min(max(fraction, 0), 1) * float64(len(dst))
	for i := range dst {
		if part := covered - float64(i); part > 0 {
			dst[i] = dst[i].Plus(c.Scale(part))
		}
	}
}

// comet is a light that goes round once in a period, with a tail of a third of the ring. at is where it begins.
func comet(dst []led.Color, c led.Color, t, period time.Duration, at float64) {
	head := math.Mod(float64(t%period)/float64(period)+at, 1)
	for i := range dst {
		behind := math.Mod(head-float64(i)/float64(len(dst))+1, 1)
		if len(dst) == 1 {
			behind = head / 3 // all it can do is fade
		}
		if x := 1 - 3*behind; x > 0 {
			dst[i] = dst[i].Plus(c.Scale(x * x))
		}
	}
}

// pair lights two LEDs on opposite sides, or the only one.
func pair(dst []led.Color, c led.Color, at int) {
	dst[at%len(dst)] = c
	dst[(at+len(dst)/2)%len(dst)] = c
}

// own is the colour of a turn: another one in a private chat.
func (s Scene) own(c led.Color) led.Color {
	if s.Private {
		return violet
	}
	return c
}

func drawIdle([]led.Color, Scene) {}

func drawResetArmed(dst []led.Color, s Scene) {
	if on(s.Elapsed, 200*time.Millisecond) {
		fill(dst, red)
	}
}

// drawResetWarning fills up until the reset is armed.
func drawResetWarning(dst []led.Color, s Scene) {
	fill(dst, white.Scale(0.15))
	arc(dst, red, float64(s.Elapsed)/float64(resetArming))
}

// resetArming is the time from the warning to the arming.
const resetArming = 12 * time.Second

func drawUpdating(dst []led.Color, s Scene) {
	arc(dst, blue.Scale(0.5), s.Args.Fraction)
	comet(dst, white.Scale(0.5), s.Elapsed, 3*time.Second, 0)
}

func drawIdentify(dst []led.Color, s Scene) {
	first, second := white, blue
	if !on(s.Elapsed, 500*time.Millisecond) {
		first, second = second, first
	}
	for i := range dst {
		if 2*i < len(dst) {
			dst[i] = first
		} else {
			dst[i] = second
		}
	}
}

func drawVolume(dst []led.Color, s Scene) {
	if s.Args.Silent {
		dst[0] = orange.Scale(0.4)
		return
	}
	arc(dst, white, s.Args.Fraction)
}

func drawRinging(dst []led.Color, s Scene) {
	fill(dst, amber.Scale(0.1+0.9*wave(s.Elapsed, 500*time.Millisecond)))
}

func drawTouched(dst []led.Color, _ Scene) { fill(dst, white.Scale(0.2)) }

// drawWaking closes the ring from the top, on both sides.
func drawWaking(dst []led.Color, s Scene) {
	c := s.own(cyan)
	reach := float64(s.Elapsed) / float64(250*time.Millisecond)
	for i := range dst {
		from := float64(min(i, len(dst)-i)) / float64(len(dst)) * 2
		if from <= reach {
			dst[i] = c.Scale(0.8)
		}
	}
}

func drawListening(dst []led.Color, s Scene) { fill(dst, s.own(cyan).Scale(0.3+0.7*s.Level)) }

func drawFollowUp(dst []led.Color, s Scene) {
	fill(dst, s.own(cyan).Scale(0.15+0.15*wave(s.Elapsed, 2*time.Second)+0.7*s.Level))
}

func drawThinking(dst []led.Color, s Scene) {
	comet(dst, s.own(cyan), s.Elapsed, 1200*time.Millisecond, 0)
	comet(dst, s.own(white), s.Elapsed, 1200*time.Millisecond, 0.5)
}

func drawSpeaking(dst []led.Color, s Scene) { fill(dst, s.own(green).Scale(0.2+0.8*s.Level)) }

// failures are how kinds of errors look: a colour, and how often it blinks.
func failure(kind string) (c led.Color, blinks int) {
	switch kind {
	case "recognizer":
		return yellow, 1
	case "model":
		return orange, 2
	case "voice":
		return amber, 3
	case "microphone":
		return red, 2
	case "locked", "no chat":
		return violet, 2
	}
	return orange, 1
}

// drawFailed blinks, and then shows half of the ring.
func drawFailed(dst []led.Color, s Scene) {
	c, blinks := failure(s.Args.Kind)
	const period = 400 * time.Millisecond
	switch blinking := time.Duration(blinks) * period; {
	case s.Elapsed >= blinking:
		for i := 0; i < len(dst); i += 2 {
			dst[i] = c.Scale(0.5)
		}
	case on(s.Elapsed, period):
		fill(dst, c)
	}
}

func drawBooting(dst []led.Color, s Scene) {
	comet(dst, white.Scale(0.5), s.Elapsed, 2*time.Second, 0)
}

// drawDeaf blinks for a while and then stands still: a fault that lasts for days must not cost anything.
func drawDeaf(dst []led.Color, s Scene) {
	if s.Elapsed >= 5*time.Second || on(s.Elapsed, time.Second) {
		pair(dst, red.Scale(0.5), len(dst)/4)
	}
}

func drawNoServer(dst []led.Color, s Scene) {
	x := 0.5
	if s.Elapsed < 3*time.Second {
		x = 0.5 + 0.5*wave(s.Elapsed, time.Second)
	}
	dst[len(dst)/2] = orange.Scale(x)
}

func drawPrivate(dst []led.Color, _ Scene) { pair(dst, violet.Scale(0.4), 0) }

// drawLight leaves the LEDs by which mute is told dark if the colour is red, so that nobody takes a lamp for the mute.
func drawLight(dst []led.Color, s Scene) {
	switch s.Args.Effect {
	case Breathe:
		fill(dst, s.Args.Color.Scale(0.1+0.9*wave(s.Elapsed, 4*time.Second)))
	case Spin:
		comet(dst, s.Args.Color, s.Elapsed, 2*time.Second, 0)
	default:
		fill(dst, s.Args.Color)
	}
	if c := s.Args.Color; int(c.R) > 3*int(max(c.G, c.B)) {
		for i := 0; i < len(dst); i += muteStep {
			dst[i] = led.Color{}
		}
	}
}

func drawTimer(dst []led.Color, s Scene) {
	if s.Args.Total > 0 {
		arc(dst, amber.Scale(0.35), float64(s.Args.Left-s.Elapsed)/float64(s.Args.Total))
	}
}

// Package led turns colours into the bytes that chains of LEDs understand: APA102 and SK9822, which have a clock line,
// and WS2812, whose timing is made of SPI bits. It knows brightness, gamma and current. It doesn't know what the
// colours mean, nor where the bytes go.
package led

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"periph.io/x/conn/v3/physic"
)

// A Color is what one LED should look like. Equal steps look equal: the gamma is applied by the Strip.
type Color struct{ R, G, B uint8 }

// Scale is c at a brightness of x, 0 to 1.
func (c Color) Scale(x float64) Color {
	x = min(max(x, 0), 1)
	return Color{uint8(float64(c.R)*x + 0.5), uint8(float64(c.G)*x + 0.5), uint8(float64(c.B)*x + 0.5)}
}

// Plus is both lights together.
func (c Color) Plus(d Color) Color {
	add := func(a, b uint8) uint8 { return uint8(min(int(a)+int(b), 255)) }
	return Color{add(c.R, d.R), add(c.G, d.G), add(c.B, d.B)}
}

// A Chip is a kind of LED.
type Chip string

// The chips. SK9822 is spoken to like an APA102.
const (
	APA102 Chip = "apa102"
	SK9822 Chip = "sk9822"
	WS2812 Chip = "ws2812"
)

// MaxCount keeps a frame of any chip within the 4096 bytes that the kernel sends in one go.
const MaxCount = 256

// A Milliamps is an electric current.
type Milliamps int

// What a LED takes: with all three colours fully on 60 mA besides its idle current. These are the figures of the data
// sheets; newer chips take less.
const (
	perChannel = 20.0
	perLED     = 1.0
)

// Options describe a chain of LEDs. Only Count has to be set.
type Options struct {
	Chip  Chip `toml:"chip"`  // default "apa102"
	Count int  `toml:"count"` // 1 to 256

	// Order is the order of the colours on the wire, such as "bgr"; default that of the chip.
	Order string `toml:"order"`
	// Offset is the number of the LED, from 0 in the order of the wire, that is at the top.
	Offset int `toml:"offset"`
	// Reverse is set if the chain goes round counterclockwise.
	Reverse bool `toml:"reverse"`

	// Brightness is that of a LED that is fully on, above 0 to 1; default 0.5, because these LEDs are very bright.
	Brightness float64 `toml:"brightness"`
	// Gamma relates colours to light: 1 is proportional; default 2.2.
	Gamma float64 `toml:"gamma"`
	// MaxCurrent is what all LEDs together may take, in milliamperes. Frames that would take more are dimmed. Default
	// 400; it must be above the 1 mA for each LED that they take when dark.
	MaxCurrent Milliamps `toml:"max_current"`

	// Bits is how many bits on SPI make one bit of a WS2812: 3 at 2.4 MHz, or 4 at 3.2 MHz; default 4, which suits
	// old and new versions of the chip.
	Bits int `toml:"bits"`
}

// DefaultMaxCurrent is what a hat may take from its host's supply without being asked.
const DefaultMaxCurrent Milliamps = 400

// reset is how long the line of WS2812s rests to end a frame. Old ones need 50 µs.
const reset = 300 * time.Microsecond

var orders = map[Chip]string{APA102: "bgr", SK9822: "bgr", WS2812: "grb"}

// A Strip encodes frames for one chain of LEDs. It is for use by one goroutine.
type Strip struct {
	o     Options
	level [256]uint16 // the light of a value: gamma and brightness limit, 0 to 65535
	order [3]int      // channels of Color, in the order of the wire
	lit   []uint16    // three for each LED, in the order of the chain, before the encoding
	buf   []byte
	bits  [256][]byte // of a WS2812: a byte as it looks on SPI
	head  int         // bytes before the first LED
}

// New prepares an encoder.
func New(o Options) (*Strip, error) {
	if o.Chip == "" {
		o.Chip = APA102
	}
	if o.Order == "" {
		o.Order = orders[o.Chip]
	}
	if o.Brightness == 0 {
		o.Brightness = 0.5
	}
	if o.Gamma == 0 {
		o.Gamma = 2.2
	}
	if o.MaxCurrent == 0 {
		o.MaxCurrent = DefaultMaxCurrent
	}
	if o.Bits == 0 {
		o.Bits = 4
	}
	s := &Strip{o: o}
	switch sorted := []byte(o.Order); {
	case orders[o.Chip] == "":
		return nil, fmt.Errorf("chip %q: only apa102, sk9822 and ws2812 are known", o.Chip)
	case o.Count < 1 || o.Count > MaxCount:
		return nil, fmt.Errorf("count %d: there can be 1 to %d LEDs", o.Count, MaxCount)
	case len(o.Order) != 3:
		return nil, fmt.Errorf("order %q: it names three colours, such as \"bgr\"", o.Order)
	case o.Offset < 0 || o.Offset >= o.Count:
		return nil, fmt.Errorf("offset %d: the LEDs are numbered from 0 to %d", o.Offset, o.Count-1)
	case !(o.Brightness > 0 && o.Brightness <= 1):
		return nil, fmt.Errorf("brightness %v: it goes from above 0 to 1", o.Brightness)
	case !(o.Gamma >= 1 && o.Gamma <= 4):
		return nil, fmt.Errorf("gamma %v: it goes from 1 to 4", o.Gamma)
	case o.Bits != 3 && o.Bits != 4:
		return nil, fmt.Errorf("bits %d: a WS2812's bit is 3 or 4 on SPI", o.Bits)
	case float64(o.MaxCurrent) <= perLED*float64(o.Count) || o.MaxCurrent > 100_000:
		return nil, fmt.Errorf("max_current %d: %d LEDs take %v mA when they are dark", o.MaxCurrent, o.Count, perLED*float64(o.Count))
	default:
		slices.Sort(sorted)
		if string(sorted) != "bgr" {
			return nil, fmt.Errorf("order %q: it names three colours, such as \"bgr\"", o.Order)
		}
	}
	for i, c := range o.Order {
		s.order[i] = map[rune]int{'r': 0, 'g': 1, 'b': 2}[c]
	}
	for v := range s.level {
		s.level[v] = uint16(math.Round(math.MaxUint16 * o.Brightness * math.Pow(float64(v)/255, o.Gamma)))
	}
	s.lit = make([]uint16, 3*o.Count)
	if o.Chip == WS2812 {
		s.layWS2812()
	} else {
		s.layAPA102()
	}
	return s, nil
}

// Count is the number of LEDs.
func (s *Strip) Count() int { return s.o.Count }

// Clock is the frequency at which the bytes have to be sent. For chips with a clock line it is a matter of taste.
func (s *Strip) Clock() physic.Frequency {
	switch {
	case s.o.Chip != WS2812:
		return 4 * physic.MegaHertz
	case s.o.Bits == 3:
		return 2400 * physic.KiloHertz
	}
	return 3200 * physic.KiloHertz
}

// ErrSize is the error of a frame that has not one colour for each LED.
var ErrSize = errors.New("a frame has one colour for each LED")

// Encode is the frame of colours as bytes for the wire, which are valid until the next call. The first colour is that
// of the LED at the top, and the others follow clockwise.
func (s *Strip) Encode(frame []Color) ([]byte, error) {
	if len(frame) != s.o.Count {
		return nil, ErrSize
	}
	var sum uint64
	for i, c := range frame {
		at := i
		if s.o.Reverse {
			at = -i
		}
		at = (at + s.o.Offset + s.o.Count) % s.o.Count
		rgb := [3]uint16{s.level[c.R], s.level[c.G], s.level[c.B]}
		for j, channel := range s.order {
			s.lit[3*at+j] = rgb[channel]
			sum += uint64(rgb[channel])
		}
	}
	s.limit(sum)
	if s.o.Chip == WS2812 {
		s.putWS2812()
	} else {
		s.putAPA102()
	}
	return s.buf, nil
}

// limit dims what would take too much current. All that follows rounds down.
func (s *Strip) limit(sum uint64) {
	most := (float64(s.o.MaxCurrent) - perLED*float64(s.o.Count)) / perChannel * math.MaxUint16
	if float64(sum) <= most {
		return
	}
	dim := most / float64(sum)
	for i, v := range s.lit {
		s.lit[i] = uint16(float64(v) * dim)
	}
}

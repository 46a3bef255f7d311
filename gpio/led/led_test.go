package led_test

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"periph.io/x/conn/v3/physic"

	"bellbird/gpio/led"
)

func strip(t testing.TB, o led.Options) *led.Strip {
	t.Helper()
	s, err := led.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encode(t testing.TB, s *led.Strip, frame ...led.Color) []byte {
	t.Helper()
	b, err := s.Encode(frame)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	red   = led.Color{R: 255}
	green = led.Color{G: 255}
	blue  = led.Color{B: 255}
	white = led.Color{R: 255, G: 255, B: 255}
)

func TestAPA102OnTheWire(t *testing.T) {
	plain := led.Options{Count: 3, Brightness: 1, Gamma: 1, MaxCurrent: 1000}
	tests := []struct {
		name  string
		o     func(*led.Options)
		frame []led.Color
		want  string
	}{
		{"colours", func(*led.Options) {}, []led.Color{red, green, blue}, "00000000 ff0000ff ff00ff00 ffff0000 00000000 00"},
		{"dark", func(*led.Options) {}, []led.Color{{}, {}, {}}, "00000000 e1000000 e1000000 e1000000 00000000 00"},
		{"order", func(o *led.Options) { o.Order = "rgb" }, []led.Color{red, green, blue}, "00000000 ffff0000 ff00ff00 ff0000ff 00000000 00"},
		{"offset", func(o *led.Options) { o.Offset = 1 }, []led.Color{red, {}, {}}, "00000000 e1000000 ff0000ff e1000000 00000000 00"},
		{"reverse", func(o *led.Options) { o.Reverse = true }, []led.Color{red, green, blue}, "00000000 ff0000ff ffff0000 ff00ff00 00000000 00"},
		// A thirtieth of the light: two of 31 steps, and nearly all of the 8 bits.
		{"dim", func(*led.Options) {}, []led.Color{{R: 15}, {}, {}}, "00000000 e20000e8 e1000000 e1000000 00000000 00"},
		{"brightness", func(o *led.Options) { o.Brightness = 0.5 }, []led.Color{white, {}, {}}, "00000000 f0f7f7f7 e1000000 e1000000 00000000 00"},
	}
	for _, test := range tests {
		o := plain
		test.o(&o)
		if got := hex.EncodeToString(encode(t, strip(t, o), test.frame...)); got != strings.ReplaceAll(test.want, " ", "") {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestAPA102EndFrame(t *testing.T) {
	for n := 1; n <= led.MaxCount; n++ {
		b := encode(t, strip(t, led.Options{Count: n, MaxCurrent: 1000}), make([]led.Color, n)...)
		end := b[4+4*n:]
		if 8*len(end) < 32+n/2 || len(b) > 4096 {
			t.Fatalf("%d LEDs: an end of %d bits in %d bytes", n, 8*len(end), len(b))
		}
		for _, v := range end {
			if v != 0 {
				t.Fatalf("%d LEDs: the end is %x", n, end)
			}
		}
	}
}

func TestWS2812OnTheWire(t *testing.T) {
	// Green 0x80, red 0xff, blue 0.
	c := led.Color{R: 255, G: 128}
	tests := []struct {
		bits  int
		clock physic.Frequency
		want  string
	}{
		{3, 2400 * physic.KiloHertz, "110100100100100100100100" + "110110110110110110110110" + "100100100100100100100100"},
		{4, 3200 * physic.KiloHertz, "11001000100010001000100010001000" + "11001100110011001100110011001100" + "10001000100010001000100010001000"},
	}
	for _, test := range tests {
		s := strip(t, led.Options{Chip: led.WS2812, Count: 1, Brightness: 1, Gamma: 1, Bits: test.bits})
		if s.Clock() != test.clock {
			t.Errorf("%d bits: at %v", test.bits, s.Clock())
		}
		b := encode(t, s, c)
		rest := (len(b) - len(test.want)/8) / 2
		var got strings.Builder
		for _, v := range b[rest : len(b)-rest] {
			for i := 7; i >= 0; i-- {
				got.WriteByte('0' + v>>i&1)
			}
		}
		if got.String() != test.want {
			t.Errorf("%d bits: got %s, want %s", test.bits, got.String(), test.want)
		}
		for i := range rest {
			if b[i] != 0 || b[len(b)-1-i] != 0 {
				t.Errorf("%d bits: the line doesn't rest", test.bits)
			}
		}
		if low := test.clock.Period() * time.Duration(8*rest); low < 280*time.Microsecond {
			t.Errorf("%d bits: it rests for %v", test.bits, low)
		}
	}
}

// decode reads what is on the wire, as the LEDs do: the light of each channel, 0 to 1.
func decode(o led.Options, b []byte) (light []float64) {
	if o.Chip != led.WS2812 {
		for i := range o.Count {
			p := b[4+4*i:]
			for j := range 3 {
				light = append(light, float64(p[0]&31)/31*float64(p[1+j])/255)
			}
		}
		return light
	}
	body := 3 * o.Count * o.Bits
	rest := (len(b) - body) / 2
	for i := range 3 * o.Count {
		var word uint32
		for _, v := range b[rest+i*o.Bits : rest+(i+1)*o.Bits] {
			word = word<<8 | uint32(v)
		}
		v := 0
		for bit := 7; bit >= 0; bit-- {
			v = v<<1 | int(word>>(bit*o.Bits+o.Bits-2)&1)
		}
		light = append(light, float64(v)/255)
	}
	return light
}

// Whatever is shown, the LEDs never take more than they may, as far as their data sheets go.
func TestCurrentIsNeverExceeded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	limited := 0
	for range 3000 {
		o := led.Options{Count: 1 + rnd.IntN(led.MaxCount), Brightness: 1 - 0.99*rnd.Float64(), Gamma: 1 + 3*rnd.Float64(), Bits: 3 + rnd.IntN(2)}
		o.Chip = []led.Chip{led.APA102, led.SK9822, led.WS2812}[rnd.IntN(3)]
		o.MaxCurrent = led.Milliamps(o.Count + 1 + rnd.IntN(2000))
		s := strip(t, o)
		frame := make([]led.Color, o.Count)
		for i := range frame {
			frame[i] = led.Color{R: uint8(rnd.UintN(256)), G: uint8(rnd.UintN(256)), B: uint8(rnd.UintN(256))}
			if rnd.IntN(2) == 0 {
				frame[i] = white
			}
		}
		light := decode(o, encode(t, s, frame...))
		draws := float64(o.Count)
		for _, v := range light {
			draws += 20 * v
		}
		if draws > float64(o.MaxCurrent)+1e-9 {
			t.Fatalf("%+v: draws %.1f mA", o, draws)
		}
		if draws > 0.9*float64(o.MaxCurrent) {
			limited++
		}
	}
	if limited < 300 {
		t.Errorf("the limit was met only %d times", limited)
	}
}

func TestOptionsRefused(t *testing.T) {
	tests := map[string]led.Options{
		"count 0":     {},
		"count 257":   {Count: 257},
		"chip":        {Count: 1, Chip: "lpd8806"},
		"order":       {Count: 1, Order: "rgg"},
		"offset":      {Count: 3, Offset: 3},
		"brightness":  {Count: 1, Brightness: 1.1},
		"gamma":       {Count: 1, Gamma: 0.5},
		"bits":        {Count: 1, Chip: led.WS2812, Bits: 5},
		"max_current": {Count: 12, MaxCurrent: 12},
	}
	for name, o := range tests {
		if _, err := led.New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	s := strip(t, led.Options{Count: 2})
	if _, err := s.Encode([]led.Color{red}); err != led.ErrSize {
		t.Errorf("a frame of another size: error %v", err)
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("apa102", 12, "bgr", 3, false, 0.5, 2.2, 400, 4)
	f.Add("ws2812", 256, "", 0, true, 1.0, 1.0, 257, 3)
	f.Fuzz(func(t *testing.T, chip string, count int, order string, offset int, reverse bool, brightness, gamma float64, most, bits int) {
		s, err := led.New(led.Options{
			Chip: led.Chip(chip), Count: count, Order: order, Offset: offset, Reverse: reverse,
			Brightness: brightness, Gamma: gamma, MaxCurrent: led.Milliamps(most), Bits: bits,
		})
		if err != nil {
			return
		}
		frame := make([]led.Color, s.Count())
		for i := range frame {
			frame[i] = white
		}
		if b := encode(t, s, frame...); len(b) == 0 || len(b) > 4096 {
			t.Errorf("%d bytes", len(b))
		}
	})
}

func TestEncodeAllocatesNothing(t *testing.T) {
	for _, chip := range []led.Chip{led.APA102, led.WS2812} {
		s := strip(t, led.Options{Chip: chip, Count: 12})
		frame := make([]led.Color, 12)
		if n := testing.AllocsPerRun(100, func() { s.Encode(frame) }); n != 0 {
			t.Errorf("%s: %v allocations", chip, n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, chip := range []led.Chip{led.APA102, led.WS2812} {
		b.Run(string(chip), func(b *testing.B) {
			s := strip(b, led.Options{Chip: chip, Count: 12})
			frame := make([]led.Color, 12)
			b.ReportAllocs()
			for b.Loop() {
				s.Encode(frame)
			}
		})
	}
}

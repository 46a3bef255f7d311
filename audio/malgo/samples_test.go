package malgo

import (
	"fmt"
	"math"
	"testing"

	"bellbird/audio"
)

var formats = []sampleFormat{unsigned8, signed16, signed24, signed32, float32s}

// shapes are what devices are like: each rate, each format, and each number of channels.
func shapes() (all []shape) {
	for i, rate := range []audio.Rate{8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000, 192000} {
		all = append(all, shape{formats[i%len(formats)], 1 + i%audio.MaxChannels, rate})
	}
	return append(all, shape{float32s, 8, 48000}, shape{signed16, 2, 44100}, shape{signed24, 1, 48000}, inner)
}

// What is written in a format can be read back, to the last bit that it has.
func TestFormatsThereAndBack(t *testing.T) {
	for _, f := range formats {
		b := make([]byte, 3*f.size())
		got := make([]int16, 3)
		for v := math.MinInt16; v <= math.MaxInt16; v += 17 {
			s := int16(v)
			f.write(b, 3, s)
			f.read(got, b, 1)
			want := s
			if f == unsigned8 {
				want &^= 0xff
			}
			if got[0] != want || got[1] != want || got[2] != want {
				t.Fatalf("%v: %d comes back as %d", f, s, got)
			}
		}
		f.silence(b)
		if f.read(got, b, 1); got[0] != 0 || got[2] != 0 {
			t.Errorf("%v: silence is %d", f, got)
		}
	}
}

// The gain comes before the samples are cut to 16 bits, and what becomes too loud is clipped.
func TestGainBeforeTruncation(t *testing.T) {
	var got [1]int16
	for _, row := range []struct {
		f    sampleFormat
		b    []byte
		gain float32
		want int16
	}{
		{signed24, []byte{0x40, 0, 0}, 1, 0},           // a quarter of a step
		{signed24, []byte{0x40, 0, 0}, 100, 25},        // is there with gain
		{signed32, []byte{0, 0x40, 0, 0}, 100, 25},     //
		{float32s, []byte{0, 0, 0, 0x37}, 100, 25},     // 2^-17
		{signed16, []byte{0, 0x40}, 4, 32767},          // clipped
		{signed16, []byte{0, 0xc0}, 4, -32768},         //
		{signed16, []byte{3, 0}, 0.5, 2},               // rounded
		{float32s, []byte{0, 0, 0xc0, 0x7f}, 1, 0},     // no number
		{float32s, []byte{0, 0, 0x80, 0x7f}, 1, 32767}, // endless
		{float32s, []byte{0, 0, 0x80, 0x3f}, 1, 32767}, // full scale
	} {
		if row.f.read(got[:], row.b, row.gain); got[0] != row.want {
			t.Errorf("%v of % x with a gain of %v is %d, want %d", row.f, row.b, row.gain, got[0], row.want)
		}
	}
}

// A tone goes out through a device of any shape and comes back in through one: with its level and nothing beside it.
// A tone that the inner rate can't carry doesn't come in at all.
func TestConversionAtTheEdge(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.String(), func(t *testing.T) {
			out := audio.NewOutput(0)
			p, c := mustPlayback(t, s, out), mustCapture(t, s, 1, new(audio.Average(s.channels)))
			stream := out.Open()
			hertz := 1000.0
			n := 0
			memory := make([]byte, int(s.rate)/100*s.channels*s.format.size())
			var heard []int16
			var g audio.Group
			for range 60 {
				for !stream.Full() {
					var f audio.Frame
					for i := range f {
						f[i] = int16(math.Round(16000 * math.Sin(2*math.Pi*hertz*float64(n)/16000)))
						n++
					}
					if err := stream.Write(t.Context(), f); err != nil {
						t.Fatal(err)
					}
				}
				p.give(memory)
				c.take(memory)
				for c.rings.pop(&g) {
					heard = append(heard, g.Frames[0][:]...)
				}
			}
			amplitude, rest := tone(heard[len(heard)/4:len(heard)-len(heard)%16], hertz)
			// What 16 bits, or 8, round away.
			limit := -75.0
			if s.format == unsigned8 {
				limit = -37
			}
			if off := 20 * math.Log10(amplitude/16000); math.Abs(off) > 0.1 || rest > limit {
				t.Errorf("1 kHz comes back %+.2f dB, all else at %.1f dB, want within 0.1 and below %.0f", off, rest, limit)
			}
			t.Logf("all else at %.1f dB", rest)
		})
	}
	for _, rate := range []audio.Rate{22050, 44100, 48000, 96000} {
		c := mustCapture(t, shape{float32s, 1, rate}, 1, mono())
		memory := make([]byte, 4*int(rate)/2)
		for i := range int(rate) / 2 {
			float32s.write(memory[4*i:], 1, int16(30000*math.Sin(2*math.Pi*9000*float64(i)/float64(rate))))
		}
		c.take(memory)
		var g audio.Group
		var heard []int16
		for c.rings.pop(&g) {
			heard = append(heard, g.Frames[0][:]...)
		}
		if l := audio.Measure(heard[1600:]).RMS; l > -80 {
			t.Errorf("%d Hz: a tone of 9 kHz is heard at %.1f dB", rate, l)
		}
	}
}

// tone is the amplitude of a frequency in s, and the level of all else relative to it, in dB.
func tone(s []int16, hertz float64) (amplitude, rest float64) {
	var sin, cos, power float64
	for i, v := range s {
		w := 2 * math.Pi * hertz * float64(i) / 16000
		sin += float64(v) * math.Sin(w)
		cos += float64(v) * math.Cos(w)
		power += float64(v) * float64(v)
	}
	n := float64(len(s))
	amplitude = 2 * math.Hypot(sin, cos) / n
	return amplitude, 10 * math.Log10(math.Max(power/n-amplitude*amplitude/2, 1e-9)/(amplitude*amplitude/2))
}

func TestOptionsCheck(t *testing.T) {
	for _, o := range []Options{
		{Backend: "oss"}, {Channels: -1}, {Channels: 33}, {Channel: "left"}, {Channel: "-1"}, {Gain: 61}, {Gain: math.NaN()},
	} {
		if o.Check() == nil {
			t.Errorf("%+v passes", o)
		}
	}
	for _, o := range []Options{{}, {Channel: "average"}, {Channel: "best"}, {Channel: "3", Channels: 4, Gain: 20}} {
		if err := o.Check(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (&Options{Channel: "2"}).mixdown(2); err == nil {
		t.Error("the third of two channels was found")
	}
}

func ExampleOptions_Check() {
	o := Options{Channel: "left"}
	fmt.Println(o.Check())
	// Output: sound: channel = "left": choose "average", "best", or the number of one, from 0
}

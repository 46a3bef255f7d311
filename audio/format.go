package audio

import (
	"fmt"
	"time"
)

// A Format says how a recording was stored before it was converted.
type Format struct {
	Container string // "WAV" or "FLAC"
	Rate      Rate
	Channels  int
	Bits      int  // of a sample
	Float     bool // samples are floating-point numbers

	// Length is how long the recording is, as found by reading it.
	Length time.Duration
}

// Inner reports whether samples of this format need no conversion.
func (f Format) Inner() bool {
	return f.Rate == SampleRate && f.Channels == 1 && f.Bits == 16 && !f.Float
}

// String describes the format for people, as in "44100 Hz, 2 channels, 24 bit".
func (f Format) String() string {
	channels := "mono"
	if f.Channels != 1 {
		channels = fmt.Sprintf("%d channels", f.Channels)
	}
	bits := fmt.Sprintf("%d bit", f.Bits)
	if f.Float {
		bits += " float"
	}
	return fmt.Sprintf("%d Hz, %s, %s", f.Rate, channels, bits)
}

// check refuses what nobody records and what would make the conversion expensive.
func (f Format) check() error {
	switch {
	case f.Channels < 1 || f.Channels > maxChannels:
		return fmt.Errorf("%d channels: 1 to %d can be read: %s", f.Channels, maxChannels, soxHint)
	case f.Rate < minRate || f.Rate > maxRate:
		return fmt.Errorf("a rate of %d Hz: %d to %d can be read: %s", f.Rate, minRate, maxRate, soxHint)
	}
	return nil
}

const (
	maxChannels      = 8
	minRate     Rate = 4000
	maxRate     Rate = 192000

	soxHint = "convert it with: sox IN -r 16000 -c 1 -b 16 OUT.wav"
)

// A converter turns interleaved samples of any format into the inner format, piece by piece.
type converter struct {
	mix  Mixdown
	mono []int16
	r    *Resampler
}

func newConverter(f Format) (*converter, error) {
	r, err := NewResampler(f.Rate, SampleRate)
	if err != nil {
		return nil, err
	}
	return &converter{mix: Average(f.Channels), r: r}, nil
}

// convert appends to dst what can be made of interleaved, which holds whole groups of one sample a channel.
func (c *converter) convert(dst, interleaved []int16) []int16 {
	if c.mix.channels == 1 {
		return c.r.Process(dst, interleaved)
	}
	c.mono = c.mix.Mono(c.mono[:0], interleaved)
	return c.r.Process(dst, c.mono)
}

// flush appends the rest.
func (c *converter) flush(dst []int16) []int16 { return c.r.Flush(dst) }

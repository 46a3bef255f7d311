package audio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mewkiz/flac"
)

// maxLength bounds what is read into memory: 115 MB an hour.
const maxLength = 4 * time.Hour

var errTooLong = fmt.Errorf("longer than %v: cut it with: sox IN OUT.wav trim 0 %d", maxLength, int(maxLength.Seconds()))

// ReadFile reads a recording, WAV or FLAC whatever its name, and converts it to the inner format: channels are averaged,
// the rate is changed. The format is what the file had. The error names the file, the cause, and what can be done.
func ReadFile(path string) ([]int16, Format, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Format{}, err // os says all three
	}
	defer f.Close()
	samples, format, err := Decode(f)
	if err != nil {
		return nil, format, fmt.Errorf("%s: %w", path, err)
	}
	return samples, format, nil
}

// Decode is ReadFile for a file that is open.
func Decode(r io.Reader) ([]int16, Format, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return nil, Format{}, err
	}
	switch string(magic) {
	case "RIFF":
		return decodeWAV(b)
	case "fLaC":
		return decodeFLAC(b)
	case "":
		return nil, Format{}, errors.New("the file is empty: record or copy it again")
	}
	return nil, Format{}, errors.New("neither WAV nor FLAC: " + soxHint)
}

func decodeWAV(r io.Reader) ([]int16, Format, error) {
	w, err := NewWAVReader(r)
	if err != nil {
		return nil, Format{}, err
	}
	c, err := newConverter(w.Format())
	if err != nil {
		return nil, w.Format(), err
	}
	var out []int16
	buf := make([]int16, 4096)
	for {
		n, err := w.Read(buf)
		out = c.convert(out, buf[:n])
		switch {
		case err == io.EOF:
			return c.flush(out), w.Format(), nil
		case err != nil:
			return nil, w.Format(), err
		case len(out) > samplesIn(maxLength):
			return nil, w.Format(), errTooLong
		}
	}
}

func decodeFLAC(r io.Reader) (out []int16, format Format, err error) {
	// The decoder is not ours, and files come from anywhere: what makes it panic is a broken file, no reason to die.
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("broken FLAC: %v: record or copy it again", p)
		}
	}()
	s, err := flac.New(r)
	if err != nil {
		return nil, Format{}, fmt.Errorf("broken FLAC: %w: record or copy it again", err)
	}
	format = Format{
		Container: "FLAC",
		Rate:      Rate(s.Info.SampleRate),
		Channels:  int(s.Info.NChannels),
		Bits:      int(s.Info.BitsPerSample),
	}
	if err := format.check(); err != nil {
		return nil, format, err
	}
	c, err := newConverter(format)
	if err != nil {
		return nil, format, err
	}
	var interleaved []int16
	var total int64
	for {
		frame, err := s.ParseNext()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, format, fmt.Errorf("broken FLAC after %.1f s: %w: record or copy it again",
				format.Length.Seconds(), err)
		}
		if len(frame.Subframes) != format.Channels {
			return nil, format, errors.New("broken FLAC: the number of channels changes: " + soxHint)
		}
		n := len(frame.Subframes[0].Samples)
		interleaved = interleaved[:0]
		for i := range n {
			for _, sub := range frame.Subframes {
				interleaved = append(interleaved, toInner(sub.Samples[i], format.Bits))
			}
		}
		out = c.convert(out, interleaved)
		total += int64(n)
		format.Length = time.Duration(float64(total) / float64(format.Rate) * float64(time.Second))
		if len(out) > samplesIn(maxLength) {
			return nil, format, errTooLong
		}
	}
	if promised := int64(s.Info.NSamples); promised > total {
		return nil, format, fmt.Errorf("truncated: the header promises %.1f s, the file has %.1f s: record or copy it again",
			float64(promised)/float64(format.Rate), format.Length.Seconds())
	}
	return c.flush(out), format, nil
}

// toInner converts a sample of the given number of bits to 16.
func toInner(v int32, bits int) int16 {
	switch {
	case bits > 16:
		return narrow(int64(v), uint(bits-16))
	default:
		return saturate(v << (16 - bits))
	}
}

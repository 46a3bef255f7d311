package tts

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"bellbird/audio"
)

// A Cutter makes frames of the sound of voices, whatever its rate. It keeps the filter of the last rate, which takes
// milliseconds to compute. The zero value is ready for use, by several goroutines.
type Cutter struct {
	mu    sync.Mutex
	rate  audio.Rate
	usual *audio.Resampler
}

// Cut begins the sound of a text. It is handed to to frame by frame.
func (c *Cutter) Cut(text string, to func(audio.Frame) error) *Sound {
	return &Sound{cutter: c, to: to, left: int64(mostSound(text) / audio.FrameDuration)}
}

// mostSound is far more than a voice can reasonably make of a text.
func mostSound(text string) time.Duration {
	return 10*time.Second + time.Duration(len(text))*time.Second
}

func (c *Cutter) resampler(rate audio.Rate) (*audio.Resampler, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usual == nil || c.rate != rate {
		r, err := audio.NewResampler(rate, audio.SampleRate)
		if err != nil {
			return nil, err
		}
		c.usual, c.rate = r, rate
	}
	return c.usual.Fork(), nil
}

// A Sound is what a voice makes of one text. It is for one goroutine.
type Sound struct {
	cutter *Cutter
	to     func(audio.Frame) error
	left   int64 // frames that may still come

	rate     audio.Rate
	channels int
	r        *audio.Resampler
	mix      audio.Mixdown
	odd      []byte // of a group of samples that isn't complete

	samples, mono, pcm []int16
	frame              audio.Frame
	n                  int
	begun              bool
}

const maxChannels = 8

// ErrEndless is a voice that makes far more sound than the text is long.
var ErrEndless = errors.New("it doesn't stop: far more sound than the text is long")

// Format says what the sound is like that comes next: signed 16 bit, its channels interleaved. It may change.
func (s *Sound) Format(rate audio.Rate, channels int) error {
	if s.r != nil && rate == s.rate && channels == s.channels {
		return nil
	}
	switch {
	case channels < 1 || channels > maxChannels:
		return fmt.Errorf("sound of %d channels: 1 to %d are possible", channels, maxChannels)
	case rate < 4000 || rate > 192000:
		return fmt.Errorf("sound at %d Hz: 4000 to 192000 are possible", rate)
	}
	if err := s.flush(); err != nil {
		return err
	}
	r, err := s.cutter.resampler(rate)
	if err != nil {
		return err
	}
	s.r, s.rate, s.channels, s.mix, s.odd = r, rate, channels, audio.Average(channels), s.odd[:0]
	return nil
}

// Write takes sound as bytes, little-endian, in the format that was set; it may be cut anywhere. It hands over the frames
// that are complete. The error is that of to, or ErrEndless.
func (s *Sound) Write(pcm []byte) error {
	if s.r == nil {
		return errors.New("sound without a format")
	}
	if len(s.odd) > 0 || len(pcm)%(2*s.channels) != 0 {
		s.odd = append(s.odd, pcm...)
		pcm = s.odd[:len(s.odd)-len(s.odd)%(2*s.channels)]
	}
	s.samples = s.samples[:0]
	for i := 0; i+1 < len(pcm); i += 2 {
		s.samples = append(s.samples, int16(uint16(pcm[i])|uint16(pcm[i+1])<<8))
	}
	if len(s.odd) > 0 {
		s.odd = s.odd[:copy(s.odd, s.odd[len(pcm):])]
	}
	return s.WriteSamples(s.samples)
}

// WriteSamples is Write for sound that is decoded already.
func (s *Sound) WriteSamples(interleaved []int16) error {
	if s.r == nil {
		return errors.New("sound without a format")
	}
	if s.channels > 1 {
		s.mono = s.mix.Mono(s.mono[:0], interleaved)
		interleaved = s.mono
	}
	s.pcm = s.r.Process(s.pcm[:0], interleaved)
	return s.add(s.pcm)
}

// Begun reports whether a frame was handed over.
func (s *Sound) Begun() bool { return s.begun }

// Close hands over the rest, filled up with silence to a whole frame.
func (s *Sound) Close() error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.n == 0 {
		return nil
	}
	clear(s.frame[s.n:])
	return s.hand()
}

func (s *Sound) flush() error {
	if s.r == nil {
		return nil
	}
	s.pcm = s.r.Flush(s.pcm[:0])
	return s.add(s.pcm)
}

func (s *Sound) add(pcm []int16) error {
	for len(pcm) > 0 {
		n := copy(s.frame[s.n:], pcm)
		pcm = pcm[n:]
		if s.n += n; s.n == audio.FrameSize {
			if err := s.hand(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sound) hand() error {
	if s.left--; s.left < 0 {
		return ErrEndless
	}
	s.n, s.begun = 0, true
	return s.to(s.frame)
}

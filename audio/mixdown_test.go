package audio_test

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mewkiz/flac"

	"bellbird/audio"
)

func TestMixdown(t *testing.T) {
	interleaved := []int16{1, 2, 6, -3, -6, -9, 32767, 32767, 32767, 5} // and a rest
	if got := audio.Average(3).Mono(nil, interleaved); !slices.Equal(got, []int16{3, -6, 32767}) {
		t.Errorf("average: %v", got)
	}
	m, err := audio.Pick(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Mono([]int16{7}, interleaved); !slices.Equal(got, []int16{7, 2, -6, 32767}) {
		t.Errorf("picked: %v", got)
	}
	for _, channel := range []int{-1, 3} {
		if _, err := audio.Pick(3, channel); err == nil {
			t.Errorf("channel %d of 3 can be picked", channel)
		}
	}
}

// In a real room, the average of four microphones has less noise than any of them, and the speech of one.
func TestMixdownOfArray(t *testing.T) {
	paths, _ := filepath.Glob("../../shared/data/speech/array/respeaker_usb4/*.flac")
	if len(paths) == 0 {
		t.Skip("no recordings of an array in ../../shared/data/speech")
	}
	for _, path := range paths {
		x := interleavedFLAC(t, path, 4)
		quietest := func(mono []int16) float64 { // of its tenths of a second
			q := 0.0
			for ; len(mono) >= 1600; mono = mono[1600:] {
				q = min(q, audio.Measure(mono[:1600]).RMS)
			}
			return q
		}
		mean := audio.Average(4).Mono(nil, x)
		loudest := audio.Silence
		for c := range 4 {
			m, err := audio.Pick(4, c)
			if err != nil {
				t.Fatal(err)
			}
			one := m.Mono(nil, x)
			loudest = max(loudest, audio.Measure(one).RMS)
			if quietest(mean) >= quietest(one) {
				t.Errorf("%s: noise %.1f dB in the average, %.1f dB in channel %d", filepath.Base(path), quietest(mean), quietest(one), c)
			}
		}
		if got := audio.Measure(mean).RMS; got < loudest-9 || got > loudest {
			t.Errorf("%s: the average has %.1f dB, the loudest channel %.1f dB", filepath.Base(path), got, loudest)
		}
	}
}

func interleavedFLAC(t *testing.T, path string, channels int) (x []int16) {
	t.Helper()
	s, err := flac.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		f, err := s.ParseNext()
		if errors.Is(err, io.EOF) {
			return x
		} else if err != nil {
			t.Fatal(err)
		}
		if len(f.Subframes) != channels {
			t.Fatalf("%s: %d channels", path, len(f.Subframes))
		}
		for i := range f.Subframes[0].Samples {
			for _, sub := range f.Subframes {
				x = append(x, int16(sub.Samples[i]))
			}
		}
	}
}

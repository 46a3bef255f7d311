package tts_test

import (
	"errors"
	"testing"

	"bellbird/audio"
	"bellbird/tts"
)

// However the bytes are cut, the samples come out whole.
func TestSoundInPieces(t *testing.T) {
	var want []int16
	var pcm []byte
	for i := range 1000 {
		want = append(want, int16(i*31))
		for range 2 { // stereo, the same twice
			pcm = append(pcm, byte(uint16(i*31)), byte(uint16(i*31)>>8))
		}
	}
	for _, size := range []int{1, 2, 3, 5, 7, 1000, 5000} {
		var cutter tts.Cutter
		var got []int16
		s := cutter.Cut("a", func(f audio.Frame) error { got = append(got, f[:]...); return nil })
		if err := s.Write(nil); err == nil {
			t.Error("sound without a format is taken")
		}
		if err := s.Format(audio.SampleRate, 2); err != nil {
			t.Fatal(err)
		}
		for rest := pcm; len(rest) > 0; {
			n := min(size, len(rest))
			if err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Close(); err != nil || !s.Begun() || len(got) != 4*audio.FrameSize {
			t.Fatalf("pieces of %d: %d samples, %v", size, len(got), err)
		}
		for i, g := range got {
			if i < len(want) && g != want[i] || i >= len(want) && g != 0 {
				t.Fatalf("pieces of %d: sample %d is %d", size, i, g)
			}
		}
	}
}

func TestSoundEnds(t *testing.T) {
	var cutter tts.Cutter
	n := 0
	s := cutter.Cut("hello", func(audio.Frame) error { n++; return nil })
	if err := s.Format(48000, 1); err != nil {
		t.Fatal(err)
	}
	second := make([]int16, 48000)
	for range 100 {
		if err := s.WriteSamples(second); errors.Is(err, tts.ErrEndless) {
			if n != 15*50 {
				t.Errorf("%d frames, want 15 s", n)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("it never ends")
}

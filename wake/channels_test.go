package wake

import (
	"testing"

	"bellbird/audio"
)

// Four microphones hear the word, each with another amount of hiss: the one with the least is chosen. Between words the
// choice stands.
func TestChooser(t *testing.T) {
	m := newDetector(t, "alexa").Model() // skips
	word := readFLAC(t, reference(t, "alexa_pymicro_1.flac"))
	for best := range 4 {
		c, err := NewChooser(m, 4)
		if err != nil {
			t.Fatal(err)
		}
		var channels [4][]audio.Frame
		for i := range channels {
			g := generator(i + 1)
			x := inRoom(word, 2*sampleRate, sampleRate)
			hiss := 6000
			if i == best {
				hiss = 100
			}
			for k, v := range g.hiss(len(x), hiss) {
				x[k] = int16(min(max(int(x[k])+int(v), -1<<15), 1<<15-1))
			}
			channels[i] = frames(x)
		}
		got := 0
		for k := range channels[0] {
			got = c.Write([]audio.Frame{channels[0][k], channels[1][k], channels[2][k], channels[3][k]})
			if k < audio.Frames(2e9) && got != 0 {
				t.Fatalf("channel %d is chosen before the word", got)
			}
		}
		if got != best {
			t.Errorf("channel %d is chosen, not %d", got, best)
		}
	}
	if _, err := NewChooser(m, 5); err == nil {
		t.Error("5 channels are accepted")
	}
}

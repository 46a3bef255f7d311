package malgo

import (
	"encoding/binary"
	"testing"

	"bellbird/audio"
)

func bytesOf(samples []int16) (b []byte) {
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// A microphone may deliver any number of samples at a time; the frames are the same, and the samples are copied.
func TestTake(t *testing.T) {
	samples := make([]int16, 10*audio.FrameSize+17)
	for i := range samples {
		samples[i] = int16(i - 1000)
	}
	for _, size := range []int{1, 7, 160, 320, 321, 1024, len(samples)} {
		c := newCapture()
		for at := 0; at < len(samples); at += size {
			memory := bytesOf(samples[at:min(at+size, len(samples))])
			c.take(memory)
			clear(memory) // it is the sound system's again
		}
		if n := len(c.frames); n != 10 || c.made.Load() != 10 || c.dropped.Load() != 0 {
			t.Fatalf("by %d: %d frames, want 10", size, n)
		}
		for i := range 10 {
			f := <-c.frames
			for j, s := range f {
				if want := samples[i*audio.FrameSize+j]; s != want {
					t.Fatalf("by %d: sample %d of frame %d is %d, want %d", size, j, i, s, want)
				}
			}
		}
	}
}

func TestTakeDropsTheNewest(t *testing.T) {
	c := newCapture()
	for i := range queueLength + 5 {
		f := make([]int16, audio.FrameSize)
		f[0] = int16(i)
		c.take(bytesOf(f))
	}
	if c.dropped.Load() != 5 || c.made.Load() != queueLength+5 {
		t.Errorf("%d dropped of %d, want 5", c.dropped.Load(), c.made.Load())
	}
	for i := range queueLength {
		if f := <-c.frames; f[0] != int16(i) {
			t.Fatalf("frame %d is number %d", i, f[0])
		}
	}
}

func TestGive(t *testing.T) {
	for _, size := range []int{1, 7, 160, 320, 321, 1024} {
		out := audio.NewOutput(0)
		s := out.Open()
		var want []int16
		for i := range 10 {
			var f audio.Frame
			for j := range f {
				f[j] = int16(i*1000 + j)
			}
			want = append(want, f[:]...)
			if err := s.Write(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		p := newPlayback(out)
		var got []int16
		memory := make([]byte, 2*size)
		for len(got) < len(want) {
			p.give(memory)
			for i := range size {
				got = append(got, int16(binary.LittleEndian.Uint16(memory[2*i:])))
			}
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("by %d: sample %d is %d, want %d", size, i, got[i], want[i])
			}
		}
		if n := p.pulled.Load(); n != uint64((len(got)+audio.FrameSize-1)/audio.FrameSize) {
			t.Errorf("by %d: %d frames pulled for %d samples", size, n, len(got))
		}
	}
}

// A card that hangs while it is closed must not take frames from the one that was opened after it.
func TestGiveOff(t *testing.T) {
	out := audio.NewOutput(0)
	p := newPlayback(out)
	p.off.Store(true)
	memory := []byte{1, 2, 3, 4}
	p.give(memory)
	if string(memory) != "\x00\x00\x00\x00" || out.Stats().Pulled != 0 {
		t.Error("a closed card plays")
	}
}

func TestCallbacksDoNotAllocate(t *testing.T) {
	c, p := newCapture(), newPlayback(audio.NewOutput(0))
	memory := make([]byte, 2*333)
	if n := testing.AllocsPerRun(1000, func() { c.take(memory); p.give(memory) }); n != 0 {
		t.Errorf("%v allocations for a call, want none", n)
	}
	if c.dropped.Load() == 0 {
		t.Error("the full queue was not tried")
	}
}

func BenchmarkCallback(b *testing.B) {
	memory := make([]byte, 2*audio.FrameSize)
	b.Run("capture", func(b *testing.B) {
		c := newCapture()
		b.ReportAllocs()
		for b.Loop() {
			c.take(memory)
			<-c.frames
		}
	})
	b.Run("playback", func(b *testing.B) {
		p := newPlayback(audio.NewOutput(0))
		b.ReportAllocs()
		for b.Loop() {
			p.give(memory)
		}
	})
}

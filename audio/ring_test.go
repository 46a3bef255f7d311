package audio_test

import (
	"runtime"
	"testing"

	"bellbird/audio"
)

func numbered(n int) (f audio.Frame) {
	for i := range f {
		f[i] = int16(n)
	}
	return f
}

func TestRing(t *testing.T) {
	r := audio.NewRing(5)
	if r.Cap() != 8 {
		t.Fatalf("room for %d, want 8", r.Cap())
	}
	var f audio.Frame
	next := 0
	for round := range 10 { // over the end of the memory, several times
		if r.Pop(&f) {
			t.Fatal("an empty ring had a frame")
		}
		for i := range 8 {
			if !r.Push(numbered(round*8 + i)) {
				t.Fatalf("frame %d was refused", i)
			}
		}
		if r.Push(f) || r.Len() != 8 {
			t.Fatal("a full ring took a frame")
		}
		for range 8 {
			if !r.Pop(&f) || f != numbered(next) {
				t.Fatalf("got frame %d, want %d", f[0], next)
			}
			next++
		}
	}
}

func TestRingBetweenGoroutines(t *testing.T) {
	const n = 20000
	r := audio.NewRing(16)
	go func() {
		for i := 0; i < n; {
			if r.Push(numbered(i)) {
				i++
			} else {
				runtime.Gosched()
			}
		}
	}()
	var f audio.Frame
	for i := 0; i < n; {
		if !r.Pop(&f) {
			runtime.Gosched()
			continue
		}
		if f != numbered(i) {
			t.Fatalf("got frame %d … %d, want %d", f[0], f[audio.FrameSize-1], int16(i))
		}
		if l := r.Len(); l < 0 || l > 16 {
			t.Fatalf("length %d", l)
		}
		i++
	}
}

// The hand-over of a frame from the device to a listener, by the two ways that are used.
func BenchmarkHandOver(b *testing.B) {
	b.Run("ring", func(b *testing.B) {
		r := audio.NewRing(64)
		var in, out audio.Frame
		b.ReportAllocs()
		for b.Loop() {
			r.Push(in)
			r.Pop(&out)
		}
	})
	b.Run("channel", func(b *testing.B) {
		c := make(chan audio.Frame, 64)
		var in, out audio.Frame
		b.ReportAllocs()
		for b.Loop() {
			c <- in
			out = <-c
		}
		_ = out
	})
}

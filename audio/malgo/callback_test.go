package malgo

import (
	"context"
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

// inner is the shape that needs no conversion.
var inner = shape{signed16, 1, audio.SampleRate}

func mustCapture(t testing.TB, s shape, gain float32, mix *audio.Mixdown) *capture {
	t.Helper()
	c, err := newCapture(s, gain, mix)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mono() *audio.Mixdown { m := audio.Average(1); return &m }

func mustPlayback(t testing.TB, s shape, out *audio.Output) *playback {
	t.Helper()
	p, err := newPlayback(s, out)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A microphone may deliver any number of samples at a time; the frames are the same, and the samples are copied.
func TestTake(t *testing.T) {
	samples := make([]int16, 10*audio.FrameSize+17)
	for i := range samples {
		samples[i] = int16(i - 1000)
	}
	for _, size := range []int{1, 7, 160, 320, 321, 1024, len(samples)} {
		c := mustCapture(t, inner, 1, mono())
		for at := 0; at < len(samples); at += size {
			memory := bytesOf(samples[at:min(at+size, len(samples))])
			c.take(memory)
			clear(memory) // it is the sound system's again
		}
		if c.made.Load() != 10 || c.dropped.Load() != 0 || c.taken.Load() != uint64(len(samples)) {
			t.Fatalf("by %d: %d frames of %d samples, want 10", size, c.made.Load(), c.taken.Load())
		}
		var g audio.Group
		for i := range 10 {
			if !c.rings.pop(&g) || g.Channels != 1 {
				t.Fatalf("by %d: no frame %d, of one channel", size, i)
			}
			for j, s := range g.Frames[0] {
				if want := samples[i*audio.FrameSize+j]; s != want {
					t.Fatalf("by %d: sample %d of frame %d is %d, want %d", size, j, i, s, want)
				}
			}
		}
		if c.rings.pop(&g) {
			t.Errorf("by %d: more than 10 frames", size)
		}
	}
}

func TestTakeDropsTheNewest(t *testing.T) {
	c := mustCapture(t, inner, 1, mono())
	room := c.rings[0].Cap()
	for i := range room + 5 {
		f := make([]int16, audio.FrameSize)
		f[0] = int16(i)
		c.take(bytesOf(f))
	}
	if c.dropped.Load() != 5 || c.made.Load() != uint64(room+5) {
		t.Errorf("%d dropped of %d, want 5", c.dropped.Load(), c.made.Load())
	}
	var g audio.Group
	for i := range room {
		if c.rings.pop(&g); g.Frames[0][0] != int16(i) {
			t.Fatalf("frame %d is number %d", i, g.Frames[0][0])
		}
	}
}

// All channels of a moment come out together, while the other side takes them, whatever is dropped.
func TestGroupsStayTogether(t *testing.T) {
	c := mustCapture(t, shape{signed16, 4, audio.SampleRate}, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	groups, over := make(chan audio.Group), make(chan struct{})
	go func() {
		defer close(over)
		c.hand(ctx, nil, groups)
	}()
	const rounds = 2000
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		samples := make([]int16, 4*audio.FrameSize)
		memory := make([]byte, 2*len(samples))
		for n := range rounds {
			for i := range samples {
				binary.LittleEndian.PutUint16(memory[2*i:], uint16(n%8000*4+i%4))
			}
			c.take(memory)
		}
	}()
	seen := 0
	check := func(g audio.Group) {
		seen++
		for i, f := range g.All() {
			if f[0]%4 != int16(i) || f[0]/4 != g.Frames[0][0]/4 || f[0] != f[audio.FrameSize-1] {
				t.Fatalf("channel %d of group %d has %d, channel 0 has %d", i, seen, f[0], g.Frames[0][0])
			}
		}
	}
	for done := false; !done; {
		select {
		case g := <-groups:
			check(g)
		case <-fed:
			done = true
		}
	}
	for uint64(seen)+c.dropped.Load() < rounds {
		check(<-groups)
	}
	cancel()
	<-over
	t.Logf("%d groups taken, %d dropped", seen, c.dropped.Load())
}

func TestFeel(t *testing.T) {
	c := mustCapture(t, shape{signed16, 1, 48000}, 1, mono())
	block := make([]int16, 960)
	feed := func(n int, f func(i int) int16) {
		for range n {
			for i := range block {
				block[i] = f(i)
			}
			c.take(bytesOf(block))
		}
	}
	feed(20, func(int) int16 { return 77 })
	if still := c.still.Load(); still < 17 || c.lively.Load() >= aliveFrames {
		t.Errorf("%d frames of 20 that were constant, %d lively", still, c.lively.Load())
	}
	feed(20, func(i int) int16 { return int16(i % 48 * 50) })
	if c.still.Load() != 0 || c.lively.Load() < 18 {
		t.Errorf("sound: %d still, %d lively", c.still.Load(), c.lively.Load())
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
		p := mustPlayback(t, inner, out)
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
		if n := p.pulled.Load(); n != uint64((len(got)+audio.FrameSize-1)/audio.FrameSize) || p.asked.Load() != uint64(len(got)) {
			t.Errorf("by %d: %d frames pulled for %d samples", size, n, len(got))
		}
	}
}

// A card that hangs while it is closed must not take frames from the one that was opened after it.
func TestGiveShut(t *testing.T) {
	out := audio.NewOutput(0)
	for _, s := range []shape{inner, {unsigned8, 2, 8000}} {
		p := mustPlayback(t, s, out)
		p.shut()
		p.shut()
		memory := []byte{1, 2, 3, 4}
		p.give(memory)
		want := "\x00\x00\x00\x00"
		if s.format == unsigned8 {
			want = "\x80\x80\x80\x80"
		}
		if string(memory) != want || out.Stats().Pulled != 0 {
			t.Errorf("a closed card plays % x", memory)
		}
	}
}

// The door is shut while the callback is at work: it is waited for, and only one device pulls at a time. The race
// detector sees it if not.
func TestShutWhileGiving(t *testing.T) {
	out := audio.NewOutput(0)
	for range 50 {
		p := mustPlayback(t, inner, out)
		begun, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			memory := make([]byte, 640)
			for n := range 40 {
				if n == 5 {
					close(begun)
				}
				p.give(memory)
			}
		}()
		<-begun
		p.shut()
		var f audio.Frame
		out.Pull(&f)
		<-over
	}
}

func TestCallbacksDoNotAllocate(t *testing.T) {
	for _, s := range []shape{inner, {signed24, 3, 44100}, {float32s, 8, 48000}, {unsigned8, 2, 8000}} {
		for _, mix := range []*audio.Mixdown{nil, new(audio.Average(s.channels))} {
			c, p := mustCapture(t, s, 2, mix), mustPlayback(t, s, audio.NewOutput(0))
			memory := make([]byte, 333*s.channels*s.format.size())
			if n := testing.AllocsPerRun(200, func() { c.take(memory); p.give(memory) }); n != 0 {
				t.Errorf("%v: %v allocations for a call, want none", s, n)
			}
			if s.rate == audio.SampleRate && c.dropped.Load() == 0 {
				t.Errorf("%v: the full ring was not tried", s)
			}
		}
	}
}

// coreShare is how much of a core it takes in real time, if each round is 20 ms of sound.
func coreShare(b *testing.B) float64 {
	return 100 * float64(b.Elapsed()) / float64(b.N) / float64(audio.FrameDuration)
}

func BenchmarkCallback(b *testing.B) {
	for _, s := range []shape{inner, {signed16, 2, 48000}, {signed32, 8, 48000}} {
		memory := make([]byte, int(s.rate)/50*s.channels*s.format.size())
		b.Run("capture "+s.String(), func(b *testing.B) {
			c := mustCapture(b, s, 1, new(audio.Average(s.channels)))
			b.ReportAllocs()
			var g audio.Group
			for b.Loop() {
				c.take(memory)
				c.rings.pop(&g)
			}
			b.ReportMetric(coreShare(b), "%core")
		})
		b.Run("playback "+s.String(), func(b *testing.B) {
			p := mustPlayback(b, s, audio.NewOutput(0))
			b.ReportAllocs()
			for b.Loop() {
				p.give(memory)
			}
			b.ReportMetric(coreShare(b), "%core")
		})
	}
}

package echo

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/echo/echotest"
)

const second = int(audio.SampleRate)

// run cancels a whole recording. What it returns is in step with mic: the frame by which the suppressed feed is late is
// taken out.
func run(c *Canceller, mic, played []int16) (linear, suppressed []int16) {
	n := min(len(mic), len(played)) / block * block
	for at := 0; at < n; at += block {
		m, p := audio.Frame(mic[at:]), audio.Frame(played[at:])
		c.Play(&p)
		l, s := c.Hear(&m)
		linear = append(linear, l[:]...)
		suppressed = append(suppressed, s[:]...)
	}
	return linear, suppressed[block:]
}

var livingRoom = echotest.Room{Delay: 90 * time.Millisecond, RT60: 150 * time.Millisecond, Gain: 0.3, Noise: 5}

func TestConverges(t *testing.T) {
	noise, babble := echotest.Noise(12*second, 3000, 1), echotest.Babble(12*second, 5000, 2)
	for _, tt := range []struct {
		name               string
		played             []int16
		change             func(*echotest.Room)
		linear, suppressed float64
	}{
		{"noise", noise, func(*echotest.Room) {}, 30, 30},
		{"babble", babble, func(*echotest.Room) {}, 25, 30},
		{"at once", babble, func(r *echotest.Room) { r.Delay = 4 * time.Millisecond }, 25, 30},
		{"late", babble, func(r *echotest.Room) { r.Delay = 470 * time.Millisecond }, 25, 30},
		{"loud echo", echotest.Babble(12*second, 1000, 2), func(r *echotest.Room) { r.Gain = 1.5 }, 25, 30},
		{"reverberant", babble, func(r *echotest.Room) { r.RT60 = 500 * time.Millisecond }, 15, 20},
		{"fast clock", babble, func(r *echotest.Room) { r.PPM = 250 }, 22, 28},
		{"slow clock", babble, func(r *echotest.Room) { r.PPM = -250 }, 22, 28},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := livingRoom
			tt.change(&r)
			mic := r.Hear(r.Echo(tt.played))
			c := New()
			l, s := run(c, mic, tt.played)
			from := 8 * second
			linear, suppressed := echotest.Reduction(mic[from:], l[from:]), echotest.Reduction(mic[from:], s[from:])
			t.Logf("linear %.1f dB, suppressed %.1f dB, %+v", linear, suppressed, c.Stats())
			if linear < tt.linear || suppressed < tt.suppressed {
				t.Errorf("linear %.1f dB, suppressed %.1f dB; want %v and %v", linear, suppressed, tt.linear, tt.suppressed)
			}
			if d := c.Stats().Drift; math.Abs(d-r.PPM) > 20 {
				t.Errorf("drift %.0f ppm, want %v", d, r.PPM)
			}
		})
	}
}

// The clocks may run apart for hours: the played sound turns over by a frame at a time.
func TestClocksTurnOver(t *testing.T) {
	for _, ppm := range []float64{300, -300} {
		played := echotest.Babble(30*second, 5000, 3)
		r := livingRoom
		r.PPM = ppm
		mic := r.Hear(r.Echo(played)) // drifts by 9 ms
		c := New()
		before := ahead + 50.0
		if ppm < 0 {
			before = ahead + block
		}
		c.clocks.late = before
		l, _ := run(c, mic, played)
		if after := c.clocks.late; (after > before) != (ppm > 0) {
			t.Errorf("%v ppm: the delay went from %.0f to %.0f and didn't turn over", ppm, before, after)
		}
		for at := 10 * second; at+5*second <= len(l); at += 5 * second {
			if d := echotest.Reduction(mic[at:at+5*second], l[at:at+5*second]); d < 20 {
				t.Errorf("%v ppm, from %d s: %.1f dB, want 20", ppm, at/second, d)
			}
		}
	}
}

// Devices aren't in step: a loudspeaker takes two frames at once, then none.
func TestFramesComeInBursts(t *testing.T) {
	played := echotest.Babble(12*second, 5000, 4)
	mic := livingRoom.Hear(livingRoom.Echo(played))
	c := New()
	var linear []int16
	next := 0
	for at := 0; at+4*block <= len(mic); at += 4 * block {
		for i := range 4 {
			pulled := [4]int{1, 0, 3, 0}[i]
			for range pulled {
				f := audio.Frame(played[next:])
				next += block
				c.Play(&f)
			}
			m := audio.Frame(mic[at+i*block:])
			l, _ := c.Hear(&m)
			linear = append(linear, l[:]...)
		}
	}
	from := 8 * second
	if d := echotest.Reduction(mic[from:], linear[from:]); d < 25 {
		t.Errorf("%.1f dB, want 25: %+v", d, c.Stats())
	}
}

func TestDoubleTalk(t *testing.T) {
	played := echotest.Babble(20*second, 5000, 5)
	near := make([]float64, 20*second)
	for i, v := range echotest.Babble(6*second, 2500, 6) {
		near[8*second+i] = float64(v)
	}
	echo := livingRoom.Echo(played)
	mic, alone := livingRoom.Hear(echo, near), livingRoom.Hear(echo)
	c := New()
	l, s := run(c, mic, played)
	rest := make([]int16, len(l))
	for i, v := range l {
		rest[i] = sample(float64(v) - near[i])
	}
	for _, tt := range []struct {
		name     string
		from, to int // seconds
		want     float64
	}{
		{"before", 6, 8, 25},
		{"during", 8, 14, 18},
		{"right after", 14, 15, 18},
		{"after", 16, 20, 25},
	} {
		from, to := tt.from*second, tt.to*second
		d := echotest.Reduction(alone[from:to], rest[from:to])
		t.Logf("%s: %.1f dB", tt.name, d)
		if d < tt.want {
			t.Errorf("%s: the echo is %.1f dB less, want %v", tt.name, d, tt.want)
		}
	}
	if c.Stats().Frozen < 50 {
		t.Errorf("frozen in %d frames of 300 in which somebody spoke", c.Stats().Frozen)
	}
	// The recogniser must hear who speaks.
	if d := echotest.Reduction(l[8*second:14*second], s[8*second:14*second]); d > 6 {
		t.Errorf("the suppressor took away %.1f dB while somebody spoke", d)
	}
}

func TestDelayJumps(t *testing.T) {
	played := echotest.Babble(30*second, 5000, 7)
	first, then := livingRoom, livingRoom
	then.Delay = 300 * time.Millisecond
	mic := first.Hear(first.Echo(played))
	copy(mic[10*second:20*second], then.Hear(then.Echo(played))[10*second:])
	c := New()
	l, _ := run(c, mic, played)
	for _, at := range []int{8, 14, 18, 24, 28} {
		from, to := at*second, (at+2)*second
		if d := echotest.Reduction(mic[from:to], l[from:to]); d < 20 {
			t.Errorf("from %d s: %.1f dB, want 20: %+v", at, d, c.Stats())
		}
	}
}

func TestSilenceIsPassed(t *testing.T) {
	c := New()
	mic := echotest.Noise(2*second, 9000, 8)
	if l, s := run(c, mic, make([]int16, len(mic))); string(bytes(l)) != string(bytes(mic)) || string(bytes(s)) != string(bytes(mic[:len(s)])) {
		t.Error("what was heard while the loudspeaker was silent has changed")
	}
	if s := c.Stats(); s.Bypassed != s.Frames {
		t.Errorf("bypassed for %d of %d frames", s.Bypassed, s.Frames)
	}

	// And again after there was sound, without a jump where it ends.
	played := make([]int16, 6*second)
	copy(played, echotest.Babble(3*second, 5000, 9))
	mic = livingRoom.Hear(livingRoom.Echo(played))
	l, s := run(c, mic, played)
	from := 4 * second
	if string(bytes(l[from:])) != string(bytes(mic[from:len(l)])) || string(bytes(s[from:])) != string(bytes(mic[from:len(s)])) {
		t.Error("what was heard after the loudspeaker had fallen silent has changed")
	}

	// What was learned is not forgotten in the silence.
	mic, played = mic[:3*second/2], played[:3*second/2]
	l, _ = run(c, mic, played)
	if d := echotest.Reduction(mic, l); d < 20 {
		t.Errorf("after the silence %.1f dB, want 20", d)
	}
}

// A device that clips, or a loudspeaker that distorts, is no echo path. It must not become worse than it is.
func TestClipping(t *testing.T) {
	played := echotest.Babble(10*second, 20000, 10)
	for _, r := range []echotest.Room{
		{Delay: 50 * time.Millisecond, Gain: 6, Noise: 5, RT60: 100 * time.Millisecond},
		{Delay: 50 * time.Millisecond, Gain: 0.5, Noise: 5, RT60: 100 * time.Millisecond, Clip: 3000},
	} {
		mic := r.Hear(r.Echo(played))
		l, s := run(New(), mic, played)
		if d := echotest.Reduction(mic, l); d < 1 {
			t.Errorf("gain %v, clip %v: linear %.1f dB, want 1", r.Gain, r.Clip, d)
		}
		if d := echotest.Reduction(mic, s); d < 8 {
			t.Errorf("gain %v, clip %v: suppressed %.1f dB, want 8", r.Gain, r.Clip, d)
		}
	}
}

// There is a reference, but no echo: a loudspeaker that is switched off. Nothing may be taken away.
func TestNoEcho(t *testing.T) {
	mic, played := echotest.Babble(10*second, 3000, 11), echotest.Babble(10*second, 3000, 12)
	l, s := run(New(), mic, played)
	from := 4 * second
	if d := echotest.Reduction(mic[from:], l[from:]); d > 1 || d < -1 {
		t.Errorf("linear: %.1f dB less", d)
	}
	if d := echotest.Reduction(mic[from:], s[from:]); d > 4 {
		t.Errorf("suppressed: %.1f dB less", d)
	}
}

func TestPlayAndHearOnTheirOwn(t *testing.T) {
	c := New()
	var wg sync.WaitGroup
	wg.Go(func() {
		f := audio.Frame(echotest.Noise(block, 3000, 1))
		for range 500 {
			c.Play(&f)
		}
	})
	m := audio.Frame(echotest.Noise(block, 3000, 2))
	for range 500 {
		c.Hear(&m)
	}
	wg.Wait()
	if s := c.Stats(); s.Frames != 500 {
		t.Errorf("%d frames", s.Frames)
	}
}

func TestAllocatesNothing(t *testing.T) {
	c := New()
	played := audio.Frame(echotest.Noise(block, 3000, 1))
	mic := audio.Frame(echotest.Noise(block, 1000, 2))
	n := 0
	if a := testing.AllocsPerRun(400, func() {
		if n++; n > 200 {
			played = audio.Frame{}
		}
		c.Play(&played)
		c.Hear(&mic)
	}); a != 0 {
		t.Errorf("%v allocations a frame", a)
	}
}

// FuzzHear plays and hears anything, in any order: each byte of script is what happens next.
func FuzzHear(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, int16(1))
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 17, 34, 51}, int16(-1))
	f.Fuzz(func(t *testing.T, script []byte, seed int16) {
		c := New()
		g := uint32(uint16(seed))
		fill := func(kind byte) (f audio.Frame) {
			for i := range f {
				g = g*1664525 + 1013904223
				switch kind & 3 {
				case 1:
					f[i] = int16(g >> 16)
				case 2:
					f[i] = math.MaxInt16
					if i%2 == int(g>>31) {
						f[i] = math.MinInt16
					}
				case 3:
					f[i] = int16(g>>16) >> 8
				}
			}
			return f
		}
		for _, b := range script[:min(len(script), 200)] {
			for range b >> 6 {
				p := fill(b)
				c.Play(&p)
			}
			for range b >> 4 & 3 {
				m := fill(b >> 2)
				c.Hear(&m)
			}
		}
		finite(t, c)
	})
}

func finite(t *testing.T, c *Canceller) {
	t.Helper()
	check := func(what string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%s is %v", what, v)
		}
	}
	for p := range c.filter.path {
		for k := range c.filter.path[p] {
			check("the echo path", squared(c.filter.path[p][k]))
			check("its doubt", c.filter.doubt[p][k])
		}
	}
	for k := range c.sup.gain {
		check("a gain", c.sup.gain[k])
		check("the background", c.sup.noise[k])
		check("what lingers", c.sup.lingering[k])
	}
	check("the drift", c.clocks.apart)
	check("the delay", c.clocks.late)
	check("the loss", c.Stats().Loss)
}

func bytes(x []int16) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

const recordings = "../../../shared/data/speech"

func read(t testing.TB, path string) []int16 {
	t.Helper()
	x, _, err := audio.ReadFile(filepath.Join(recordings, path))
	if os.IsNotExist(err) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return x
}

// The recording is of a device whose clocks are 125 ppm apart. Its first second of speech is what is learned from.
func TestRealDevice(t *testing.T) {
	mic := read(t, "aec/real/9mkQhVtz_farend_singletalk_mic.flac")
	played := read(t, "aec/real/9mkQhVtz_farend_singletalk_lpb.flac")
	c := New()
	l, s := run(c, mic, played)
	for _, tt := range []struct {
		name               string
		from               int
		linear, suppressed float64
	}{
		{"from the beginning", 0, 9, 25},
		{"from 3 s on", 3 * second, 15, 25},
	} {
		linear, suppressed := echotest.Reduction(mic[tt.from:], l[tt.from:]), echotest.Reduction(mic[tt.from:], s[tt.from:])
		t.Logf("%s: linear %.1f dB, suppressed %.1f dB", tt.name, linear, suppressed)
		if linear < tt.linear || suppressed < tt.suppressed {
			t.Errorf("%s: linear %.1f dB, suppressed %.1f dB; want %v and %v", tt.name, linear, suppressed, tt.linear, tt.suppressed)
		}
	}
}

func BenchmarkHear(b *testing.B) {
	played := echotest.Babble(4*second, 5000, 1)
	mic := livingRoom.Hear(livingRoom.Echo(played))
	for _, bb := range []struct {
		name   string
		played []int16
	}{{"echo", played}, {"silence", make([]int16, len(played))}} {
		b.Run(bb.name, func(b *testing.B) {
			c := New()
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				m, p := audio.Frame(mic[at:]), audio.Frame(bb.played[at:])
				c.Play(&p)
				c.Hear(&m)
				at = (at + block) % len(mic)
			}
			b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(audio.FrameDuration), "%core")
		})
	}
}

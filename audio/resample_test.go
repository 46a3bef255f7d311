package audio_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"bellbird/audio"
)

func sine(n int, hertz, amplitude float64, rate audio.Rate) []int16 {
	s := make([]int16, n)
	for i := range s {
		s[i] = int16(math.Round(amplitude * 32767 * math.Sin(2*math.Pi*hertz*float64(i)/float64(rate))))
	}
	return s
}

func resampler(t testing.TB, from, to audio.Rate) *audio.Resampler {
	t.Helper()
	r, err := audio.NewResampler(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func resample(r *audio.Resampler, in []int16, block int) []int16 {
	var out []int16
	for b := range slices.Chunk(in, block) {
		out = r.Process(out, b)
	}
	return r.Flush(out)
}

// fit returns the amplitude of the given frequency in s, and the level of all else relative to it, in dB.
func fit(s []int16, hertz float64, rate audio.Rate) (amplitude, rest float64) {
	// Least squares for a·sin + b·cos.
	var ss, cc, sc, ys, yc float64
	for i, v := range s {
		w := 2 * math.Pi * hertz * float64(i) / float64(rate)
		sin, cos, y := math.Sin(w), math.Cos(w), float64(v)
		ss += sin * sin
		cc += cos * cos
		sc += sin * cos
		ys += y * sin
		yc += y * cos
	}
	det := ss*cc - sc*sc
	a, b := (ys*cc-yc*sc)/det, (yc*ss-ys*sc)/det
	var power, err float64
	for i, v := range s {
		w := 2 * math.Pi * hertz * float64(i) / float64(rate)
		y := a*math.Sin(w) + b*math.Cos(w)
		power += y * y
		err += (float64(v) - y) * (float64(v) - y)
	}
	return math.Hypot(a, b) / 32767, 10 * math.Log10(err/power)
}

var ratios = []struct{ from, to audio.Rate }{
	{8000, 16000}, {11025, 16000}, {22050, 16000}, {24000, 16000}, {32000, 16000}, {44100, 16000}, {48000, 16000},
	{96000, 16000}, {192000, 16000}, {4000, 16000}, {16000, 48000}, {16000, 44100}, {44101, 16000}, {13337, 16000},
}

// Sines in the pass band come through with their amplitude, and with nothing beside them but what 16 bits round away.
func TestResamplePasses(t *testing.T) {
	for _, r := range ratios {
		lower := float64(min(r.from, r.to))
		rs := resampler(t, r.from, r.to)
		for _, part := range []float64{0.01, 0.2, 0.44} {
			hertz := part * lower
			in := sine(int(r.from)/4, hertz, 0.9, r.from)
			out := resample(rs, in, 441)
			inner := out[len(out)/10 : len(out)*9/10]
			amp, rest := fit(inner, hertz, r.to)
			if db := 20 * math.Log10(amp/0.9); math.Abs(db) > 0.05 {
				t.Errorf("%d to %d: %.0f Hz comes out %+.3f dB", r.from, r.to, hertz, db)
			}
			if rest > -80 {
				t.Errorf("%d to %d: %.0f Hz: all else is at %.1f dB, want below -80", r.from, r.to, hertz, rest)
			}
		}
	}
}

// Sines above half the lower rate would come back as something else, and must not.
func TestResampleStops(t *testing.T) {
	for _, r := range ratios {
		if r.from <= r.to {
			continue
		}
		rs := resampler(t, r.from, r.to)
		for _, part := range []float64{0.501, 0.55, 0.9} {
			hertz := part * float64(r.to)
			if hertz > 0.499*float64(r.from) {
				continue
			}
			out := resample(rs, sine(int(r.from)/4, hertz, 0.99, r.from), 1000)
			inner := out[len(out)/10 : len(out)*9/10]
			if l := audio.Measure(inner); l.RMS > -83 {
				t.Errorf("%d to %d: %.0f Hz leaves %.1f dB, want below -83", r.from, r.to, hertz, l.RMS)
			}
		}
	}
}

// The cutting into blocks must not be heard: any cut gives the same samples, and the length is exact.
func TestResampleBlocks(t *testing.T) {
	for _, r := range ratios {
		rs := resampler(t, r.from, r.to)
		for _, n := range []int{0, 1, 7, 100, 3007} {
			in := sine(n, 300, 0.5, r.from)
			want := resample(rs, in, max(n, 1))
			if exact := (n*int(r.to) + int(r.from) - 1) / int(r.from); len(want) != exact {
				t.Errorf("%d to %d: %d samples became %d, want %d", r.from, r.to, n, len(want), exact)
			}
			for _, block := range []int{1, 3, 441, 1024, 5000} {
				if got := resample(rs, in, block); !slices.Equal(got, want) {
					t.Errorf("%d to %d: %d samples in blocks of %d sound different", r.from, r.to, n, block)
				}
			}
		}
	}
}

// Sample 0 stays at the same instant: a sine comes out in phase.
func TestResamplePhase(t *testing.T) {
	for _, r := range ratios {
		out := resample(resampler(t, r.from, r.to), sine(int(r.from)/4, 500, 0.9, r.from), 999)
		want := sine(len(out), 500, 0.9, r.to)
		for i := len(out) / 10; i < len(out)*9/10; i++ {
			if d := int(out[i]) - int(want[i]); d < -8 || d > 8 {
				t.Errorf("%d to %d: sample %d is %d, want about %d", r.from, r.to, i, out[i], want[i])
				break
			}
		}
	}
}

func TestResampleReset(t *testing.T) {
	r, err := audio.NewResampler(22050, 16000)
	if err != nil {
		t.Fatal(err)
	}
	in := sine(2205, 440, 0.5, 22050)
	first := r.Flush(r.Process(nil, in))
	r.Process(nil, in[:500])
	r.Reset()
	if second := r.Flush(r.Process(nil, in)); !slices.Equal(first, second) {
		t.Error("a resampler that was reset remembers the sound before")
	}
	r.Process(nil, in[:500])
	if third := resample(r.Fork(), in, 100); !slices.Equal(first, third) {
		t.Error("a fork remembers the sound of the other")
	}
}

func TestResampleRefuses(t *testing.T) {
	for _, r := range []struct{ from, to audio.Rate }{{0, 16000}, {16000, -1}, {999, 16000}, {16000, 1 << 40}} {
		if _, err := audio.NewResampler(r.from, r.to); err == nil {
			t.Errorf("%d to %d: no error", r.from, r.to)
		}
	}
}

func TestResampleDoesNotAllocate(t *testing.T) {
	r, err := audio.NewResampler(22050, 16000)
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]int16, 441), make([]int16, 0, r.Max(441))
	if n := testing.AllocsPerRun(100, func() { r.Process(out, in) }); n != 0 {
		t.Errorf("%v allocations for a block, want none", n)
	}
}

func BenchmarkNewResampler(b *testing.B) {
	for b.Loop() {
		audio.NewResampler(22050, 16000)
	}
}

func BenchmarkResample(b *testing.B) {
	for _, r := range []struct{ from, to audio.Rate }{{22050, 16000}, {44100, 16000}, {48000, 16000}, {16000, 48000}} {
		b.Run(fmt.Sprintf("%dto%d", r.from, r.to), func(b *testing.B) {
			rs, err := audio.NewResampler(r.from, r.to)
			if err != nil {
				b.Fatal(err)
			}
			in := sine(int(r.from)/50, 440, 0.5, r.from) // 20 ms
			out := make([]int16, 0, rs.Max(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				rs.Process(out, in)
			}
		})
	}
}

func ExampleResampler() {
	r, _ := audio.NewResampler(22050, 16000)
	var out []int16
	out = r.Process(out, make([]int16, 22050)) // in pieces of any size, as they come
	out = r.Flush(out)
	fmt.Println(len(out))
	// Output: 16000
}

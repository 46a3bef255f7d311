package audio

import (
	"math"
	"time"
)

// A Sweep is a tone that rises from 200 Hz to 6 kHz, which a small loudspeaker can play and a microphone can hear, and of
// which it can be told to a sample where it begins. It is at -12 dB.
func Sweep(d time.Duration) []int16 {
	const from, to, amplitude = 200.0, 6000.0, 0.25
	s := make([]int16, samplesIn(d))
	phase := 0.0
	for i := range s {
		part := float64(i) / float64(len(s))
		phase += 2 * math.Pi * from * math.Pow(to/from, part) / float64(SampleRate)
		fade := min(1, part*20, (1-part)*20)
		s[i] = int16(math.Round(32767 * amplitude * fade * math.Sin(phase)))
	}
	return s
}

// Find looks for a sound in another, and returns after how many samples it begins there and how alike they are from there
// on: 1 is the same but for its loudness, of either sign, 0 is nothing alike. The sound must have its share below 2 kHz:
// where it might be is looked for there, which is a sixteenth of the work.
func Find(sound, in []int16) (at int, likeness float64) {
	if len(in) < len(sound) || len(sound) == 0 {
		return 0, 0
	}
	const near = 2 * thinning
	about, _ := find(thin(sound), thin(in))
	first := max(0, about*thinning-near)
	last := min(len(in), about*thinning+near+len(sound))
	if last-first < len(sound) {
		first = last - len(sound)
	}
	at, likeness = find(floats(sound), floats(in[first:last]))
	return first + at, likeness
}

// find is Find at every place.
func find(x, y []float32) (at int, likeness float64) {
	power := func(s []float32) (sum float64) {
		for _, v := range s {
			sum += float64(v) * float64(v)
		}
		return sum
	}
	if len(y) < len(x) || len(x) == 0 {
		return 0, 0
	}
	own, theirs := power(x), power(y[:len(x)])
	for lag := 0; ; lag++ {
		if theirs > 1e-9 && own > 0 {
			if r := math.Abs(float64(dot(x, y[lag:lag+len(x)]))) / math.Sqrt(own*theirs); r > likeness {
				at, likeness = lag, r
			}
		}
		if lag+len(x) == len(y) {
			return at, min(likeness, 1)
		}
		in, out := float64(y[lag+len(x)]), float64(y[lag])
		theirs += in*in - out*out
	}
}

// thin leaves every fourth sample, the mean of itself and those after it.
func thin(s []int16) []float32 {
	f := make([]float32, 0, len(s)/thinning)
	for ; len(s) >= thinning; s = s[thinning:] {
		sum := 0
		for _, v := range s[:thinning] {
			sum += int(v)
		}
		f = append(f, float32(sum)/(thinning*32768))
	}
	return f
}

const thinning = 4

func floats(s []int16) []float32 {
	f := make([]float32, len(s))
	for i, v := range s {
		f[i] = float32(v) / 32768
	}
	return f
}

// Clipped is the number of samples that are as loud as can be, which sound that is loud but not too loud hardly has.
func Clipped(s []int16) (n int) {
	for _, v := range s {
		if v == math.MaxInt16 || v == math.MinInt16 {
			n++
		}
	}
	return n
}

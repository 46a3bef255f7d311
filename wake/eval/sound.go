package eval

import (
	"math"
	"math/rand/v2"
	"time"

	"bellbird/audio"
)

// The quiet that Quiet puts before and after a recording: models believe nothing that they hear in their first second,
// and some hear a word only after its end.
const (
	QuietBefore = 1500 * time.Millisecond
	QuietAfter  = time.Second
)

// Quiet puts samples between quiet, which is low noise: digital silence is nothing that a microphone delivers. The noise
// is below the recording too, for there are recordings with digital silence in them.
func Quiet(samples []int16) []int16 {
	before := samplesIn(QuietBefore)
	sound := make([]int16, before+len(samples)+samplesIn(QuietAfter))
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range sound {
		sound[i] = int16(noise.IntN(21) - 10)
	}
	for i, v := range samples {
		sum := int(sound[before+i]) + int(v)
		sound[before+i] = int16(min(max(sum, math.MinInt16), math.MaxInt16))
	}
	return sound
}

func samplesIn(d time.Duration) int { return int(d * time.Duration(audio.SampleRate) / time.Second) }

func lengthOf(samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(audio.SampleRate)
}

// frame is the piece of sound of which the loudest counts in a signal-to-noise ratio: 512 samples, as in the public
// benchmark.
const frame = 512

// peakEnergy is the energy of the loudest frame. Frames don't overlap, and what is left at the end counts only if it is
// all there is.
func peakEnergy(samples []int16) float64 {
	var peak int64
	for at := 0; at < len(samples); at += frame {
		if at > 0 && at+frame > len(samples) {
			break
		}
		var sum int64
		for _, v := range samples[at:min(at+frame, len(samples))] {
			sum += int64(v) * int64(v)
		}
		peak = max(peak, sum)
	}
	return float64(peak)
}

// ratio is by what an amplitude must be multiplied for the energy to change by so many decibels.
func ratio(decibels float64) float64 { return math.Pow(10, decibels/20) }

// noiseGain is by what noise must be multiplied to be snr decibels below speech, by their loudest frames. Where there is
// no speech the noise stays as it is.
func noiseGain(speech, noise []int16, snr float64) float64 {
	s, n := peakEnergy(speech), peakEnergy(noise)
	switch {
	case s == 0:
		return 1
	case n == 0:
		return 0
	}
	return math.Sqrt(s/n) / ratio(snr)
}

// mix adds noise to a recording between quiet. The noise is as long as sound and goes on before and after the recording;
// what counts for the ratio is the noise below the recording. If the sum is too loud for 16 bits all of it is turned
// down: a clipped word would be harder to hear for a reason that isn't the noise.
func mix(sound, noise []int16, snr float64) []int16 {
	from, to := samplesIn(QuietBefore), len(sound)-samplesIn(QuietAfter)
	below := noise[from:to]
	if peakEnergy(below) == 0 {
		below = noise // a pause in the noise
	}
	gain := noiseGain(sound[from:to], below, snr)
	sum := make([]float64, len(sound))
	for i := range sum {
		sum[i] = float64(sound[i]) + gain*float64(noise[i])
	}
	return toSamples(sum, false)
}

// toSamples rounds to 16 bits, turned down if it would be too loud; full turns it up as well, until it is as loud as
// 16 bits allow.
func toSamples(sum []float64, full bool) []int16 {
	peak := 0.0
	for _, v := range sum {
		peak = max(peak, math.Abs(v))
	}
	scale := 1.0
	if peak > math.MaxInt16 || full && peak > 0 {
		scale = math.MaxInt16 / peak
	}
	out := make([]int16, len(sum))
	for i, v := range sum {
		out[i] = int16(math.RoundToEven(v * scale))
	}
	return out
}

// stretch is n samples of one of the recordings, from anywhere in it, and from its beginning again where it ends.
func stretch(r *rand.Rand, recordings [][]int16, n int) []int16 {
	from := recordings[r.IntN(len(recordings))]
	out := make([]int16, 0, n)
	for at := r.IntN(len(from)); len(out) < n; at = 0 {
		out = append(out, from[at:min(at+n-len(out), len(from))]...)
	}
	return out
}

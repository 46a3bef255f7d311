package eval

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"bellbird/audio"
)

// The procedure of the public wake word benchmark, https://github.com/Picovoice/wake-word-benchmark, as of 2025:
//
//   - The calls are spread over the hours in a random order, with the same time before, between and after them.
//   - That time is filled with negatives drawn at random, again and again. One in five is heard, as loud as 16 bits
//     allow; of the others only the length counts.
//   - Below all that is noise: recordings drawn at random, one after the other, each as loud as 16 bits allow.
//   - Each call and each negative is given the loudness at which its loudest frame of 512 samples has so many decibels
//     more energy than the loudest frame of the noise below it.
//   - A call is heard if there is a detection from its beginning until half a second after its end. Any other
//     detection is a false accept.
//
// There it is one stream. Here it is cut after each call and at least every ten minutes, to be heard on all cores. Each piece is
// made as loud as 16 bits allow for itself, models start afresh in it, and it ends with a second of noise alone.

const (
	benchmarkHeard = 0.2 // of the negatives
	benchmarkTail  = 500 * time.Millisecond
	benchmarkAfter = time.Second

	maxStint = 10 * time.Minute // bounds the memory
)

// A stint is a take of what comes before a call, and the call.
type stint struct {
	call       []int16 // nil: there is none
	file       string
	negatives  [][]int16
	noise      [][]int16
	before     int // samples
	conditions []condition
	seed, n    uint64
}

// benchmark is the list of takes of the procedure. It keeps everything in memory, and nothing bad is left out: then it
// wouldn't be the same measurement any more.
func benchmark(ctx context.Context, o Options, noise [][]int16) ([]condition, []take, error) {
	switch {
	case len(noise) == 0:
		return nil, nil, errors.New("the public benchmark needs noise")
	case len(o.Positives) == 0 || len(o.Negatives) == 0:
		return nil, nil, errors.New("the public benchmark needs positives and negatives")
	}
	positives, bad, _ := readAll(ctx, o.Positives, true)
	negatives, worse, _ := readAll(ctx, o.Negatives, false)
	if err := errors.Join(append(bad, worse...)...); err != nil {
		return nil, nil, err
	}
	conditions := inNoise(o.SNR)
	n := len(positives)
	before := int(o.Hours * 3600 * float64(audio.SampleRate) / float64(n+1))
	pieces := before/samplesIn(maxStint) + 1
	var takes []take
	add := func(call []int16, file string) {
		for i := range pieces {
			s := &stint{nil, "", negatives, noise, before / pieces, conditions, o.Seed, uint64(len(takes))}
			if i == pieces-1 {
				s.call, s.file = call, file
			}
			takes = append(takes, s)
		}
	}
	for _, i := range rand.New(rand.NewPCG(o.Seed, math.MaxUint64)).Perm(n) {
		add(positives[i], o.Positives[i])
	}
	add(nil, "")
	return conditions, takes, nil
}

func (s *stint) sounds() ([]sounding, error) {
	r := rand.New(rand.NewPCG(s.seed, s.n))
	var parts [][]int16
	length := 0
	add := func(p []int16) { parts = append(parts, p); length += len(p) }
	for length < s.before {
		p := s.negatives[r.IntN(len(s.negatives))]
		if r.Float64() >= benchmarkHeard {
			p = make([]int16, len(p))
		}
		add(p)
	}
	var t truth
	if s.call != nil {
		t = truth{file: s.file, said: true, from: lengthOf(length)}
		add(s.call)
		t.to = lengthOf(length) + benchmarkTail
	}
	add(make([]int16, samplesIn(benchmarkAfter)))
	t.listened = lengthOf(length)
	noise := s.noiseOf(r, length)
	var soundings []sounding
	for i, in := range s.conditions {
		sum := make([]float64, length)
		at := 0
		for _, p := range parts {
			below := noise[at : at+len(p)]
			gain := 0.0
			if speech, under := peakEnergy(p), peakEnergy(below); speech > 0 {
				gain = math.Sqrt(under/speech) * ratio(*in.snr)
			}
			for i, v := range p {
				sum[at+i] = gain*float64(v) + float64(below[i])
			}
			at += len(p)
		}
		soundings = append(soundings, sounding{i, toSamples(sum, true), t, Converted{}})
	}
	return soundings, nil
}

// noiseOf is n samples of noise, each recording as loud as 16 bits allow.
func (s *stint) noiseOf(r *rand.Rand, n int) []int16 {
	out := make([]int16, 0, n)
	for len(out) < n {
		from := s.noise[r.IntN(len(s.noise))]
		loud := make([]float64, len(from))
		for i, v := range from {
			loud[i] = float64(v)
		}
		full := toSamples(loud, true)
		out = append(out, full[:min(len(full), n-len(out))]...)
	}
	return out
}

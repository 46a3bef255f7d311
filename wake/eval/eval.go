// Package eval measures wake word models on recordings: how many calls are missed, and how often something else is taken
// for a call, over the cutoff and in noise. It only computes; finding files and printing elsewhere than to a writer is
// for its caller.
package eval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"bellbird/audio"
)

// How recordings become a report:
//
//  1. Run reads the noise (or, for the public benchmark, everything) and makes a list of takes.
//  2. Workers, each with its own scorer, take one after the other, build its sound in each condition, and score it. What
//     is random in a take comes from the seed and the number of the take, so that it doesn't matter who takes it.
//  3. The courses of the scores become evidence, in the order of the takes. All cutoffs are counted on that (report.go).

// Options say what is measured.
type Options struct {
	// Positives are recordings in which each of the words is said, once in each. Negatives are those in which none is.
	Positives, Negatives []string

	// Noise are recordings that are mixed to the others, in the ratios SNR, in decibels.
	Noise []string
	SNR   []float64

	// Benchmark asks for the procedure of the public wake word benchmark (benchmark.go), over Hours of sound.
	Benchmark bool
	Hours     float64

	// Seed is where all that is random comes from.
	Seed uint64

	// Workers is how many cores to use; default all.
	Workers int

	// Refractory is for how long after a detection there is no other; default 2 s.
	Refractory time.Duration

	// Progress, if there is one, is told how many takes are done, from any goroutine but never from two at once.
	Progress func(done, total int)
}

// A Word is what is known of a word before it is measured.
type Word struct {
	Name     string
	Manifest float64 // its manifest's cutoff
	Config   float64 // that of the configuration, or 0
}

// errSilent tells of noise that is none.
var errSilent = errors.New("it is silent: there is nothing to mix")

// A take is one piece of sound that is listened to in one go.
type take interface {
	// sounds is what it sounds like in each condition. Its file may turn out to be bad.
	sounds() ([]sounding, error)
}

// A sounding is a sound and what is true about it.
type sounding struct {
	condition int
	sound     []int16
	truth     truth
	converted Converted // of a take that is a file
}

// A truth is what can be held against the score's course.
type truth struct {
	file     string        // or "" if it is of several
	said     bool          // whether the word is said, and
	from, to time.Duration // where in the sound it would have to be heard
	listened time.Duration // how much of it may have false accepts, or 0 if none is counted
	start    time.Duration // where the recording begins in the sound
}

// Converted tells that a recording wasn't in the format that is used inside.
type Converted struct {
	File string `json:"file"`
	From string `json:"from"`
}

// Run measures the words, of which newScorer's scorers give the courses in the order of words. Recordings that are bad
// are left out: the report says how many, and the error what is wrong with each. Only if the report is nil there is none.
func Run(ctx context.Context, o Options, words []Word, newScorer func() (Scorer, error)) (*Report, error) {
	if o.Refractory == 0 {
		o.Refractory = 2 * time.Second
	}
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	noise, bad, converted := readAll(ctx, o.Noise, true)
	if o.Benchmark && len(bad) > 0 {
		return nil, errors.Join(bad...) // without it, it would be another measurement
	}
	var conditions []condition
	var takes []take
	var err error
	if o.Benchmark {
		conditions, takes, err = benchmark(ctx, o, noise)
	} else {
		conditions, takes, err = clips(o, noise)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(append(bad, err)...)
	}
	results, err := listen(ctx, o, takes, newScorer)
	if err != nil {
		return nil, err
	}
	r := newReport(o, words, conditions)
	r.Converted = converted
	for _, result := range results {
		if result.err != nil {
			bad = append(bad, result.err)
			continue
		}
		for i, h := range result.heard {
			if i == 0 && h.converted.File != "" {
				r.Converted = append(r.Converted, h.converted)
			}
			for w, course := range h.courses {
				c := r.Words[w].Conditions[h.condition]
				c.evidence = append(c.evidence, evidence{h.truth, course})
			}
		}
	}
	r.LeftOut = len(bad)
	r.count()
	return r, errors.Join(bad...)
}

// A result is what came of a take.
type result struct {
	heard []heard
	err   error
}

// heard is a sounding of which the scores are left.
type heard struct {
	condition int
	truth     truth
	converted Converted
	courses   []Course
}

// listen scores the takes on all cores. An error is one that makes the rest pointless.
func listen(ctx context.Context, o Options, takes []take, newScorer func() (Scorer, error)) ([]result, error) {
	results := make([]result, len(takes))
	var scorers []Scorer
	for range min(o.Workers, max(len(takes), 1)) {
		s, err := newScorer()
		if err != nil {
			return nil, err
		}
		scorers = append(scorers, s)
	}
	var mu sync.Mutex // guards the two below, and keeps calls of Progress apart
	next, done := 0, 0
	var workers sync.WaitGroup
	for _, s := range scorers {
		workers.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(takes) || ctx.Err() != nil {
					return
				}
				results[i] = hear(ctx, takes[i], s)
				mu.Lock()
				done++
				if o.Progress != nil && ctx.Err() == nil {
					o.Progress(done, len(takes))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted after %d of %d recordings: %w", done, len(takes), ctx.Err())
	}
	return results, nil
}

func hear(ctx context.Context, t take, s Scorer) (r result) {
	soundings, err := t.sounds()
	if err != nil {
		return result{err: err}
	}
	for _, x := range soundings {
		if ctx.Err() != nil {
			return result{err: ctx.Err()}
		}
		courses, err := s.Score(x.sound)
		if err != nil {
			return result{err: fmt.Errorf("%s: %w", x.truth.file, err)}
		}
		r.heard = append(r.heard, heard{x.condition, x.truth, x.converted, courses})
	}
	return r
}

// maxMemory bounds the recordings that are kept in memory: noise, and everything for the public benchmark. It is about a
// gigabyte.
const maxMemory = 9 * time.Hour

// readAll reads recordings. Bad ones are left out and become errors. Silent ones are bad if there must be sound.
func readAll(ctx context.Context, files []string, loud bool) (recordings [][]int16, bad []error, converted []Converted) {
	total := 0
	for _, file := range files {
		if ctx.Err() != nil {
			break
		}
		samples, c, err := read(file)
		if err == nil && loud && peakEnergy(samples) == 0 {
			err = fmt.Errorf("%s: %w", file, errSilent)
		}
		if total += len(samples); err == nil && lengthOf(total) > maxMemory {
			err = fmt.Errorf("%s: with this one there are more than %v to keep in memory: give less", file, maxMemory)
			total -= len(samples)
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		recordings = append(recordings, samples)
		if c.File != "" {
			converted = append(converted, c)
		}
	}
	return recordings, bad, converted
}

func read(file string) ([]int16, Converted, error) {
	samples, format, err := audio.ReadFile(file)
	if err != nil {
		return nil, Converted{}, err
	}
	if len(samples) == 0 {
		return nil, Converted{}, fmt.Errorf("%s: there is no sound in it: record or copy it again", file)
	}
	var c Converted
	if !format.Inner() {
		c = Converted{file, format.String()}
	}
	return samples, c, nil
}

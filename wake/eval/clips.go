package eval

import (
	"fmt"
	"math/rand/v2"
)

// A condition is in what surroundings the recordings are heard.
type condition struct {
	name string
	snr  *float64 // nil: as they are
}

// inNoise are the conditions with noise.
func inNoise(snr []float64) (conditions []condition) {
	for _, db := range snr {
		conditions = append(conditions, condition{fmt.Sprintf("%g dB", db), &db})
	}
	return conditions
}

// A clip is a take of one file, between quiet: as it is, and with noise, which is the same stretch of noise in each ratio.
type clip struct {
	file       string
	said       bool
	conditions []condition
	noise      [][]int16
	seed, n    uint64
}

// clips are the takes of the files, each for itself.
func clips(o Options, noise [][]int16) ([]condition, []take, error) {
	conditions := []condition{{name: "clean"}}
	if len(o.SNR) > 0 {
		if len(noise) == 0 {
			return nil, nil, fmt.Errorf("there is no noise for a ratio of %g dB", o.SNR[0])
		}
		conditions = append(conditions, inNoise(o.SNR)...)
	}
	var takes []take
	add := func(files []string, said bool) {
		for _, f := range files {
			takes = append(takes, &clip{f, said, conditions, noise, o.Seed, uint64(len(takes))})
		}
	}
	add(o.Positives, true)
	add(o.Negatives, false)
	return conditions, takes, nil
}

func (c *clip) sounds() ([]sounding, error) {
	samples, converted, err := read(c.file)
	if err != nil {
		return nil, err
	}
	quiet := Quiet(samples)
	t := truth{file: c.file, said: c.said, to: lengthOf(len(quiet)), start: QuietBefore}
	if !c.said {
		t.listened = lengthOf(len(samples))
	}
	var noise []int16
	var soundings []sounding
	for i, in := range c.conditions {
		sound := quiet
		if in.snr != nil {
			if noise == nil {
				noise = stretch(rand.New(rand.NewPCG(c.seed, c.n)), c.noise, len(quiet))
			}
			sound = mix(quiet, noise, *in.snr)
		}
		soundings = append(soundings, sounding{i, sound, t, converted})
	}
	return soundings, nil
}

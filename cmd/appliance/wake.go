package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/wake"
)

func wakeCommand(f *flags) *cobra.Command {
	var words []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "wake FILE...",
		Short: "Find wake words in recordings",
		Long: `Find wake words in recordings, WAV or FLAC: each detection with its time and score, or the best score if there is
none. A second and a half of quiet is put before each file, which the models need, and one second after it.`,
		Args: onlyArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			if len(words) > 0 {
				c.Wake.Words = words
			}
			s, err := newScorer(c.Wake)
			if err != nil {
				return &usageError{err}
			}
			var errs []error
			for _, path := range args {
				samples, format, err := audio.ReadFile(path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				r := s.score(path, samples)
				if !format.Inner() {
					r.Converted = format.String()
				}
				if err := r.print(cmd.OutOrStdout(), asJSON); err != nil {
					return err
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringSliceVar(&words, "words", nil, "the wake words to look for (default those of the configuration)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each file")
	return cmd
}

// A scorer runs wake word models over whole recordings.
type scorer struct {
	front      *wake.Frontend
	detectors  []*wake.Detector
	refractory time.Duration
}

// A finding is what was found in a recording. Times are seconds from its beginning.
type finding struct {
	File       string      `json:"file"`
	Converted  string      `json:"converted_from,omitempty"`
	Detections []detection `json:"detections"`
	Best       []detection `json:"best"` // the highest score of each word
}

type detection struct {
	Word  string  `json:"word"`
	Time  float64 `json:"time"`
	Score float64 `json:"score"`
}

func newScorer(o wake.Options) (*scorer, error) {
	if len(o.Words) == 0 {
		o.Words = []string{"okay_nabu"}
	}
	s := &scorer{refractory: o.Refractory}
	if s.refractory == 0 {
		s.refractory = 2 * time.Second
	}
	for _, word := range o.Words {
		m, err := wake.FindModel(word, o.ModelDirs)
		if err != nil {
			return nil, err
		}
		if m.Step != scoreStep {
			return nil, fmt.Errorf("wake word %q: its features are %v apart, this command knows only %v", word, m.Step, scoreStep)
		}
		d, err := wake.NewDetector(m, o.Cutoff[word])
		if err != nil {
			return nil, err
		}
		s.detectors = append(s.detectors, d)
	}
	return s, nil
}

// scoreStep is how far the slices of features are apart.
const scoreStep = 10 * time.Millisecond

// The quiet before and after a recording.
const (
	quietBefore = 1500 * time.Millisecond
	quietAfter  = time.Second
)

func (s *scorer) score(path string, samples []int16) finding {
	s.front = wake.NewFrontend(scoreStep)
	r := finding{File: path, Detections: []detection{}}
	last := make([]time.Duration, len(s.detectors))
	for i, d := range s.detectors {
		d.Reset()
		last[i] = -s.refractory - quietBefore
		r.Best = append(r.Best, detection{Word: d.Model().Name})
	}
	sound := padded(samples)
	const slice = int(audio.SampleRate / 100)
	var features wake.Features
	for at := 0; at+slice <= len(sound); at += slice {
		if !s.front.Write(sound[at:at+slice], &features) {
			continue
		}
		now := time.Duration(at+slice)*time.Second/time.Duration(audio.SampleRate) - quietBefore
		for i, d := range s.detectors {
			if !d.Write(&features) {
				continue
			}
			found := detection{d.Model().Name, now.Seconds(), d.Score()}
			if found.Score > r.Best[i].Score {
				r.Best[i] = found
			}
			if d.Heard() && now-last[i] >= s.refractory {
				r.Detections = append(r.Detections, found)
				last[i] = now
			}
		}
	}
	return r
}

// padded puts samples between quiet, which is low noise: digital silence is nothing that a microphone delivers.
func padded(samples []int16) []int16 {
	before := int(quietBefore * time.Duration(audio.SampleRate) / time.Second)
	after := int(quietAfter * time.Duration(audio.SampleRate) / time.Second)
	sound := make([]int16, before+len(samples)+after)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range sound {
		sound[i] = int16(noise.IntN(21) - 10)
	}
	for i, v := range samples {
		sum := int(sound[before+i]) + int(v)
		sound[before+i] = int16(min(max(sum, -1<<15), 1<<15-1))
	}
	return sound
}

func (r finding) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	note := ""
	if r.Converted != "" {
		note = " (converted from " + r.Converted + ")"
	}
	for _, d := range r.Detections {
		if _, err := fmt.Fprintf(w, "%s: %s at %.2f s, score %.2f%s\n", r.File, d.Word, d.Time, d.Score, note); err != nil {
			return err
		}
	}
	if len(r.Detections) == 0 {
		for _, d := range r.Best {
			if _, err := fmt.Fprintf(w, "%s: no %s; best score %.2f at %.2f s%s\n", r.File, d.Word, d.Score, d.Time, note); err != nil {
				return err
			}
		}
	}
	return nil
}

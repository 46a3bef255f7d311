package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/wake"
	"bellbird/wake/eval"
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
			s, err := newScorer(c.Wake, words)
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
				r, err := s.score(path, samples)
				if err != nil {
					errs = append(errs, err)
					continue
				}
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
	cmd.AddCommand(wakeEvalCommand(f))
	return cmd
}

// A scorer looks for wake words in whole recordings.
type scorer struct {
	words      []eval.Word
	models     []*wake.Model
	own        eval.Scorer
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

// newScorer returns one for the words of that name, as they are configured if they are, or else for those of the
// configuration.
func newScorer(o wake.Options, names []string) (*scorer, error) {
	configured := o.All()
	words := configured
	if len(names) > 0 {
		words = nil
		for _, name := range names {
			word := wake.Word{Name: name}
			if i := slices.IndexFunc(configured, func(w wake.Word) bool { return w.Name == name }); i >= 0 {
				word = configured[i]
			}
			words = append(words, word)
		}
	}
	s := &scorer{refractory: cmp.Or(o.Refractory, 2*time.Second)}
	for _, w := range words {
		m, err := wake.FindModel(w.Name, o.ModelDirs)
		if err != nil {
			return nil, err
		}
		if w.Window != 0 {
			other := *m
			other.Window = w.Window
			m = &other
		}
		s.models = append(s.models, m)
		s.words = append(s.words, eval.Word{Name: m.Name, Manifest: m.Cutoff, Config: w.Cutoff})
	}
	own, err := eval.NewScorer(s.models)
	s.own = own
	return s, err
}

func (s *scorer) score(path string, samples []int16) (finding, error) {
	courses, err := s.own.Score(eval.Quiet(samples))
	if err != nil {
		return finding{}, fmt.Errorf("%s: %w", path, err)
	}
	r := finding{File: path, Detections: []detection{}}
	for i, course := range courses {
		w := s.words[i]
		found := func(p eval.Point) detection {
			return detection{w.Name, (p.At - eval.QuietBefore).Seconds(), p.Score}
		}
		best := detection{Word: w.Name}
		if len(course) > 0 {
			best = found(course.Best())
		}
		r.Best = append(r.Best, best)
		for _, p := range course.Detections(cmp.Or(w.Config, w.Manifest), s.refractory) {
			r.Detections = append(r.Detections, found(p))
		}
	}
	slices.SortStableFunc(r.Detections, func(a, b detection) int { return cmp.Compare(a.Time, b.Time) })
	return r, nil
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
			best := "nothing like it"
			if d.Score > 0 {
				best = fmt.Sprintf("best score %.2f at %.2f s", d.Score, d.Time)
			}
			if _, err := fmt.Fprintf(w, "%s: no %s; %s%s\n", r.File, d.Word, best, note); err != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellbird/wake/eval"
)

const wakeEvalHelp = `Measure wake word models on recordings: how many calls are missed, and how often something else is taken for a call.

Positives are recordings in which the wake word is said once; negatives are ones in which it isn't. Both are files or
folders, WAV or FLAC, found at any depth. A file that is given as a positive, or with --except, is no negative, so that
folders may overlap. If there are several words, every positive must be one for each of them.

For each word and each condition there is a table over the cutoff, with 95 % confidence intervals. It has the cutoffs of
the manifest and of the configuration, and for each condition the lowest one from which on there is no false accept in
it. A speaker has one cutoff for all of them: take it from the condition that it is to be used in.

Conditions are "clean", as recorded, and one for each ratio of --snr, if there is noise. A second and a half of quiet is
put before each recording and a second after it. Noise is a stretch of one of its recordings, drawn by the seed, the
same in each ratio; it goes on before and after the recording. It is made so loud that the loudest frame of the
recording (512 samples) has that many decibels more energy than the loudest frame of the noise below it. If the sum is
too loud for 16 bits it is turned down.

A positive counts once, heard or missed. In a negative each detection counts, but none within the refractory time after
another. Hours are those of the negatives, without the quiet. Models believe nothing in their first second.

--preset public-benchmark follows the procedure of github.com/Picovoice/wake-word-benchmark instead: noise throughout,
10 dB (or --snr), 24 hours (or --hours). The calls are spread evenly over that time, in a random order. Between them
are negatives drawn at random, one in five of them heard, the others silent. Recordings of noise are drawn at random,
each as loud as 16 bits allow, one after the other; calls and negatives are brought to the ratio by their loudest frame
and that of the noise below. A call is heard if there is a detection until half a second after its end; each other
detection is a false accept. Unlike there, the sound is cut into pieces after each call, to be heard on all cores, and
each piece is brought to full loudness for itself.

The same seed and files give the same figures, on any number of cores. A recording that is bad is left out; the exit
code tells of it.`

// evalFlags are the flags of wake eval.
type evalFlags struct {
	positives, negatives, except, noise []string
	words                               []string
	snr                                 []float64
	preset                              string
	hours                               float64
	seed                                uint64
	workers                             int
	svg                                 string
	asJSON                              bool
}

const publicBenchmark = "public-benchmark"

func wakeEvalCommand(f *flags) *cobra.Command {
	var e evalFlags
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure wake word models on recordings",
		Long:  wakeEvalHelp,
		Example: `  bellbird wake eval --words alexa --positive rec/alexa --negative rec --noise rec/noise --snr 10,0 --svg alexa.svg
  bellbird wake eval --words alexa --positive rec/alexa --negative rec --noise rec/noise --preset public-benchmark`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			s, err := newScorer(c.Wake, e.words)
			if err != nil {
				return &usageError{err}
			}
			o, err := e.options(cmd.Flags().Changed("snr"))
			if err != nil {
				return err
			}
			o.Refractory = s.refractory
			return e.run(cmd.Context(), o, s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p := cmd.Flags()
	p.StringArrayVar(&e.positives, "positive", nil, "file or folder of recordings of the wake word; may be repeated")
	p.StringArrayVar(&e.negatives, "negative", nil, "file or folder of recordings without the wake word; may be repeated")
	p.StringArrayVar(&e.except, "except", nil, "file or folder that is left out of the negatives; may be repeated")
	p.StringArrayVar(&e.noise, "noise", nil, "file or folder of noise; may be repeated")
	p.Float64SliceVar(&e.snr, "snr", []float64{10, 0}, "signal-to-noise ratios in dB, if there is noise")
	p.StringVar(&e.preset, "preset", "", `"`+publicBenchmark+`": the procedure of the public wake word benchmark`)
	p.Float64Var(&e.hours, "hours", 24, "how much sound the preset makes")
	p.StringSliceVar(&e.words, "words", nil, "the wake words to measure (default those of the configuration)")
	p.Uint64Var(&e.seed, "seed", 1, "what is random comes from this number")
	p.IntVar(&e.workers, "workers", 0, "how many recordings to hear at once (default the number of cores)")
	p.StringVar(&e.svg, "svg", "", "also plot the figures into this file")
	p.BoolVar(&e.asJSON, "json", false, "print JSON, with the recordings that were missed or falsely accepted")
	return cmd
}

// options checks the flags and finds the files.
func (e *evalFlags) options(snrGiven bool) (o eval.Options, err error) {
	o = eval.Options{SNR: e.snr, Seed: e.seed, Workers: e.workers, Hours: e.hours}
	switch e.preset {
	case "":
	case publicBenchmark:
		o.Benchmark = true
		if !snrGiven {
			o.SNR = []float64{10}
		}
	default:
		return o, usagef("preset %q: the only one is %q", e.preset, publicBenchmark)
	}
	for _, snr := range o.SNR {
		if !(math.Abs(snr) <= 100) {
			return o, usagef("--snr %g: give decibels, -100 to 100", snr)
		}
	}
	switch {
	case !(e.hours > 0 && e.hours <= 1000):
		return o, usagef("--hours %g: give more than 0, and at most 1000", e.hours)
	case e.workers < 0 || e.workers > 1024:
		return o, usagef("--workers %d: give 1 to 1024, or 0 for the number of cores", e.workers)
	}
	var except []string
	for _, x := range []struct {
		flag string
		args []string
		into *[]string
	}{
		{"--positive", e.positives, &o.Positives}, {"--negative", e.negatives, &o.Negatives},
		{"--except", e.except, &except}, {"--noise", e.noise, &o.Noise},
	} {
		if *x.into, err = recordings(x.flag, x.args); err != nil {
			return o, err
		}
	}
	out := map[string]bool{}
	for _, path := range slices.Concat(o.Positives, except) {
		out[path] = true
	}
	o.Negatives = slices.DeleteFunc(o.Negatives, func(path string) bool { return out[path] })
	switch {
	case len(o.Positives)+len(o.Negatives) == 0:
		return o, usagef("nothing to measure: give recordings with --positive and --negative")
	case o.Benchmark && (len(o.Positives) == 0 || len(o.Negatives) == 0 || len(o.Noise) == 0 || len(o.SNR) == 0):
		return o, usagef("--preset %s: give recordings with --positive, --negative and --noise, and an --snr", publicBenchmark)
	case snrGiven && len(o.SNR) > 0 && len(o.Noise) == 0:
		return o, usagef("--snr without noise: give recordings of noise with --noise")
	case len(o.Noise) == 0:
		o.SNR = nil
	}
	return o, nil
}

// recordings finds the WAV and FLAC files in folders, at any depth; what is named itself is taken whatever its name.
func recordings(flag string, args []string) (files []string, err error) {
	for _, arg := range args {
		arg = filepath.Clean(arg)
		info, err := os.Stat(arg)
		if err != nil {
			return nil, usagef("%s: %v", flag, err)
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(arg+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
			ext := strings.ToLower(filepath.Ext(path))
			if err == nil && !d.IsDir() && (ext == ".wav" || ext == ".flac") {
				files = append(files, filepath.Clean(path))
			}
			return err
		})
		if err != nil {
			return nil, usagef("%s %s: %v", flag, arg, err)
		}
		if len(files) == before {
			return nil, usagef("%s %s: no .wav or .flac file in it: give another folder", flag, arg)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func (e *evalFlags) run(ctx context.Context, o eval.Options, s *scorer, stdout, stderr io.Writer) error {
	var plot *os.File
	if e.svg != "" { // now, for it would be a pity to find out later that it can't be written
		var err error
		if plot, err = os.Create(e.svg); err != nil {
			return usagef("--svg: %v", err)
		}
		defer plot.Close()
	}
	p := newProgress(stderr)
	o.Progress = p.show
	report, bad := eval.Run(ctx, o, s.words, func() (eval.Scorer, error) { return eval.NewScorer(s.models) })
	p.clear()
	if report == nil {
		return bad
	}
	if n := len(report.Converted); n > 0 {
		c := report.Converted[0]
		fmt.Fprintf(stderr, "converted: %s from %s", c.File, c.From)
		if n > 1 {
			fmt.Fprintf(stderr, ", and %d more", n-1)
		}
		fmt.Fprintln(stderr)
	}
	if plot != nil {
		if err := errors.Join(report.SVG(plot), plot.Close()); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	show := report.Text
	if e.asJSON {
		show = func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(report)
		}
	}
	if err := show(stdout); err != nil {
		return err
	}
	return bad
}

// A progress tells how far something is: on a terminal all the time, in one line, and elsewhere now and then.
type progress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, shown: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) show(done, total int) {
	pause, start, end := 5*time.Second, "", "\n"
	if p.terminal {
		pause, start, end = 100*time.Millisecond, "\r", ""
	}
	if now := time.Now(); now.Sub(p.shown) >= pause {
		p.shown = now
		fmt.Fprintf(p.w, "%s%d of %d recordings%s", start, done, total, end)
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

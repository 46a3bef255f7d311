package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/wake"
	"bellbird/wake/eval"
)

// A loudScorer takes loudness for the word: the score of every tenth of a second is its peak, half a second late.
type loudScorer struct{}

func (loudScorer) Score(sound []int16) ([]eval.Course, error) {
	var c eval.Course
	const n = 1600
	for at := 0; at+n <= len(sound); at += n {
		peak := 0
		for _, v := range sound[at : at+n] {
			peak = max(peak, int(v), -int(v))
		}
		if score := float64(peak) / 32768; score > eval.Floor {
			c = append(c, eval.Point{At: time.Duration(at+n)*time.Second/time.Duration(audio.SampleRate) + time.Second/2, Score: score})
		}
	}
	return []eval.Course{c}, nil
}

func newLoud() (eval.Scorer, error) { return loudScorer{}, nil }

var loudWord = []eval.Word{{Name: "loud", Manifest: 0.5, Config: 0.4}}

// wav writes a recording with a tone of each of the loudnesses, a second of each, and returns its path.
func wav(t *testing.T, dir, name string, loudness ...float64) string {
	t.Helper()
	path := filepath.Join(dir, name)
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loudness {
		var samples []int16
		for i := range audio.SampleRate {
			samples = append(samples, int16(32767*l*math.Sin(float64(i)*0.3)))
		}
		if err := w.WriteSamples(samples); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	o := eval.Options{
		Positives: []string{wav(t, dir, "a.wav", 0.3), wav(t, dir, "b.wav", 0.45, 0.45), wav(t, dir, "c.wav", 0.8), wav(t, dir, "d.wav", 0.97)},
		// At 0.2 there are three detections in the second, for the refractory time is 2 s, and none in the first.
		Negatives: []string{wav(t, dir, "e.wav", 0.1), wav(t, dir, "f.wav", 0.25, 0.25, 0.25, 0.25, 0.25)},
	}
	r, err := eval.Run(t.Context(), o, loudWord, newLoud)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	want := `loud, clean: 4 positives, 2 negatives in 0.00 hours
  cutoff  missed  miss rate         between  false accepts  per hour           between
    0.10       0      0.0 %    0.0 - 49.0 %              4   2400.00  653.92 - 6144.95
    0.20       0      0.0 %    0.0 - 49.0 %              3   1800.00  371.20 - 5260.36
   0.251       0      0.0 %    0.0 - 49.0 %              0      0.00    0.00 - 2213.33  no false accept clean
    0.30       0      0.0 %    0.0 - 49.0 %              0      0.00    0.00 - 2213.33
    0.40       1     25.0 %    4.6 - 69.9 %              0      0.00    0.00 - 2213.33  configuration
    0.50       2     50.0 %   15.0 - 85.0 %              0      0.00    0.00 - 2213.33  manifest
    0.60       2     50.0 %   15.0 - 85.0 %              0      0.00    0.00 - 2213.33
    0.70       2     50.0 %   15.0 - 85.0 %              0      0.00    0.00 - 2213.33
    0.80       2     50.0 %   15.0 - 85.0 %              0      0.00    0.00 - 2213.33
    0.90       3     75.0 %   30.1 - 95.4 %              0      0.00    0.00 - 2213.33
    0.95       3     75.0 %   30.1 - 95.4 %              0      0.00    0.00 - 2213.33
    0.97       3     75.0 %   30.1 - 95.4 %              0      0.00    0.00 - 2213.33
    0.99       4    100.0 %  51.0 - 100.0 %              0      0.00    0.00 - 2213.33

Between: 95 % confidence, Wilson for the miss rate, exact Poisson for false accepts per hour. Seed 0.
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	missed := r.Words[0].Conditions[0].Missed // at 0.4
	if len(missed) != 1 || missed[0].File != o.Positives[0] || math.Abs(missed[0].Score-0.3) > 0.01 {
		t.Errorf("missed: %v", missed)
	}
}

// report is what a run prints, in all ways.
func report(t *testing.T, o eval.Options) string {
	t.Helper()
	r, err := eval.Run(t.Context(), o, loudWord, newLoud)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := errors.Join(r.Text(&out), r.SVG(&out), json.NewEncoder(&out).Encode(r)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRepeatable(t *testing.T) {
	dir := t.TempDir()
	o := eval.Options{SNR: []float64{10}, Noise: []string{wav(t, dir, "noise.wav", 0.1, 0.02, 0.3), wav(t, dir, "wind.wav", 0, 0.4)}}
	for i := range 3 {
		o.Positives = append(o.Positives, wav(t, dir, fmt.Sprintf("p%d.wav", i), float64(i+1)/10))
		o.Negatives = append(o.Negatives, wav(t, dir, fmt.Sprintf("n%d.wav", i), 0.01, float64(i+1)/30))
	}
	o.Hours = 0.003
	for _, o.Benchmark = range []bool{false, true} {
		o.Seed, o.Workers = 7, 1
		one := report(t, o)
		for _, o.Workers = range []int{3} {
			if report(t, o) != one {
				t.Errorf("benchmark %v: %d workers get something else than 1", o.Benchmark, o.Workers)
			}
		}
		o.Seed = 8
		if report(t, o) == one {
			t.Errorf("benchmark %v: another seed makes no difference", o.Benchmark)
		}
	}
}

func TestSVG(t *testing.T) {
	dir := t.TempDir()
	r, err := eval.Run(t.Context(), eval.Options{Positives: []string{wav(t, dir, "a.wav", 0.3)}}, []eval.Word{{Name: "<&>", Manifest: 0.5}}, newLoud)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.SVG(&out); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || strings.Contains(s, "%!") {
		t.Errorf("%s", s)
	}
	for d := xml.NewDecoder(&out); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A bad recording is left out and named; the others count.
func TestBadRecordings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := wav(t, dir, "good.wav", 0.9)
	empty, junk, none := write("empty.wav", ""), write("junk.wav", "no sound at all"), wav(t, dir, "none.wav")
	silent := wav(t, dir, "silent.wav", 0)
	o := eval.Options{Positives: []string{empty, good, none}, Negatives: []string{junk}, Noise: []string{silent, good}, SNR: []float64{0}}
	r, err := eval.Run(t.Context(), o, loudWord, newLoud)
	if r == nil || err == nil {
		t.Fatal("no report, or no error:", err)
	}
	if c := r.Words[0].Conditions[0]; c.Positives != 1 || c.Negatives != 0 || r.LeftOut != 4 {
		t.Errorf("%d positives, %d negatives, %d left out", c.Positives, c.Negatives, r.LeftOut)
	}
	lines := strings.Split(err.Error(), "\n")
	for _, path := range []string{empty, none, junk, silent} {
		n := 0
		for _, l := range lines {
			if strings.HasPrefix(l, path+": ") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d lines about %s in %q", n, path, lines)
		}
	}
	o.Noise = o.Noise[:1]
	if r, err := eval.Run(t.Context(), o, loudWord, newLoud); r != nil || err == nil {
		t.Error("ratios without noise are measured")
	}
	o.Benchmark, o.Hours = true, 0.01
	if r, err := eval.Run(t.Context(), o, loudWord, newLoud); r != nil || err == nil {
		t.Error("the benchmark leaves out what is bad")
	}
}

// A brokenScorer has no scores.
type brokenScorer struct{}

func (brokenScorer) Score([]int16) ([]eval.Course, error) { return nil, errors.New("its score is NaN") }

func TestBrokenModel(t *testing.T) {
	path := wav(t, t.TempDir(), "a.wav", 0.3)
	o := eval.Options{Positives: []string{path}}
	r, err := eval.Run(t.Context(), o, loudWord, func() (eval.Scorer, error) { return brokenScorer{}, nil })
	if r == nil || err == nil || err.Error() != path+": its score is NaN" {
		t.Error(r, err)
	}
	none := errors.New("no model")
	if r, err := eval.Run(t.Context(), o, loudWord, func() (eval.Scorer, error) { return nil, none }); r != nil || !errors.Is(err, none) {
		t.Error(r, err)
	}
}

func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	var o eval.Options
	for i := range 20 {
		o.Positives = append(o.Positives, wav(t, dir, fmt.Sprintf("%d.wav", i), 0.5))
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(done, total int) {
		if total != 20 {
			t.Errorf("%d of %d", done, total)
		}
		if done == 3 {
			cancel()
		}
	}
	if r, err := eval.Run(ctx, o, loudWord, newLoud); r != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "of 20") {
		t.Error(r, err)
	}
}

// TestModels measures real models on real people, where there are any.
func TestModels(t *testing.T) {
	const speech = "../../../shared/data/speech/"
	files := func(pattern string) []string {
		paths, err := filepath.Glob(speech + pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			t.Skipf("no recordings in %s", speech)
		}
		return paths
	}
	m, err := wake.FindModel("alexa", []string{"../../models", "../../../shared/data/models/microwakeword"})
	if err != nil {
		t.Skip(err)
	}
	o := eval.Options{
		Positives: files("wake/alexa/alexa_00*.flac"), Negatives: files("wake/computer/computer_0c*.flac"),
		Noise: files("noise/*.flac"), SNR: []float64{10}, Seed: 1,
	}
	words := []eval.Word{{Name: m.Name, Manifest: m.Cutoff}}
	r, err := eval.Run(t.Context(), o, words, func() (eval.Scorer, error) { return eval.NewScorer([]*wake.Model{m}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Words[0].Conditions {
		at := c.At(m.Cutoff)
		t.Logf("%s: %d of %d missed, %d false accepts", c.Name, at.Missed, c.Positives, at.Accepts)
		if allowed := map[string]int{"clean": 0, "10 dB": 1}[c.Name]; at.Missed > allowed || at.Accepts > 0 || c.Positives < 3 {
			t.Errorf("%s: %d of %d missed, %d false accepts", c.Name, at.Missed, c.Positives, at.Accepts)
		}
	}
}

// Models of both kinds are measured together, each with the course that it has alone.
func TestOpenWakeWord(t *testing.T) {
	dirs := []string{"../../../shared/data/models/openwakeword", "../../models", "../../../shared/data/models/microwakeword"}
	var models []*wake.Model
	for _, name := range []string{"alexa_v0.1", "alexa", "ok_nabu_v0.1"} {
		m, err := wake.FindModel(name, dirs)
		if err != nil {
			t.Skip(err)
		}
		models = append(models, m)
	}
	samples, _, err := audio.ReadFile("../../../shared/data/speech/wake/reference_tests/alexa_pymicro_1.flac")
	if err != nil {
		t.Skip(err)
	}
	sound := eval.Quiet(samples)
	together, err := eval.NewScorer(models)
	if err != nil {
		t.Fatal(err)
	}
	var all []eval.Course
	for range 2 { // the second from the same state as the first
		courses, err := together.Score(sound)
		if err != nil {
			t.Fatal(err)
		}
		if all != nil && !slices.EqualFunc(all, courses, slices.Equal) {
			t.Error("another course the second time")
		}
		all = courses
	}
	for i, m := range models {
		alone, err := eval.NewScorer([]*wake.Model{m})
		if err != nil {
			t.Fatal(err)
		}
		course, err := alone.Score(sound)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(course[0], all[i]) {
			t.Errorf("%s has another course alone", m.Name)
		}
		if found := all[i].Detections(m.Cutoff, 2*time.Second); len(found) != map[string]int{"alexa_v0.1": 1, "alexa": 1}[m.Name] {
			t.Errorf("%s: %v", m.Name, found)
		}
	}
}

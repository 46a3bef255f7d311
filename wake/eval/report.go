package eval

import (
	"slices"
	"time"
)

// A Report is what was measured. It can be printed (Text), plotted (SVG), and encoded as JSON.
type Report struct {
	Procedure string        `json:"procedure"`
	Seed      uint64        `json:"seed"`
	LeftOut   int           `json:"left_out"` // recordings that are bad
	Converted []Converted   `json:"converted,omitempty"`
	Words     []*WordReport `json:"words"`

	refractory time.Duration
}

// A WordReport is what was measured of one word.
type WordReport struct {
	Name       string       `json:"word"`
	Manifest   float64      `json:"manifest_cutoff"`
	Config     float64      `json:"config_cutoff,omitempty"`
	Conditions []*Condition `json:"conditions"`
}

// A Condition is what was measured of one word in one kind of surroundings.
type Condition struct {
	Name      string   `json:"condition"`
	SNR       *float64 `json:"snr,omitempty"` // absent: as recorded
	Positives int      `json:"positives"`
	Negatives int      `json:"negatives"` // recordings, or stretches, in which something can be falsely accepted
	Hours     float64  `json:"hours"`     // of them
	Quiet     float64  `json:"cutoff_without_false_accept,omitempty"`
	Rows      []Row    `json:"cutoffs"`

	// Missed and Accepted are what to listen to: at the cutoff of the configuration, or else of the manifest, the
	// positives in which the word was not heard, each with its best score, and where it was heard though it wasn't said.
	Missed   []Finding `json:"missed,omitempty"`
	Accepted []Finding `json:"accepted,omitempty"`

	evidence   []evidence
	refractory time.Duration
}

// A Finding is a score at a time of a recording.
type Finding struct {
	File  string  `json:"file,omitempty"`
	Time  float64 `json:"time"` // in seconds
	Score float64 `json:"score"`
}

// A Row is what a cutoff leads to, with 95 % confidence intervals. Without positives, or hours, it says nothing of them.
type Row struct {
	Cutoff float64  `json:"cutoff"`
	Notes  []string `json:"notes,omitempty"` // why it is in the table

	Missed   int     `json:"missed"`
	Miss     float64 `json:"miss_rate"`
	MissLow  float64 `json:"miss_rate_low"`
	MissHigh float64 `json:"miss_rate_high"`

	Accepts     int     `json:"false_accepts"`
	PerHour     float64 `json:"false_accepts_per_hour"`
	PerHourLow  float64 `json:"false_accepts_per_hour_low"`
	PerHourHigh float64 `json:"false_accepts_per_hour_high"`
}

// evidence is a course beside the truth.
type evidence struct {
	truth  truth
	course Course
}

func newReport(o Options, words []Word, conditions []condition) *Report {
	r := &Report{Procedure: "clips", Seed: o.Seed, refractory: o.Refractory}
	if o.Benchmark {
		r.Procedure = "public-benchmark"
	}
	for _, w := range words {
		word := &WordReport{Name: w.Name, Manifest: w.Manifest, Config: w.Config}
		for _, c := range conditions {
			word.Conditions = append(word.Conditions, &Condition{Name: c.name, SNR: c.snr, refractory: o.Refractory})
		}
		r.Words = append(r.Words, word)
	}
	return r
}

// cutoffs are in every table.
var cutoffs = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99}

// count makes the tables.
func (r *Report) count() {
	for _, w := range r.Words {
		for _, c := range w.Conditions {
			var listened time.Duration
			for _, e := range c.evidence {
				if e.truth.said {
					c.Positives++
				}
				if e.truth.listened > 0 {
					c.Negatives++
				}
				listened += e.truth.listened
			}
			c.Hours = listened.Hours()
			if c.Negatives > 0 {
				c.Quiet = c.lowestQuiet()
			}
		}
		for _, c := range w.Conditions {
			c.tabulate(w)
		}
	}
}

func (c *Condition) tabulate(w *WordReport) {
	notes := map[float64][]string{}
	at := slices.Clone(cutoffs)
	add := func(cutoff float64, note string) {
		at = append(at, cutoff)
		notes[cutoff] = append(notes[cutoff], note)
	}
	add(w.Manifest, "manifest")
	current := w.Manifest
	if w.Config != 0 {
		add(w.Config, "configuration")
		current = w.Config
	}
	for _, other := range w.Conditions {
		if other.Quiet > 0 {
			add(other.Quiet, "no false accept "+other.Name)
		}
	}
	slices.Sort(at)
	for _, cutoff := range slices.Compact(at) {
		row := c.At(cutoff)
		row.Notes = notes[cutoff]
		c.Rows = append(c.Rows, row)
	}
	for _, e := range c.evidence {
		hit, accepted := e.at(current, c.refractory)
		if e.truth.said && !hit {
			c.Missed = append(c.Missed, e.finding(e.said().Best()))
		}
		for _, p := range accepted {
			c.Accepted = append(c.Accepted, e.finding(p))
		}
	}
}

// lowestQuiet is the lowest cutoff, in thousandths, from which on there is no false accept.
func (c *Condition) lowestQuiet() float64 {
	n := 1000
	for ; n > 6; n-- { // Floor is 0.005
		if _, accepts := c.at(float64(n-1) / 1000); accepts > 0 {
			break
		}
	}
	return float64(n) / 1000
}

// at counts what happens at a cutoff, which is at least Floor.
func (c *Condition) at(cutoff float64) (missed, accepts int) {
	for _, e := range c.evidence {
		hit, accepted := e.at(cutoff, c.refractory)
		if e.truth.said && !hit {
			missed++
		}
		accepts += len(accepted)
	}
	return missed, accepts
}

// At is the row of a cutoff, which is at least Floor.
func (c *Condition) At(cutoff float64) Row {
	r := Row{Cutoff: cutoff}
	r.Missed, r.Accepts = c.at(cutoff)
	if c.Positives > 0 {
		r.Miss = float64(r.Missed) / float64(c.Positives)
	}
	r.MissLow, r.MissHigh = Wilson(r.Missed, c.Positives)
	if c.Hours > 0 {
		low, high := Poisson(r.Accepts)
		r.PerHour, r.PerHourLow, r.PerHourHigh = float64(r.Accepts)/c.Hours, low/c.Hours, high/c.Hours
	}
	return r
}

// at tells whether the call was heard, if there was one, and what else was.
func (e evidence) at(cutoff float64, refractory time.Duration) (hit bool, accepted []Point) {
	for _, p := range e.course.Detections(cutoff, refractory) {
		switch {
		case e.truth.said && p.At >= e.truth.from && p.At <= e.truth.to:
			hit = true
		case e.truth.listened > 0:
			accepted = append(accepted, p)
		}
	}
	return hit, accepted
}

// said is the course while the word is said.
func (e evidence) said() (c Course) {
	for _, p := range e.course {
		if p.At >= e.truth.from && p.At <= e.truth.to {
			c = append(c, p)
		}
	}
	return c
}

func (e evidence) finding(p Point) Finding {
	if p.Score == 0 {
		return Finding{File: e.truth.file}
	}
	return Finding{e.truth.file, (p.At - e.truth.start).Seconds(), p.Score}
}

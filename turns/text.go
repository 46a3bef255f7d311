package turns

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Family is a metric as Prometheus knows it. Its name and its labels' names are ours; values may be anything.
type Family struct {
	Name, Help string
	Type       string // "counter", "gauge" or "summary"
	Samples    []Sample
}

// A Sample is one value of a family.
type Sample struct {
	Suffix string   // of the name: "_sum" or "_count" in a summary
	Labels []string // name, value, name, value …
	Value  float64
}

// Gauge is a family of one value without labels.
func Gauge(name, help string, v float64) Family {
	return Family{name, help, "gauge", []Sample{{Value: v}}}
}

// Counter is a family of one value without labels.
func Counter(name, help string, v float64) Family {
	return Family{name, help, "counter", []Sample{{Value: v}}}
}

// WriteText writes families in the text format of Prometheus, version 0.0.4. Those without samples are left out.
func WriteText(w io.Writer, families []Family) error {
	var b bytes.Buffer
	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}
		b.WriteString("# HELP " + f.Name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.Help) + "\n")
		b.WriteString("# TYPE " + f.Name + " " + f.Type + "\n")
		for _, s := range f.Samples {
			b.WriteString(f.Name + s.Suffix)
			for i := 0; i+1 < len(s.Labels); i += 2 {
				b.WriteString([]string{"{", ","}[min(i, 1)] + s.Labels[i] + `="` + label(s.Labels[i+1]) + `"`)
			}
			if len(s.Labels) > 0 {
				b.WriteString("}")
			}
			b.WriteString(" " + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func label(v string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(v, "�"))
}

// windowSize is over how many of the last values the quantiles of a window go.
const windowSize = 512

// A window is the last values of something that is measured.
type window struct {
	last  []float64
	next  int
	sum   float64 // of all that there ever were
	count uint64
}

func (w *window) add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	w.sum += v
	w.count++
	if len(w.last) < windowSize {
		w.last = append(w.last, v)
		return
	}
	w.last[w.next] = v
	w.next = (w.next + 1) % windowSize
}

// Quantile is the smallest of some values, which are in ascending order and at least one, such that this share of them
// is not above it.
func Quantile(ordered []float64, share float64) float64 {
	i := int(math.Ceil(share*float64(len(ordered)))) - 1
	return ordered[min(max(i, 0), len(ordered)-1)]
}

// samples are those of a summary.
func (w *window) samples(labels ...string) []Sample {
	if w.count == 0 {
		return nil
	}
	ordered := slices.Sorted(slices.Values(w.last))
	var all []Sample
	for _, q := range []float64{0.5, 0.95, 0.99} {
		name := strconv.FormatFloat(q, 'g', -1, 64)
		all = append(all, Sample{Labels: append(slices.Clone(labels), "quantile", name), Value: Quantile(ordered, q)})
	}
	return append(all, Sample{Suffix: "_sum", Labels: labels, Value: w.sum}, Sample{Suffix: "_count", Labels: labels, Value: float64(w.count)})
}

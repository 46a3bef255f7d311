package eval

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text prints the tables.
func (r *Report) Text(out io.Writer) error {
	w := &printer{w: out}
	for i, word := range r.Words {
		if i > 0 {
			w.printf("\n")
		}
		for j, c := range word.Conditions {
			if j > 0 {
				w.printf("\n")
			}
			w.printf("%s, %s: %s, %s in %.2f hours\n", word.Name, c.Name,
				count(c.Positives, "positive"), count(c.Negatives, "negative"), c.Hours)
			c.table(w)
		}
	}
	w.printf("\nBetween: 95 %% confidence, Wilson for the miss rate, exact Poisson for false accepts per hour. Seed %d.\n", r.Seed)
	if r.LeftOut > 0 {
		w.printf("%s left out; see the errors.\n", count(r.LeftOut, "bad recording"))
	}
	return w.err
}

func (c *Condition) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cutoff\tmissed\tmiss rate\tbetween\tfalse accepts\tper hour\tbetween\t\n")
	for _, r := range c.Rows {
		misses, accepts := "-\t-\t-", "-\t-\t-"
		if c.Positives > 0 {
			misses = fmt.Sprintf("%d\t%.1f %%\t%.1f - %.1f %%", r.Missed, 100*r.Miss, 100*r.MissLow, 100*r.MissHigh)
		}
		if c.Hours > 0 {
			accepts = fmt.Sprintf("%d\t%.2f\t%.2f - %.2f", r.Accepts, r.PerHour, r.PerHourLow, r.PerHourHigh)
		}
		// What isn't ended by a tab isn't aligned: the notes stand where they stand.
		note := ""
		if len(r.Notes) > 0 {
			note = "  " + strings.Join(r.Notes, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cutoffText(r.Cutoff), misses, accepts, note)
	}
	w.Flush() // the printer keeps the error
}

// cutoffText has two places, or three if they are needed.
func cutoffText(c float64) string {
	s := fmt.Sprintf("%.3f", c)
	if strings.HasSuffix(s, "0") {
		return s[:len(s)-1]
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A printer keeps the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.w.Write(b)
	p.err = err
	return n, err
}

package eval

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The plot has a row for each word: on the left the miss rate over the cutoff, on the right the miss rate against false
// accepts per hour. Each condition is a line, with a dot at the cutoff in use.

const (
	panelWidth  = 420.0
	panelHeight = 260.0
	marginLeft  = 70.0
	marginTop   = 60.0
	rowHeight   = panelHeight + 120
	columnWidth = panelWidth + 100
	ticks       = 5
)

// colors can be told apart by all eyes (Okabe and Ito).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// SVG plots the report.
func (r *Report) SVG(out io.Writer) error {
	w := &printer{w: out}
	width, height := marginLeft+2*columnWidth, rowHeight*float64(len(r.Words))+10
	w.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="13">`+"\n", width, height)
	w.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	for i, word := range r.Words {
		word.plot(w, float64(i)*rowHeight)
	}
	w.printf("</svg>\n")
	return w.err
}

// A panel is a plot with linear axes from 0.
type panel struct {
	w                *printer
	left, top        float64
	xMax, yMax       float64
	xLabel, yLabel   string
	xFormat, yFormat string
}

func (p *panel) x(v float64) float64 { return p.left + v/p.xMax*panelWidth }
func (p *panel) y(v float64) float64 { return p.top + panelHeight - v/p.yMax*panelHeight }

func (p *panel) axes() {
	for i := range ticks + 1 {
		share := float64(i) / ticks
		x, y := p.x(share*p.xMax), p.y(share*p.yMax)
		p.w.printf(`<path d="M%.1f %.1fv%.1fM%.1f %.1fh%.1f" stroke="#ddd"/>`+"\n", x, p.top, panelHeight, p.left, y, panelWidth)
		p.w.printf(`<text x="%.1f" y="%.1f" text-anchor="middle">`+p.xFormat+"</text>\n", x, p.top+panelHeight+18, share*p.xMax)
		p.w.printf(`<text x="%.1f" y="%.1f" text-anchor="end">`+p.yFormat+"</text>\n", p.left-6, y+4, share*p.yMax)
	}
	p.w.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#444"/>`+"\n", p.left, p.top, panelWidth, panelHeight)
	p.w.printf(`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", p.left+panelWidth/2, p.top+panelHeight+40, p.xLabel)
	x, y := p.left-48, p.top+panelHeight/2
	p.w.printf(`<text x="%.1f" y="%.1f" text-anchor="middle" transform="rotate(-90 %.1f %.1f)">%s</text>`+"\n", x, y, x, y, p.yLabel)
}

// line draws the points, and a dot at the one given. Of what is beyond the axes only the way to the edge is seen.
func (p *panel) line(points [][2]float64, dot [2]float64, color string) {
	var d strings.Builder
	for i, q := range points {
		move := "L"
		if i == 0 {
			move = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", move, p.x(q[0]), p.y(q[1]))
	}
	// The inner svg clips.
	p.w.printf(`<svg x="%.1f" y="%.1f" width="%.1f" height="%.1f" viewBox="%.1f %.1f %.1f %.1f">`, p.left-5, p.top-5,
		panelWidth+10, panelHeight+10, p.left-5, p.top-5, panelWidth+10, panelHeight+10)
	p.w.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, &d, color)
	p.w.printf(`<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s"/></svg>`+"\n", p.x(dot[0]), p.y(dot[1]), color)
}

func (w *WordReport) plot(out *printer, top float64) {
	current := w.Manifest
	if w.Config != 0 {
		current = w.Config
	}
	// The axes end where it gets uninteresting: a cutoff so high or low that nobody would have it.
	missMax, hourMax := 0.05, 1.0
	for _, c := range w.Conditions {
		missMax = max(missMax, c.At(current).Miss, c.At(0.95).Miss)
		hourMax = max(hourMax, c.At(current).PerHour, c.At(0.3).PerHour)
	}
	missMax, hourMax = min(round(100*missMax), 100), round(hourMax)
	left := &panel{out, marginLeft, top + marginTop, 1, missMax, "cutoff", "miss rate, %", "%.1f", format(missMax)}
	right := &panel{out, marginLeft + columnWidth, top + marginTop, hourMax, missMax, "false accepts per hour", "miss rate, %",
		format(hourMax), format(missMax)}
	out.printf(`<text x="%.1f" y="%.1f" font-size="16" font-weight="bold">%s</text>`+"\n", marginLeft, top+28, html.EscapeString(w.Name))
	left.axes()
	right.axes()
	x := marginLeft + 200
	for i, c := range w.Conditions {
		color := colors[i%len(colors)]
		var overCutoff, overHour [][2]float64
		for n := 1; n < 100; n++ {
			cutoff := float64(n) / 100
			row := c.At(cutoff)
			overCutoff = append(overCutoff, [2]float64{cutoff, 100 * row.Miss})
			overHour = append(overHour, [2]float64{row.PerHour, 100 * row.Miss})
		}
		now := c.At(current)
		left.line(overCutoff, [2]float64{current, 100 * now.Miss}, color)
		right.line(overHour, [2]float64{now.PerHour, 100 * now.Miss}, color)
		out.printf(`<path d="M%.1f %.1fh24" stroke="%s" stroke-width="2"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			x, top+23, color, x+30, top+28, html.EscapeString(c.Name))
		x += 50 + 8*float64(len(c.Name))
	}
	out.printf(`<circle cx="%.1f" cy="%.1f" r="4.5" fill="#444"/><text x="%.1f" y="%.1f">cutoff %s</text>`+"\n",
		x+10, top+23, x+22, top+28, cutoffText(current))
}

// round is v or a little more: 1, 2 or 5 times a power of ten.
func round(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// format is how the ticks of an axis that ends at v are written.
func format(v float64) string {
	if v < ticks {
		return "%.1f"
	}
	return "%.0f"
}

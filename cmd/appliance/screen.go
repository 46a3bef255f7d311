package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"bellbird/event"
	"bellbird/hooks"
)

// A screen shows what the appliance does on a terminal: the LED ring, each change of state, what was heard and said,
// and a waterfall of each turn.
type screen struct {
	w     io.Writer
	began time.Time
	color bool
}

func newScreen(w io.Writer, began time.Time) *screen {
	s := &screen{w: w, began: began}
	if _, live := w.(*panel); live {
		s.color = true
	} else if f, ok := w.(*os.File); ok && os.Getenv("NO_COLOR") == "" {
		info, err := f.Stat()
		s.color = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// looks are how the ring shows a state: which LEDs are on, and in which ANSI colour.
var looks = map[event.State]struct{ leds, color string }{
	event.Idle:      {"○○○○○○○○○○○○", "2"},
	event.Listening: {"●●●●●●●●●●●●", "36"},
	event.Thinking:  {"●●○●●○●●○●●○", "33"},
	event.Speaking:  {"●○●○●○●○●○●○", "32"},
	event.FollowUp:  {"●○○●○○●○○●○○", "36"},
	event.Failed:    {"●●●●●●●●●●●●", "31"},
}

const ringing = "◉◉◉◉◉◉○○○○○○"

// show prints a fact.
func (s *screen) show(f event.Fact) {
	switch f := f.(type) {
	case event.StateChanged:
		look := looks[f.To]
		s.line(f.At, look.color, look.leds, string(f.To))
	case event.Woke:
		what := "woke to"
		if f.Stops {
			what = "stopped by"
		}
		s.line(f.At, "1", "", fmt.Sprintf("%s %q (score %.2f)", what, f.Word, f.Score))
	case event.NearMiss:
		s.line(f.At, "2", "", fmt.Sprintf("nearly %q (score %.2f, not above %.2f)", f.Word, f.Peak, f.Bar))
	case event.MicrophoneFault:
		s.line(f.At, looks[event.Failed].color, looks[event.Failed].leds, "the microphone is deaf: "+f.Reason)
	case event.MicrophoneWell:
		s.line(f.At, "1", "", "the microphone is well again")
	case event.Heard:
		text := fmt.Sprintf("heard %q", f.Text)
		switch {
		case f.Private:
			text = "heard something in private"
		case f.Text == "":
			text = "heard something else"
		}
		s.line(f.At, "1", "", text)
	case event.Said:
		if !f.Private {
			s.line(f.At, "1", "", fmt.Sprintf("says %q", f.Text))
		}
	case event.TimerChanged:
		leds := ""
		if f.What == event.TimerRinging {
			leds = ringing
		}
		what := fmt.Sprintf("timer of %v", f.Total)
		if f.Alarm {
			what = "alarm at " + f.Ends.Format("15:04")
		}
		late := ""
		if f.Late {
			late = ", late"
		}
		s.line(f.At, "35", leds, fmt.Sprintf("%s: %s%s", what, f.What, late))
	case event.VolumeChanged:
		text := fmt.Sprintf("volume %d %%", f.Percent)
		if f.Muted {
			text += ", muted"
		}
		s.line(f.At, "1", "", text)
	case event.HookMissed:
		s.line(f.At, "31", "", fmt.Sprintf("plugin %s is left out at %s for %v", f.Plugin, f.Point, f.For))
	case event.TurnEnded:
		s.waterfall(f.Record)
	}
}

func (s *screen) line(at time.Time, color, leds, text string) {
	if leds == "" {
		leds = strings.Repeat(" ", utf8.RuneCountInString(ringing))
	}
	fmt.Fprintf(s.w, "%7.2fs  %s  %s\n", at.Sub(s.began).Seconds(), s.paint(color, leds), text)
}

func (s *screen) paint(color, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

const waterfallWidth = 48

// waterfall draws when a turn reached its stages. Each row begins where the one before ended.
func (s *screen) waterfall(r event.Record) {
	outcome := string(r.Outcome)
	if r.Error != "" {
		outcome += ": " + string(r.Error)
	}
	fmt.Fprintf(s.w, "\n          turn %d: %s\n", r.Run, outcome)
	st := r.Stages
	total := time.Duration(st.End)
	var last time.Duration
	row := func(name string, at event.Millis) {
		if at == 0 && name != "wake" {
			return
		}
		from, to := column(last, total), column(time.Duration(at), total)
		bar := strings.Repeat(" ", from) + s.paint("36", strings.Repeat("━", max(to-from, 1)))
		fmt.Fprintf(s.w, "          %-11s %6d ms  %s\n", name, time.Duration(at).Milliseconds(), bar)
		last = max(last, time.Duration(at))
	}
	if r.WakeWord != "" {
		row("wake", 0)
	}
	row("last word", st.Voiced)
	row("endpoint", st.Endpoint)
	row("recognised", st.Recognised)
	row("first word", st.FirstWord)
	row("first sound", st.FirstSound)
	row("end", st.End)
	for _, h := range r.Hooks {
		if h.Outcome == string(hooks.NoMatch) {
			continue // a voice command that was not said
		}
		from, to := column(time.Duration(h.Began), total), column(time.Duration(h.Began+h.Took), total)
		bar := strings.Repeat(" ", from) + s.paint("35", strings.Repeat("─", max(to-from, 1)))
		fmt.Fprintf(s.w, "          %-11s %6.1f ms  %s %s %s\n", "hook", 1000*time.Duration(h.Took).Seconds(), bar, h.Plugin, describeCall(h))
	}
	fmt.Fprintln(s.w)
}

func column(at, total time.Duration) int {
	if total <= 0 {
		return 0
	}
	return int(int64(waterfallWidth) * int64(at) / int64(total))
}

// describeCall is a hook's point, and its outcome where that is not the usual one.
func describeCall(h event.HookCall) string {
	if h.Outcome == "committed" {
		return h.Point
	}
	return h.Point + ": " + h.Outcome
}

package intents

import (
	"strings"
	"time"
)

var units = map[string]time.Duration{
	"second": time.Second, "seconds": time.Second,
	"minute": time.Minute, "minutes": time.Minute,
	"hour": time.Hour, "hours": time.Hour,
}

// durationOf is the length of time that words say: one hour and thirty minutes, an hour and a half, two and a half
// minutes, three quarters of an hour. Which words may stand where is the templates' business; words that have no
// meaning here are passed over.
func durationOf(words []string) time.Duration {
	var (
		total   time.Duration
		last    time.Duration // the unit said before
		number  []string      // number words since then
		quarter int           // halves and quarters since then, in quarters
		part    bool          // there were some
	)
	for i, w := range words {
		unit := units[w]
		_, isDigit := digit(w)
		switch {
		case isDigit, w == "hundred":
			number = append(number, w)
		case w == "half":
			quarter, part = quarter+2, true
		case strings.HasPrefix(w, "quarter"):
			n := 1
			if len(number) > 0 && words[i-1] != "a" { // three quarters, but one and a quarter
				n, number = numberOf(number), nil
			}
			quarter, part = quarter+n, true
		case unit > 0:
			n := numberOf(number)
			if len(number) == 0 && !part {
				n = 1 // an hour
			}
			total += time.Duration(n)*unit + time.Duration(quarter)*unit/4
			last, number, quarter, part = unit, nil, 0, false
		}
	}
	return total + time.Duration(quarter)*last/4 // an hour and a half
}

package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Mode is how a voice command is compared with what was said.
type Mode string

// The modes.
const (
	Exact      Mode = "exact"
	StartsWith Mode = "starts_with" // followed by the end, or by another word
	Contains   Mode = "contains"    // whole words
	Regex      Mode = "regex"       // anywhere, in the text as it was said, whatever the case
)

// A Match is a voice command's condition. NewMatch makes one.
type Match struct {
	compiled *compiledMatch
}

type compiledMatch struct {
	mode     Mode
	triggers [][]string // words
	patterns []*regexp.Regexp
}

// NewMatch compiles a condition: any of the triggers.
func NewMatch(mode Mode, triggers []string) (*Match, error) {
	c := &compiledMatch{mode: mode}
	if mode == "" {
		c.mode = Exact
	}
	if len(triggers) == 0 {
		return nil, fmt.Errorf("a voice command without triggers")
	}
	for i, t := range triggers {
		switch c.mode {
		case Regex:
			p, err := regexp.Compile("(?i)" + t)
			if err != nil {
				return nil, fmt.Errorf("triggers[%d] %q: %w", i, t, err)
			}
			c.patterns = append(c.patterns, p)
		case Exact, StartsWith, Contains:
			words := normalise(t)
			if len(words) == 0 {
				return nil, fmt.Errorf("triggers[%d] %q: no words", i, t)
			}
			c.triggers = append(c.triggers, words)
		default:
			return nil, fmt.Errorf("match %q: it is exact, starts_with, contains or regex", mode)
		}
	}
	return &Match{c}, nil
}

// matches reports whether the condition holds, with the captures of a regular expression.
func (m *Match) matches(text string) (ok bool, captures []any) {
	for _, p := range m.compiled.patterns {
		if groups := p.FindStringSubmatch(text); groups != nil {
			for _, g := range groups {
				captures = append(captures, g)
			}
			return true, captures
		}
	}
	if len(m.compiled.triggers) == 0 {
		return false, nil
	}
	words := normalise(text)
	for _, t := range m.compiled.triggers {
		switch m.compiled.mode {
		case Exact:
			ok = slices.Equal(words, t)
		case StartsWith:
			ok = len(words) >= len(t) && slices.Equal(words[:len(t)], t)
		case Contains:
			for i := 0; i+len(t) <= len(words) && !ok; i++ {
				ok = slices.Equal(words[i:i+len(t)], t)
			}
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}

// normalise is the words of text, without case, punctuation around them, or a difference between "10" and "ten".
func normalise(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || r == '-' }) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		w = strings.ReplaceAll(w, "’", "'")
		if w != "" {
			words = append(words, numberWords(w)...)
		}
	}
	return words
}

var ones = []string{
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
	"fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
}

var tens = []string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}

// numberWords writes a number of one or two digits as words, and leaves everything else as it is.
func numberWords(w string) []string {
	n := 0
	for _, r := range w {
		if r < '0' || r > '9' || len(w) > 2 {
			return []string{w}
		}
		n = 10*n + int(r-'0')
	}
	switch {
	case n < len(ones):
		return []string{ones[n]}
	case n%10 == 0:
		return []string{tens[n/10]}
	}
	return []string{tens[n/10], ones[n%10]}
}

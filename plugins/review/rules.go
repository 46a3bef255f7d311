package review

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"bellbird/ghost"
)

// What of an event is the user's or the model's words.
var spoken = []string{"input", "response", "tts_text", "arguments", "result"}

// Methods of a text, and functions by their last names, that match on it. What they do with it is another's business.
var (
	matching   = regexp.MustCompile(`^(startswith|endswith|find|rfind|index|rindex|count|partition|rpartition|search|match|fullmatch|findall|finditer)$`)
	comparing  = regexp.MustCompile(`(?i)embed|cosine|similar|classif|sentiment|distance|fingerprint|fuzz|score`)
	sending    = regexp.MustCompile(`^(http\.(get|post|cached)|requests\.\w+|urllib\.request\.\w+|urlopen|socket\.\w+)$`)
	keeping    = regexp.MustCompile(`^(state\.(save|update)|log|open|print)$`) // what is in a chat is sealed with it
	instructs  = regexp.MustCompile(`(?i)\b(argue with|persuade|convince|discourage|talk (him|her|them|the user) (in|out)|tell the user (not|to)|(don't|do not|never) (mention|tell|reveal|say|let)|without (telling|mentioning)|secretly|ignore (all|any|previous|the user)|the user (should|must)|steer|pretend)\b`)
	reserved   = regexp.MustCompile(`^(ghost_label|ghost_contributions)$`)
	forgedLine = regexp.MustCompile(`\n\s*- `)
)

// maxUnseen is how many characters of a contribution reach the model.
const maxUnseen = 2048

// A use is what is done with words.
type use int

const (
	match use = iota // compared with something
	send             // sent to others
	keep             // written where it stays
)

// used is called for what the handler of a point does with the event's field.
func (r *reader) used(file string, line int, point string, u use, how string) {
	switch {
	case u == match && slices.Contains(unseen, point):
		said := fmt.Sprintf("%s:%d: %s", file, line, point)
		if r.matched[said] {
			return // one for a line
		}
		r.matched[said] = true
		r.find(file, line, "%s matches on what the user said (%s): that is for awareness only. To match on his words, and then tell the model something that he doesn't see, is rejected", point, how)
	case u == send && r.m.PrivacyAware:
		r.find(file, line, "%s sends what was said to others (%s), and privacy_aware says that it doesn't", point, how)
	case u == send:
		r.find(file, line, "%s sends what was said to others (%s): the description must say so, and to whom", point, how)
	case u == keep && r.m.PrivacyAware:
		r.find(file, line, "%s keeps what was said (%s), and privacy_aware says that it doesn't", point, how)
	}
}

// literal checks a text in the function of a point; "" is none.
func (r *reader) literal(file string, line int, point, text string) {
	if strings.Contains(text, strings.TrimSuffix(ghost.Header, "]")[:30]) {
		r.find(file, line, "the text begins like the header of the ghost message, which only the appliance writes")
	}
	if !slices.Contains(unseen, point) {
		return
	}
	if n := utf8.RuneCountInString(text); n > maxUnseen {
		r.find(file, line, "%s has a text of %d characters: %d reach the model, and so much crowds out the rest", point, n, maxUnseen)
	}
	if forgedLine.MatchString(text) {
		r.find(file, line, "%s has a text with lines that begin with a dash, as if they were from others: a contribution is one line", point)
	}
	if words := instructs.FindString(text); words != "" {
		r.find(file, line, "%s tells the model how to treat the user (%q): what shapes opinions or behaviour, and isn't seen, is rejected", point, words)
	}
}

// reserve checks the name of an event's field.
func (r *reader) reserve(file string, line int, field string) {
	if reserved.MatchString(field) {
		r.find(file, line, "%s belongs to the runner: a plugin sets ghost_text, and has no say in whose name is before it", field)
	}
}

func call(name string) string { return fmt.Sprintf("in %s()", name) }

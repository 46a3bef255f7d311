package intents

import (
	_ "embed"
	"strings"
)

//go:embed templates/answers.txt
var answers string

// Answers returns the templates of what is answered to a question of the appliance's own: its intents are "yes" and "no".
func Answers() (*Set, error) { return Parse("answers.txt", answers) }

// Heard returns the templates that a recogniser listens for: commands and answers.
func Heard() (*Set, error) {
	_, sections, _ := strings.Cut(answers, "\n[")
	return Parse("english.txt and answers.txt", english+"\n["+sections)
}

// Means says what a text means as an answer. It is neither, if it is anything else.
func Means(answers *Set) func(text string) (yes, no bool) {
	return func(text string) (yes, no bool) {
		m, ok := answers.Match(text)
		return ok && m.Intent == "yes", ok && m.Intent == "no"
	}
}

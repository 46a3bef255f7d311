package intents

import (
	"strconv"
	"strings"
	"unicode"
)

// A sentence is limited, so that nothing that is written to the appliance can keep it busy.
const (
	maxText  = 400 // bytes
	maxWords = 48
)

// short are units as they are written after a number.
var short = map[string]string{
	"min": "minute", "mins": "minutes", "sec": "second", "secs": "seconds", "hr": "hour", "hrs": "hours",
	"h": "hours", "m": "minutes", "s": "seconds", "½": "half",
}

// normalise splits a sentence into the words of the templates: lower case, numbers written out, no punctuation, no
// apostrophes. It reports false for what is too long to be meant for us.
func normalise(text string) ([]string, bool) {
	if len(text) > maxText {
		return nil, false
	}
	var words []string
	for _, token := range tokens(text) {
		words = append(words, expandToken(token, len(words) > 0 && isNumber(words[len(words)-1]))...)
		if len(words) > maxWords {
			return nil, false
		}
	}
	return words, true
}

// tokens cuts text where letters, digits and other signs meet.
func tokens(text string) []string {
	var out []string
	var cur []rune
	var curKind int
	flush := func() {
		if len(cur) > 0 {
			out = append(out, string(cur))
		}
		cur = nil
	}
	runes := []rune(strings.ToLower(text))
	for i, r := range runes {
		kind := 0
		switch {
		case r == '\'' || r == '’' || r == '‘' || r == '`':
			continue // what's, whats and what’s are one word
		case unicode.IsLetter(r):
			kind = 1
		case unicode.IsDigit(r):
			kind = 2
		case r == '.' && curKind == 2 && i+1 < len(runes) && unicode.IsDigit(runes[i+1]):
			kind = 2 // 1.5
		case r == '%' || r == '½':
			kind = 3
		}
		if kind != curKind {
			flush()
		}
		if curKind = kind; kind > 0 {
			cur = append(cur, r)
		}
	}
	flush()
	return out
}

func expandToken(token string, afterNumber bool) []string {
	if c := token[0]; c >= '0' && c <= '9' {
		if afterNumber && len(token) == 2 && c == '0' { // 6:05 and 7:00
			if token == "00" {
				return []string{"oclock"}
			}
			return []string{"oh", ones[token[1]-'0']}
		}
		whole, fraction, _ := strings.Cut(token, ".")
		n, err := strconv.Atoi(whole)
		if err != nil || n > 999 {
			return []string{token} // no template has it
		}
		switch strings.TrimRight(fraction, "0") {
		case "":
			return numberWords(n)
		case "5":
			return append(numberWords(n), "and", "a", "half")
		case "25":
			return append(numberWords(n), "and", "a", "quarter")
		}
		return []string{token}
	}
	if token == "½" && afterNumber {
		return []string{"and", "a", "half"}
	}
	if token == "%" {
		return []string{"percent"}
	}
	if long, ok := short[token]; ok && (afterNumber || token == "½") {
		return []string{long}
	}
	return []string{token}
}

func isNumber(w string) bool {
	_, ok := digit(w)
	return ok || w == "hundred" || w == "half"
}

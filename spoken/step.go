package spoken

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much is held back, in bytes, until what could be markup is taken for text.
const (
	maxTag  = 300
	maxLink = 1000
	maxCode = 300
	maxLine = 100 // of signs at the beginning of a line
)

// again is what a step returns if it has replaced what is held.
const again = -1

// step decides on the beginning of what is held, and returns how many bytes of it that was; 0: more has to come first.
func (c *Cleaner) step(end bool) int {
	if !c.middle {
		if n, decided := c.lineStart(end); decided {
			return n
		}
	}
	r, n := utf8.DecodeRuneInString(c.held)
	next, more := rune(0), len(c.held) > n
	if more {
		next, _ = utf8.DecodeRuneInString(c.held[n:])
	}
	if !more && !end && strings.ContainsRune("`<![*_~&\\", r) {
		return 0
	}
	switch r {
	case '\n':
		c.newline()
	case '`':
		return c.backticks(end)
	case '<':
		return c.angle(end)
	case '!':
		if next == '[' {
			return c.bracket(end, n)
		}
		c.write(r)
	case '[':
		return c.bracket(end, 0)
	case '(':
		if c.begun && (isWord(c.last) || strings.ContainsRune(`"'”’%`, c.last)) && c.middle {
			c.pause = true
		}
		c.blank(wordGap)
		c.removed = true
	case ')':
		c.pause, c.removed = c.begun && c.middle && !isStop(c.last), true
	case '*':
		c.star(next)
	case '_':
		if isWord(next) && c.begun && isWord(c.last) && c.space == noGap {
			c.blank(wordGap)
		}
	case '~':
		if next == '~' {
			return 2
		}
		c.write(r)
	case '\\':
		if next < utf8.RuneSelf && unicode.IsPunct(next) && next != '\\' && next != '`' && next != '<' {
			if !strings.ContainsRune("*_[]()#", next) {
				c.write(next)
			}
			return n + 1
		}
	case '&':
		return c.entity(end)
	case '|':
		c.blank(wordGap)
	case '•':
		c.blank(wordGap)
	case ']':
	case 'h', 'H':
		return c.address(end)
	default:
		c.plain(r)
	}
	return n
}

// plain writes a character that isn't markup, unless no voice should see it.
func (c *Cleaner) plain(r rune) {
	switch {
	case unicode.IsSpace(r) || unicode.IsControl(r):
		c.blank(wordGap)
	case r == '\u200c' || r == '\u200d': // some scripts can't be written without them
		if c.begun && c.space == noGap && !c.removed && unicode.IsLetter(c.last) && c.last > unicode.MaxLatin1 {
			c.write(r)
		}
	case unicode.Is(unicode.Cf, r), unicode.Is(pictures, r), r == utf8.RuneError:
		c.removed = true
	default:
		c.write(r)
	}
}

// star is what becomes of an asterisk: between numbers it is read, elsewhere it is for the eye.
func (c *Cleaner) star(next rune) {
	number := c.begun && unicode.IsDigit(c.last)
	if number && (c.space == noGap && unicode.IsDigit(next) || c.space == wordGap && next == ' ') {
		c.blank(wordGap)
		for _, r := range "times" {
			c.write(r)
		}
		c.blank(wordGap)
	}
}

// lineStart decides on what is for the eye at the beginning of a line: the signs of headings, lists, quotations, tables
// and rules. Nothing is decided if there is none.
func (c *Cleaner) lineStart(end bool) (n int, decided bool) {
	r, size := utf8.DecodeRuneInString(c.held)
	switch r {
	case ' ', '\t', '>':
		return size, true
	case '|':
		c.skip = skip{until: "\n", keep: true}
		return size, true
	case '•':
		c.item = true
		return size, true
	case '#', '-', '*', '_', '=', '+', '~':
	default:
		return 0, c.numbered(end)
	}
	line, _, whole := strings.Cut(c.held, "\n")
	run := len(line) - len(strings.TrimLeft(line, string(r)))
	if run == len(line) && !whole && !end && run < maxLine {
		return 0, true // it may go on
	}
	rest := line[run:]
	switch {
	case r == '#' && run <= 6 && (rest == "" || rest[0] == ' '):
		c.item = true
		return run, true
	case r == '~' && run >= 3:
		c.skip = skip{until: "~~~", run: '~'}
		return run, true
	case r == '#', r == '~':
		return 0, false
	case strings.Trim(rest, " \t\r"+string(r)) == "":
		// Only signs so far: a rule if it stays so, an item with nothing in it yet.
		if !whole && !end && len(line) < maxLine {
			return 0, true
		}
		if strings.Count(line, string(r)) >= 3 || r == '=' || rest == "" && run == 2 || run == 1 {
			return len(line), true
		}
	case run == 1 && (r == '-' || r == '*' || r == '+') && rest[0] == ' ':
		c.item = true
		return run, true
	}
	return 0, false
}

// numbered marks a line that is an item with a number, which is spoken. It reports whether more has to come to know.
func (c *Cleaner) numbered(end bool) (wait bool) {
	digits := len(c.held) - len(strings.TrimLeft(c.held, "0123456789"))
	if digits == 0 || digits > 3 {
		return false
	}
	sign := c.held[digits:]
	if len(sign) < 2 && !end && (sign == "" || sign == "." || sign == ")") {
		return true
	}
	c.item = c.item || strings.HasPrefix(sign, ". ") || strings.HasPrefix(sign, ") ")
	return false
}

// backticks decides on code.
func (c *Cleaner) backticks(end bool) int {
	run := len(c.held) - len(strings.TrimLeft(c.held, "`"))
	switch {
	case run == len(c.held) && run < maxLine && !end:
		return 0
	case run >= 3:
		c.skip = skip{until: strings.Repeat("`", run), run: '`'}
		return run
	case c.begun && isWord(c.last) && c.space == noGap:
		return run // an apostrophe
	}
	code := c.held[run:]
	if i := strings.Index(code, c.held[:run]); i > 0 && !strings.Contains(code[:i], "\n") {
		c.removed = true
		return run + i + run
	}
	if strings.Contains(code, "\n") || len(code) > maxCode {
		return run // it stands for nothing
	}
	if end {
		return len(c.held)
	}
	return 0
}

// address decides on what may be an address in the web, of which only the host is spoken.
func (c *Cleaner) address(end bool) int {
	const longest = "https://"
	if c.begun && c.space == noGap && isWord(c.last) {
		c.plain(rune(c.held[0]))
		return 1
	}
	start := 0
	for _, scheme := range []string{"http://", longest} {
		n := min(len(scheme), len(c.held))
		if !strings.EqualFold(c.held[:n], scheme[:n]) {
			continue
		}
		if n == len(scheme) {
			start = n
		} else if !end {
			return 0
		}
	}
	if start == 0 {
		c.plain(rune(c.held[0]))
		return 1
	}
	stop := strings.IndexFunc(c.held, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>()[]`*\"|", r) })
	if stop < 0 {
		if !end && len(c.held) < maxLink {
			return 0
		}
		stop = len(c.held)
	}
	// A stop at its end belongs to the sentence.
	stop = len(strings.TrimRight(c.held[:stop], ".,;:!?"))
	host := c.held[min(start, stop):stop]
	if i := strings.IndexAny(host, "/?#:"); i >= 0 {
		host = host[:i]
	}
	for _, r := range strings.TrimPrefix(strings.ToLower(host), "www.") {
		c.plain(r)
	}
	c.removed = true
	return max(stop, 1)
}

// entity decides on an ampersand.
func (c *Cleaner) entity(end bool) int {
	n := 1 + len(c.held[1:]) - len(strings.TrimLeftFunc(c.held[1:], func(r rune) bool {
		return r < utf8.RuneSelf && (isWord(r) || r == '#')
	}))
	const longest = 32
	if n == len(c.held) && n < longest && !end {
		return 0
	}
	if n < len(c.held) && c.held[n] == ';' {
		if text := html.UnescapeString(c.held[:n+1]); text != c.held[:n+1] {
			for _, r := range text {
				if !strings.ContainsRune("`*_", r) {
					c.plain(r)
				}
			}
			return n + 1
		}
	}
	c.write('&')
	return 1
}

// bracket decides on a link, or on an image if it begins after the first from bytes: of a link the text stays.
func (c *Cleaner) bracket(end bool, from int) int {
	image := from > 0
	inner := c.held[from+1:]
	i := strings.IndexAny(inner, "]\n")
	switch {
	case i < 0 && len(inner) <= maxTag && !end:
		return 0
	case i < 0 || inner[i] == '\n':
		return from + 1 // a bracket like any other
	}
	text, after := inner[:i], inner[i+1:]
	if strings.EqualFold(text, "think") && !image {
		c.skip = skip{until: "[/think]"}
		return 1 + len(text) + 1
	}
	if after == "" && !end {
		return 0
	}
	total := from + 1 + i + 1
	if after != "" && (after[0] == '(' || after[0] == '[') {
		j := strings.IndexAny(after[1:], map[byte]string{'(': ")\n", '[': "]\n"}[after[0]])
		switch {
		case j < 0 && len(after) <= maxLink && !end:
			return 0
		case j >= 0 && after[1+j] != '\n':
			total += j + 2
		case j < 0 && end:
			total = len(c.held)
		}
	}
	if image || strings.HasPrefix(text, "^") {
		c.removed = true
		return total
	}
	// The text may itself hold markup, but no brackets.
	c.held = strings.ReplaceAll(text, "[", "") + c.held[total:]
	return again
}

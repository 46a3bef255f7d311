// Package spoken makes text that a model writes fit to be spoken: without its thoughts, Markdown, code, tags, links and
// emoji. It takes the text in whatever pieces it comes, and gives back what is certain by then. It doesn't cut the text
// into sentences, and knows no voice.
package spoken

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Cleaner cleans one text. The zero value is ready for use. What it gives back doesn't depend on how the text was cut
// into pieces.
type Cleaner struct {
	rest []byte // of a character that isn't complete
	held string // what comes may decide what this is
	skip skip   // what is being left out

	out strings.Builder // what has come of this piece

	begun   bool // something was written
	last    rune // what was written last, unless begun is false
	space   gap  // what is between that and what comes
	middle  bool // of a line: something stands on it already
	item    bool // the line is a heading or an item of a list
	pause   bool // a bracket was closed
	removed bool // something was left out since last
}

// A gap is the white space before something. A larger one takes the place of a smaller one.
type gap string

const (
	noGap     gap = ""
	wordGap   gap = " "
	lineGap   gap = "\n"
	paragraph gap = "\n\n"
)

// Push takes a piece of text and returns what can be spoken now, which may be nothing.
func (c *Cleaner) Push(text string) string {
	c.out.Reset()
	b := append(c.rest, text...)
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		// One at a time, so that no decision depends on what happens to be there already.
		c.held += string(r)
		c.work(false)
	}
	c.rest = append([]byte(nil), b...)
	return c.out.String()
}

// Flush ends the text and returns what was held back. What was begun and never ended, such as a thought or code, is
// dropped. The cleaner is then ready for another text.
func (c *Cleaner) Flush() string {
	c.out.Reset()
	if len(c.rest) > 0 {
		c.held += "\ufffd"
	}
	c.work(true)
	c.endLine()
	text := c.out.String()
	*c = Cleaner{}
	return text
}

// Clean is a whole text as it can be spoken.
func Clean(text string) string {
	var c Cleaner
	return c.Push(text) + c.Flush()
}

// work decides on what is held, as far as that is possible; at the end of the text, all of it.
func (c *Cleaner) work(end bool) {
	for c.held != "" {
		var n int
		if c.skip != (skip{}) {
			n = c.skipping(end)
		} else {
			n = c.step(end)
		}
		switch {
		case n == 0:
			return
		case n != again:
			c.held = c.held[n:]
		}
	}
}

// write adds a character to what is spoken.
func (c *Cleaner) write(r rune) {
	switch {
	case c.pause && !isStop(r):
		// "(about a mile) north" is "about a mile, north".
		if c.space == noGap || c.space == wordGap {
			c.out.WriteByte(',')
			c.space = wordGap
		}
	case c.removed && isStop(r):
		if c.space == wordGap {
			c.space = noGap // before what was left out
		}
		if !c.begun && r != '.' && r != '!' && r != '?' {
			return
		}
	}
	if c.begun {
		c.out.WriteString(string(c.space))
	}
	c.out.WriteRune(r)
	c.space, c.pause, c.removed = noGap, false, false
	c.begun, c.last, c.middle = true, r, true
}

// blank adds white space, which is written before what comes.
func (c *Cleaner) blank(g gap) {
	if len(g) > len(c.space) || g == lineGap && c.space == wordGap {
		c.space = g
	}
}

// newline ends a line.
func (c *Cleaner) newline() {
	c.endLine()
	if c.space == lineGap || c.space == paragraph {
		c.blank(paragraph)
	}
	c.blank(lineGap)
	c.middle = false
}

// endLine ends a heading or an item with a full stop, because a voice would run on into the next line.
func (c *Cleaner) endLine() {
	if c.item && c.middle && (unicode.IsLetter(c.last) || unicode.IsDigit(c.last)) {
		c.out.WriteByte('.')
		c.last = '.'
		c.pause = false
	}
	c.item = false
}

func isStop(r rune) bool { return strings.ContainsRune(".,;:!?…", r) }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

package spoken

import (
	"slices"
	"strings"
	"unicode"
)

// A skip is something that is left out as a whole, however long it is.
type skip struct {
	until string // what ends it, in lower case; "": all that is left to skip is run
	keep  bool   // what ends it stays
	tag   bool   // it ends with the tag that until begins
	run   byte   // what ends it goes on as long as there are more of this; 0: it doesn't
}

// skipping leaves out what is held, as far as it surely belongs to what is being skipped.
func (c *Cleaner) skipping(end bool) int {
	s := c.skip
	if s.until == "" {
		n := len(c.held) - len(strings.TrimLeft(c.held, string(rune(s.run))))
		if n < len(c.held) {
			c.skip = skip{}
		}
		if n == 0 {
			return again
		}
		return n
	}
	i := indexFold(c.held, s.until)
	if i < 0 {
		// The end of what is held may be the beginning of what ends it.
		n := len(c.held) - len(s.until) + 1
		if end {
			n = len(c.held)
		}
		return max(n, 0)
	}
	n := i + len(s.until)
	if s.keep {
		n = i
	}
	c.skip = skip{run: s.run}
	c.removed = true
	if s.tag {
		c.skip.until = ">"
	}
	if n == 0 {
		return again
	}
	return n
}

// indexFold is where lower, which is ASCII without capitals, begins in text, whatever the case there; -1 if it doesn't.
func indexFold(text, lower string) int {
	for i := 0; i+len(lower) <= len(text); i++ {
		j := 0
		for j < len(lower) && asciiLower(text[i+j]) == lower[j] {
			j++
		}
		if j == len(lower) {
			return i
		}
	}
	return -1
}

func asciiLower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

// What is left out with all that is between its tags: thoughts, calls of tools that a model wrote as text, and what isn't
// text. A name may have a prefix that ends in a colon.
var blocks = []string{
	"think", "thinking", "thought", "thoughts", "reason", "reasoning", "reflection", "analysis", "scratchpad", "monologue",
	"tool", "tools", "tool_call", "tool_calls", "tool_code", "tool_use", "tool_result", "tool_response",
	"function", "function_call", "function_calls", "invoke",
	"script", "style", "svg", "table", "pre", "code",
}

// tokens begin and end what is left out where a model's own signs have come through.
var tokens = map[string]string{
	"|begin_of_thought|": "<|end_of_thought|>",
	"|tool_call_begin|":  "<|tool_call_end|>",
	"|tool_call>":        "<tool_call|>",
}

// lineTags end a line.
var lineTags = []string{"br", "p", "div", "li", "ul", "ol", "hr", "h1", "h2", "h3", "h4", "h5", "h6"}

// angle decides on what begins with "<".
func (c *Cleaner) angle(end bool) int {
	held := c.held
	if len(held) == 1 {
		return 1
	}
	if strings.HasPrefix(held, "<!--") {
		c.skip = skip{until: "-->"}
		return len("<!--")
	}
	if strings.HasPrefix("<!--", held) && !end {
		return 0
	}
	if held[1] == '<' {
		return c.doubleAngle(end)
	}
	if next := held[1]; !isASCIILetter(next) && !strings.ContainsRune("/!|?", rune(next)) {
		c.write('<')
		return 1
	}
	i := strings.IndexAny(held[1:], "<>\n")
	if i < 0 {
		switch {
		case len(held) > maxTag:
			return 1
		case !end:
			return 0
		case strings.ContainsFunc(held, unicode.IsSpace):
			return 1 // it has the looks of text
		}
		return len(held)
	}
	i++
	if held[i] != '>' {
		return 1
	}
	c.tag(held[1:i])
	return i + 1
}

// doubleAngle decides on what begins with "<<": stage directions such as "<<avatar: smile>>".
func (c *Cleaner) doubleAngle(end bool) int {
	if len(c.held) == 2 && !end {
		return 0
	}
	if len(c.held) < 3 || !isASCIILetter(c.held[2]) {
		return 2
	}
	if i := strings.Index(c.held, ">>"); i >= 0 {
		c.removed = true
		return i + 2
	}
	if strings.Contains(c.held, "\n") || len(c.held) > maxTag {
		return 2
	}
	if end {
		return len(c.held)
	}
	return 0
}

// tag leaves out a tag, or begins to leave out what it begins. inside is what is between the angle brackets.
func (c *Cleaner) tag(inside string) {
	inside = strings.ToLower(inside)
	if until, ok := tokens[inside]; ok {
		c.skip = skip{until: until}
		return
	}
	name := strings.TrimPrefix(inside, "/")
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '=' }); i >= 0 {
		name = name[:i]
	}
	closing, empty := strings.HasPrefix(inside, "/"), strings.HasSuffix(inside, "/")
	base := name[strings.LastIndexByte(name, ':')+1:]
	switch {
	case slices.Contains(blocks, base) && isASCII(name):
		if !closing && !empty {
			c.skip = skip{until: "</" + name, tag: true}
		}
	case slices.Contains(lineTags, name):
		c.newline()
		c.item = name == "li" && !closing
	default:
		c.removed = c.removed || strings.ContainsAny(inside, ":@")
	}
}

func isASCIILetter(b byte) bool { b = asciiLower(b); return 'a' <= b && b <= 'z' }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// pictures are emoji and other signs that a voice would leave out, or name.
var pictures = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x20d0, Hi: 0x20ff, Stride: 1}, // what is put around a sign, such as a key
		{Lo: 0x2190, Hi: 0x21ff, Stride: 1}, // arrows
		{Lo: 0x2300, Hi: 0x23ff, Stride: 1},
		{Lo: 0x2500, Hi: 0x27bf, Stride: 1}, // boxes, shapes, signs, dingbats
		{Lo: 0x2900, Hi: 0x297f, Stride: 1},
		{Lo: 0x2b00, Hi: 0x2bff, Stride: 1},
		{Lo: 0xe000, Hi: 0xf8ff, Stride: 1}, // for private use
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // how to draw the sign before
	},
	R32: []unicode.Range32{
		{Lo: 0x1f000, Hi: 0x1fbff, Stride: 1},
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // unseen
		{Lo: 0xf0000, Hi: 0x10ffff, Stride: 1},
	},
}

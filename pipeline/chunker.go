package pipeline

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A chunk is a piece of an answer that is synthesized at once.
type chunk struct {
	text     string
	boundary boundary
	index    int
}

// A boundary says what ended a chunk.
type boundary string

const (
	sentence  boundary = "sentence"
	paragraph boundary = "paragraph"
	secondary boundary = "secondary" // a semicolon or colon, in a long chunk
	maxLen    boundary = "maxlen"
	end       boundary = "end"
)

// Bounds of a chunk in bytes: nothing shorter is cut off before the answer's end, nothing longer is waited for.
const (
	minChunk = 15
	maxChunk = 750
)

// chunker cuts a stream of text into sentences, so that speech can begin before the answer is complete. The zero value
// is ready for use.
type chunker struct {
	buf   string
	index int
}

// push adds text and returns the chunks that are complete now.
func (c *chunker) push(text string) []chunk {
	c.buf += text
	var chunks []chunk
	for {
		n, b := c.cut()
		if n == 0 {
			return chunks
		}
		chunks = c.emit(chunks, c.buf[:n], b)
		c.buf = c.buf[n:]
	}
}

// flush returns what is left, and makes the chunker ready for another text.
func (c *chunker) flush() []chunk {
	chunks := c.emit(nil, c.buf, end)
	c.buf = ""
	return chunks
}

func (c *chunker) emit(chunks []chunk, text string, b boundary) []chunk {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return chunks
	}
	chunks = append(chunks, chunk{text, b, c.index})
	c.index++
	return chunks
}

var (
	paragraphBreak = regexp.MustCompile(`\n[ \t]*\n`)
	// The end of a sentence: what stands before is examined by endsSentence.
	sentenceEnd   = regexp.MustCompile(`[.!?]["'”’)\]]*\s+["'“‘(\[]*[A-Z]`)
	casualEnd     = regexp.MustCompile(`\w{4}[.!?]\s+[a-z]`)
	unspacedEnd   = regexp.MustCompile(`[。！？؟]["'”’)\]]*`)
	secondaryEnd  = regexp.MustCompile(`[;:]\s+[A-Z]`)
	lastWord      = regexp.MustCompile(`[^\s("'“‘\[]+$`)
	dottedInitial = regexp.MustCompile(`^(?:[A-Za-z]\.)*[A-Za-z]$`)
)

// abbreviations are words whose full stop doesn't end a sentence.
var abbreviations = []string{
	"mr", "mrs", "ms", "dr", "prof", "st", "mt", "jr", "sr", "rev", "hon", "gen", "col", "capt", "lt", "sgt",
	"vs", "etc", "approx", "no", "vol", "fig", "dept", "est", "inc", "ltd", "co", "corp", "ave", "blvd",
	"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
	"mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun",
}

// cut finds where the first complete chunk of the buffer ends; 0: it isn't complete yet.
func (c *chunker) cut() (n int, b boundary) {
	if len(c.buf) < minChunk {
		return 0, ""
	}
	buf := c.buf[:min(len(c.buf), maxChunk)]
	for _, m := range paragraphBreak.FindAllStringIndex(buf, -1) {
		if len(strings.TrimSpace(buf[:m[0]])) >= minChunk {
			// A sentence inside the paragraph is still cut first.
			if n := firstSentence(buf[:m[0]]); n > 0 {
				return n, sentence
			}
			return m[1], paragraph
		}
	}
	if n := firstSentence(buf); n > 0 {
		return n, sentence
	}
	if len(buf) >= maxChunk/2 {
		if m := secondaryEnd.FindStringIndex(buf); m != nil {
			return m[0] + 1, secondary
		}
	}
	if len(buf) == maxChunk {
		if i := strings.LastIndexByte(buf[minChunk:], ' '); i >= 0 {
			return minChunk + i, maxLen
		}
	}
	if len(c.buf) >= 2*maxChunk { // no space anywhere
		n := maxChunk
		for !utf8.RuneStart(c.buf[n]) {
			n--
		}
		return n, maxLen
	}
	return 0, ""
}

// firstSentence is the length of the first sentence of text that is surely complete, 0 if there is none.
func firstSentence(text string) int {
	first := len(text) + 1
	for from := 0; ; {
		m := sentenceEnd.FindStringIndex(text[from:])
		if m == nil {
			break
		}
		stop := from + m[0]
		if endsSentence(text, stop) {
			first = afterClosers(text, stop)
			break
		}
		from = stop + 1
	}
	for from := 0; ; {
		m := casualEnd.FindStringIndex(text[from:])
		if m == nil {
			break
		}
		stop := from + m[0] + 4
		if endsSentence(text, stop) {
			first = min(first, stop+1)
			break
		}
		from = stop + 1
	}
	if m := unspacedEnd.FindStringIndex(text); m != nil {
		first = min(first, m[1])
	}
	if first > len(text) {
		return 0
	}
	return first
}

// afterClosers is the position behind the mark at stop and the quotes and brackets that belong to it.
func afterClosers(text string, stop int) int {
	n := stop + 1
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !strings.ContainsRune(`"'”’)]`, r) {
			break
		}
		n += size
	}
	return n
}

// endsSentence reports whether the mark at stop ends a sentence, rather than an abbreviation, an initial, or the number
// of an item in a list.
func endsSentence(text string, stop int) bool {
	if text[stop] != '.' {
		return true
	}
	word := lastWord.FindString(text[:stop])
	switch {
	case word == "I":
		return true // "… than I. Then"
	case dottedInitial.MatchString(word):
		return false
	case slices.Contains(abbreviations, strings.ToLower(word)):
		return false
	case strings.TrimSpace(text[:stop]) == word && strings.Trim(word, "0123456789") == "":
		return false
	}
	return true
}

// speakable reports whether there is a letter or a digit in text. Anything else a voice would answer with silence, or
// by naming the emoji.
func speakable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

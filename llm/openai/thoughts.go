package openai

import (
	"strings"
	"unicode"
)

// thoughts leaves out what a model thinks aloud between tags, before or within its answer. Text comes in pieces; a tag
// may come in several.
type thoughts struct {
	held  string // may be the beginning of a tag
	until string // the tag that ends the thought; "" outside of one
	trim  bool   // the space that follows a thought is left out, too
}

var tags = []struct{ begin, end string }{
	{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"},
}

// cut returns what is to be spoken of the next piece, and of what was held before.
func (t *thoughts) cut(text string) string {
	text = t.held + text
	t.held = ""
	var out strings.Builder
	for text != "" {
		if t.until != "" {
			i := strings.Index(text, t.until)
			if i < 0 {
				t.held = text[beginning(text, t.until):]
				return out.String()
			}
			text, t.until, t.trim = text[i+len(t.until):], "", true
			continue
		}
		at, next, tag := len(text), len(text), ""
		for _, g := range tags {
			if i := strings.Index(text, g.begin); i >= 0 && i < at {
				at, next, tag = i, i+len(g.begin), g.end
			}
		}
		if tag == "" {
			for _, g := range tags {
				at = min(at, beginning(text, g.begin))
			}
			next, t.held = len(text), text[at:]
		}
		out.WriteString(t.trimmed(text[:at]))
		text, t.until = text[next:], tag
	}
	return out.String()
}

// rest is what was held and turned out to be no tag.
func (t *thoughts) rest() string {
	if t.until != "" {
		return ""
	}
	return t.trimmed(t.held)
}

func (t *thoughts) trimmed(text string) string {
	if t.trim {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		t.trim = text == ""
	}
	return text
}

// beginning is where at the end of the text the tag may begin; the length of the text if nowhere.
func beginning(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return len(text) - n
		}
	}
	return len(text)
}

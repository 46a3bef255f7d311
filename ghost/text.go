package ghost

import (
	"strings"
	"unicode"
)

// clean makes text safe to stand in a message: lines are separated by \n alone, whatever separated them, none of them
// is empty, and there are no characters that reorder, hide or control what stands beside them.
func clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case isBreak(r):
			b.WriteByte('\n')
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r):
		case unicode.Is(unicode.Cf, r) && r != zwnj && r != zwj: // the directions, and what can't be seen
		default:
			b.WriteRune(r) // U+FFFD for what is no UTF-8
		}
	}
	lines := strings.Split(b.String(), "\n")
	kept := lines[:0]
	for _, line := range lines {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			kept = append(kept, line)
		}
	}
	text = strings.TrimSpace(strings.Join(kept, "\n"))
	if !strings.ContainsFunc(text, unicode.IsGraphic) {
		return ""
	}
	return text
}

// The joiners, which some scripts can't be written without.
const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// isBreak reports whether a reader might see the beginning of a line after r. The separators of files, groups and
// records are among them for some.
func isBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// first is the first n characters of a text that is longer, and an ellipsis; nothing, if there is room for none.
func first(text string, n int) string {
	if n == 0 {
		return ""
	}
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}

// maxLabel is how long the name of a plugin may be, in bytes, as for manifests.
const maxLabel = 64

// reserved are the labels of lines that no plugin writes.
var reserved = []string{"time", "spice", "operator", "core"}

// label is a plugin's name as it stands before its line: made of characters that manifests may use, whatever it was, and
// not one of those that stand for somebody else.
func label(plugin string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, plugin)
	name = name[:min(len(name), maxLabel)]
	for _, word := range reserved {
		if strings.EqualFold(strings.Trim(name, "_"), word) {
			return name + " (plugin)"
		}
	}
	if name == "" {
		return "plugin"
	}
	return name
}

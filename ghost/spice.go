package ghost

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Spices are short directions of style, one of which colours each turn.
type Spices []string

// Bounds of a file of spices, in bytes, and of one spice, in characters.
const (
	maxSpices = 256 << 10
	maxSpice  = 500
)

// ReadSpices reads a file with one spice on each line. Empty lines and those that begin with # are left out.
func ReadSpices(path string) (Spices, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("spices: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSpices+1))
	if err != nil {
		return nil, fmt.Errorf("spices %q: %w", path, err)
	}
	if len(text) > maxSpices {
		return nil, fmt.Errorf("spices %q: larger than %d bytes", path, maxSpices)
	}
	var s Spices
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case !utf8.ValidString(line):
			return nil, fmt.Errorf("spices %q: line %d is no UTF-8", path, n)
		case utf8.RuneCountInString(line) > maxSpice:
			return nil, fmt.Errorf("spices %q: line %d is longer than %d characters", path, n, maxSpice)
		default:
			s = append(s, line)
		}
	}
	return s, nil
}

// At is the spice of a turn, by its number: each in its turn. "" if there are none.
func (s Spices) At(turn int) string {
	if len(s) == 0 {
		return ""
	}
	return s[((turn%len(s))+len(s))%len(s)]
}

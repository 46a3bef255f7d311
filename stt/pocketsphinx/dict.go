package pocketsphinx

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
)

// pronounced are words that the dictionary lacks. The short forms of the wake words are what is left of them when the
// recording begins late.
var pronounced = map[string][]string{
	"nabu":    {"N AA B UW", "N AE B UW", "AA B UW", "B UW"},
	"mycroft": {"M AY K R AO F T", "M AY K R AA F T", "K R AO F T"},
	"unmute":  {"AH N M Y UW T"},
}

// reduced is the part of the dictionary file that has the given words, together with those that the file lacks and we
// know. Fewer words are less memory: the whole file would take more than all the rest of the recogniser.
func reduced(file string, words []string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w; %s", err, remedy)
	}
	defer f.Close()
	missing := make(map[string]bool, len(words))
	for _, w := range words {
		missing[w] = true
	}
	wanted := maps.Clone(missing)
	var out bytes.Buffer
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Bytes()
		end := bytes.IndexAny(line, " \t(") // about(2) is a second way to say about
		if end <= 0 || !wanted[string(line[:end])] {
			continue
		}
		out.Write(line)
		out.WriteByte('\n')
		delete(missing, string(line[:end]))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("dictionary %q: %w; %s", file, err, again)
	}
	for _, w := range slices.Sorted(maps.Keys(missing)) {
		if len(pronounced[w]) == 0 {
			return nil, fmt.Errorf("dictionary %q: it has no pronunciation of %q, which the grammar wants; add it to the dictionary, or take the word out of the templates", file, w)
		}
		for i, p := range pronounced[w] {
			name := w
			if i > 0 {
				name = fmt.Sprintf("%s(%d)", w, i+1)
			}
			fmt.Fprintf(&out, "%s %s\n", name, p)
		}
	}
	return out.Bytes(), nil
}

// phoneCounts are the numbers of phones of the words of a dictionary, in their first pronunciation.
func phoneCounts(dict []byte) map[string]int {
	counts := make(map[string]int)
	for line := range bytes.Lines(dict) {
		if fields := bytes.Fields(line); len(fields) > 1 && !bytes.Contains(fields[0], []byte("(")) {
			counts[string(fields[0])] = len(fields) - 1
		}
	}
	return counts
}

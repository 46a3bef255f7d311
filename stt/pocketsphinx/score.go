package pocketsphinx

import (
	"math"
	"strings"
)

// The library finds the sentence of the grammar that fits best, however badly it fits. What was said outside of the
// grammar is told apart with a second decoder, which follows any sequence of phones through the same sound. It always
// fits better; the question is by how much, and whether the sentence had to call speech silence in order to fit.

// A segment is a word, a phone or a silence that a decoder found.
type segment struct {
	name        string
	first, last int // features, both included
	score       int // acoustic, the higher the better
}

func (s segment) length() int { return s.last - s.first + 1 }

// silent reports whether a segment is one of the model's fillers.
func (s segment) silent() bool {
	return strings.HasPrefix(s.name, "<") || strings.HasPrefix(s.name, "[")
}

// words are what was said, without fillers and without the wake word in front.
func words(path []segment, lead map[string]bool) []string {
	var out []string
	for _, s := range path {
		if s.silent() || (len(out) == 0 && lead[s.name]) {
			continue
		}
		out = append(out, s.name)
	}
	return out
}

// A fit is how well a sentence fits what was heard, compared with any sequence of phones. Scores are differences for
// each feature: 0 is as good, and the lower the worse.
type fit struct {
	worst   float64 // the word that fits worst
	whole   float64 // words and silences
	ignored float64 // the part of the speech that the sentence calls silence, 0 to 1
	crowded float64 // phones heard for each phone of a word, where that is most
}

// trust is how far a fit is on the side of the commands: from 0 on it is believed. The weights were found by logistic
// regression over some 550 synthetic commands, clean and noisy, and 480 other utterances, a fifth of them recordings of
// people (TestMeasure has nearly the same ones). They go with the model, the beams and the grammar.
func (f fit) trust() float64 {
	return 7.5 + 0.08*f.worst + 0.2*f.whole - 6.5*f.ignored - 0.96*f.crowded
}

// compare finds how well the sentence fits; false if it has no words. sizes are the words' numbers of phones.
func compare(sentence, phones []segment, sizes map[string]int) (f fit, ok bool) {
	free, speech := spread(phones)
	total, ignored, features := 0.0, 0, 0
	for _, s := range sentence {
		if s.last >= len(free) {
			continue // the two disagree about the end, by a feature
		}
		d := float64(s.score)
		for i := s.first; i <= s.last; i++ {
			d -= free[i]
			if s.silent() && speech[i] {
				ignored++
			}
		}
		total += d
		features += s.length()
		if s.silent() {
			continue
		}
		mean := d / float64(s.length())
		if !ok || mean < f.worst {
			f.worst = mean
		}
		heard := float64(within(s, phones)) / float64(max(sizes[s.name], 1))
		f.crowded = max(f.crowded, heard)
		ok = true
	}
	spoken := 0
	for _, on := range speech {
		if on {
			spoken++
		}
	}
	f.whole = total / float64(max(features, 1))
	f.ignored = float64(ignored) / float64(max(spoken, 1))
	return f, ok
}

// within counts the phones that were heard while a word was said.
func within(word segment, phones []segment) int {
	n := 0
	for _, p := range phones {
		if middle := (p.first + p.last) / 2; !p.silent() && middle >= word.first && middle <= word.last {
			n++
		}
	}
	return n
}

// spread gives each feature its share of the score of its phone, and tells which are speech.
func spread(phones []segment) (score []float64, speech []bool) {
	n := 0
	for _, s := range phones {
		n = max(n, s.last+1)
	}
	score, speech = make([]float64, n), make([]bool, n)
	for _, s := range phones {
		for i := s.first; i <= s.last; i++ {
			score[i] = float64(s.score) / float64(s.length())
			speech[i] = !s.silent()
		}
	}
	return score, speech
}

// leastTrust is the trust that a sentence needs to be believed.
func leastTrust(strictness float64) float64 {
	if strictness < 0 {
		return math.Inf(-1)
	}
	return 2 * (strictness - 1)
}

// phoneNames are the phones of the model.
const phoneNames = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW " +
	"V W Y Z ZH"

// anyPhones is the dictionary and the grammar of the second decoder.
func anyPhones() (dict []byte, jsgf string) {
	names := strings.Fields(phoneNames)
	for _, p := range names {
		dict = append(dict, p+" "+p+"\n"...)
	}
	return dict, "#JSGF V1.0;\ngrammar phones;\npublic <phones> = ( " + strings.Join(names, " | ") + " )+;\n"
}

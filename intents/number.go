package intents

import "slices"

var ones = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
	"twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"}

var tens = []string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}

// numberWords writes n, which is 0 to 999, in words: one hundred twenty three.
func numberWords(n int) []string {
	var w []string
	if n >= 100 {
		w = append(w, ones[n/100], "hundred")
		if n %= 100; n == 0 {
			return w
		}
	}
	if n < 20 {
		return append(w, ones[n])
	}
	w = append(w, tens[n/10])
	if n%10 > 0 {
		w = append(w, ones[n%10])
	}
	return w
}

// numberOf is the value of number words, where "a hundred" and "and" are allowed.
func numberOf(words []string) int {
	sum := 0
	for _, w := range words {
		if v, ok := digit(w); ok {
			sum += v
		} else if w == "hundred" {
			sum = max(sum, 1) * 100
		}
	}
	return sum
}

// digit is the value of a single number word below a hundred.
func digit(w string) (int, bool) {
	if i := slices.Index(ones, w); i >= 0 {
		return i, true
	}
	if i := slices.Index(tens[2:], w); i >= 0 {
		return 10 * (i + 2), true
	}
	return 0, false
}

// expand writes the range as alternatives of words. Numbers that begin or end alike share what is alike, so that
// neither a recogniser nor the matcher need follow a hundred words at once.
func (r numbers) expand() choice {
	var c choice
	for n := r.from; n <= r.to && n < 20; n++ {
		c = append(c, branch{body: word(ones[n])})
	}
	for from := max(r.from, 20); from <= min(r.to, 99); {
		heads, to := leaders(from, min(r.to, 99), 10, func(n int) node { return word(tens[n]) })
		c = append(c, branch{body: withRest(heads, from%10, to%10, false)})
		from += len(heads)*10 - from%10
	}
	for from := max(r.from, 100); from <= r.to; {
		heads, to := leaders(from, r.to, 100, func(n int) node { return word(ones[n]) })
		next := from + len(heads)*100 - from%100
		if from < 200 {
			heads = append(heads, branch{body: word("a")})
		}
		c = append(c, branch{body: withRest(sequence{heads, word("hundred")}, from%100, to%100, true)})
		from = next
	}
	return c
}

// leaders are the words of the first block of numbers and of those blocks after it that are as complete as it is. A
// block is a decade or a hundred; to is the last number of the last of them.
func leaders(from, end, block int, name func(int) node) (heads choice, to int) {
	to = min(from/block*block+block-1, end)
	heads = choice{{body: name(from / block)}}
	if from%block > 0 {
		return heads, to
	}
	for to+block <= end && (to+1)%block == 0 {
		to += block
		heads = append(heads, branch{body: name(to / block)})
	}
	return heads, to
}

// withRest is head followed by a number from lo to hi, where 0 is not said.
func withRest(head node, lo, hi int, and bool) node {
	q := sequence{head}
	if hi == 0 {
		return q
	}
	var rest node = numbers{max(lo, 1), hi}.expand()
	if and {
		rest = sequence{optional{word("and")}, rest}
	}
	if lo == 0 {
		rest = optional{rest}
	}
	return append(q, rest)
}

package intents

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestRoundTrip writes sentences that the templates allow and sees that they are matched by the same intent, and, if
// they are listened for, that the grammar accepts them.
func TestRoundTrip(t *testing.T) {
	s, err := English()
	if err != nil {
		t.Fatal(err)
	}
	g := s.Grammar()
	grammar := parseJSGF(t, g.JSGF)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tm := range s.templates {
		for range 15 {
			var said []string
			for _, around := range []string{"wake", "before"} {
				if rnd.IntN(4) == 0 {
					said = append(said, s.sample(rnd, ref{around}, tm.typed)...)
				}
			}
			said = append(said, s.sample(rnd, tm.expr, tm.typed)...)
			text := strings.Join(said, " ")
			m, ok := s.Match(text)
			if !ok || len(said) > maxWords {
				t.Errorf("line %d: %q is not matched", tm.line, text)
			} else if m.Intent != tm.intent && !s.earlier(text, tm) {
				t.Errorf("line %d: %q is %s, want %s", tm.line, text, m.Intent, tm.intent)
			}
			if !tm.typed && !grammar.accepts(said) {
				t.Errorf("line %d: %q is not in the grammar", tm.line, text)
			}
			for _, w := range said {
				if _, found := slices.BinarySearch(g.Words, w); !tm.typed && !found {
					t.Errorf("line %d: %q is not in the list of words", tm.line, w)
				}
			}
		}
	}
}

// TestGrammarIsNoLarger sees that the grammar does not accept what is only understood when written.
func TestGrammarIsNoLarger(t *testing.T) {
	s, err := English()
	if err != nil {
		t.Fatal(err)
	}
	g := parseJSGF(t, s.Grammar().JSGF)
	for _, text := range []string{"", "please", "nabu", "set a timer for one thousand minutes", "ten minutes", "time", "set a apple pie timer"} {
		if g.accepts(strings.Fields(text)) {
			t.Errorf("%q is in the grammar", text)
		}
	}
	if lead := s.Grammar().Lead; !slices.Contains(lead, "nabu") || slices.Contains(lead, "stop") {
		t.Errorf("words of the wake word: %v", lead)
	}
}

// earlier reports whether an earlier template takes the sentence by right: one with any name in it, as in "make a
// ten minute timer" made up of a name.
func (s *Set) earlier(text string, tm template) bool {
	words, _ := normalise(text)
	ids := make([]int32, len(words))
	for i, w := range words {
		id, ok := s.vocab[w]
		if !ok {
			id = -1
		}
		ids[i] = id
	}
	var m machine
	for i := range s.templates {
		e := &s.templates[i]
		if e.line >= tm.line {
			return false
		}
		if _, ok := m.run(&e.prog, ids); ok {
			return e.intent != tm.intent && (e.typed || tm.typed)
		}
	}
	return false
}

// sample writes a sentence of n.
func (s *Set) sample(rnd *rand.Rand, n node, typed bool) []string {
	switch n := n.(type) {
	case word:
		return []string{string(n)}
	case sequence:
		var out []string
		for _, m := range n {
			out = append(out, s.sample(rnd, m, typed)...)
		}
		return out
	case choice:
		for {
			if b := n[rnd.IntN(len(n))]; typed || !b.typed {
				return s.sample(rnd, b.body, typed)
			}
		}
	case optional:
		if rnd.IntN(2) == 0 {
			return s.sample(rnd, n.body, typed)
		}
	case ref:
		return s.sample(rnd, s.rules[n.name].body, typed)
	case numbers:
		return numberWords(n.from + rnd.IntN(n.to-n.from+1))
	case anything:
		return [][]string{{"apple"}, {"apple", "pie"}, {"very", "hot", "soup"}}[rnd.IntN(3)]
	case capture:
		m, _ := reference(n.rule)
		return s.sample(rnd, m, typed)
	}
	return nil
}

// A jsgf is just enough of a JSGF reader to check what we write.
type jsgf struct {
	rules map[string][]string // tokens
	top   string
	ends  map[place][]int // what rule found for this sentence
}

type place struct {
	rule string
	at   int
}

func parseJSGF(t *testing.T, text string) *jsgf {
	t.Helper()
	header, body, _ := strings.Cut(text, "\n")
	if header != "#JSGF V1.0;" {
		t.Fatalf("the grammar begins with %q", header)
	}
	g := &jsgf{rules: make(map[string][]string)}
	for _, statement := range strings.Split(body, ";") {
		left, right, ok := strings.Cut(strings.TrimSpace(statement), "=")
		if !ok {
			continue
		}
		left, public := strings.CutPrefix(strings.TrimSpace(left), "public ")
		if public {
			g.top = left
		}
		g.rules[left] = strings.Fields(right)
	}
	if g.top == "" {
		t.Fatal("the grammar has no public rule")
	}
	return g
}

func (g *jsgf) accepts(said []string) bool {
	g.ends = make(map[place][]int)
	ends := g.rule(g.top, said, 0)
	return slices.Contains(ends, len(said))
}

// rule finds where a rule that begins at a word may end.
func (g *jsgf) rule(name string, said []string, at int) []int {
	tokens := g.rules[name]
	if tokens == nil {
		panic("no rule " + name)
	}
	key := place{name, at}
	if ends, known := g.ends[key]; known {
		return ends
	}
	p := 0
	g.ends[key] = g.choice(tokens, &p, said, []int{at})
	return g.ends[key]
}

func (g *jsgf) choice(tokens []string, p *int, said []string, at []int) []int {
	var ends []int
	for {
		now := at
		for *p < len(tokens) && !slices.Contains([]string{"|", ")", "]"}, tokens[*p]) {
			now = g.item(tokens, p, said, now)
		}
		ends = append(ends, now...)
		if *p == len(tokens) || tokens[*p] != "|" {
			slices.Sort(ends)
			return slices.Compact(ends)
		}
		*p++
	}
}

func (g *jsgf) item(tokens []string, p *int, said []string, at []int) []int {
	token := tokens[*p]
	*p++
	switch {
	case token == "(" || token == "[":
		ends := g.choice(tokens, p, said, at)
		*p++
		if token == "[" {
			ends = append(ends, at...)
		}
		return ends
	case token == "<NULL>" || strings.HasPrefix(token, "/"): // says nothing; a weight
		return at
	case strings.HasPrefix(token, "<"):
		var ends []int
		for _, a := range at {
			ends = append(ends, g.rule(token, said, a)...)
		}
		return ends
	}
	var ends []int
	for _, a := range at {
		if a < len(said) && said[a] == token {
			ends = append(ends, a+1)
		}
	}
	return ends
}

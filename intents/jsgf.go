package intents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Grammar is what a recogniser is to listen for.
type Grammar struct {
	JSGF  string   // the grammar, in the Java Speech Grammar Format; its public rule is <command>
	Words []string // every word in it, in alphabetical order
	Lead  []string // words that may come before a command and belong to the wake word
}

// Grammar writes the templates that are listened for as a grammar.
func (s *Set) Grammar() Grammar {
	g := grammarWriter{set: s, rules: make(map[string]string), words: make(map[string]bool)}
	command := ""
	if s.rules["wake"] != nil {
		command += "[ " + g.write(ref{"wake"}) + " ] "
	}
	if s.rules["before"] != nil {
		command += g.seldom("before") + " "
	}
	lead := slices.Sorted(maps.Keys(g.wordsOf("wake")))
	var intents []string
	for _, name := range s.intents {
		if body := g.intent(name); body != "" {
			intents = append(intents, "<intent_"+name+">")
			g.rules["intent_"+name] = body
		}
	}
	command += "( " + strings.Join(intents, " | ") + " )"
	if s.rules["after"] != nil {
		command += " " + g.seldom("after")
	}

	var b strings.Builder
	fmt.Fprintf(&b, "#JSGF V1.0;\ngrammar bellbird;\npublic <command> = %s;\n", command)
	for _, name := range slices.Sorted(maps.Keys(g.rules)) {
		fmt.Fprintf(&b, "<%s> = %s;\n", name, g.rules[name])
	}
	return Grammar{JSGF: b.String(), Words: slices.Sorted(maps.Keys(g.words)), Lead: lead}
}

type grammarWriter struct {
	set   *Set
	rules map[string]string
	words map[string]bool
}

// seldom writes a rule that may be left out, and mostly is: a recogniser that thought otherwise would hear a "please"
// in whatever follows a command.
func (g *grammarWriter) seldom(rule string) string {
	return "( /0.95/ <NULL> | /0.05/ " + g.write(ref{rule}) + " )"
}

// wordsOf are the words of one rule, if there is one.
func (g *grammarWriter) wordsOf(rule string) map[string]bool {
	only := grammarWriter{set: g.set, rules: make(map[string]string), words: make(map[string]bool)}
	if g.set.rules[rule] != nil {
		only.write(ref{rule})
	}
	return only.words
}

// intent writes the templates of an intent that are listened for; "" if there are none.
func (g *grammarWriter) intent(name string) string {
	var alternatives []string
	for _, t := range g.set.templates {
		if t.intent == name && !t.typed {
			alternatives = append(alternatives, g.write(t.expr))
		}
	}
	return strings.Join(alternatives, " | ")
}

func (g *grammarWriter) write(n node) string {
	switch n := n.(type) {
	case word:
		g.words[string(n)] = true
		return string(n)
	case sequence:
		var parts []string
		for _, m := range n {
			if text := g.write(m); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, " ")
	case choice:
		return "( " + strings.Join(g.branches(n), " | ") + " )"
	case optional:
		return "[ " + g.write(n.body) + " ]"
	case numbers:
		name := fmt.Sprintf("number_%d_%d", n.from, n.to)
		g.rules[name] = strings.Join(g.branches(n.expand()), " | ")
		return "<" + name + ">"
	case ref:
		if _, done := g.rules[n.name]; !done {
			g.rules[n.name] = strings.Join(g.branches(g.set.rules[n.name].body), " | ")
		}
		return "<" + n.name + ">"
	case capture:
		m, _ := reference(n.rule) // checked by link
		return g.write(m)
	}
	return "" // constants are not said, and <any> cannot be: see check
}

func (g *grammarWriter) branches(c choice) []string {
	var out []string
	for _, b := range c {
		if !b.typed {
			out = append(out, g.write(b.body))
		}
	}
	return out
}

package intents

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Templates are matched the way regular expressions are, by a machine that follows all readings of a sentence at once,
// word by word. So the time is bounded by the length of the sentence times the size of the templates, whatever they
// say, and there is nothing to go back over.
//
//	1 link      names are resolved, templates compiled (once)
//	2 Match     the sentence becomes word numbers; templates are tried in the order of the file
//	3 run       one template against all words
//	4 slots     the words between the marks become values

type op uint8

const (
	opWord  op = iota // x: the number of the word
	opAny             // whatever word
	opJump            // x: where to
	opSplit           // x first, then y
	opOpen            // x: the number of the capture
	opClose           // x: the number of the capture
	opSet             // x: the number of the constant
	opDone
)

type inst struct {
	op   op
	x, y int32
}

type program struct {
	code      []inst
	captures  []capture
	constants []constant
	kinds     []string // the types of the captures' rules

	// What a sentence may begin with: most templates need not be looked at any further.
	first    []int32 // words, ordered
	firstAny bool

	never map[int32]bool // words that <any> doesn't take; the same for all templates
}

// link resolves the names of rules and compiles the templates. The line is where the fault is.
func (s *Set) link() (line int, err error) {
	names := slices.SortedFunc(maps.Keys(s.rules), func(a, b string) int { return s.rules[a].line - s.rules[b].line })
	for _, name := range names {
		r := s.rules[name]
		if err := s.check(r.body, false, []string{name}); err != nil {
			return r.line, fmt.Errorf("rule <%s>: %w", name, err)
		}
	}
	never, err := s.neverWords()
	if err != nil {
		return s.rules["never"].line, err
	}
	total := 0
	for i := range s.templates {
		t := &s.templates[i]
		if err := s.check(t.expr, !t.typed, nil); err != nil {
			return t.line, err
		}
		if s.silent(t.expr) {
			return t.line, fmt.Errorf("everything in this template is optional")
		}
		c := compiler{set: s, limit: maxProg - total}
		c.prog.never = never
		if err := c.compile(t); err != nil {
			return t.line, err
		}
		total += len(t.prog.code)
	}
	return 0, nil
}

// neverWords are the words of the rule <never>.
func (s *Set) neverWords() (map[int32]bool, error) {
	words := make(map[int32]bool)
	if s.rules["never"] == nil {
		return words, nil
	}
	for _, b := range s.rules["never"].body {
		for _, alternative := range alternatives(b.body) {
			q, ok := alternative.(sequence)
			if !ok || len(q) != 1 {
				return nil, fmt.Errorf("rule <never>: only single words can be kept out of <any>")
			}
			w, ok := q[0].(word)
			if !ok {
				return nil, fmt.Errorf("rule <never>: only single words can be kept out of <any>")
			}
			words[s.wordNumber(string(w))] = true
		}
	}
	return words, nil
}

func alternatives(n node) []node {
	c, ok := n.(choice)
	if !ok {
		return []node{n}
	}
	var out []node
	for _, b := range c {
		out = append(out, b.body)
	}
	return out
}

// check finds names that do not exist, rules that contain themselves and, if spoken, what cannot be listened for.
func (s *Set) check(n node, spoken bool, path []string) error {
	if len(path) > maxDepth {
		return fmt.Errorf("more than %d rules within each other", maxDepth)
	}
	switch n := n.(type) {
	case anything:
		if spoken {
			return fmt.Errorf("<any> cannot be listened for: begin the line with ~")
		}
	case optional:
		return s.check(n.body, spoken, path)
	case sequence:
		for _, m := range n {
			if err := s.check(m, spoken, path); err != nil {
				return err
			}
		}
	case choice:
		heard := false
		for _, b := range n {
			heard = heard || !b.typed
			if err := s.check(b.body, spoken && !b.typed, path); err != nil {
				return err
			}
		}
		if spoken && !heard {
			return fmt.Errorf("all alternatives of <%s> begin with ~, so it cannot be listened for", path[len(path)-1])
		}
	case ref:
		return s.checkRule(n.name, spoken, path)
	case capture:
		m, err := reference(n.rule)
		if err != nil {
			return err
		}
		return s.check(m, spoken, path)
	}
	return nil
}

func (s *Set) checkRule(name string, spoken bool, path []string) error {
	r := s.rules[name]
	if r == nil {
		return fmt.Errorf("there is no rule <%s>", name)
	}
	for _, p := range path {
		if p == name {
			return fmt.Errorf("<%s> contains itself: %s", name, strings.Join(append(path, name), " > "))
		}
	}
	return s.check(r.body, spoken, append(path[:len(path):len(path)], name))
}

// silent reports whether n can be said with no words.
func (s *Set) silent(n node) bool {
	switch n := n.(type) {
	case optional, constant:
		return true
	case sequence:
		for _, m := range n {
			if !s.silent(m) {
				return false
			}
		}
		return true
	case choice:
		for _, b := range n {
			if s.silent(b.body) {
				return true
			}
		}
	case ref:
		return s.silent(s.rules[n.name].body)
	case capture:
		m, _ := reference(n.rule) // checked before
		return s.silent(m)
	}
	return false
}

type compiler struct {
	set   *Set
	prog  program
	limit int
}

func (c *compiler) compile(t *template) error {
	for _, name := range []string{"wake", "before"} {
		if c.set.rules[name] != nil {
			c.emit(optional{ref{name}})
		}
	}
	c.emit(t.expr)
	if c.set.rules["after"] != nil {
		c.emit(optional{ref{"after"}})
	}
	c.add(opDone)
	if len(c.prog.code) > c.limit {
		return fmt.Errorf("the templates are too large with this one: rules within rules multiply")
	}
	if len(c.prog.captures) > maxSlots || len(c.prog.constants) > maxSlots {
		return fmt.Errorf("more than %d slots in one template", maxSlots)
	}
	t.prog = c.prog
	t.prog.findFirst()
	return nil
}

func (p *program) findFirst() {
	m := machine{seen: make([]int32, len(p.code)), step: 1}
	m.follow(p, 0, 0, marks{}, &m.now)
	for _, t := range m.now {
		if in := p.code[t.pc]; in.op == opAny {
			p.firstAny = true
		} else {
			p.first = append(p.first, in.x)
		}
	}
	slices.Sort(p.first)
	p.first = slices.Clip(slices.Compact(p.first))
}

// mayBegin reports whether a sentence that the template covers may begin with a word.
func (p *program) mayBegin(id int32) bool {
	_, found := slices.BinarySearch(p.first, id)
	return found || p.firstAny
}

func (c *compiler) add(o op) (at int32) {
	c.prog.code = append(c.prog.code, inst{op: o})
	return int32(len(c.prog.code) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.prog.code)) }

func (c *compiler) emit(n node) {
	if len(c.prog.code) > c.limit {
		return // compile reports it
	}
	switch n := n.(type) {
	case word:
		c.prog.code[c.add(opWord)].x = c.set.wordNumber(string(n))
	case sequence:
		for _, m := range n {
			c.emit(m)
		}
	case choice:
		c.emitChoice(n)
	case optional:
		split := c.add(opSplit)
		c.prog.code[split].x = c.here()
		c.emit(n.body)
		c.prog.code[split].y = c.here()
	case ref:
		c.emit(c.set.rules[n.name].body)
	case numbers:
		c.emit(n.expand())
	case anything:
		c.add(opAny)
		c.emit(optional{oneOrTwo{}})
	case oneOrTwo:
		c.add(opAny)
		split := c.add(opSplit)
		c.prog.code[split].x = c.here()
		c.add(opAny)
		c.prog.code[split].y = c.here()
	case capture:
		c.emitCapture(n)
	case constant:
		c.prog.constants = append(c.prog.constants, n)
		c.prog.code[c.add(opSet)].x = int32(len(c.prog.constants) - 1)
	}
}

// oneOrTwo is the rest of <any>.
type oneOrTwo struct{}

func (oneOrTwo) node() {}

func (c *compiler) emitChoice(n choice) {
	var ends []int32
	for i, b := range n {
		if i == len(n)-1 {
			c.emit(b.body)
			break
		}
		split := c.add(opSplit)
		c.prog.code[split].x = c.here()
		c.emit(b.body)
		ends = append(ends, c.add(opJump))
		c.prog.code[split].y = c.here()
	}
	for _, e := range ends {
		c.prog.code[e].x = c.here()
	}
}

func (c *compiler) emitCapture(n capture) {
	i := int32(len(c.prog.captures))
	kind := "text"
	m, _ := reference(n.rule) // checked before
	switch m := m.(type) {
	case ref:
		kind = c.set.rules[m.name].kind
	case numbers:
		kind = "number"
	}
	c.prog.captures = append(c.prog.captures, n)
	c.prog.kinds = append(c.prog.kinds, kind)
	c.prog.code[c.add(opOpen)].x = i
	c.emit(m)
	c.prog.code[c.add(opClose)].x = i
}

// wordNumber gives a word of the templates its number.
func (s *Set) wordNumber(w string) int32 {
	w = strings.ReplaceAll(w, "'", "")
	n, ok := s.vocab[w]
	if !ok {
		n = int32(len(s.vocab))
		s.vocab[w] = n
	}
	return n
}

// Match finds what a sentence means; false if no template covers it. The time it takes is bounded.
func (s *Set) Match(text string) (Match, bool) {
	words, ok := normalise(text)
	if !ok || len(words) == 0 {
		return Match{}, false
	}
	ids := make([]int32, len(words))
	for i, w := range words {
		if ids[i], ok = s.vocab[w]; !ok {
			ids[i] = -1
		}
	}
	var m machine
	for i := range s.templates {
		t := &s.templates[i]
		if !t.prog.mayBegin(ids[0]) {
			continue
		}
		if marks, ok := m.run(&t.prog, ids); ok {
			return Match{Intent: t.intent, Slots: slots(&t.prog, marks, words)}, true
		}
	}
	return Match{}, false
}

// marks are where a reading's captures begin and end, plus one, and which constants it passed.
type marks struct {
	open, close [maxSlots]int8
	set         [maxSlots]bool
}

type thread struct {
	pc    int32
	marks marks
}

// A machine is the working memory of run, kept from one template to the next.
type machine struct {
	now, next []thread
	seen      []int32 // by instruction: the step in which it was reached last
	step      int32
	done      *marks
}

func (m *machine) run(p *program, ids []int32) (marks, bool) {
	if len(m.seen) < len(p.code) {
		m.seen = make([]int32, len(p.code))
		m.step = 0
	}
	m.now = m.now[:0]
	m.step++
	m.done = nil
	m.follow(p, 0, 0, marks{}, &m.now)
	for i, id := range ids {
		m.step++
		m.done = nil
		m.next = m.next[:0]
		for _, t := range m.now {
			if in := p.code[t.pc]; in.op == opAny && !p.never[id] || in.op == opWord && in.x == id {
				m.follow(p, t.pc+1, i+1, t.marks, &m.next)
			}
		}
		m.now, m.next = m.next, m.now
		if len(m.now) == 0 && m.done == nil {
			return marks{}, false
		}
	}
	if m.done == nil {
		return marks{}, false
	}
	return *m.done, true
}

// follow adds the instructions that wait for a word and can be reached from pc without one, in order of preference.
func (m *machine) follow(p *program, pc int32, pos int, k marks, to *[]thread) {
	for m.seen[pc] != m.step {
		m.seen[pc] = m.step
		in := p.code[pc]
		switch in.op {
		case opWord, opAny:
			*to = append(*to, thread{pc, k})
			return
		case opDone:
			m.done = &k
			return
		case opJump:
			pc = in.x
			continue
		case opSplit:
			m.follow(p, in.x, pos, k, to)
			pc = in.y
			continue
		case opOpen:
			k.open[in.x] = int8(pos + 1)
		case opClose:
			k.close[in.x] = int8(pos + 1)
		case opSet:
			k.set[in.x] = true
		}
		pc++
	}
}

// slots are the values between the marks.
func slots(p *program, k marks, words []string) map[string]Value {
	out := make(map[string]Value)
	for i, c := range p.captures {
		if k.close[i] == 0 {
			continue
		}
		said := words[k.open[i]-1 : k.close[i]-1]
		v := Value{Text: strings.Join(said, " ")}
		switch p.kinds[i] {
		case "number":
			v.Number = numberOf(said)
		case "duration":
			v.Duration = durationOf(said)
		case "time":
			v.Time = timeOf(said)
		}
		out[c.slot] = v
	}
	for i, c := range p.constants {
		if k.set[i] {
			n, _ := strconv.Atoi(c.value) // 0 for what is no number
			out[c.slot] = Value{Text: c.value, Number: n}
		}
	}
	return out
}

package intents

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A template file is limited, so that no file can make the appliance slow or large.
const (
	maxFile  = 256 << 10
	maxDepth = 40     // rules within rules, brackets within brackets
	maxProg  = 400000 // instructions of all templates together
	maxSlots = 8      // captures in one template
)

// A node is a piece of a template: one of the types below.
type node interface{ node() }

type (
	word     string
	sequence []node
	choice   []branch // the first that fits
	optional struct{ body node }
	ref      struct{ name string }
	numbers  struct{ from, to int }
	anything struct{}
	capture  struct{ slot, rule string }
	constant struct{ slot, value string }
)

type branch struct {
	body  node
	typed bool // understood when written, not listened for
}

func (word) node()     {}
func (sequence) node() {}
func (choice) node()   {}
func (optional) node() {}
func (ref) node()      {}
func (numbers) node()  {}
func (anything) node() {}
func (capture) node()  {}
func (constant) node() {}

type rule struct {
	kind string // text, number, duration, time; "" until one line says it
	body choice
	line int
}

var (
	sectionLine = regexp.MustCompile(`^\[([a-z][a-z_]*)\]$`)
	ruleLine    = regexp.MustCompile(`^<([a-z][a-z_]*)(?::([a-z]+))?>\s*=(.*)$`)
	rangeName   = regexp.MustCompile(`^([0-9]{1,3})\.\.([0-9]{1,3})$`)
	wordText    = regexp.MustCompile(`^[a-z]+('[a-z]+)*'?$`)
	slotText    = regexp.MustCompile(`^([a-z][a-z_]*)([:=])([a-z0-9_]+)$`)
)

// Parse reads a template file. name is for errors, which say the line and what is wrong with it.
func Parse(name, text string) (*Set, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: %d bytes are too many for a template file; %d are allowed", name, len(text), maxFile)
	}
	s := &Set{rules: make(map[string]*rule), vocab: make(map[string]int32)}
	intent := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			intent = m[1]
			if slices.Contains(s.intents, intent) {
				err = fmt.Errorf("section [%s] is there twice", intent)
			}
			s.intents = append(s.intents, intent)
		} else {
			err = s.parseLine(intent, line, i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	if len(s.templates) == 0 {
		return nil, fmt.Errorf("%s: no templates; a section looks like [stop], with one template on each line below it", name)
	}
	if line, err := s.link(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return s, nil
}

// parseLine reads a rule or a template.
func (s *Set) parseLine(intent, line string, number int) error {
	line, typed := strings.CutPrefix(line, "~")
	line = strings.TrimSpace(line)
	if m := ruleLine.FindStringSubmatch(line); m != nil {
		return s.parseRule(m[1], m[2], m[3], typed, number)
	}
	if intent == "" {
		return fmt.Errorf("a template before the first section: write [intent] above it, or <name> = … for a rule")
	}
	expr, err := parseExpr(line)
	if err != nil {
		return err
	}
	s.templates = append(s.templates, template{intent: intent, line: number, typed: typed, expr: expr})
	return nil
}

func (s *Set) parseRule(name, kind, text string, typed bool, line int) error {
	if !slices.Contains([]string{"", "text", "number", "duration", "time"}, kind) {
		return fmt.Errorf("rule <%s>: unknown type %q; there are text, number, duration and time", name, kind)
	}
	if name == "any" {
		return fmt.Errorf("rule <any> is built in")
	}
	expr, err := parseExpr(text)
	if err != nil {
		return fmt.Errorf("rule <%s>: %w", name, err)
	}
	r := s.rules[name]
	if r == nil {
		r = &rule{kind: kind, line: line}
		s.rules[name] = r
	}
	if r.kind != kind {
		return fmt.Errorf("rule <%s>: its type is %q here and %q in line %d", name, kind, r.kind, r.line)
	}
	r.body = append(r.body, branch{expr, typed})
	return nil
}

// A parser reads one expression.
type parser struct {
	text  string
	pos   int
	depth int
}

func parseExpr(text string) (node, error) {
	p := &parser{text: text}
	n, err := p.choice()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.text) {
		return nil, fmt.Errorf("unexpected %q", p.text[p.pos:p.pos+1])
	}
	return n, nil
}

func (p *parser) choice() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("more than %d brackets within each other", maxDepth)
	}
	defer func() { p.depth-- }()
	var c choice
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		c = append(c, branch{body: n})
		if p.peek() != '|' {
			break
		}
		p.pos++
	}
	if len(c) == 1 {
		return c[0].body, nil
	}
	return c, nil
}

func (p *parser) sequence() (node, error) {
	var q sequence
	for {
		var n node
		var err error
		switch p.peek() {
		case 0, '|', ')', ']':
			if len(q) == 0 {
				return nil, fmt.Errorf("nothing is said before %q", p.rest())
			}
			return q, nil
		case '(':
			n, err = p.group(')')
		case '[':
			n, err = p.group(']')
			n = optional{n}
		case '<':
			n, err = p.reference()
		case '{':
			n, err = p.slot()
		default:
			n, err = p.word()
		}
		if err != nil {
			return nil, err
		}
		q = append(q, n)
	}
}

// peek is the next character that is not a space, 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *parser) rest() string {
	if p.pos == len(p.text) {
		return "end of line"
	}
	return p.text[p.pos : p.pos+1]
}

func (p *parser) group(end byte) (node, error) {
	p.pos++
	n, err := p.choice()
	if err != nil {
		return nil, err
	}
	if p.peek() != end {
		return nil, fmt.Errorf("missing %q before %q", string(end), p.rest())
	}
	p.pos++
	return n, nil
}

// until takes the text up to the end character, which is left out.
func (p *parser) until(end string) (string, error) {
	text, _, ok := strings.Cut(p.text[p.pos+1:], end)
	if !ok {
		return "", fmt.Errorf("missing %q after %q", end, p.text[p.pos:])
	}
	p.pos += len(text) + 2
	return text, nil
}

func (p *parser) reference() (node, error) {
	name, err := p.until(">")
	if err != nil {
		return nil, err
	}
	return reference(name)
}

// reference is what <name> stands for.
func reference(name string) (node, error) {
	if name == "any" {
		return anything{}, nil
	}
	if m := rangeName.FindStringSubmatch(name); m != nil {
		from, _ := strconv.Atoi(m[1])
		to, _ := strconv.Atoi(m[2])
		if from > to {
			return nil, fmt.Errorf("<%s>: the range is empty", name)
		}
		return numbers{from, to}, nil
	}
	if !sectionLine.MatchString("[" + name + "]") {
		return nil, fmt.Errorf("<%s> is neither the name of a rule nor a range such as <1..99>", name)
	}
	return ref{name}, nil
}

func (p *parser) slot() (node, error) {
	text, err := p.until("}")
	if err != nil {
		return nil, err
	}
	m := slotText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("{%s}: a slot looks like {name:rule} or {name=value}", text)
	}
	if m[2] == "=" {
		return constant{m[1], m[3]}, nil
	}
	return capture{m[1], m[3]}, nil
}

func (p *parser) word() (node, error) {
	end := strings.IndexAny(p.text[p.pos:], " \t()[]<>{}|")
	if end < 0 {
		end = len(p.text) - p.pos
	}
	if end == 0 {
		return nil, fmt.Errorf("unexpected %q", p.text[p.pos:p.pos+1])
	}
	text := p.text[p.pos : p.pos+end]
	p.pos += end
	if !wordText.MatchString(text) {
		return nil, fmt.Errorf("%q is not a word: lower-case letters and apostrophes; write numbers out", text)
	}
	return word(text), nil
}

package review

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Python is read line by line: what begins on one line and ends on another is seen only in part.

// A pyFile is a file of Python that is being read.
type pyFile struct {
	*reader
	file  string
	code  []string            // lines without comments, with nothing between quotes
	texts map[int][]string    // the texts of a line, by its index; of one that has several lines, the first
	defs  map[string]*pyFunc  // by name
	seen  map[string]struct{} // functions, with the names that have words
}

// A pyFunc is a function: its lines are those from first to before end, by their index.
type pyFunc struct {
	line, first, end int
	params           []string
}

var (
	pyDef    = regexp.MustCompile(`^(\s*)(?:async\s+)?def\s+(\w+)\s*\((.*?)\)?\s*(?:->.*)?:?\s*$`)
	pyAlias  = regexp.MustCompile(`^(\w+)\s*=\s*(\w+)\s*$`)
	pyAssign = regexp.MustCompile(`^\s*(?:for\s+)?([\w\s,]+?)\s*(?:[-+*|]?=|\bin\b)\s*([^=].*)$`)
	pyAppend = regexp.MustCompile(`\b(\w+)\.(?:append|extend|add|update|insert)\((.*)`)
	pyWalrus = regexp.MustCompile(`\b(\w+)\s*:=\s*(.*)`)
	pyCall   = regexp.MustCompile(`([\w.]+)\(([^()]*(?:\([^()]*\)[^()]*)*)`)
	pyField  = regexp.MustCompile(`\.(ghost_label|ghost_contributions)\b`)
	pyOp     = regexp.MustCompile(`(\bnot\s+in\b|\bin\b|==|!=|<=|>=|<|>)`)
	pyLoop   = regexp.MustCompile(`\bfor\b.*?\bin\b`)
	pyIndex  = regexp.MustCompile(`\w\[([^\]]+)\]`)
	pyRepeat = regexp.MustCompile(`\*\s*(\d{3,})`)
)

// python reads a file of Python.
func (r *reader) python(name string, text []byte) {
	p := &pyFile{reader: r, file: name, texts: make(map[int][]string), defs: make(map[string]*pyFunc), seen: make(map[string]struct{})}
	p.split(string(text))
	lines := make(map[string]int)
	for i, line := range p.code {
		if m := pyDef.FindStringSubmatch(line); m != nil {
			f := &pyFunc{line: i + 1, first: i + 1, end: i + 1}
			for _, param := range strings.Split(m[3], ",") {
				if id := pyName.FindString(strings.TrimSpace(param)); id != "" {
					f.params = append(f.params, id)
				}
			}
			for f.end < len(p.code) && (strings.TrimSpace(p.code[f.end]) == "" || indent(p.code[f.end]) > len(m[1])) {
				f.end++
			}
			p.defs[m[2]], lines[m[2]] = f, i+1
		} else if m := pyAlias.FindStringSubmatch(line); m != nil && p.defs[m[2]] != nil {
			p.defs[m[1]], lines[m[1]] = p.defs[m[2]], lines[m[2]]
		}
		if m := pyField.FindStringSubmatch(line); m != nil {
			p.reserve(name, i+1, m[1])
		}
	}
	for i, texts := range p.texts {
		for _, t := range texts {
			p.literal(name, i+1, "", t)
		}
	}
	for entry, points := range r.entries(name, lines) {
		for _, point := range points {
			if f := p.defs[entry]; len(f.params) > 0 {
				p.function(point, entry, f.params[0], nil, 0)
			}
		}
	}
}

var pyName = regexp.MustCompile(`^\w+`)

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// split parts the code from its comments and texts. An f-string's code is lost with its text.
func (p *pyFile) split(text string) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	quote, began := "", 0
	var inText, code strings.Builder
	for i, line := range lines {
		code.Reset()
		if quote != "" {
			code.WriteString(strings.Repeat(" ", 200)) // how far a text is indented says nothing: it ends no function
		}
		for at := 0; at < len(line); {
			rest := line[at:]
			switch {
			case quote != "" && strings.HasPrefix(rest, `\`) && len(rest) > 1:
				if rest[1] == 'n' {
					inText.WriteByte('\n')
				} else {
					inText.WriteByte(rest[1])
				}
				at += 2
			case quote != "" && strings.HasPrefix(rest, quote):
				p.texts[began] = append(p.texts[began], inText.String())
				if inText.Len() > 0 {
					code.WriteByte('~') // there was a text, which wasn't empty
				}
				code.WriteByte('"')
				at += len(quote)
				quote = ""
				inText.Reset()
			case quote != "":
				inText.WriteByte(rest[0])
				at++
			case rest[0] == '#':
				at = len(line)
			case rest[0] == '"' || rest[0] == '\'':
				quote, began = rest[:1], i
				if strings.HasPrefix(rest, strings.Repeat(quote, 3)) {
					quote = strings.Repeat(quote, 3)
				}
				code.WriteByte('"')
				at += len(quote)
			default:
				code.WriteByte(rest[0])
				at++
			}
		}
		if len(quote) == 3 {
			inText.WriteByte('\n')
		} else if quote != "" && !strings.HasSuffix(line, `\`) {
			quote = "" // it is not Python, go on with the next line
			inText.Reset()
		}
		p.code = append(p.code, code.String())
	}
}

// function follows words through a function that the handler of a point is, or calls.
func (p *pyFile) function(point, name, event string, names map[string]bool, depth int) {
	key := strings.Join(append([]string{point, name, event}, slices.Sorted(maps.Keys(names))...), "\x00")
	if _, ok := p.seen[key]; ok || depth > maxCalls {
		return
	}
	p.seen[key] = struct{}{}
	f := p.defs[name]
	w := pyWords{event: event, names: make(map[string]bool)}
	maps.Copy(w.names, names)
	for n := -1; n != len(w.names); { // until nothing more is found
		n = len(w.names)
		for _, line := range p.code[f.first:f.end] {
			w.spread(line)
		}
	}
	for i := f.first; i < f.end; i++ {
		p.look(point, i, w, depth)
	}
}

// pyWords knows which names of a function have the user's words in them.
type pyWords struct {
	event string
	names map[string]bool
}

var pyToken = regexp.MustCompile(`[\w.]+`)

// has reports whether a piece of code has the user's words in it.
func (w pyWords) has(code string) bool {
	return slices.ContainsFunc(pyToken.FindAllString(code, -1), func(token string) bool {
		first, rest, _ := strings.Cut(token, ".")
		field, _, _ := strings.Cut(rest, ".")
		return w.names[first] || w.event != "" && first == w.event && slices.Contains(spoken, field)
	})
}

// spread notes the names that a line gives words to.
func (w pyWords) spread(line string) {
	give := func(names string) {
		for _, n := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
			if n != w.event {
				w.names[n] = true
			}
		}
	}
	for _, pattern := range []*regexp.Regexp{pyWalrus, pyAssign, pyAppend} {
		m := pattern.FindStringSubmatch(line)
		if m == nil || !w.has(m[2]) {
			continue
		}
		if head, _, _ := strings.Cut(strings.TrimSpace(line), " "); pattern == pyAssign && slices.Contains([]string{"if", "elif", "while", "return", "assert", "not"}, head) {
			continue
		}
		give(m[1])
	}
}

// look checks what a line does with words.
func (p *pyFile) look(point string, i int, w pyWords, depth int) {
	line, code := i+1, p.code[i]
	for _, t := range p.texts[i] {
		p.literal(p.file, line, point, t)
		if m := pyRepeat.FindStringSubmatch(code); m != nil && slices.Contains(unseen, point) {
			if n, err := strconv.Atoi(m[1]); err == nil && n*len(t) > maxUnseen {
				p.find(p.file, line, "%s has a text of more than %d characters: no more reach the model, and so much crowds out the rest", point, maxUnseen)
			}
		}
	}
	for _, m := range pyCall.FindAllStringSubmatch(code, -1) {
		p.call(point, line, m[1], m[2], w, depth)
	}
	if !w.has(code) {
		return
	}
	compared := pyLoop.ReplaceAllString(code, "")
	if at := pyOp.FindStringIndex(compared); at != nil {
		left, right := compared[:at[0]], compared[at[1]:]
		if (w.has(left) || w.has(right)) && !strings.HasPrefix(strings.TrimSpace(right), `""`) && !strings.HasPrefix(strings.TrimSpace(right), "None") {
			p.used(p.file, line, point, match, `by "`+strings.Join(strings.Fields(compared[at[0]:at[1]]), " ")+`"`)
		}
	}
	if m := pyIndex.FindStringSubmatch(code); m != nil && w.has(m[1]) {
		p.used(p.file, line, point, match, "by looking it up")
	}
}

// call checks a call whose arguments, or whose object, have words.
func (p *pyFile) call(point string, line int, name, arguments string, w pyWords, depth int) {
	passed, object := w.has(arguments), w.has(name)
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case matching.MatchString(last) && (passed || object), comparing.MatchString(last) && passed, last == "get" && passed && !sending.MatchString(name):
		p.used(p.file, line, point, match, call(name))
	case sending.MatchString(name) && passed:
		p.used(p.file, line, point, send, call(name))
	case keeping.MatchString(name) && passed, last == "save" && passed:
		p.used(p.file, line, point, keep, call(name))
	}
	f := p.defs[name]
	if f == nil {
		return
	}
	event, names := "", make(map[string]bool)
	for i, a := range strings.Split(arguments, ",") {
		param := ""
		if key, value, ok := strings.Cut(a, "="); ok {
			param, a = strings.TrimSpace(key), value
		} else if i < len(f.params) {
			param = f.params[i]
		}
		switch a = strings.TrimSpace(a); {
		case param == "":
		case a == w.event:
			event = param
		case w.has(a):
			names[param] = true
		}
	}
	if event != "" || len(names) > 0 || slices.Contains(unseen, point) {
		p.function(point, name, event, names, depth+1)
	}
}

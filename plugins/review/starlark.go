package review

import (
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// starlark reads a file of Starlark.
func (r *reader) starlark(name string, text []byte) {
	f, err := (&syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}).Parse(name, text, 0)
	if err != nil {
		line := 1
		if e, ok := err.(syntax.Error); ok {
			line, err = int(e.Pos.Line), errText(e.Msg)
		}
		r.find(name, line, "it can't be read: %v", err)
		return
	}
	s := &starFile{reader: r, file: name, defs: make(map[string]*syntax.DefStmt), seen: make(map[string]bool)}
	lines := make(map[string]int)
	for _, stmt := range f.Stmts {
		if d, ok := stmt.(*syntax.DefStmt); ok {
			s.defs[d.Name.Name], lines[d.Name.Name] = d, int(d.Def.Line)
		}
		if a, ok := stmt.(*syntax.AssignStmt); ok { // handle = ghost_inject
			to, isName := a.LHS.(*syntax.Ident)
			from, isFunction := a.RHS.(*syntax.Ident)
			if isName && isFunction && s.defs[from.Name] != nil {
				s.defs[to.Name], lines[to.Name] = s.defs[from.Name], lines[from.Name]
			}
		}
	}
	for name, points := range r.entries(name, lines) {
		for _, point := range points {
			d := s.defs[name]
			if len(d.Params) > 0 {
				s.function(point, d, paramName(d.Params[0]), nil, 0)
			}
		}
	}
	each(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DotExpr:
			s.reserve(s.file, int(n.Name.NamePos.Line), n.Name.Name)
		case *syntax.Literal:
			if v, ok := n.Value.(string); ok {
				s.literal(s.file, int(n.TokenPos.Line), "", v)
			}
		}
		return true
	})
}

// each calls see for a node and those below it, as long as it says true.
func each(n syntax.Node, see func(syntax.Node) bool) {
	syntax.Walk(n, func(n syntax.Node) bool { return n != nil && see(n) })
}

type errText string

func (e errText) Error() string { return string(e) }

// A starFile is one that is being read.
type starFile struct {
	*reader
	file string
	defs map[string]*syntax.DefStmt
	seen map[string]bool // functions, with the names that have words
}

func paramName(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.BinaryExpr: // with a default
		return paramName(e.X)
	}
	return ""
}

// maxCalls is how deep functions are followed into others.
const maxCalls = 8

// wordNames knows which names of a function have the user's words in them.
type wordNames struct {
	event string // the name of the event; "": it has none
	names map[string]bool
}

// function follows words through a function that the handler of a point is, or calls.
func (s *starFile) function(point string, d *syntax.DefStmt, event string, names map[string]bool, depth int) {
	key := strings.Join(append([]string{point, d.Name.Name, event}, slices.Sorted(maps.Keys(names))...), "\x00")
	if s.seen[key] || depth > maxCalls {
		return
	}
	s.seen[key] = true
	w := &wordNames{event, make(map[string]bool)}
	maps.Copy(w.names, names)
	for n := -1; n != len(w.names); { // until nothing more is found
		n = len(w.names)
		for _, stmt := range d.Body {
			each(stmt, func(n syntax.Node) bool { w.spread(n); return true })
		}
	}
	for _, stmt := range d.Body {
		each(stmt, func(n syntax.Node) bool { s.look(point, n, w, depth); return true })
	}
}

// has reports whether an expression has the user's words in it.
func (w *wordNames) has(e syntax.Node) (found bool) {
	if e == nil {
		return false
	}
	each(e, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			found = found || w.names[n.Name]
		case *syntax.DotExpr:
			x, ok := n.X.(*syntax.Ident)
			found = found || ok && x.Name == w.event && slices.Contains(spoken, n.Name.Name)
		case *syntax.CallExpr:
			if f, ok := n.Fn.(*syntax.Ident); ok && f.Name == "getattr" && len(n.Args) > 1 {
				x, isName := n.Args[0].(*syntax.Ident)
				field, isText := n.Args[1].(*syntax.Literal)
				if isName && isText && x.Name == w.event {
					v, _ := field.Value.(string)
					found = found || slices.Contains(spoken, v)
				}
			}
		}
		return !found
	})
	return found
}

// spread notes the names that a statement gives words to.
func (w *wordNames) spread(n syntax.Node) {
	give := func(to syntax.Expr) {
		each(to, func(n syntax.Node) bool {
			if _, ok := n.(*syntax.DotExpr); ok {
				return false // event.input = …
			}
			if name, ok := n.(*syntax.Ident); ok && name.Name != w.event {
				w.names[name.Name] = true
			}
			return true
		})
	}
	switch n := n.(type) {
	case *syntax.AssignStmt:
		if w.has(n.RHS) {
			give(n.LHS)
		}
	case *syntax.ForStmt:
		if w.has(n.X) {
			give(n.Vars)
		}
	case *syntax.ForClause:
		if w.has(n.X) {
			give(n.Vars)
		}
	case *syntax.CallExpr:
		method, ok := n.Fn.(*syntax.DotExpr)
		if ok && slices.Contains([]string{"append", "extend", "add", "update", "insert"}, method.Name.Name) && slices.ContainsFunc(n.Args, func(a syntax.Expr) bool { return w.has(a) }) {
			if x, ok := method.X.(*syntax.Ident); ok && x.Name != "state" && x.Name != "chat_state" {
				give(x)
			}
		}
	}
}

// look checks what is done with words.
func (s *starFile) look(point string, n syntax.Node, w *wordNames, depth int) {
	start, _ := n.Span()
	line := int(start.Line)
	switch n := n.(type) {
	case *syntax.Literal:
		if v, ok := n.Value.(string); ok {
			s.literal(s.file, line, point, v)
		}
	case *syntax.BinaryExpr:
		switch n.Op {
		case syntax.IN, syntax.NOT_IN, syntax.EQL, syntax.NEQ, syntax.LT, syntax.GT, syntax.LE, syntax.GE:
			if (w.has(n.X) || w.has(n.Y)) && !isEmpty(n.X) && !isEmpty(n.Y) {
				s.used(s.file, line, point, match, `by "`+n.Op.String()+`"`)
			}
		case syntax.STAR:
			if slices.Contains(unseen, point) {
				s.repeated(line, point, n)
			}
		}
	case *syntax.IndexExpr:
		if w.has(n.Y) {
			s.used(s.file, line, point, match, "by looking it up")
		}
	case *syntax.CallExpr:
		s.call(point, line, n, w, depth)
	}
}

// repeated checks a text that is made long by repeating.
func (s *starFile) repeated(line int, point string, n *syntax.BinaryExpr) {
	value := func(e syntax.Expr) any {
		if l, ok := e.(*syntax.Literal); ok {
			return l.Value
		}
		return nil
	}
	text, isText := value(n.X).(string)
	times, isNumber := value(n.Y).(int64)
	if isText && isNumber && int64(len(text))*times > maxUnseen {
		s.find(s.file, line, "%s has a text of more than %d characters: no more reach the model, and so much crowds out the rest", point, maxUnseen)
	}
}

func isEmpty(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Literal:
		return e.Value == ""
	case *syntax.Ident:
		return e.Name == "None"
	case *syntax.ParenExpr:
		return isEmpty(e.X)
	}
	return false
}

// call checks a call whose arguments, or whose object, have words.
func (s *starFile) call(point string, line int, n *syntax.CallExpr, w *wordNames, depth int) {
	argument := func(a syntax.Expr) syntax.Expr {
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			return b.Y // name=value
		}
		return a
	}
	passed := slices.ContainsFunc(n.Args, func(a syntax.Expr) bool { return w.has(argument(a)) })
	name, last := callName(n.Fn)
	method, isMethod := n.Fn.(*syntax.DotExpr)
	object := isMethod && w.has(method.X)
	switch {
	case matching.MatchString(last) && (passed || object), comparing.MatchString(last) && passed, last == "get" && passed && !strings.HasPrefix(name, "http"):
		s.used(s.file, line, point, match, call(name))
	case sending.MatchString(name) && passed:
		s.used(s.file, line, point, send, call(name))
	case keeping.MatchString(name) && passed:
		s.used(s.file, line, point, keep, call(name))
	}
	f, ok := n.Fn.(*syntax.Ident)
	if !ok || s.defs[f.Name] == nil {
		return
	}
	d := s.defs[f.Name]
	event, names := "", make(map[string]bool)
	for i, a := range n.Args {
		param := ""
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			param = paramName(b.X)
		} else if i < len(d.Params) {
			param = paramName(d.Params[i])
		}
		if x, ok := argument(a).(*syntax.Ident); ok && x.Name == w.event && param != "" {
			event = param
		} else if w.has(argument(a)) && param != "" {
			names[param] = true
		}
	}
	if event != "" || len(names) > 0 || slices.Contains(unseen, point) {
		s.function(point, d, event, names, depth+1)
	}
}

// callName is the name of what is called, whole and its last part: "re.search" and "search".
func callName(fn syntax.Expr) (name, last string) {
	switch fn := fn.(type) {
	case *syntax.Ident:
		return fn.Name, fn.Name
	case *syntax.DotExpr:
		name, _ := callName(fn.X)
		if name == "" {
			return fn.Name.Name, fn.Name.Name
		}
		return name + "." + fn.Name.Name, fn.Name.Name
	}
	return "", ""
}

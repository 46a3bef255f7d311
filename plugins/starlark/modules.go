package starlark

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// regexpModule is re: what scripts need of regular expressions, in RE2's syntax, which can't run away.
//
//	re.search(pattern, text)      the match and its groups as a list, or None
//	re.findall(pattern, text)     all matches
//	re.sub(pattern, repl, text)   $1 or ${name} in repl is a group
//	re.match(pattern, text)       whether the whole text matches
var regexpModule = &starlarkstruct.Module{Name: "re", Members: starlark.StringDict{
	"search": patternFunc("search", func(p *regexp.Regexp, text string) starlark.Value {
		groups := p.FindStringSubmatch(text)
		if groups == nil {
			return starlark.None
		}
		return stringList(groups)
	}),
	"findall": patternFunc("findall", func(p *regexp.Regexp, text string) starlark.Value { return stringList(p.FindAllString(text, -1)) }),
	"match": patternFunc("match", func(p *regexp.Regexp, text string) starlark.Value {
		at := p.FindStringIndex(text)
		return starlark.Bool(at != nil && at[0] == 0 && at[1] == len(text))
	}),
	"sub": starlark.NewBuiltin("sub", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var pattern, repl, text string
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "repl", &repl, "text", &text); err != nil {
			return nil, err
		}
		p, err := compile(pattern)
		if err != nil {
			return nil, err
		}
		return starlark.String(p.ReplaceAllString(text, repl)), nil
	}),
}}

func patternFunc(name string, f func(p *regexp.Regexp, text string) starlark.Value) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var pattern, text string
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "text", &text); err != nil {
			return nil, err
		}
		p, err := compile(pattern)
		if err != nil {
			return nil, err
		}
		return f(p, text), nil
	})
}

const maxPattern = 1000

func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern of more than %d bytes", maxPattern)
	}
	return regexp.Compile(pattern)
}

func stringList(s []string) *starlark.List {
	list := make([]starlark.Value, len(s))
	for i, x := range s {
		list[i] = starlark.String(x)
	}
	return starlark.NewList(list)
}

// randomModule is random: random() from 0 to 1, randint(a, b) with both, choice(list).
var randomModule = &starlarkstruct.Module{Name: "random", Members: starlark.StringDict{
	"random": starlark.NewBuiltin("random", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
			return nil, err
		}
		return starlark.Float(rand.Float64()), nil
	}),
	"randint": starlark.NewBuiltin("randint", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var from, to int64
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "a", &from, "b", &to); err != nil {
			return nil, err
		}
		if from > to || to-from < 0 || to-from == 1<<63-1 {
			return nil, fmt.Errorf("randint(%d, %d): the range is empty or too large", from, to)
		}
		return starlark.MakeInt64(from + rand.Int64N(to-from+1)), nil
	}),
	"choice": starlark.NewBuiltin("choice", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var list starlark.Indexable
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "list", &list); err != nil {
			return nil, err
		}
		if list.Len() == 0 {
			return nil, errors.New("choice: the list is empty")
		}
		return list.Index(rand.IntN(list.Len())), nil
	}),
}}

package runtimetest

import (
	"context"
	"fmt"

	"bellbird/hooks"
	"bellbird/plugins"
)

// GoExt is the extension of what Go has in place of files.
const GoExt = ".go"

// Go is a runtime of functions in Go: those of the case whose name is the source. With it the cases are held against the
// runner itself.
type Go struct{}

// functions are what a file of Go would have, given its owner.
type functions func(o *plugins.Owner) map[string]hooks.Func

type goUnit map[string]hooks.Func

var _ plugins.Runtime = Go{}

// Load finds the functions.
func (Go) Load(_ context.Context, owner *plugins.Owner, file string, source []byte) (plugins.Unit, error) {
	for _, all := range [][]testCase{eventCases, failureCases, givenCases, toolCases} {
		for _, c := range all {
			if c.name == string(source) {
				return goUnit(c.golang(owner)), nil
			}
		}
	}
	return nil, fmt.Errorf("%s: there is no case %q", file, source)
}

func (u goUnit) Func(point string) (hooks.Func, error) {
	if f := u[point]; f != nil {
		return f, nil
	}
	if f := u["handle"]; f != nil && point != "run" {
		return f, nil
	}
	return nil, fmt.Errorf("there is no function %s", point)
}

// one is a file with one function, which needs nothing of its owner.
func one(point string, f func(ctx context.Context, e *hooks.Event) error) functions {
	return func(*plugins.Owner) map[string]hooks.Func { return map[string]hooks.Func{point: f} }
}

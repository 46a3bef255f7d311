// Package starlark runs plugins that are written in Starlark, in this process. All handlers of a file share one set of
// globals, which are frozen once the file has been run: what a plugin wants to remember goes into its state. A script
// can do what its predeclared names and its event's system let it do, and nothing else: it has no files, and no clock but
// time.now; what it reaches of the network is up to its owner.
//
// It bounds time (a call ends at its deadline) and steps, but not memory: a script that is not trusted runs in a process
// of its own, around this package.
package starlark

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	starjson "go.starlark.net/lib/json"
	starmath "go.starlark.net/lib/math"
	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"bellbird/hooks"
	"bellbird/plugins"
)

// Options are what scripts get. The zero value is usable.
type Options struct {
	// State is what the plugin keeps, predeclared as "state"; nil: it can't keep anything.
	State plugins.State

	// Rows is what it keeps in chats, predeclared as "chat_state"; nil: as above.
	Rows RowsFunc

	// Settings are predeclared as "settings"; nil: there are none.
	Settings *plugins.Settings

	// MaxSteps bounds a single call, and the loading of a file; default 10 million, about a second.
	MaxSteps uint64

	// Grant makes of what an event's metadata have under "system" what this script may do with it for the length of one
	// call; nil is nothing. Without Grant that is always nothing.
	Grant func(system any) Powers

	// Fetch does the requests of the module "http"; nil: it can't do any.
	Fetch func(ctx context.Context, r plugins.Request) (*plugins.Response, error)

	Logger *slog.Logger // for print and log; nil: none
}

// Powers are what a script may have done by the appliance. A plugins.Granted is one.
type Powers interface {
	// Names are the powers' names with their dots, sorted.
	Names() []string
	Call(ctx context.Context, name string, args []any, kwargs map[string]any) (any, error)
}

// A RowsFunc does what plugins.CallRows does with the rows of the script's plugin.
type RowsFunc func(ctx context.Context, name string, args []any, kwargs map[string]any) (any, error)

const (
	defaultSteps = 10_000_000
)

// A Script is a file that has been run.
type Script struct {
	o       Options
	name    string
	globals starlark.StringDict

	// of its threads; made once
	print func(*starlark.Thread, string)
	look  func(*starlark.Thread)
}

var dialect = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// Run runs source, whose definitions can then be called. name is for errors.
func Run(ctx context.Context, name string, source []byte, o Options) (*Script, error) {
	if o.MaxSteps == 0 {
		o.MaxSteps = defaultSteps
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Settings == nil {
		o.Settings = new(plugins.Settings)
	}
	s := &Script{o: o, name: name}
	s.print = func(_ *starlark.Thread, msg string) { s.o.Logger.Info("plugin says", "text", clip(msg)) }
	s.look = s.lookAtClock
	thread := s.thread(ctx)
	globals, err := protect(func() (starlark.StringDict, error) {
		return starlark.ExecFileOptions(dialect, thread, name, source, s.predeclared())
	})
	if err != nil {
		return nil, explain(ctx, err)
	}
	globals.Freeze()
	s.globals = globals
	return s, nil
}

func (s *Script) predeclared() starlark.StringDict {
	names := starlark.StringDict{
		"json":   starjson.Module,
		"math":   starmath.Module,
		"time":   startime.Module,
		"re":     regexpModule,
		"random": randomModule,
		"log":    starlark.NewBuiltin("log", s.log),
		"http":   httpModule(s.o.Fetch),

		"state":      starlark.None,
		"chat_state": starlark.None,
		"settings":   &settings{of: s.o.Settings},
	}
	if s.o.Rows != nil {
		names["chat_state"] = rowsModule(s.o.Rows)
	}
	if s.o.State != nil {
		names["state"] = stateModule(s.o.State)
	}
	return names
}

// thread makes what a single call runs on. It ends soon after ctx.
func (s *Script) thread(ctx context.Context) *starlark.Thread {
	thread := &starlark.Thread{Name: s.name, Print: s.print, OnMaxSteps: s.look}
	thread.SetLocal(contextKey, ctx)
	thread.SetMaxExecutionSteps(min(stride, s.o.MaxSteps))
	return thread
}

// stride is after how many steps a thread looks whether its time is over: about a tenth of a millisecond. That costs less
// than to be told.
const stride = 1000

func (s *Script) lookAtClock(thread *starlark.Thread) {
	switch steps := thread.ExecutionSteps(); {
	case inTime(thread) != nil:
		thread.Cancel("the deadline passed")
	case steps >= s.o.MaxSteps:
		thread.Cancel("too many steps")
	default:
		thread.SetMaxExecutionSteps(min(steps+stride, s.o.MaxSteps))
	}
}

// contextKey is where built-ins find the context of their call: Starlark itself looks only between steps.
const contextKey = "context"

// inTime is an error if the deadline of the call has passed: then it must not act any more.
func inTime(thread *starlark.Thread) error {
	if ctx, ok := thread.Local(contextKey).(context.Context); ok && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// protect makes an error of a panic.
func protect[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// explain makes one line of an error, with its place in the script.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var eval *starlark.EvalError
	if errors.As(err, &eval) && len(eval.CallStack) > 0 {
		for i := range eval.CallStack {
			if frame := eval.CallStack.At(i); frame.Pos.Filename() != "<builtin>" {
				return fmt.Errorf("%v: in %s: %w", frame.Pos, frame.Name, err)
			}
		}
	}
	return err
}

// Func returns the function that handles a point: the one with its name, or else the one called handle.
func (s *Script) Func(point string) (hooks.Func, error) {
	for _, name := range []string{point, "handle"} {
		if f, ok := s.globals[name].(starlark.Callable); ok {
			return s.handler(f), nil
		}
	}
	if _, ok := s.globals["run"].(starlark.Callable); ok {
		return nil, fmt.Errorf("%s: there is no function %s or handle, only run, which is for schedules: rename it", s.name, point)
	}
	return nil, fmt.Errorf("%s: there is no function %s or handle(event)", s.name, point)
}

func (s *Script) handler(f starlark.Callable) hooks.Func {
	return func(ctx context.Context, e *hooks.Event) error {
		thread := s.thread(ctx)
		event := s.newEvent(e)
		_, err := protect(func() (starlark.Value, error) { return starlark.Call(thread, f, starlark.Tuple{event}, nil) })
		if err != nil {
			return explain(ctx, err)
		}
		return event.flush()
	}
}

func (s *Script) log(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var msg string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "message", &msg); err != nil {
		return nil, err
	}
	s.o.Logger.Info("plugin says", "text", clip(msg))
	return starlark.None, nil
}

// clip bounds what a plugin may write into the log at once.
func clip(s string) string {
	const most = 1000
	if r := []rune(s); len(r) > most {
		return string(slices.Concat(r[:most], []rune("…")))
	}
	return s
}

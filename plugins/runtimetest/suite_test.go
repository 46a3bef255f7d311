package runtimetest_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"bellbird/plugins"
	"bellbird/plugins/python"
	"bellbird/plugins/runtimetest"
	"bellbird/plugins/starlark"
	"bellbird/plugins/worker"
)

const (
	workerEnv = "BELLBIRD_TEST_WORKER"
	specEnv   = "BELLBIRD_TEST_PYTHON"
)

// The test program is also the worker, and what becomes that of Python.
func TestMain(m *testing.M) {
	spec, isPython := os.LookupEnv(specEnv)
	_, isWorker := os.LookupEnv(workerEnv)
	var err error
	switch {
	case isPython:
		err = python.Exec(spec)
	case isWorker:
		// Without a limit of memory, which is tested elsewhere, and which the race detector would not keep.
		if _, err = worker.Sandbox(0); err == nil {
			err = worker.Serve(context.Background(), os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
		}
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func again(env string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{env}
	return cmd
}

func TestGo(t *testing.T) {
	runtimetest.Run(t, runtimetest.Language{Name: "Go", Ext: runtimetest.GoExt, Runtime: runtimetest.Go{}})
}

func TestStarlark(t *testing.T) {
	runtimetest.Run(t, runtimetest.Language{Name: "Starlark", Ext: ".star", Runtime: starlark.Runtime{}})
}

func TestStarlarkWorker(t *testing.T) {
	h := worker.New(worker.Options{Command: func() *exec.Cmd { return again(workerEnv + "=1") }})
	t.Cleanup(h.Close)
	runtimetest.Run(t, runtimetest.Language{Name: "Starlark in a worker", Ext: ".star", Runtime: h})
}

func TestPython(t *testing.T) {
	interpreter := cmp.Or(os.Getenv("BELLBIRD_TEST_PYTHON3"), "python3")
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skipf("there is no %s here", interpreter)
	}
	o := python.Options{
		Python:  interpreter,
		Launch:  func(spec string) *exec.Cmd { return again(specEnv + "=" + spec) },
		Network: func(*plugins.Manifest) python.Network { return python.Requests },
	}
	if testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r := python.New(o)
	t.Cleanup(r.Close)
	runtimetest.Run(t, runtimetest.Language{Name: "Python", Ext: ".py", Runtime: r})
}

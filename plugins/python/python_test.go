package python_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/python"
)

// The test program is also what becomes the worker. With another interpreter: BELLBIRD_TEST_PYTHON3=/usr/bin/python3.9.
const specEnv = "BELLBIRD_TEST_PYTHON"

func TestMain(m *testing.M) {
	spec, worker := os.LookupEnv(specEnv)
	if !worker {
		os.Exit(m.Run())
	}
	if err := python.Exec(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func launch(spec string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{specEnv + "=" + spec}
	return cmd
}

func newRuntime(t testing.TB, o python.Options) *python.Runtime {
	t.Helper()
	if o.Python == "" {
		o.Python = cmp.Or(os.Getenv("BELLBIRD_TEST_PYTHON3"), "python3")
	}
	if _, err := exec.LookPath(o.Python); err != nil {
		t.Skipf("there is no %s here", o.Python)
	}
	o.Launch = launch
	if o.Logger == nil && testing.Verbose() {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r := python.New(o)
	t.Cleanup(r.Close)
	return r
}

func newOwner(name string) *plugins.Owner {
	return &plugins.Owner{
		Manifest: &plugins.Manifest{Name: name}, State: new(plugins.MemoryState), Rows: new(plugins.MemoryRows), Settings: new(plugins.Settings),
	}
}

func load(t testing.TB, r *python.Runtime, owner *plugins.Owner, source string) plugins.Unit {
	t.Helper()
	u, err := r.Load(context.Background(), owner, "hooks.py", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func function(t testing.TB, u plugins.Unit, point string) hooks.Func {
	t.Helper()
	f, err := u.Func(point)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// patience is what a test waits for something that should be there sooner.
const patience = time.Minute

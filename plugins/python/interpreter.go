package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"bellbird/plugins/worker"
)

// An interpreter is what was found out of a python3.
type interpreter struct {
	Version    [3]int   `json:"version"`
	Executable string   `json:"executable"` // without links
	Path       []string `json:"path"`       // where it looks for modules
	Mapped     []string `json:"mapped"`     // itself, and its libraries
}

// probe is what it is asked.
const probe = `
import json, os, sys
mapped = set()
try:
    with open("/proc/self/maps") as f:
        mapped = {line[line.index("/"):].rstrip("\n") for line in f if "/" in line}
except OSError:
    pass
print(json.dumps({
    "version": list(sys.version_info[:3]), "executable": os.path.realpath(sys.executable),
    "path": [p for p in sys.path if p and os.path.exists(p)], "mapped": sorted(mapped),
}))
`

const probeTime = 10 * time.Second

// ErrNoPython is returned, wrapped, when there is no interpreter that could run plugins.
var ErrNoPython = errors.New(`plugins in Python need Python 3.9 or newer: install it, on Debian with "apt install python3"`)

// interpreter finds the interpreter, and how it will be confined. What goes wrong is tried again the next time, when it may
// be installed.
func (r *Runtime) interpreter(ctx context.Context) (*interpreter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found != nil {
		return r.found, nil
	}
	i, err := find(ctx, r.o.Python)
	if err != nil {
		return nil, err
	}
	parts, err := r.parts(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Missing != "" {
			r.o.Logger.Warn("the sandbox of plugins in Python lacks a part", "part", p.Name, "why", p.Missing)
		}
	}
	r.found = i
	return i, nil
}

func find(ctx context.Context, python string) (*interpreter, error) {
	path, err := exec.LookPath(python)
	if err != nil {
		return nil, fmt.Errorf("%q is not there: %w", python, ErrNoPython)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-B", "-c", probe)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &limited{w: &said, left: 4096}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s can't be run (%w: %s): %w", path, err, oneLine(said.Bytes()), ErrNoPython)
	}
	i := new(interpreter)
	if err := json.Unmarshal(out, i); err != nil || i.Executable == "" {
		return nil, fmt.Errorf("%s is no Python that is known here: %w", path, ErrNoPython)
	}
	if v := i.Version; v[0] != 3 || v[1] < 9 {
		return nil, fmt.Errorf("%s is Python %d.%d.%d: %w", path, v[0], v[1], v[2], ErrNoPython)
	}
	return i, nil
}

// Parts tells how workers are confined.
func (r *Runtime) Parts(ctx context.Context) ([]worker.Part, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parts(ctx)
}

func (r *Runtime) parts(ctx context.Context) ([]worker.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := r.o.Launch(spec{Check: true}.String())
	defer context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it may have ended
		}
	})()
	out, err := cmd.Output()
	var parts []worker.Part
	if err == nil {
		err = json.Unmarshal(out, &parts)
	}
	if err != nil {
		return nil, fmt.Errorf("the worker of plugins in Python doesn't start: %w", err)
	}
	return parts, nil
}

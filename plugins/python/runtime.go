// Package python runs plugins that are written in Python, each in a worker process of its own. It is for files that were
// written for the reference: they find the names that they import there, and an event with the contract's fields.
//
// The worker is the system's python3, 3.9 or newer, which runs the .py files of this package; they use nothing but the
// standard library. Package worker is the other end of the pipes, and makes the sandbox: the worker may read the
// interpreter's files and the plugin's, nothing else; it may write no files and start no processes, and has no network
// but what it was granted. That is all that is between a plugin and the device: Python itself keeps nothing in.
//
// What a call costs is in BenchmarkHandler.
package python

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"bellbird/plugins"
	"bellbird/plugins/worker"
)

// Options say what the workers are.
type Options struct {
	// Launch starts this program again, in such a way that it calls Exec with spec. Its descriptors are set by who calls it.
	Launch func(spec string) *exec.Cmd

	// Python is the interpreter, a path or a name; default python3.
	Python string

	// Network says how much of the network its user has granted a plugin whose manifest lists hosts; nil: nothing.
	Network func(m *plugins.Manifest) Network

	// Dir is where the files of a plugin lie, which it may read; "": nowhere. Nil: that of none is known.
	Dir func(o *plugins.Owner) string

	// Publish tells the appliance what plugins publish; nil: nobody hears it.
	Publish func(plugin, kind string, data any) error

	Memory int64   // that a worker may write to, in bytes; default worker.Memory
	Share  float64 // of a processor that a worker may take over some time, of 1; default 0.5

	Logger *slog.Logger // nil: none
}

// A Network is what a plugin has of the network.
type Network int

const (
	// NoNetwork is nothing: there are no sockets, and requests fail.
	NoNetwork Network = iota
	// Requests are what the module requests does: the appliance does them, of the hosts that the manifest lists.
	Requests
	// Sockets are those besides: the plugin may connect by itself. Nothing keeps it to the hosts that it lists, only, by
	// TCP, to their ports.
	Sockets
)

// loadTime is what a file has to be loaded in. An interpreter and what is imported take their time on a small machine that has
// other things to do, and have a low priority there.
const loadTime = 20 * time.Second

// A Runtime runs plugins in workers. Close ends them.
type Runtime struct {
	o Options

	mu     sync.Mutex
	closed bool
	found  *interpreter // nil: not yet
	hosts  map[*plugins.Owner]*host
}

// A host is the worker of a plugin.
type host struct {
	*worker.Host
	owner *plugins.Owner // as it was granted
	units int
	lines *lines
}

var _ plugins.Runtime = (*Runtime)(nil)

// New returns a runtime without workers.
func New(o Options) *Runtime {
	o.Python = cmp.Or(o.Python, "python3")
	o.Memory = cmp.Or(o.Memory, worker.Memory)
	o.Share = cmp.Or(o.Share, 0.5)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runtime{o: o, hosts: make(map[*plugins.Owner]*host)}
}

// Close ends all workers.
func (r *Runtime) Close() {
	r.mu.Lock()
	r.closed = true
	hosts := r.hosts
	r.hosts = nil
	r.mu.Unlock()
	for _, h := range hosts {
		h.Close()
	}
}

// Release ends the worker of an owner whose units are not called any more.
func (r *Runtime) Release(owner *plugins.Owner) {
	r.mu.Lock()
	h := r.hosts[owner]
	delete(r.hosts, owner)
	r.mu.Unlock()
	if h != nil {
		h.Close()
	}
}

// Load runs the source in the worker of its plugin, which it starts for the first file. Files of one owner share a worker;
// another owner of the same plugin, as there is when that is loaded again, has another one.
func (r *Runtime) Load(ctx context.Context, owner *plugins.Owner, file string, source []byte) (plugins.Unit, error) {
	if !utf8.Valid(source) {
		return nil, fmt.Errorf("%s: it is not written in UTF-8: save it so", file)
	}
	python, err := r.interpreter(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	h, err := r.host(owner, python)
	if err != nil {
		return nil, err
	}
	unit, err := h.Load(ctx, h.owner, file, source)
	r.mu.Lock()
	if err == nil {
		h.units++
	}
	idle := h.units == 0
	r.mu.Unlock()
	if err != nil {
		if idle {
			r.Release(owner)
		}
		return nil, err
	}
	return unit, nil
}

// host is the worker of an owner.
func (r *Runtime) host(owner *plugins.Owner, python *interpreter) (*host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("plugin %q: the workers are closed", owner.Manifest.Name)
	}
	if h := r.hosts[owner]; h != nil {
		return h, nil
	}
	s, err := r.spec(owner, python)
	if err != nil {
		return nil, err
	}
	granted := *owner
	if s.network == NoNetwork {
		granted.Web = nil
	}
	text := s.String()
	log := r.o.Logger.With("plugin", owner.Manifest.Name)
	h := &host{owner: &granted, lines: newLines(log)}
	h.Host = worker.New(worker.Options{
		Logger: log, LoadTime: loadTime, Share: r.o.Share, Publish: r.o.Publish,
		Command: func() *exec.Cmd {
			cmd := r.o.Launch(text)
			cmd.Stderr = h.lines
			ownGroup(cmd)
			return cmd
		},
	})
	r.hosts[owner] = h
	return h, nil
}

// oneLine makes one line of what a program said, of some length.
func oneLine(text []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "\ufffd")), " ")
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return s
}

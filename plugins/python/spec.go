package python

import (
	_ "embed" // the worker's sources
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"bellbird/plugins"
	"bellbird/plugins/worker"
)

// The worker's program is these three, one after the other.
var (
	//go:embed codec.py
	codecSource string
	//go:embed calls.py
	callsSource string
	//go:embed names.py
	namesSource string

	//go:embed requests.py
	requestsSource string
)

// A spec is what the program that is started again is told: which interpreter to become, and in what sandbox.
type spec struct {
	Check   bool           `json:"check,omitempty"` // only tell how it is confined
	Program worker.Program `json:"program"`         // without its arguments
	Dir     string         `json:"dir,omitempty"`

	network Network
}

// String is for Launch.
func (s spec) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return "{}" // it has nothing in it that JSON can't say
	}
	return string(text)
}

// libraries are where modules that are written in C find what they need.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}

func (r *Runtime) spec(owner *plugins.Owner, python *interpreter) (*spec, error) {
	s := &spec{Program: worker.Program{
		Path: python.Executable, Run: append([]string{python.Executable}, python.Mapped...),
		Read: slices.Concat(python.Path, libraries), Memory: r.o.Memory,
	}}
	if r.o.Dir != nil {
		if s.Dir = r.o.Dir(owner); s.Dir != "" {
			s.Program.Read = append(s.Program.Read, s.Dir)
		}
	}
	if hosts := owner.Manifest.Network; r.o.Network != nil && len(hosts) > 0 {
		s.network = r.o.Network(owner.Manifest)
		if s.Program.Network = s.network == Sockets; s.Program.Network {
			s.Program.Ports = ports(hosts)
		}
	}
	return s, nil
}

// ports are those of the hosts in a manifest, and that of the DNS.
func ports(hosts []string) []uint16 {
	list := []uint16{53}
	for _, h := range hosts {
		_, port, err := net.SplitHostPort(h)
		if err != nil {
			list = append(list, 80, 443)
		} else if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			list = append(list, uint16(n))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Exec makes of this process the worker that spec describes. It is called by a program that Options.Launch has started,
// and that has done nothing yet. It returns only an error, or nil if the spec was only to tell how it is confined.
func Exec(text string) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("plugin worker: what it should be can't be read: %w", err)
	}
	p := &s.Program
	if s.Check {
		var parts []worker.Part
		p.Path = "/" // which can't be run
		err := p.Exec(func(all []worker.Part) { parts = all })
		if parts == nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(parts)
	}
	options, err := json.Marshal(map[string]any{
		"dir": s.Dir, "parts": plugins.Parts, "rows": plugins.RowCalls(), "sockets": p.Network,
		"modules": map[string]string{"requests": requestsSource},
	})
	if err != nil {
		return err
	}
	// Isolated from the user's environment and files, writing no compiled modules, and speaking UTF-8 whatever the locale.
	p.Args = []string{p.Path, "-I", "-B", "-X", "utf8", "-X", "pycache_prefix=/nonexistent", "-c", codecSource + "\n\n" + callsSource + "\n\n" + namesSource, string(options)}
	p.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "MALLOC_ARENA_MAX=2"} // the C library would take memory for each thread
	if zone := os.Getenv("TZ"); zone != "" {
		p.Env = append(p.Env, "TZ="+zone)
	}
	return p.Exec(func([]worker.Part) {}) // they were told when the interpreter was found
}

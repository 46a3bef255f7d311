// Package review reads a plugin for what its readers should look at: patterns that the contract of the hooks rejects, such as
// matching on the user's words to tell the model something that he doesn't see. It is a help for a reader and no proof: it
// follows words through the functions of one file, and not through what a plugin keeps or asks of others.
package review

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"bellbird/plugins"
)

// A Finding is something to look at. It may turn out to be in order.
type Finding struct {
	File string // within the plugin's directory
	Line int
	Text string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

const (
	maxFile  = 1 << 20 // bytes of one that is read
	maxFiles = 500
	most     = 500 // findings
)

// Dir reads the plugin or the integration in a directory. The findings are in the order of their files and lines.
func Dir(dir string) ([]Finding, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root.FS())
}

func read(files fs.FS) ([]Finding, error) {
	r := &reader{matched: make(map[string]bool)}
	text, err := contents(files, "plugin.json")
	switch {
	case err == nil:
		m, err := plugins.ParseManifest(text)
		if err != nil {
			return nil, fmt.Errorf("plugin.json: %w", err)
		}
		r.m = m
		r.manifest("plugin.json", text)
		if err := r.scripts(files); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	integration, err := contents(files, "integration.json")
	if err == nil {
		r.integration("integration.json", integration)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if text == nil && integration == nil {
		return nil, errors.New("it has neither a plugin.json nor an integration.json")
	}
	slices.SortFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Text, b.Text))
	})
	return slices.Compact(r.findings), nil
}

func contents(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxFile)
	}
	return text, err
}

// A reader collects findings.
type reader struct {
	m        *plugins.Manifest
	findings []Finding
	matched  map[string]bool // places and points at which a match was found
}

func (r *reader) find(file string, line int, format string, args ...any) {
	if len(r.findings) < most {
		r.findings = append(r.findings, Finding{file, line, fmt.Sprintf(format, args...)})
	}
}

// The points whose text the user doesn't see.
var unseen = []string{"ghost_inject", "prompt_inject"}

// saysSo are words of which a description has one that says that the model is told something.
var saysSo = regexp.MustCompile(`(?i)inject|context|ghost|prompt|model|assistant|ambient|\bnotes?\b|\btells?\b|\badds?\b|\bgives?\b`)

// manifest checks what a plugin says of itself.
func (r *reader) manifest(file string, text []byte) {
	for _, point := range unseen {
		if _, ok := r.m.Capabilities.Hooks[point]; ok && !saysSo.MatchString(r.m.Description) {
			r.find(file, lineOf(text, "description"), "its description doesn't say what it tells the model (%s), and why: what is hidden there is rejected", point)
			break
		}
	}
}

// hearing are words of which a summary has one that says that its app hears the user.
var hearing = regexp.MustCompile(`(?i)listen|hear|transcript|voice|speech|spoken|dictat|what (you|is|was|the user)\b.*\bsa(y|id)|your words`)

// integration checks that one that hears the user says so.
func (r *reader) integration(file string, text []byte) {
	var m struct {
		Summary     string
		Description string
		Hooks       map[string]json.RawMessage
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &m); err != nil {
		r.find(file, 1, "it can't be read: %v", err)
		return
	}
	if len(m.Hooks) > 0 && !hearing.MatchString(m.Summary+" "+m.Description) {
		r.find(file, max(lineOf(text, "summary"), 1), "its hooks hear the user, and its summary doesn't say what it listens for: that is rejected")
	}
}

// lineOf is the line of a field of a JSON text; 1 if it isn't there.
func lineOf(text []byte, field string) int {
	at := bytes.Index(text, []byte(`"`+field+`"`))
	if at < 0 {
		return 1
	}
	return 1 + bytes.Count(text[:at], []byte("\n"))
}

// scripts reads the files in which handlers may be, also those that the manifest doesn't name: one can import the other.
func (r *reader) scripts(files fs.FS) error {
	n := 0
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		ext := path.Ext(name)
		if ext != ".star" && ext != ".py" {
			return nil
		}
		if n++; n > maxFiles {
			return fmt.Errorf("it has more than %d scripts", maxFiles)
		}
		text, err := contents(files, name)
		if err != nil {
			return err
		}
		if ext == ".star" {
			r.starlark(name, text)
		} else {
			r.python(name, text)
		}
		return nil
	})
}

// entries are the functions of a file that are handlers, each with its points; functions are all it has. A file that is
// named for a point, and has none of the functions that it may be, is a finding.
func (r *reader) entries(file string, functions map[string]int) map[string][]string {
	entries := make(map[string][]string)
	add := func(point string) {
		for _, name := range []string{point, "handle"} {
			if _, ok := functions[name]; ok {
				entries[name] = append(entries[name], point)
				return
			}
		}
		if line, ok := functions["run"]; ok {
			r.find(file, line, "%s is called in a function of that name, or in handle: run is for schedules, and never called here", point)
		} else {
			r.find(file, 1, "there is no function %s, nor handle, for the point that the manifest names", point)
		}
	}
	for point, f := range r.m.Capabilities.Hooks {
		if path.Clean(f) == file {
			add(point)
		}
	}
	for _, c := range r.m.Capabilities.VoiceCommands {
		if path.Clean(c.Handler) == file && !slices.Contains(entries["pre_chat"], "pre_chat") && !slices.Contains(entries["handle"], "pre_chat") {
			add("pre_chat")
		}
	}
	return entries
}

package install_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/hooks"
	"bellbird/plugins/install"
)

// The sheet says in plain words what the manifest says in its own.
func TestSheet(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	dir := r.write("w", map[string]string{"plugin.json": `{
  "name": "weather", "version": "1.2.0", "description": "Tells the model\u001b[2J the weather.", "author": "acme", "icon": "x",
  "network": ["api.example.org:8443", "*.example.com"], "privacy_aware": true, "fail_closed": ["pre_execute"], "pip_dependencies": ["requests"],
  "capabilities": {
    "hooks": {"ghost_inject": "a.star", "pre_execute": "a.star", "post_llm": "a.star", "other_point": "a.star"},
    "voice_commands": [{"triggers": ["the weather"], "match": "contains", "handler": "a.star"}],
    "tools": ["a.star"], "settings": [], "schedule": [{"name": "x", "cron": "0 7 * * *", "handler": "a.star"}], "web": null
  }}`, "a.star": ""})
	var out bytes.Buffer
	if err := r.stage(dir).Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `weather 1.2.0: Tells the model?[2J the weather.
It says that it is by acme. Nobody signed it: nobody vouches for what is in it.
It hears
  - all of this in private chats too
  - every answer, with what you said
  - everything that you say
  - what another plugin says at "other_point"
  - what the model tells its tools
  - what you say, when it has "the weather"
  - which tools are used, and for what
It changes
  - answers, before they are kept
  - what the model is told beside your words, which you don't see
  - what tools are told; it can also keep them from running
  - what you said then; it can also answer in the model's place
It may connect to
  - any name below example.com
  - api.example.org:8443
It may also
  - block what goes on at pre_execute, when it fails
  - do what it says under "pip_dependencies": ["requests"]
  - offer tools to the model
  - run by itself at certain times
  - use the appliance: speak, set the volume and the voice, switch hearing on and off, show colours, ask the model, and read, make, rename and clear chats
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}

	// Of an update that asks for more, what is new.
	r.commit(dir)
	dir = r.write("w", map[string]string{"plugin.json": `{
  "name": "weather", "version": "2.0.0", "description": "Tells the model the weather.", "network": ["evil.example.org"], "privacy_aware": true,
  "capabilities": {"hooks": {"ghost_inject": "a.star", "post_chat": "a.star"}, "schedule": [{"name": "y", "cron": "0 7 * * *", "handler": "a.star"}]}}`})
	out.Reset()
	if err := r.stage(dir).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"  + evil.example.org\n", "  + every answer, with what you said\n", "  - everything that you say\n", "  + run by itself", "+ is new", "by nobody"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}

	// One that asks for nothing says so.
	dir = r.write("n", map[string]string{"plugin.json": `{"name": "nothing", "version": "1", "description": "Does nothing."}`})
	out.Reset()
	s := r.stage(dir)
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "It hears nothing\nIt changes nothing\nIt may connect to nothing: it has no network\n") || s.Agreed {
		t.Error(out.String())
	}
}

// Every point that the appliance has says something to people.
func TestSheetKnowsAllPoints(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	for _, p := range hooks.Points() {
		s := r.stage(r.write("p", map[string]string{"plugin.json": `{"name":"p","version":"1","description":"x","capabilities":{"hooks":{"` + p.Name + `":"a.star"}}}`}))
		for _, permission := range s.Permissions {
			if strings.Contains(permission.Hears, "another plugin") {
				t.Errorf("%s has no words", p.Name)
			}
		}
		var system bool
		for _, permission := range s.Permissions {
			system = system || permission.ID == "system"
		}
		if system != p.System {
			t.Errorf("%s: system %v, want %v", p.Name, system, p.System)
		}
		s.Discard()
	}
}

// An exchange is whole also where a file system can't do it in one step.
func TestSwap(t *testing.T) {
	r := newRig(t)
	r.write("new", map[string]string{"x": "new"})
	r.write("old", map[string]string{"x": "old"})
	if err := install.Swap(r.dir+"/new", r.dir+"/old", r.dir+"/aside"); err != nil {
		t.Fatal(err)
	}
	r.has("old/x", "new")
	r.has("aside/x", "old")
	if err := install.Swap(r.dir+"/none", r.dir+"/old", r.dir+"/aside2"); err == nil {
		t.Error("there was nothing to put there")
	}
	r.has("old/x", "new")
}

func (r *rig) has(name, want string) {
	r.t.Helper()
	if text, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(text) != want {
		r.t.Errorf("%s: %q, %v, want %q", name, text, err, want)
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A bench for plugins from elsewhere: the commands, for an appliance that keeps its things in dir.
type elsewhere struct {
	t   *testing.T
	dir string
	f   flags
}

func newElsewhere(t *testing.T, dir string) *elsewhere {
	t.Helper()
	e := &elsewhere{t: t, dir: dir, f: flags{config: filepath.Join(dir, "config.toml"), state: filepath.Join(dir, "state")}}
	e.write("config.toml", fmt.Sprintf("[api]\nsocket = %q\n", filepath.Join(dir, "s")))
	return e
}

func (e *elsewhere) write(name, text string) string {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// polite writes a plugin, whose manifest may have more fields, and returns its directory.
func (e *elsewhere) polite(more, thanks string) string {
	e.write("polite/plugin.json", `{"name": "polite", "version": "1.0.0", "description": "Says thanks."`+more+`, "capabilities": {"hooks": {"post_llm": "polite.star"}}}`)
	return filepath.Dir(e.write("polite/polite.star", "def post_llm(event):\n    event.response += \" "+thanks+"\"\n"))
}

// does runs a subcommand of plugin with an answer, and checks that it ends as it should: with an error that has the text, or
// "" without one. It returns what was printed.
func (e *elsewhere) does(want, answer string, args ...string) string {
	e.t.Helper()
	cmd := &cobra.Command{Use: "plugin", SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(elsewhereCommands(&e.f)...)
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(answer))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(context.WithoutCancel(e.t.Context()))
	switch {
	case want == "" && err != nil:
		e.t.Errorf("%v: %v", args, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		e.t.Errorf("%v: error %v, want %q", args, err, want)
	}
	return out.String()
}

func (e *elsewhere) has(text string, want ...string) {
	e.t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			e.t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// An author signs a plugin, and somebody else installs, updates and removes it.
func TestPluginFromElsewhere(t *testing.T) {
	e := newElsewhere(t, t.TempDir())
	dir, key := e.polite("", "Thank you."), filepath.Join(e.dir, "key.pem")
	installed := filepath.Join(e.dir, "state", "plugins", "polite")

	e.does(`"bellbird plugin keygen" makes a key, --key names one`, "", "sign", "--key", key, dir)
	out := e.does("", "", "keygen", key)
	public := strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n"):])
	e.does("is there already", "", "keygen", key)
	e.has(e.does("of 1 plugins 1 are not signed by somebody who is trusted", "", "verify", dir), "polite: unsigned")
	e.does(`nobody signed it: if it is yours, or you trust it as it is, run "bellbird plugin install --allow-unsigned"`, "", "install", dir)
	e.has(e.does("", "", "sign", "--key", key, dir), "polite is signed")
	e.has(e.does("not signed by somebody", "", "verify", dir), "unknown author: it is signed with the key "+public)
	e.does("which is not trusted", "", "install", dir)

	e.has(e.does("", "", "trust"), "No key is trusted")
	e.does("is no public key", "", "trust", "acme", "1234")
	e.does("accepts 2 arg(s), received 1", "", "trust", "acme")
	e.does("", "", "trust", "acme", key+".pub")
	e.has(e.does("", "", "trust"), public+"  acme")
	e.has(e.does("", "", "verify", dir), "polite: signed by acme")

	e.has(e.does("nobody answered, so nothing is changed: --yes agrees", "", "install", dir), "It hears\n  - every answer", "It may connect to nothing", "Install it? [y/N]")
	e.does("you did not agree, so nothing is changed", "no\n", "install", dir)
	if _, err := os.Stat(installed); err == nil {
		t.Error("it is there")
	}
	e.has(e.does("", "y\n", "install", dir), "polite 1.0.0 is installed")

	// An update is shown only if it asks for more.
	e.polite("", "Cheers.")
	e.does("a.star", "", "sign", "--key", key, filepath.Join(e.dir, "a.star"))
	e.does("it is not as it was signed: polite.star was changed", "", "install", dir)
	e.does("", "", "sign", "--key", key, dir)
	if out := e.does("", "", "install", dir); out != "polite 1.0.0 is updated\n" {
		t.Error(out)
	}
	e.polite(`, "network": ["example.org"]`, "Cheers.")
	e.does("", "", "sign", "--key", key, dir)
	e.has(e.does("nobody answered", "", "install", dir), "  + example.org", "  - every answer")
	e.has(e.does("", "", "install", "--yes", dir), "  + example.org", "polite 1.0.0 is updated")

	e.has(e.does("", "", "trust", "--remove", "acme"), "not trusted any more")
	e.does(`no key that is trusted is called "acme"`, "", "trust", "--remove", "acme")
	e.has(e.does("", "", "remove", "polite"), "polite is removed")
	e.does(`there is no plugin "polite" in `+filepath.Dir(installed), "", "remove", "polite")
	e.does(`voice-commands is a plugin of the program itself and can't be removed: "bellbird plugin disable voice-commands"`, "", "remove", "voice-commands")
	if entries, err := os.ReadDir(filepath.Dir(installed)); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// One that nobody signed needs that its owner says so, wherever it came from.
func TestUnsignedPlugin(t *testing.T) {
	e := newElsewhere(t, t.TempDir())
	dir := e.polite("", "Thank you.")
	e.has(e.does("", "yes\n", "install", "--allow-unsigned", dir), "Nobody signed it: nobody vouches", "polite 1.0.0 is installed")
	e.does("", "", "remove", "polite")

	e.does(`there is no plugin "polite"`, "", "consent", "polite")
	if err := os.CopyFS(filepath.Join(e.dir, "state", "plugins", "polite"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if out := e.does(`plugin "polite": nobody signed it: if it is yours, or you trust it as it is, run "bellbird plugin consent polite --allow-unsigned"`, "y\n", "consent", "polite"); out != "" {
		t.Errorf("asked in vain: %s", out)
	}
	e.has(e.does("", "y\n", "consent", "--allow-unsigned", "polite"), "Do you agree? [y/N]", "polite is allowed to do this")

	e.write("taken/plugin.json", `{"name": "voice-commands", "version": "1", "description": "Takes a place."}`)
	e.does(`its name "voice-commands" is that of a plugin of the program itself`, "", "install", "--allow-unsigned", filepath.Join(e.dir, "taken"))
}

func TestReviewPlugin(t *testing.T) {
	e := newElsewhere(t, t.TempDir())
	e.write("p/plugin.json", `{"name": "p", "description": "Tells the model things.", "capabilities": {"hooks": {"ghost_inject": "g.star"}}}`)
	star := e.write("p/g.star", "def ghost_inject(event):\n    if \"x\" in event.input:\n        event.ghost_text = \"y\"\n")
	e.has(e.does("", "", "review", filepath.Dir(star)), star+":2: warning: ghost_inject matches on what the user said", "1 warnings\n")
	e.does("it has neither a plugin.json nor an integration.json", "", "review", e.dir)
}

// An appliance that runs has what was installed at once, without what was removed.
func TestInstallLive(t *testing.T) {
	dir := t.TempDir()
	h := live(t, dir)
	e := newElsewhere(t, dir)
	plugin := e.polite("", "Thank you.")
	e.has(e.does("", "y\n", "install", "--allow-unsigned", plugin), "polite 1.0.0 is installed")
	h.shows(words("ask what time is it"), "Thank you.")
	e.polite("", "Cheers.")
	e.has(e.does("", "", "install", "--allow-unsigned", plugin), "polite 1.0.0 is updated")
	h.shows(words("ask what time is it"), "Cheers.")
	e.has(e.does("", "", "consent", "--yes", "--allow-unsigned", "polite"), "polite is allowed")
	e.has(e.does("", "", "remove", "polite"), "polite is removed")
	if out := h.does(0, "", "ask", "what", "time", "is", "it"); strings.Contains(out, "Cheers") {
		t.Error(out)
	}
	h.stop()
}

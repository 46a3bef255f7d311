package install_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/install"
	"bellbird/plugins/sign"
)

// A rig is an appliance's directories, and an author with a key.
type rig struct {
	t   *testing.T
	dir string
	o   install.Options
	key string // the author's, public
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	r := &rig{t: t, dir: dir}
	r.o = install.Options{Gate: install.NewGate(install.Policy{}, filepath.Join(dir, "state")), UserDir: filepath.Join(dir, "plugins")}
	key, err := sign.Generate(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	r.key = key
	return r
}

const script = "def post_stt(event):\n    pass\n"

// source is the files of a plugin, whose manifest may have more fields.
func source(name, more string) map[string]string {
	return map[string]string{
		"plugin.json": fmt.Sprintf(`{"name":%q,"version":"1.0.0","description":"Is a test.","author":"acme"%s,"capabilities":{"hooks":{"post_stt":"a.star"}}}`, name, more),
		"a.star":      script,
	}
}

// write makes a directory of files, which is not there before.
func (r *rig) write(name string, files map[string]string) string {
	r.t.Helper()
	dir := filepath.Join(r.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		r.t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return dir
}

func (r *rig) sign(dir string) {
	r.t.Helper()
	key, err := sign.ReadPrivate(filepath.Join(r.dir, "key.pem"))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := sign.Sign(dir, key); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) trust() {
	r.t.Helper()
	if err := sign.AddKey(r.o.Gate.Keys, sign.Key{Name: "acme", Public: r.key}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stage(source string) *install.Staged {
	r.t.Helper()
	s, err := r.o.Stage(r.t.Context(), source)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Discard)
	return s
}

func (r *rig) commit(source string) *install.Staged {
	r.t.Helper()
	s := r.stage(source)
	if err := s.Commit(); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// admit asks the gate for a plugin in the user's directory.
func (r *rig) admit(name string) (string, error) {
	return r.o.Gate.Admit(plugins.Info{Dir: filepath.Join(r.o.UserDir, name), Band: hooks.User})
}

// is checks that an error has a text; "" that there is none.
func (r *rig) is(what string, err error, want string) {
	r.t.Helper()
	switch {
	case want == "" && err != nil:
		r.t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		r.t.Errorf("%s: error %v, want %q", what, err, want)
	}
}

// clean checks that nothing is left of what was staged.
func (r *rig) clean() {
	r.t.Helper()
	entries, err := os.ReadDir(r.o.UserDir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			r.t.Errorf("%s is left", e.Name())
		}
	}
}

func TestInstallSigned(t *testing.T) {
	r := newRig(t)
	r.trust()
	dir := r.write("weather", source("weather", `,"network":["api.example.org"]`))
	r.sign(dir)
	s := r.commit(dir)
	r.clean()
	if s.Update || !s.Vouched || s.Origin != "signed by acme" {
		t.Errorf("%+v", s.Sheet)
	}
	origin, err := r.admit("weather")
	if err != nil || origin != "signed by acme" {
		t.Errorf("%q, %v", origin, err)
	}

	// An update that asks for nothing new needs no question, and one that does is not loaded until it was answered.
	files := source("weather", `,"network":["api.example.org"]`)
	files["a.star"] = script + "# better\n"
	r.sign(r.write("weather", files))
	s = r.stage(dir)
	if !s.Update || !s.Agreed {
		t.Errorf("%+v", s.Sheet)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	r.sign(r.write("weather", source("weather", `,"network":["api.example.org","evil.example.org"]`)))
	s = r.stage(dir)
	if s.Agreed || len(s.New) != 1 || s.New[0].ID != "network:evil.example.org" {
		t.Errorf("%+v", s.Sheet)
	}
	s.Discard()
	if text, err := os.ReadFile(filepath.Join(r.o.UserDir, "weather", "a.star")); err != nil || string(text) != files["a.star"] {
		t.Errorf("the one before is not whole: %q, %v", text, err)
	}
	r.clean()

	// The same, put there by hand.
	for _, name := range []string{"plugin.json", "plugin.sig", "a.star"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.o.UserDir, "weather", name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.admit("weather")
	r.is("more", err, `it asks for more than you agreed to (network:evil.example.org): "bellbird plugin consent weather" asks`)
	sheet, err := r.o.Gate.Sheet(filepath.Join(r.o.UserDir, "weather"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sheet.Agree(false); err != nil {
		t.Fatal(err)
	}
	_, err = r.admit("weather")
	r.is("agreed", err, "")

	// Who changes a file of it, or takes its signature away, is noticed.
	star := filepath.Join(r.o.UserDir, "weather", "a.star")
	if err := os.WriteFile(star, []byte("x = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	origin, err = r.admit("weather")
	r.is("changed", err, "it is not as it was signed: a.star was changed after it was signed. Install it anew")
	if origin != "tampered" {
		t.Errorf("%q", origin)
	}
	if err := os.Remove(filepath.Join(r.o.UserDir, "weather", sign.Name)); err != nil {
		t.Fatal(err)
	}
	_, err = r.admit("weather")
	r.is("unsigned", err, "nobody signed it")
	r.o.Gate.AllowUnsigned = true
	_, err = r.admit("weather")
	r.is("not signed any more", err, `it was signed when you allowed it, and is not any more: "bellbird plugin consent weather" asks`)

	if err := r.o.Remove("weather"); err != nil {
		t.Fatal(err)
	}
	r.clean()
	r.is("again", r.o.Remove("weather"), `there is no plugin "weather" in `+r.o.UserDir)
}

// What nobody signed needs to be allowed expressly, by the policy or for itself; what was tampered with never comes in.
func TestPolicy(t *testing.T) {
	r := newRig(t)
	dir := r.write("p", source("p", ""))
	_, err := r.o.Stage(t.Context(), dir)
	r.is("unsigned", err, dir+`: nobody signed it: if it is yours, or you trust it as it is, run "bellbird plugin install --allow-unsigned"`)
	r.clean()

	r.o.AllowUnsigned = true
	if s := r.commit(dir); s.Vouched || s.Origin != "unsigned" {
		t.Errorf("%+v", s.Sheet)
	}
	r.o.AllowUnsigned = false
	origin, err := r.admit("p")
	r.is("allowed for itself", err, "")
	if origin != "unsigned" {
		t.Errorf("%q", origin)
	}

	// By hand: nothing is known of it.
	q := filepath.Join(r.o.UserDir, "q")
	if err := os.CopyFS(q, os.DirFS(r.write("q", source("q", "")))); err != nil {
		t.Fatal(err)
	}
	_, err = r.admit("q")
	r.is("by hand", err, `nobody signed it: if it is yours, or you trust it as it is, run "bellbird plugin consent q --allow-unsigned"; allow_unsigned = true under [plugins] lets in all`)
	sheet, err := r.o.Gate.Sheet(q)
	if err != nil {
		t.Fatal(err)
	}
	r.is("agree", sheet.Agree(false), `plugin "q": nobody signed it`)
	r.o.Gate.AllowUnsigned = true
	_, err = r.admit("q")
	r.is("policy", err, `you have not agreed to what it may do: "bellbird plugin consent q" asks`)
	if sheet, err = r.o.Gate.Sheet(q); err != nil {
		t.Fatal(err)
	}
	if sheet.Agreed {
		t.Error("nobody agreed")
	}
	r.is("agree", sheet.Agree(false), "")
	_, err = r.admit("q")
	r.is("agreed", err, "")
	r.o.Gate.AllowUnsigned = false
	_, err = r.admit("q")
	r.is("the policy is over", err, "nobody signed it")

	// A developer's own directory.
	r.o.Gate.Own = true
	_, err = r.admit("q")
	r.is("own", err, "")
	r.sign(q)
	origin, err = r.admit("q")
	r.is("own, signed", err, "")
	if origin != "unknown author" {
		t.Errorf("%q", origin)
	}
	if err := os.WriteFile(filepath.Join(q, "a.star"), []byte("x = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = r.admit("q")
	r.is("own, tampered", err, `sign it again with "bellbird plugin sign", or remove its plugin.sig`)
	r.o.AllowUnsigned, r.o.Gate.Own = true, false
	_, err = r.o.Stage(t.Context(), q)
	r.is("tampered", err, q+": it is not as it was signed: a.star was changed")

	// An author who isn't known, whatever is allowed.
	r.sign(dir)
	_, err = r.o.Stage(t.Context(), dir)
	r.is("unknown", err, "signed with the key "+r.key+`, which is not trusted: if you know whose it is, "bellbird plugin trust NAME KEY"`)
	r.clean()

	// Those that came with the appliance.
	system := r.write("system", source("s", ""))
	info := plugins.Info{Dir: system, Band: hooks.System}
	_, err = r.o.Gate.Admit(info)
	r.is("system", err, "")
	r.sign(system)
	if err := os.WriteFile(filepath.Join(system, "a.star"), []byte("x = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = r.o.Gate.Admit(info)
	r.is("system, tampered", err, "a.star was changed")
	if origin, err := r.o.Gate.Admit(plugins.Info{}); origin != "built in" || err != nil {
		t.Errorf("%q, %v", origin, err)
	}
	r.is("a key", install.Policy{OfficialKey: "12"}.Check(), "official_key: \"12\" is no public key")
	r.is("a key", install.Policy{OfficialKey: r.key}.Check(), "")
}

func TestOtherSigner(t *testing.T) {
	r := newRig(t)
	r.trust()
	dir := r.write("p", source("p", ""))
	r.sign(dir)
	r.commit(dir)
	other := newRig(t)
	if err := sign.AddKey(r.o.Gate.Keys, sign.Key{Name: "other", Public: other.key}); err != nil {
		t.Fatal(err)
	}
	other.sign(dir)
	s := r.stage(dir)
	if s.Agreed || !strings.Contains(s.Signer, r.key) || !strings.Contains(s.Signer, other.key) || s.Origin != "signed by other" {
		t.Errorf("%+v", s.Sheet)
	}
	var out bytes.Buffer
	if err := s.Print(&out); err != nil || !strings.Contains(out.String(), "Beware: it was signed with the key "+r.key) {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestRefusedSources(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	r.o.Taken = func(name string) string {
		if name == "voice-commands" {
			return "a plugin that came with the appliance"
		}
		return ""
	}
	if err := os.MkdirAll(filepath.Join(r.o.UserDir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, files := range map[string]map[string]string{
		"plugins/elsewhere": source("here", ""), "plugins/other": source("not-other", ""), "dev": source("linked", ""),
	} {
		r.write(dir, files)
	}
	if err := os.Symlink(filepath.Join(r.dir, "dev"), filepath.Join(r.o.UserDir, "linked")); err != nil {
		t.Fatal(err)
	}
	link := r.write("with-link", source("p", ""))
	if err := os.Symlink("/etc/passwd", filepath.Join(link, "passwd")); err != nil {
		t.Fatal(err)
	}
	without := func(field string) map[string]string {
		files := source("p", "")
		files["plugin.json"] = strings.Replace(files["plugin.json"], field, "", 1)
		return files
	}
	for name, test := range map[string]struct {
		source, want string
	}{
		"not there":       {filepath.Join(r.dir, "nowhere"), "nowhere: no such file or directory"},
		"http":            {"http://example.org/p.zip", "only by https"},
		"file":            {"file:///tmp/p.zip", "only by https"},
		"a text":          {r.write("text", map[string]string{"p.zip": "hello"}) + "/p.zip", "it is no zip file that can be read"},
		"no plugin":       {r.write("none", map[string]string{"a.star": script}), "none: it has no plugin.json"},
		"broken":          {r.write("broken", map[string]string{"plugin.json": "{\n,"}), "broken: plugin.json: line 2: "},
		"no name":         {r.write("no-name", source("", "")), `plugin.json: name ""`},
		"a path as name":  {r.write("path", source("../p", "")), `plugin.json: name "../p": a plugin's name is made of`},
		"no version":      {r.write("no-version", without(`"version":"1.0.0",`)), "plugin.json: version is missing"},
		"no description":  {r.write("no-description", without(`"description":"Is a test.",`)), "plugin.json: description is missing"},
		"a link":          {link, `"passwd" is a link or a device: a plugin has only files`},
		"twice":           {r.write("twice", source("p", `,"network":["a"],"Network":["b"]`)), `plugin.json: "Network" is there twice`},
		"the system's":    {r.write("system-name", source("voice-commands", "")), `its name "voice-commands" is that of a plugin that came with the appliance`},
		"another place":   {r.write("here", source("here", "")), "elsewhere has a plugin of the same name: remove it first"},
		"another name":    {r.write("other", source("other", "")), `other has another plugin, "not-other": move it first`},
		"a link is there": {r.write("linked", source("linked", "")), "linked is a link, which would be lost"},
		"in the way":      {r.write("empty", source("empty", "")), "empty is in the way: it has no plugin"},
		"same file":       {r.write("same", map[string]string{"A.star": "", "a.star": ""}), "have the same name"},
		"a device":        {"/dev/null", "neither a directory nor a zip file"},
	} {
		s, err := r.o.Stage(t.Context(), test.source)
		r.is(name, err, test.want)
		if err == nil {
			s.Discard()
		} else if !strings.HasPrefix(err.Error(), test.source+": ") || strings.Contains(err.Error(), ".install-") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.clean()
}

// What was cut off is swept up, and what may still be under way is not.
func TestSweep(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(r.o.UserDir, ".install-1")
	for _, d := range []string{dir, filepath.Join(r.o.UserDir, "kept")} {
		if err := os.MkdirAll(filepath.Join(d, "plugin"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for later, left := range map[time.Duration]int{0: 2, 30 * time.Minute: 2} {
		if err := r.o.Sweep(time.Now().Add(later)); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(r.o.UserDir); err != nil || len(entries) != left {
			t.Errorf("%v later: %v, %v", later, entries, err)
		}
	}
	if err := r.o.Sweep(time.Now().Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(r.o.UserDir); err != nil || len(entries) != 1 || entries[0].Name() != "kept" {
		t.Errorf("%v, %v", entries, err)
	}
}

// A consent that can't be kept, or can't be read, lets nothing in.
func TestConsentFails(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	s := r.stage(r.write("p", source("p", "")))
	if err := os.MkdirAll(filepath.Dir(r.o.Gate.Consents), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.o.Gate.Consents, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.is("commit", s.Commit(), "what plugins were allowed can't be read: "+r.o.Gate.Consents)
	r.clean()
	if _, err := os.Stat(filepath.Join(r.o.UserDir, "p")); err == nil {
		t.Error("it is there")
	}
	r.write("plugins/p", source("p", ""))
	_, err := r.admit("p")
	r.is("admit", err, "remove the file, and each plugin asks again")
	if err := os.Remove(r.o.Gate.Consents); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(r.o.Gate.Keys), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.o.Gate.Keys, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = r.admit("p")
	r.is("keys", err, "the keys that are trusted can't be read")
}

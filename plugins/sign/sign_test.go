package sign_test

import (
	"crypto/ed25519"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"bellbird/plugins/sign"
)

// reference is a plugin that was signed by a program in Python, after the description of the format.
func reference(t testing.TB) (key string, files fstest.MapFS) {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Key   string
		Files map[string]string
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	files = make(fstest.MapFS)
	for name, text := range r.Files {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return r.Key, files
}

func TestVerifyReference(t *testing.T) {
	key, files := reference(t)
	for name, test := range map[string]struct {
		keys  sign.Keys
		state sign.State
	}{
		"official": {sign.Keys{Official: key}, sign.Official},
		"author":   {sign.Keys{Authors: []sign.Key{{"other", strings.Repeat("ab", 32)}, {"acme", key}}}, sign.Verified},
		"upper":    {sign.Keys{Official: strings.ToUpper(key)}, sign.Official},
		"no key":   {sign.Keys{}, sign.Unknown},
		"bad key":  {sign.Keys{Official: "zz"}, sign.Unknown},
	} {
		r := test.keys.Verify(files)
		if r.State != test.state || (r.Err != nil) != (test.state == sign.Unknown) {
			t.Errorf("%s: %+v", name, r)
		}
		if r.State == sign.Verified && r.Author != "acme" || r.State != sign.Unknown && r.Key != key {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Whatever is done to a signed plugin is noticed, and said; what isn't code may come and go.
func TestVerifyChanges(t *testing.T) {
	key, whole := reference(t)
	edit := func(from, to string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			text := string(f[sign.Name].Data)
			if !strings.Contains(text, from) {
				t.Fatalf("no %q in the signature", from)
			}
			f[sign.Name] = &fstest.MapFile{Data: []byte(strings.Replace(text, from, to, 1))}
		}
	}
	put := func(name, text string, mode fs.FileMode) func(fstest.MapFS) {
		return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(text), Mode: mode} }
	}
	const weather = "hooks/weather.py"
	for name, test := range map[string]struct {
		change func(fstest.MapFS)
		state  sign.State
		want   string
	}{
		"nothing":      {func(fstest.MapFS) {}, sign.Official, ""},
		"no signature": {func(f fstest.MapFS) { delete(f, sign.Name) }, sign.Unsigned, ""},
		"line ends": {func(f fstest.MapFS) {
			f[weather].Data = []byte(strings.ReplaceAll(string(f[weather].Data), "\r\n", "\n"))
		}, sign.Official, ""},
		"a picture":            {put("web/more.png", "x", 0o644), sign.Official, ""},
		"compiled":             {put("hooks/__pycache__/weather.cpython-311.pyc", "x", 0o644), sign.Official, ""},
		"left behind":          {put("hooks/Thumbs.db", "x", 0o755), sign.Official, ""},
		"changed":              {put(weather, "def ghost_inject(event): pass\n", 0o644), sign.Tampered, weather + " was changed after it was signed"},
		"changed manifest":     {put("plugin.json", `{"name":"weather"}`, 0o644), sign.Tampered, "plugin.json was changed"},
		"a file is gone":       {func(f fstest.MapFS) { delete(f, weather) }, sign.Tampered, weather + " was signed, and is not there"},
		"a script more":        {put("hooks/extra.py", "", 0o644), sign.Tampered, "hooks/extra.py was not there when the plugin was signed"},
		"a star script more":   {put("Extra.STAR", "", 0o644), sign.Tampered, "Extra.STAR was not there"},
		"a library more":       {put("x.so", "", 0o644), sign.Tampered, "x.so was not there"},
		"a program more":       {put("tool", "", 0o755), sign.Tampered, "tool was not there"},
		"a link more":          {put("pictures", "/etc", fs.ModeSymlink), sign.Tampered, "pictures is a link"},
		"a link instead":       {put(weather, "/etc/passwd", fs.ModeSymlink), sign.Tampered, weather + " is a link"},
		"a device":             {put("dev", "", fs.ModeDevice), sign.Tampered, "dev is no file"},
		"another version":      {edit(`"1.2.0"`, `"1.2.1"`), sign.Unknown, "none of the keys"},
		"a number that isn't":  {edit(`1767225600`, `1.5`), sign.Tampered, "1.5: only whole numbers"},
		"truncated":            {func(f fstest.MapFS) { f[sign.Name].Data = f[sign.Name].Data[:100] }, sign.Tampered, "plugin.sig: unexpected EOF"},
		"empty":                {put(sign.Name, "", 0o644), sign.Tampered, "plugin.sig: EOF"},
		"something after it":   {func(f fstest.MapFS) { f[sign.Name].Data = append(f[sign.Name].Data, "{}"...) }, sign.Tampered, "something after its end"},
		"too large":            {put(sign.Name, strings.Repeat(" ", 2<<20), 0o644), sign.Tampered, "larger than"},
		"not an object":        {put(sign.Name, "[]", 0o644), sign.Tampered, "plugin.sig: json"},
		"no signature in it":   {put(sign.Name, `{"files":{}}`, 0o644), sign.Tampered, "it has no signature"},
		"bad base64":           {put(sign.Name, `{"files":{},"signature":"*"}`, 0o644), sign.Tampered, "signature: illegal base64"},
		"short":                {put(sign.Name, `{"files":{},"signature":"QUJD"}`, 0o644), sign.Tampered, "3 bytes, it should have 64"},
		"no files":             {put(sign.Name, `{"files":{},"signature":"`+strings.Repeat("A", 86)+`=="}`, 0o644), sign.Tampered, "it lists no files"},
		"a hash that is none":  {edit(`sha256:`, `sha1:`), sign.Tampered, "write sha256: and 64 hex digits"},
		"outside":              {edit(`"hooks/weather.py"`, `"../weather.py"`), sign.Tampered, `"../weather.py" is no path, or outside`},
		"absolute":             {edit(`"hooks/weather.py"`, `"/weather.py"`), sign.Tampered, `"/weather.py" is no path, or outside`},
		"a path with controls": {edit(`"hooks/weather.py"`, `"hooks\u001b[2J/weather.py"`), sign.Tampered, `"hooks\x1b[2J/weather.py" is no path`},
		"a key that is none":   {edit(`"plugin":`, `"key": "ab", "plugin":`), sign.Tampered, "key: \"ab\" is no public key"},
		"a key that is untrue": {edit(`"plugin":`, `"key": "`+key+`", "plugin":`), sign.Tampered, "it is not what the key"},
	} {
		files := make(fstest.MapFS)
		for name, f := range whole {
			c := *f
			files[name] = &c
		}
		test.change(files)
		r := sign.Keys{Official: key}.Verify(files)
		if r.State != test.state {
			t.Errorf("%s: %+v, want %s", name, r, test.state)
		}
		if got := ""; r.Err != nil {
			if got = r.Err.Error(); test.want == "" || !strings.Contains(got, test.want) {
				t.Errorf("%s: error %q, want %q", name, got, test.want)
			}
		} else if test.want != "" {
			t.Errorf("%s: no error, want %q", name, test.want)
		}
	}
}

func TestVerifyBounds(t *testing.T) {
	key, files := reference(t)
	big := maps.Clone(files)
	for i := range sign.MaxFiles {
		big["x/"+strings.Repeat("y", i%100)+string(rune('a'+i/100))+".txt"] = &fstest.MapFile{}
	}
	if r := (sign.Keys{Official: key}).Verify(big); r.State != sign.Tampered || !strings.Contains(r.Err.Error(), "more than 2000 files") {
		t.Errorf("%+v", r)
	}
	large := maps.Clone(files)
	large["README.md"] = &fstest.MapFile{Data: make([]byte, sign.MaxBytes+1)}
	if r := (sign.Keys{Official: key}).Verify(large); r.State != sign.Tampered || !strings.Contains(r.Err.Error(), "more than 64 MiB") {
		t.Errorf("%+v", r)
	}
}

// What is signed here is verified here, until it changes.
func TestSign(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key.pem")
	public, err := sign.Generate(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	private, err := sign.ReadPrivate(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(dir, "p")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(plugin, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("plugin.json", `{"name": "p"}`)
	write("a.star", "x = 1\r\n\r\r\n\r")
	write("sound.wav", "RIFF")
	write(".git/config", "[core]")
	write("__pycache__/a.pyc", "x")
	for range 2 { // again is the same
		if err := sign.Sign(plugin, private); err != nil {
			t.Fatal(err)
		}
	}
	files := os.DirFS(plugin)
	if r := (sign.Keys{Authors: []sign.Key{{"me", public}}}).Verify(files); r.State != sign.Verified || r.Author != "me" {
		t.Errorf("%+v", r)
	}
	if r := (sign.Keys{}).Verify(files); r.State != sign.Unknown || r.Key != public || !strings.Contains(r.Err.Error(), public) {
		t.Errorf("%+v", r)
	}
	var s struct {
		Plugin, Version string
		Files           map[string]string
	}
	text, err := os.ReadFile(filepath.Join(plugin, sign.Name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Plugin != "p" || s.Version != "0.0.0" || len(s.Files) != 3 || s.Files["sound.wav"] == "" {
		t.Errorf("%+v", s)
	}
	write("sound.wav", "RIFX")
	if r := (sign.Keys{Official: public}).Verify(files); r.State != sign.Tampered || r.Err.Error() != "sound.wav was changed after it was signed" {
		t.Errorf("%+v", r)
	}

	if err := os.Symlink("a.star", filepath.Join(plugin, "b.star")); err != nil {
		t.Fatal(err)
	}
	if err := sign.Sign(plugin, private); err == nil || !strings.Contains(err.Error(), "b.star is a link: put the file itself") {
		t.Errorf("%v", err)
	}
	if err := sign.Sign(dir, private); err == nil || !strings.Contains(err.Error(), "plugin.json") {
		t.Errorf("no plugin: %v", err)
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "key.pem")
	public, err := sign.Generate(private)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Generate(private); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("again: %v", err)
	}
	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sign.ReadPrivate(private); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("open to all: %v", err)
	}
	none := filepath.Join(dir, "none.pem")
	if err := os.WriteFile(none, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sign.ReadPrivate(none); err == nil || !strings.Contains(err.Error(), "plugin keygen") {
		t.Errorf("no key: %v", err)
	}

	list := filepath.Join(dir, "trust", "keys.json")
	add := func(name, key, want string) {
		t.Helper()
		err := sign.AddKey(list, sign.Key{Name: name, Public: key})
		if got := ""; err != nil {
			if got = err.Error(); want == "" || !strings.Contains(got, want) {
				t.Errorf("add %q: %q, want %q", name, got, want)
			}
		} else if want != "" {
			t.Errorf("add %q: no error, want %q", name, want)
		}
	}
	add("acme", public, "")
	add("acme", strings.ToUpper(public)+"\n", "")
	add("acme", strings.Repeat("ab", 32), "has another key already")
	add("acne", public, `trusted already, as that of "acme"`)
	add("", public, "no name")
	add("bad", "xyz", "64 hex digits")
	ed := make(ed25519.PublicKey, ed25519.PublicKeySize)
	add("zero", strings.Repeat("00", len(ed)), "")
	if keys, err := sign.ReadKeys(list); err != nil || len(keys) != 2 || keys[0] != (sign.Key{Name: "acme", Public: public}) {
		t.Errorf("%v, %v", keys, err)
	}
	if err := sign.RemoveKey(list, "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Error(err)
	}
	if err := sign.RemoveKey(list, "acme"); err != nil {
		t.Error(err)
	}
	if keys, err := sign.ReadKeys(list); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
	for _, text := range []string{"{", `{"keys":[{"name":"x","public_key_hex":"12"}]}`} {
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sign.ReadKeys(list); err == nil || !strings.Contains(err.Error(), list) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whatever a signature says, reading it ends, and it never makes a changed plugin good.
func FuzzVerify(f *testing.F) {
	key, files := reference(f)
	f.Add(files[sign.Name].Data)
	f.Add([]byte(`{"files":{"a":"sha256:00"},"signature":""}`))
	f.Add([]byte(`{"files":[],"signature":1,"key":null}`))
	f.Add([]byte(`[[[[[[{"a":`))
	changed := maps.Clone(files)
	changed["plugin.json"] = &fstest.MapFile{Data: []byte(`{"name":"weather2"}`)}
	f.Fuzz(func(t *testing.T, text []byte) {
		changed[sign.Name] = &fstest.MapFile{Data: text}
		r := sign.Keys{Official: key}.Verify(changed)
		if r.State == sign.Official || r.State == sign.Verified || r.Err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

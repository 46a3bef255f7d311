package install_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellbird/plugins/install"
	"bellbird/plugins/sign"
)

// archive makes a zip file; modes by name, where they aren't those of a file.
func archive(t testing.TB, files map[string]string, modes map[string]fs.FileMode) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if mode, ok := modes[name]; ok {
			h.SetMode(mode)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb makes a small zip file that would be large.
func bomb(t *testing.T, files map[string]string) []byte {
	t.Helper()
	one := archive(t, map[string]string{"x": strings.Repeat("\x00", sign.MaxBytes/16)}, nil)
	small, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		h := small.File[0].FileHeader
		h.Name = fmt.Sprintf("bomb%d.txt", i)
		from, err := small.File[0].OpenRaw()
		if err != nil {
			t.Fatal(err)
		}
		to, err := w.CreateRaw(&h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 1<<20 {
		t.Fatalf("it has %d bytes itself", b.Len())
	}
	return b.Bytes()
}

func below(dir string, files map[string]string) map[string]string {
	all := make(map[string]string)
	for name, text := range files {
		all[dir+"/"+name] = text
	}
	return all
}

func TestZip(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	plus := func(name, text string) map[string]string {
		files := source("p", "")
		files[name] = text
		return files
	}
	many := source("p", "")
	for i := range sign.MaxFiles {
		many[fmt.Sprintf("x/%d.txt", i)] = ""
	}
	deep := strings.Repeat("d/", 20) + "x"
	encrypted := archive(t, plus("z.txt", "secret"), nil)
	for at := 0; at < len(encrypted)-10; at++ { // the flag, in both headers
		if bytes.HasPrefix(encrypted[at:], []byte("PK\x03\x04")) {
			encrypted[at+6] |= 1
		} else if bytes.HasPrefix(encrypted[at:], []byte("PK\x01\x02")) {
			encrypted[at+8] |= 1
		}
	}
	changed := archive(t, source("p", ""), nil)
	changed = bytes.Replace(changed, []byte{'P', 'K', 1, 2}, []byte{'P', 'K', 1, 3}, 1)
	const link = fs.ModeSymlink | 0o777
	for name, test := range map[string]struct {
		zip  []byte
		want string
	}{
		"at the top":        {archive(t, source("p", ""), nil), ""},
		"in a directory":    {archive(t, below("p-1.0", source("p", "")), nil), ""},
		"of a Mac":          {archive(t, below("p", plus("../__MACOSX/._p", "x")), nil), `outside of the plugin's directory`},
		"of a Mac, really":  {archive(t, plus("__MACOSX/._p", "x"), nil), ""},
		"compiled":          {archive(t, plus("__pycache__/x.pyc", "x"), nil), ""},
		"two directories":   {archive(t, map[string]string{"a/plugin.json": "{}", "b/x": ""}, nil), "it has no plugin.json"},
		"nothing":           {archive(t, nil, nil), "it has no plugin.json"},
		"up":                {archive(t, plus("../../evil.star", "x"), nil), `"../../evil.star" is outside of the plugin's directory`},
		"up, below":         {archive(t, plus("a/../../evil.star", "x"), nil), `is outside of the plugin's directory`},
		"up, a directory":   {archive(t, plus("../evil/", ""), nil), `is outside of the plugin's directory`},
		"absolute":          {archive(t, plus("/etc/evil", "x"), nil), `"/etc/evil" is outside of the plugin's directory`},
		"of Windows":        {archive(t, plus(`..\evil.star`, "x"), nil), "is outside of the plugin's directory"},
		"a drive":           {archive(t, plus(`C:evil.star`, "x"), nil), "is outside of the plugin's directory"},
		"a control":         {archive(t, plus("a\x1b[2J", "x"), nil), "has characters that no path should have"},
		"a zero":            {archive(t, plus("a\x00b", "x"), nil), "has characters that no path should have"},
		"a link":            {archive(t, plus("b.star", "/etc/passwd"), map[string]fs.FileMode{"b.star": link}), `"b.star" is a link or a device`},
		"a device":          {archive(t, plus("dev", ""), map[string]fs.FileMode{"dev": fs.ModeDevice | 0o600}), `"dev" is a link or a device`},
		"same but for case": {archive(t, plus("A.star", "x"), nil), `have the same name`},
		"file and dir":      {archive(t, map[string]string{"p": "x", "p/plugin.json": "{}"}, nil), "p"},
		"long":              {archive(t, plus(strings.Repeat("x", 300), ""), nil), "a path has at most 240 bytes"},
		"deep":              {archive(t, plus(deep, ""), nil), "directories lie at most 16 deep"},
		"many":              {archive(t, many, nil), "it has more than 2000 files"},
		"a bomb":            {bomb(t, source("p", "")), "its files have more than 64 MiB"},
		"encrypted":         {encrypted, "is encrypted"},
		"not whole":         {archive(t, source("p", ""), nil)[:100], "it is no zip file that can be read"},
		"broken":            {changed, "it is no zip file that can be read"},
		"too large":         {make([]byte, 17<<20), "it has more than 16 MiB"},
	} {
		file := filepath.Join(r.dir, "p.zip")
		if err := os.WriteFile(file, test.zip, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := r.o.Stage(t.Context(), file)
		r.is(name, err, test.want)
		if err == nil {
			if s.Name != "p" {
				t.Errorf("%s: %+v", name, s.Sheet)
			}
			s.Discard()
		}
	}
	r.clean()
	if _, err := os.Stat(filepath.Join(r.dir, "evil.star")); err == nil {
		t.Error("it came out")
	}

	// A file that can be run may be run, and nothing else is kept of its mode.
	file := filepath.Join(r.dir, "p.zip")
	text := archive(t, plus("server", "#!/bin/sh\n"), map[string]fs.FileMode{"server": 0o777 | fs.ModeSetuid})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.commit(file)
	if info, err := os.Stat(filepath.Join(r.o.UserDir, "p", "server")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(r.o.UserDir, "p", "a.star")); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestHTTPS(t *testing.T) {
	r := newRig(t)
	r.o.AllowUnsigned = true
	whole := archive(t, below("p", source("p", "")), nil)
	plainServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(whole) }))
	defer plainServer.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/p.zip", func(w http.ResponseWriter, _ *http.Request) { w.Write(whole) })
	mux.HandleFunc("/moved.zip", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/p.zip", http.StatusFound) })
	mux.HandleFunc("/down.zip", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plainServer.URL, http.StatusFound) })
	mux.HandleFunc("/round.zip", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round.zip", http.StatusFound) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>sign in</html>")) })
	mux.HandleFunc("/large.zip", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999999") })
	mux.HandleFunc("/endless.zip", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/half.zip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		w.Write(whole[:10])
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	r.o.Client = server.Client()
	for path, want := range map[string]string{
		"/p.zip": "", "/moved.zip": "",
		"/down.zip":    "it leads to an address without https",
		"/round.zip":   "it leads on and on",
		"/none.zip":    "the server answers 404 Not Found",
		"/page":        "it is no zip file that can be read",
		"/large.zip":   "it has more than 16 MiB",
		"/endless.zip": "it has more than 16 MiB",
		"/half.zip":    "unexpected EOF",
	} {
		s, err := r.o.Stage(t.Context(), server.URL+path)
		r.is(path, err, want)
		if err == nil {
			s.Discard()
		} else if strings.Count(err.Error(), server.URL) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
	r.clean()
}

// Whatever a zip file has in it, what comes of it lies within its directory, and within the bounds.
func FuzzZip(f *testing.F) {
	f.Add(archive(f, source("p", ""), nil))
	f.Add(archive(f, below("p-1.0", source("p", "")), map[string]fs.FileMode{"p-1.0/a.star": fs.ModeSymlink}))
	f.Add(archive(f, map[string]string{"../x": "y", "plugin.json": "{}", "a/": ""}, nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		top := t.TempDir()
		o := install.Options{
			Gate: install.NewGate(install.Policy{AllowUnsigned: true}, filepath.Join(top, "state")), UserDir: filepath.Join(top, "plugins"),
		}
		file := filepath.Join(top, "p.zip")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := o.Stage(t.Context(), file)
		staged := ""
		if err == nil { // not committed: that waits for the disk
			defer s.Discard()
			staged = "plugins/.install-"
		}
		err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(top, path)
			known := rel == "." || rel == "p.zip" || rel == "plugins" || rel == "state" || strings.HasPrefix(rel, "state/") || strings.HasPrefix(rel, "plugins/")
			left := strings.HasPrefix(rel, "plugins/.") && (staged == "" || !strings.HasPrefix(rel, staged))
			if !known || left || !d.IsDir() && !d.Type().IsRegular() {
				t.Errorf("%s: %v", rel, d)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

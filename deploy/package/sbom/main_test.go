package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1796000000")
	dir := t.TempDir()
	for name, text := range map[string]string{"binary": "x", "okay_nabu.tflite": "y", "okay_nabu.json": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info := &debug.BuildInfo{GoVersion: "go1.26.0 X:some", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0"},
		{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0"}},
	}}
	d, err := describe(info, filepath.Join(dir, "binary"), "1.2.3", dir, "libpocketsphinx3=0.8+5")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@1.26.0", "pkg:golang/example.org/a@v1.0.0", "pkg:golang/example.org/c@v2.0.0", "pkg:deb/debian/libpocketsphinx3@0.8%2B5", "okay_nabu.tflite"}
	var got []string
	for _, c := range d.Components {
		got = append(got, c.Ref)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("components %q, want %q", got, want)
	}
	for _, s := range []string{
		`"timestamp":"2026-11-30T00:53:20Z"`,
		`"alg":"SHA-256","content":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"`, // of x
	} {
		if !strings.Contains(string(text), s) {
			t.Errorf("no %s in %s", s, text)
		}
	}
}

// The test itself is a binary with modules.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "sbom.json")
	if err := run([]string{"-version", "1", "-o", out, "-licences", out + ".txt", self}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), `"pkg:golang/std@1.`) {
		t.Errorf("%s, error %v", text, err)
	}
	for _, args := range [][]string{{}, {"-o", out}, {"-o", out, "/nowhere"}, {"-o", out, "-libraries", "x", self}, {"-x"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestIsLicence(t *testing.T) {
	for name, want := range map[string]bool{"LICENSE": true, "LICENSE.md": true, "COPYING": true, "NOTICE.txt": true, "licence": true, "main.go": false} {
		if isLicence(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

package ota_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/clock"
	"bellbird/ota"
)

var base = &url.URL{Scheme: "https", Host: "updates.test", Path: "/stable/manifest"}

func ExampleParseManifest() {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	text := signed(private, []byte(`{"channel": "stable", "version": "1.3.0", "compatible": "pi4", "url": "1.3.0.raucb", "size": 1000,
		"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "colour": "blue"}`))
	r, err := ota.ParseManifest(text, private.Public().(ed25519.PublicKey), base)
	fmt.Println(r.Version, r.URL, err)
	// Output: 1.3.0 https://updates.test/stable/1.3.0.raucb <nil>
}

func TestManifest(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(r *ota.Release)
		says  string
	}{
		{"no version", func(r *ota.Release) { r.Version = "" }, "version"},
		{"version", func(r *ota.Release) { r.Version = "new" }, "version"},
		{"commit", func(r *ota.Release) { r.Version = "68be5e9" }, "version"},
		{"minimum", func(r *ota.Release) { r.Minimum = "old" }, "minimum_version"},
		{"no size", func(r *ota.Release) { r.Size = 0 }, "size"},
		{"negative size", func(r *ota.Release) { r.Size = -1 }, "size"},
		{"huge", func(r *ota.Release) { r.Size = 1 << 40 }, "size"},
		{"no hash", func(r *ota.Release) { r.SHA256 = "" }, "sha256"},
		{"short hash", func(r *ota.Release) { r.SHA256 = "abcd" }, "sha256"},
		{"no board", func(r *ota.Release) { r.Compatible = "" }, "compatible"},
		{"no channel", func(r *ota.Release) { r.Channel = "" }, "channel"},
		{"no address", func(r *ota.Release) { r.URL = "" }, "url"},
		{"file", func(r *ota.Release) { r.URL = "file:///etc/passwd" }, "url"},
		{"notes", func(r *ota.Release) { r.NotesURL = "javascript:alert(1)" }, "notes_url"},
		{"control", func(r *ota.Release) { r.Title = "a\x1b[2J" }, "printable"},
		{"long", func(r *ota.Release) { r.Summary = strings.Repeat("x", 3000) }, "2000 bytes"},
	}
	for _, test := range tests {
		s := newServer(t)
		s.publish("1.0", board, []byte("bundle"))
		test.spoil(&s.release)
		s.sign()
		r, err := ota.ParseManifest(s.manifest, s.private.Public().(ed25519.PublicKey), base)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", test.name, r, err)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key := private.Public().(ed25519.PublicKey)
	s := newServer(f)
	s.publish("1.0", board, []byte("bundle"))
	_, text, _ := strings.Cut(string(s.manifest), "\n")
	f.Add([]byte(text))
	f.Add([]byte(`{"channel":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Unsigned, it is refused whatever it is; signed, it is a whole release or an error.
		if r, err := ota.ParseManifest(text, key, base); err == nil {
			t.Errorf("%+v without a signature", r)
		}
		r, err := ota.ParseManifest(signed(private, text), key, base)
		if err != nil {
			return
		}
		address, err := url.Parse(r.URL)
		if err != nil || address.Host == "" || r.Size <= 0 || len(r.SHA256) != 64 || ota.Compare(r.Version, r.Version) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestCompare(t *testing.T) {
	ascending := []string{
		"unknown", "0~20260101120000.gabc", "0.9", "1.0.0~rc1", "1.0.0", "1.0.0-4-gabcdef0", "1.0.1", "1.2", "1.10-beta2", "1.10-rc1", "v1.10", "2", "20261130",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			got, want := ota.Compare(a, b), 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got != want && (got < 0) != (want < 0) || (got == 0) != (want == 0) {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
	for _, none := range []string{"", "68be5e9", "68be5e9-dirty", "new", "-1", strings.Repeat("1", 100)} {
		if ota.Compare(none, "0~") >= 0 {
			t.Errorf("%q is a version", none)
		}
	}
}

func TestWindow(t *testing.T) {
	night := clock.Between(23*time.Hour+30*time.Minute, 30*time.Minute)
	tests := []struct {
		window clock.Hours
		at     string
		late   float64
		want   bool
	}{
		{clock.Hours{}, "02:59", 0, false}, {clock.Hours{}, "03:00", 0, true}, {clock.Hours{}, "04:59", 0, true}, {clock.Hours{}, "05:00", 0, false},
		{clock.Hours{}, "03:29", 0.5, false}, {clock.Hours{}, "03:30", 0.5, true}, {clock.Hours{}, "04:00", 0.999, true},
		{night, "23:29", 0, false}, {night, "00:29", 1, true}, {night, "23:59", 1, false},
	}
	for _, test := range tests {
		at, err := time.Parse("15:04", test.at)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) { // it is midnight in UTC
			time.Sleep(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
			u, err := ota.New(ota.Options{Dir: t.TempDir(), Window: test.window, Zone: func() *time.Location { return time.UTC }})
			if err != nil {
				t.Fatal(err)
			}
			if got := u.WindowOpen(test.late); got != test.want {
				t.Errorf("at %s, %v late: %v", test.at, test.late, got)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for says, o := range map[string]ota.Options{
		"url":           {URL: "ftp://x"},
		"public_key is": {URL: address},
		"32 bytes":      {URL: address, PublicKey: "abcd"},
		"check_every":   {Every: time.Second},
		"trial":         {Trial: time.Hour},
	} {
		o.Dir = t.TempDir()
		if _, err := ota.New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := ota.New(ota.Options{Dir: t.TempDir()}); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

// What publish.sh makes is what a device understands.
func TestPublish(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	script, err := filepath.Abs("../deploy/rauc/publish.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	publish := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(script, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			errors.As(err, &exit)
			t.Fatalf("publish.sh %q: %v\n%s", args, err, exit.Stderr)
		}
		return strings.TrimSpace(string(out))
	}
	w := newWorld(t)
	w.o.PublicKey = publish("key", "update.key")
	if again := publish("key", "update.key"); again != w.o.PublicKey {
		t.Errorf("the key is %q, and then %q", w.o.PublicKey, again)
	}
	if err := os.WriteFile(filepath.Join(dir, "bundle"), w.server.bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	publish("manifest", "update.key", "bundle", "manifest", "stable", "1.1.0", board, `Bellbird "1.1"`, "1.0.0")
	if w.server.manifest, err = os.ReadFile(filepath.Join(dir, "manifest")); err != nil {
		t.Fatal(err)
	}
	u := w.start()
	w.settle(u)
	if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
		t.Fatal(err)
	}
	if got := u.Status().Title; got != `Bellbird "1.1"` {
		t.Errorf("title %q", got)
	}
}

package rauc_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"bellbird/ota"
)

// publisher serves a bundle and its manifest.
func publisher(t *testing.T, bundle, version string) (url, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	manifest, err := json.Marshal(ota.Release{
		Channel: "stable", Version: version, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), URL: "bundle", Compatible: board,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/manifest", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "bellbird-update 1 %s\n%s", base64.StdEncoding.EncodeToString(ed25519.Sign(private, manifest)), manifest)
	})
	mux.HandleFunc("/bundle", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/manifest", base64.StdEncoding.EncodeToString(public)
}

// written is how many bytes a process has handed to its system for writing, and how many of them are meant for a disk.
func written(t *testing.T, pid int) (handed, disk int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Skip("the system doesn't tell what a process writes:", err)
	}
	field := func(name string) int {
		m := regexp.MustCompile(`(?m)^` + name + `: (\d+)$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s in %s", name, text)
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	return field("wchar"), field("write_bytes")
}

// The whole life of updates on the real RAUC: one that is good, one that isn't, one with a wrong signature.
func TestLife(t *testing.T) {
	d := newDevice(t)
	var restarts atomic.Int32
	boots := 0
	version, healthy := "1.0.0", true
	o := ota.Options{
		Dir: t.TempDir(), Slots: d.slots(), BootID: func() string { return strconv.Itoa(boots) },
		Restart: func(context.Context) error { restarts.Add(1); return nil },
		Health: []ota.Part{{Name: "microphone", Works: func(context.Context) error {
			if !healthy {
				return errors.New("no frames")
			}
			return nil
		}}},
		Trial: 8 * time.Second,
	}
	updater := func() *ota.Updater {
		t.Helper()
		o.Version = version
		u, err := ota.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	// until runs the updater until its restart or its end.
	until := func(u *ota.Updater, done func(ota.Status) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		ended := make(chan error, 1)
		go func() { ended <- u.Run(ctx) }()
		for !done(u.Status()) && ctx.Err() == nil {
			<-tick.C
		}
		if ctx.Err() != nil {
			t.Errorf("no end: %+v", u.Status())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	boot := func() {
		d.boot(t)
		boots++
		restarts.Store(0)
	}
	content := func(slot, version string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(d.dir, slot))
		if err != nil || !bytes.HasPrefix(got, []byte(version+"\n")) {
			t.Errorf("slot %s begins with %q, %v; want version %s", slot, got[:20], err, version)
		}
	}
	until(updater(), func(s ota.Status) bool { return true })

	// A good one, over the network.
	bundle := d.bundle(t, board, "1.1.0", true)
	o.URL, o.PublicKey = publisher(t, bundle, "1.1.0")
	handed0, disk0 := written(t, os.Getpid())
	raucHanded0, raucDisk0 := written(t, d.rauc.Process.Pid)
	began := time.Now()
	u := updater()
	if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	handed, disk := written(t, os.Getpid())
	raucHanded, raucDisk := written(t, d.rauc.Process.Pid)
	size, err := os.Stat(bundle)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a bundle of %d bytes with an image of %d: written %d by the download (%d to disk), %d by RAUC (%d to disk), in %v, during which the device hears and speaks",
		size.Size(), imageSize, handed-handed0, disk-disk0, raucHanded-raucHanded0, raucDisk-raucDisk0, took.Round(time.Millisecond))
	until(u, func(ota.Status) bool { return restarts.Load() > 0 })
	content("b", "1.1.0")
	boot()
	version = "1.1.0"
	u = updater()
	until(u, func(s ota.Status) bool { return s.Last != nil })
	if s := u.Status(); d.booted != "B" || s.Last.Result != ota.Committed || s.InProgress() {
		t.Errorf("slot %s, %+v", d.booted, s)
	}

	// One that doesn't work, from a file.
	if err := u.Install(t.Context(), ota.Request{File: d.bundle(t, board, "1.2.0", true), Asked: true}); err != nil {
		t.Fatal(err)
	}
	until(u, func(ota.Status) bool { return restarts.Load() > 0 })
	boot()
	version, healthy = "1.2.0", false
	if d.booted != "A" {
		t.Fatalf("slot %s was started", d.booted)
	}
	u = updater()
	until(u, func(ota.Status) bool { return restarts.Load() > 0 })
	boot()
	version, healthy = "1.1.0", true
	u = updater()
	until(u, func(s ota.Status) bool { return !s.InProgress() })
	if s := u.Status(); d.booted != "B" || s.Last.Result != ota.RolledBack || s.Last.Reason.Parts[0] != "microphone" {
		t.Errorf("slot %s, %+v", d.booted, s)
	}
	for range 4 { // for good
		boot()
		until(updater(), func(s ota.Status) bool { return true })
	}
	if d.booted != "B" {
		t.Errorf("slot %s was started", d.booted)
	}

	// One that somebody else has signed, and one for another board.
	if err := u.Install(t.Context(), ota.Request{File: d.bundle(t, board, "1.3.0", false), Asked: true}); !errors.Is(err, ota.ErrBundle) {
		t.Errorf("wrong signature: %v", err)
	}
	if err := u.Install(t.Context(), ota.Request{File: d.bundle(t, "toaster", "1.3.0", true), Asked: true}); !errors.Is(err, ota.ErrWrongBoard) {
		t.Errorf("wrong board: %v", err)
	}
	content("a", "1.2.0")
	content("b", "1.1.0")
}

// RAUC goes away in the middle, and so does the one who waits for it.
func TestInterrupted(t *testing.T) {
	d := newDevice(t)
	path := d.bundle(t, board, "1.1.0", true)
	err := d.slots().Install(t.Context(), path, func(percent int) {
		if percent >= 40 {
			d.rauc.Process.Kill()
		}
	})
	if err == nil {
		t.Fatal("no error")
	}
	t.Log(err)
	d.boot(t)
	ctx, cancel := context.WithCancel(t.Context())
	err = d.slots().Install(ctx, path, func(percent int) {
		if percent >= 20 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := d.slots().Install(t.Context(), path, func(int) {}); err != nil {
		t.Errorf("again, while it may still be at it: %v", err)
	}
	slots, err := d.slots().Slots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slots {
		if s.Boot == "B" && (s.Version != "1.1.0" || !s.Primary || !s.Good) {
			t.Errorf("%+v", s)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/ota"
	"bellbird/ota/otatest"
)

// manifestServer offers version, and returns its address and the key.
func manifestServer(t *testing.T, version string) (url, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, `{"channel": "stable", "version": %q, "compatible": "x", "url": "b", "size": 1, "sha256": %q, "title": "Better"}`,
		version, strings.Repeat("0", 64))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "bellbird-update 1 %s\n%s", base64.StdEncoding.EncodeToString(ed25519.Sign(private, text)), text)
	}))
	t.Cleanup(s.Close)
	return s.URL, base64.StdEncoding.EncodeToString(public)
}

// On a machine without RAUC the commands say what they know, what is missing, and what to do about it.
func TestOTAWithoutRAUC(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/none")
	state := t.TempDir()
	url, key := manifestServer(t, "99.0")
	config := filepath.Join(state, "config.toml")
	ota := func(args ...string) (string, error) {
		t.Helper()
		text := fmt.Sprintf("[ota]\nurl = %q\npublic_key = %q\n", url, key)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := otaCommand(&flags{state: state, config: config})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	needs := func(out string, err error, text ...string) {
		t.Helper()
		said := fmt.Sprintf("%s%v", out, err)
		for _, s := range text {
			if !strings.Contains(said, s) {
				t.Errorf("it says %q, and not %q", said, s)
			}
		}
	}
	out, err := ota("status")
	needs(out, err, "installed  "+systemVersion("/etc/os-release"), "never looked for", "install the packages dbus and rauc-service")
	out, err = ota("check")
	needs(out, err, "there is version 99.0, Better", "<nil>")
	out, err = ota("status")
	needs(out, err, "latest     99.0, Better")
	out, err = ota("install")
	needs(out, err, "no second slot", "rauc-service")
	out, err = ota("commit")
	needs(out, err, "rauc-service")
	out, err = ota("rollback")
	needs(out, err, "rauc-service")
	url = ""
	out, err = ota("check")
	needs(out, err, "set url and public_key in [ota]")
	key = "?"
	_, err = ota("check")
	var usage *usageError
	if !errors.As(err, &usage) {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestSystemVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "os-release")
	if got := systemVersion(path); got != version {
		t.Errorf("without the file: %q", got)
	}
	for text, want := range map[string]string{"ID=x\n": version, "ID=x\nIMAGE_VERSION=\"1.4.2\"\n": "1.4.2", "IMAGE_VERSION=7": "7", "IMAGE_VERSION=\n": version} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := systemVersion(path); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRequestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restart")
	restart := requestRestart(path)
	if err := restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := restart(t.Context()); !errors.Is(err, ota.ErrNoRestart) || !strings.Contains(err.Error(), "bellbird-restart.path") {
		t.Errorf("nobody has done it: %v", err)
	}
	if err := requestRestart("/nowhere/restart")(t.Context()); !errors.Is(err, ota.ErrNoRestart) {
		t.Error(err)
	}
}

func TestUpdateWatch(t *testing.T) {
	now := clock.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	w := &updateWatch{a: &appliance{output: audio.NewOutput(0), clock: now}, condition: condition{state: event.Idle}}
	busy := func(want bool, f event.Fact) {
		t.Helper()
		w.learn(f)
		if w.busy() != want {
			t.Errorf("after %#v: busy is %v", f, !want)
		}
	}
	busy(true, event.StateChanged{To: event.Listening})
	busy(false, event.StateChanged{To: event.Idle})
	busy(true, event.TimerChanged{ID: 1, What: event.TimerRinging})
	busy(false, event.TimerChanged{ID: 1, What: event.TimerSilenced})

	// What went well at night is not told, and what didn't only when somebody is there.
	ctx := t.Context()
	if err := w.report(ctx, ota.Outcome{Result: ota.Committed}); err != nil {
		t.Error(err)
	}
	bad := ota.Outcome{Result: ota.RolledBack, Reason: &ota.Reason{Kind: ota.DidNotStart}}
	if err := w.report(ctx, bad); !errors.Is(err, errNobody) {
		t.Error(err)
	}
	w.learn(event.TurnEnded{})
	now.Advance(somebodyThere + time.Second)
	if err := w.report(ctx, bad); !errors.Is(err, errNobody) {
		t.Error(err)
	}

	loudspeaker := w.health(func() bool { return true })[2]
	var f audio.Frame
	if err := loudspeaker.Works(ctx); err == nil {
		t.Error("it works without taking any sound")
	}
	w.a.output.Pull(&f)
	if err := loudspeaker.Works(ctx); err != nil {
		t.Error(err)
	}
	w.learn(event.LoudspeakerFault{})
	w.a.output.Pull(&f)
	if err := loudspeaker.Works(ctx); err == nil {
		t.Error("it works, and is said not to")
	}
	if err := w.health(func() bool { return false })[1].Works(ctx); err == nil {
		t.Error("the sound flows, and is said not to")
	}
}

func TestHomeUpdate(t *testing.T) {
	m := otatest.NewMachine("x", "1.0")
	url, key := manifestServer(t, "1.1")
	u, err := ota.New(ota.Options{Dir: t.TempDir(), Version: "1.0", Slots: m, URL: url, PublicKey: key})
	if err != nil {
		t.Fatal(err)
	}
	show, install := homeUpdate(u)
	if got := show(); got.Installed != "1.0" || got.Latest != "1.0" || got.InProgress || got.Percent != nil {
		t.Errorf("%+v", got)
	}
	if _, err := u.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := show(); got.Latest != "1.1" || got.Title != "Better" {
		t.Errorf("%+v", got)
	}
	if err := install(); err != nil {
		t.Error(err)
	}
	if err := install(); !errors.Is(err, ota.ErrInProgress) {
		t.Errorf("twice: %v", err)
	}
}

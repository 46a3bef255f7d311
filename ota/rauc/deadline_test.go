package rauc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bellbird/ota"
)

// A version whose appliance doesn't run at all is left by deploy/rauc/trial-deadline; a slot that has proved itself never is.
func TestTrialDeadline(t *testing.T) {
	d := newDevice(t)
	o := ota.Options{
		Dir: t.TempDir(), Slots: d.slots(), Version: "1.0.0", BootID: func() string { return fmt.Sprint(d.rauc.Process.Pid) }, Restart: func(context.Context) error { return nil },
	}
	// deadline runs the script, and tells whether it wants a restart.
	tools := t.TempDir()
	restarted := filepath.Join(tools, "restarted")
	program, err := exec.LookPath("rauc")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"rauc":      fmt.Sprintf("#!/bin/sh\nexec %s --conf=%s/system.conf \"$@\"\n", program, d.dir),
		"systemctl": fmt.Sprintf("#!/bin/sh\necho \"$@\" >%s\n", restarted),
	} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	deadline := func(want bool) {
		t.Helper()
		os.Remove(restarted)
		cmd := exec.Command("../../deploy/rauc/trial-deadline", filepath.Join(o.Dir, "state.json"))
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+d.dir+"/bus")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got, _ := os.ReadFile(restarted); (string(got) == "reboot\n") != want {
			t.Errorf("restart %q, want %v\n%s", got, want, out)
		}
	}
	deadline(false) // there is no state
	u, err := ota.New(o)
	if err != nil {
		t.Fatal(err)
	}
	start := func(done func(ota.Status) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		ended := make(chan error)
		go func() { ended <- u.Run(ctx) }()
		for !done(u.Status()) && ctx.Err() == nil {
			if _, err := d.slots().Slots(t.Context()); err != nil { // as a pause
				t.Error(err)
			}
		}
		cancel()
		<-ended
	}
	if err := u.Install(t.Context(), ota.Request{File: d.bundle(t, board, "1.1.0", true), Asked: true}); err != nil {
		t.Fatal(err)
	}
	deadline(false) // it waits for its restart
	d.boot(t)
	if d.booted != "B" {
		t.Fatalf("slot %s", d.booted)
	}
	deadline(true)
	d.boot(t)
	if d.booted != "A" {
		t.Fatalf("slot %s", d.booted)
	}
	deadline(false) // the appliance doesn't run here either, but here is where to stay
	start(func(s ota.Status) bool { return !s.InProgress() })
	if s := u.Status(); s.Last == nil || s.Last.Result != ota.RolledBack || s.Last.Reason.Kind != ota.DidNotStart {
		t.Errorf("%+v", s.Last)
	}
	deadline(false)

	// Without RAUC nobody can say which slot runs. Three restarts are what a boot loader needs to go back.
	if err := u.Install(t.Context(), ota.Request{File: d.bundle(t, board, "1.1.0", true), Asked: true}); err != nil {
		t.Fatal(err)
	}
	d.stop()
	for range 3 {
		deadline(true)
	}
	deadline(false)
}

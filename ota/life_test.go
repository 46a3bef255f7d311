package ota_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/event"
	"bellbird/ota"
)

// during runs the updater for a time of the bubble's.
func during(t *testing.T, u *ota.Updater, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := u.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A device by itself: it finds a release, installs it at night, restarts, proves itself, and tells of it.
func TestNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t) // it is midnight
		u := w.start()
		during(t, u, 3*time.Hour)
		if s := u.Status(); s.Latest != "1.1.0" || s.Title != "Bellbird 1.1.0" || w.restarts != 0 || w.server.sent != 0 {
			t.Errorf("before the window: %+v, %d restarts", s, w.restarts)
		}
		w.busy = true
		during(t, u, 90*time.Minute)
		if w.server.sent != 0 {
			t.Error("it was installed while the device was in use")
		}
		w.busy = false
		during(t, u, time.Minute)
		if w.restarts != 1 || w.server.sent != len(w.server.bundle) {
			t.Errorf("%d restarts, %d bytes fetched", w.restarts, w.server.sent)
		}
		w.machine.Boot()
		u = w.start()
		during(t, u, time.Minute)
		w.is(u, "1.1.0", ota.Committed, "")
		during(t, u, 48*time.Hour)
		w.boot()
		if len(w.reports) != 1 || w.reports[0].Sentence() != "I was updated, and have version 1.1.0 now." {
			t.Errorf("reports %+v", w.reports)
		}
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		want := []string{
			" 1.1.0", "downloading 1.1.0", "installing 1.1.0", "installed 1.1.0", "restarting 1.1.0", // and in the new version
			"trial 1.1.0", " ", "committed 1.1.0 from 1.0.0: ",
		}
		if diff := cmp.Diff(want, w.told()); diff != "" {
			t.Error(diff)
		}
	})
}

// What doesn't work is gone back from, with its reason, and not tried again by itself.
func TestUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		w.fault("microphone", errors.New("no frames"))
		w.machine.Boot()
		u := w.start()
		during(t, u, 2*time.Minute)
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		w.well()
		w.machine.Boot()
		u = w.start()
		during(t, u, 24*time.Hour)
		w.is(u, "1.0.0", ota.RolledBack, ota.Unhealthy)
		if got := u.Status().Last.Reason.String(); got != "the microphone didn't work (microphone: no frames)" {
			t.Error(got)
		}
		if len(w.reports) != 1 || w.reports[0].Sentence() != "I tried version 1.1.0, but the microphone didn't work. So I went back to version 1.0.0." {
			t.Errorf("reports %+v", w.reports)
		}
		if w.restarts != 1 {
			t.Errorf("it was installed again by itself")
		}
		// Somebody wants it nevertheless, and so does a night with another release.
		if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
			t.Error(err)
		}
		w.is(w.boot(), "1.1.0", ota.Committed, "")
		w.server.offer("1.2.0", board)
		during(t, w.start(), 30*time.Hour)
		w.is(w.boot(), "1.2.0", ota.Committed, "")
	})
}

// What was broken before the update is no reason against it.
func TestExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fault("microphone", errors.New("there is none"))
		u := w.installed()
		u.Step(t.Context())
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		w.is(w.boot(), "1.1.0", ota.Committed, "")
		w.server.offer("1.2.0", board)
		w.installed().Step(t.Context())
		w.fault("store", errors.New("it can't be opened"))
		w.boot()
		u = w.boot()
		w.is(u, "1.1.0", ota.RolledBack, ota.Unhealthy)
		if parts := u.Status().Last.Reason.Parts; len(parts) != 1 || parts[0] != "store" {
			t.Errorf("because of %q", parts)
		}
	})
}

// A part that hangs is named, and so is one that works only sometimes.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		flaky := 0
		w.o.Health = append(w.o.Health,
			ota.Part{Name: "loudspeaker", Works: func(ctx context.Context) error {
				if flaky++; flaky%4 == 0 {
					return errors.New("it has dropouts")
				}
				return nil
			}})
		w.boot()
		u := w.boot()
		if got := u.Status().Last.Reason.String(); !strings.Contains(got, "didn't work") {
			t.Error(got)
		}
		w.is(u, "1.0.0", ota.RolledBack, ota.Unhealthy)

		w = newWorld(t)
		w.installed()
		hung := make(chan struct{})
		w.o.Health = append(w.o.Health, ota.Part{Name: "wake word", Works: func(context.Context) error { <-hung; return nil }})
		w.boot()
		w.o.Health = nil
		u = w.boot()
		if got := u.Status().Last.Reason.String(); got != "the wake word didn't work (wake word: it gives no answer)" {
			t.Error(got)
		}
		close(hung)
	})
}

func TestDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		w.machine.Broken["1.1.0"] = true
		u := w.boot()
		w.is(u, "1.0.0", ota.RolledBack, ota.DidNotStart)
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.DidNotStart)
	})
}

// A version whose program ends again and again.
func TestCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		w.machine.Boot()
		for range 4 {
			ctx, crash := context.WithTimeout(t.Context(), 2*time.Second)
			if err := w.start().Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			crash()
		}
		u := w.start()
		during(t, u, time.Minute)
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.Crashed)
	})
}

// The power is cut during the trial so often that the boot loader goes back.
func TestCutInTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		for range 3 {
			w.machine.Boot()
			ctx, cut := context.WithTimeout(t.Context(), 2*time.Second)
			w.start().Settle(ctx)
			cut()
		}
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.Stopped)
	})
}

// A boot loader that forgets what it was told is not believed.
func TestReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		w.machine.Unstable = true
		w.boot()
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.NotMarked)
	})
}

// If the other slot is bad, a faulty version is better than none.
func TestNothingToGoBackTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		w.fault("store", errors.New("it can't be opened"))
		w.machine.Boot()
		if err := w.machine.Mark(t.Context(), "rootfs.0", ota.Bad); err != nil {
			t.Fatal(err)
		}
		u := w.start()
		w.settle(u)
		w.is(u, "1.1.0", ota.Kept, ota.Unhealthy)
		if got := u.Status().Last.Sentence(); got != "I have version 1.1.0 now, but the store didn't work, and there is no other version that I could go back to." {
			t.Error(got)
		}
		w.is(w.boot(), "1.1.0", ota.Kept, ota.Unhealthy)
	})
}

func TestByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		u := w.installed()

		// Before the restart.
		if restart, err := u.Rollback(ctx); restart || err != nil {
			t.Errorf("%v, %v", restart, err)
		}
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.ByHand)
		if err := u.Commit(ctx); err == nil {
			t.Error("there was nothing to commit")
		}

		// In the trial.
		w.installed()
		w.machine.Boot()
		u = w.start()
		trial, end := context.WithTimeout(ctx, time.Second)
		u.Settle(trial)
		end()
		if err := u.Install(ctx, ota.Request{Asked: true}); !errors.Is(err, ota.ErrInProgress) {
			t.Errorf("an update in a trial: %v", err)
		}
		if restart, err := u.Rollback(ctx); !restart || err != nil {
			t.Errorf("%v, %v", restart, err)
		}
		u.Step(ctx)
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.ByHand)
		w.installed()
		w.machine.Boot()
		w.fault("store", errors.New("it can't be opened"))
		u = w.start()
		ended := make(chan error)
		go func() { ended <- u.Settle(ctx) }()
		time.Sleep(time.Second)
		if err := w.start().Commit(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.is(w.boot(), "1.1.0", ota.Committed, ota.ByHand)

		// After the commit.
		w.well()
		w.restarts = 0
		u = w.start()
		w.settle(u)
		if restart, err := u.Rollback(ctx); !restart || err != nil {
			t.Errorf("%v, %v", restart, err)
		}
		w.busy = true
		u.Step(ctx)
		if w.restarts != 0 {
			t.Error("it restarted while it was in use")
		}
		w.busy = false
		u.Step(ctx)
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		u = w.boot()
		w.is(u, "1.0.0", ota.RolledBack, ota.ByHand)
		if got := u.Status().Last.Sentence(); got != "I went back to version 1.0.0." {
			t.Error(got)
		}
		if err := w.machine.Mark(ctx, "rootfs.1", ota.Bad); err != nil {
			t.Error(err)
		}
		if _, err := u.Rollback(ctx); err == nil || !strings.Contains(err.Error(), "rootfs.1 is bad") {
			t.Error(err)
		}
	})
}

// What another program has installed is tried as well.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.o.URL = ""
		w.boot()
		path := filepath.Join(t.TempDir(), "bundle")
		if err := otatestBundle(path, "3.0.0"); err != nil {
			t.Fatal(err)
		}
		if err := w.machine.Install(t.Context(), path, func(int) {}); err != nil {
			t.Fatal(err)
		}
		w.fault("store", errors.New("it can't be opened"))
		w.boot()
		w.well()
		w.is(w.boot(), "1.0.0", ota.RolledBack, ota.Unhealthy)
		if err := w.machine.Install(t.Context(), path, func(int) {}); err != nil {
			t.Fatal(err)
		}
		u := w.boot()
		w.is(u, "3.0.0", ota.Committed, "")

		// It doesn't restart by itself: that is done at night.
		if err := otatestBundle(path, "4.0.0"); err != nil {
			t.Fatal(err)
		}
		if err := w.machine.Install(t.Context(), path, func(int) {}); err != nil {
			t.Fatal(err)
		}
		w.restarts = 0
		during(t, u, 2*time.Hour)
		if s := u.Status(); w.restarts != 0 || s.Phase != event.UpdateInstalled || s.Version != "4.0.0" {
			t.Errorf("in the evening: %d restarts, %+v", w.restarts, s)
		}
		during(t, u, 3*time.Hour)
		if w.restarts == 0 {
			t.Error("it wasn't restarted in the night")
		}
		w.is(w.boot(), "4.0.0", ota.Committed, "")
	})
}

// A device that can't read its configuration can't judge its health either.
func TestStartFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		u := w.installed()
		if restart, err := u.StartFailed(t.Context(), "configuration", errors.New("line 3")); restart || err != nil {
			t.Errorf("not in a trial: %v, %v", restart, err)
		}
		w.machine.Boot()
		if restart, err := w.start().StartFailed(t.Context(), "configuration", errors.New("line 3")); !restart || err != nil {
			t.Errorf("in a trial: %v, %v", restart, err)
		}
		u = w.boot()
		w.is(u, "1.0.0", ota.RolledBack, ota.Unhealthy)
		if got := u.Status().Last.Reason.String(); got != "the configuration didn't work (configuration: line 3)" && !strings.Contains(got, "line 3") {
			t.Error(got)
		}
	})
}

// A state that can't be understood is as good as none, and nothing is undone for it.
func TestSpoiltState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.installed()
		for _, text := range []string{"", "{", `{"phase": 7}`, strings.Repeat("x", 1<<20)} {
			if err := os.WriteFile(filepath.Join(w.o.Dir, "state.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			u := w.start()
			w.settle(u)
			if s := u.Status(); s.InProgress() {
				t.Errorf("%.10q: %+v", text, s)
			}
		}
	})
}

// Without slots there is nothing to install into, but the device tells that there is something newer.
func TestNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.o.Slots = nil
		u := w.start()
		during(t, u, 6*time.Hour)
		if s := u.Status(); s.Latest != "1.1.0" || !errors.Is(s.Problem, ota.ErrNoSlots) || s.InProgress() || w.restarts > 0 {
			t.Errorf("%+v", s)
		}
		if err := u.Install(t.Context(), ota.Request{Asked: true}); !errors.Is(err, ota.ErrNoSlots) {
			t.Error(err)
		}
	})
}

// Of two that want to do something one has to wait.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		u := w.start()
		w.settle(u)
		var other error
		w.machine.Step = func() { _, other = w.start().Check(t.Context()) }
		if err := u.Install(t.Context(), ota.Request{Asked: true}); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(other, ota.ErrInProgress) {
			t.Error(other)
		}
		if err := u.Begin(ota.Request{}); !errors.Is(err, ota.ErrInProgress) {
			t.Error(err)
		}
	})
}

// Who asks for it gets it at any time of day.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.o.Automatic = false
		u := w.start()
		during(t, u, 24*time.Hour)
		if w.restarts != 0 || u.Status().Latest != "1.1.0" {
			t.Errorf("without being asked: %d restarts, %+v", w.restarts, u.Status())
		}
		time.Sleep(12 * time.Hour)
		if err := u.Begin(ota.Request{Asked: true}); err != nil {
			t.Error(err)
		}
		during(t, u, time.Minute)
		if w.restarts != 1 {
			t.Errorf("%d restarts", w.restarts)
		}
		w.is(w.boot(), "1.1.0", ota.Committed, "")
	})
}

package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/internal/run"
)

func TestAllStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		part := func(name string) run.Part {
			return run.Part{Name: name, Run: func(ctx context.Context) error {
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return ctx.Err()
			}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := run.All(ctx, time.Second, part("store"), part("sound"), part("turns")); err != nil {
			t.Errorf("All: %v", err)
		}
		if want := []string{"turns", "sound", "store"}; !slices.Equal(order, want) {
			t.Errorf("stopped in order %v, want %v", order, want)
		}
	})
}

func TestAllNamesWhoFails(t *testing.T) {
	broken := errors.New("unplugged")
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	err := run.All(t.Context(), time.Second,
		run.Part{Name: "turns", Run: waits},
		run.Part{Name: "sound", Run: func(context.Context) error { return broken }})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "sound: ") {
		t.Errorf("All: %v, want the sound's error", err)
	}
}

func TestAllEndsQuietlyWhenFinished(t *testing.T) {
	err := run.All(t.Context(), time.Second, run.Part{Name: "demo", Run: func(context.Context) error { return run.ErrFinished }})
	if err != nil {
		t.Errorf("All: %v", err)
	}
}

func TestAllNamesWhoHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hangs := func(context.Context) error { <-release; return nil }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := run.All(ctx, 2*time.Second,
			run.Part{Name: "store", Run: func(ctx context.Context) error { <-ctx.Done(); return nil }},
			run.Part{Name: "sound", Run: hangs})
		if err == nil || !strings.Contains(err.Error(), "sound") || strings.Contains(err.Error(), "turns") {
			t.Errorf("All: %v, want it to name the sound", err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("All took %v", d)
		}
		close(release)
	})
}

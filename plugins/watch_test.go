package plugins_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A plugin that is a link to another place, where it is changed; then the link leads to a third place.
func TestWatchLinkedPlugin(t *testing.T) {
	r := newRig(t)
	ready := r.watched(t)
	await := func(want, input string) {
		t.Helper()
		select {
		case got := <-ready:
			if got != want {
				t.Errorf("plugins_ready for %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no plugins_ready for %q", want)
		}
		if got := r.fire(t, "post_stt", "x"); got != input {
			t.Errorf("after the %s: input %q, want %q", want, got, input)
		}
	}
	script := func(word string) map[string]string {
		return map[string]string{"hooks/a.star": "def post_stt(event):\n    event.input += ' " + word + "'\n"}
	}
	first := write(t, filepath.Join(t.TempDir(), "first"), appender("p", ""))
	second := write(t, filepath.Join(t.TempDir(), "second"), appender("p", ""))
	write(t, second, script("second"))
	link := filepath.Join(r.o.UserDir, "p")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}

	w, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	r.scan(t)
	await("scan", "x p")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()

	write(t, first, script("changed"))
	await("reload", "x changed")

	// As an update does it: one step from the old version to the new one.
	if err := os.Symlink(second, link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	await("reload", "x second")
	write(t, second, script("third"))
	await("reload", "x third")

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWatcherThatNeverRan(t *testing.T) {
	r := newRig(t)
	w, err := r.Watch()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Run(t.Context()); err == nil {
		t.Error("it runs on after it was closed")
	}
}

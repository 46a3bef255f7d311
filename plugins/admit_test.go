package plugins_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellbird/hooks"
	"bellbird/plugins"
)

// What is not admitted runs no line of its code, whichever way it comes to be loaded, and stops no other.
func TestAdmit(t *testing.T) {
	r := newRig(t)
	refused := map[string]bool{"bad": true}
	var asked []string
	r.o.Admit = func(i plugins.Info) (string, error) {
		asked = append(asked, i.Manifest.Name)
		if i.Dir == "" || i.Band != hooks.User {
			t.Errorf("%+v", i)
		}
		if refused[i.Manifest.Name] {
			return "unsigned", errors.New("it is not signed")
		}
		return "official", nil
	}
	r.Loader = plugins.New(r.o)
	write(t, filepath.Join(r.o.UserDir, "bad"), appender("bad", ""))
	write(t, filepath.Join(r.o.UserDir, "good"), appender("good", ""))
	write(t, filepath.Join(r.o.UserDir, "off"), map[string]string{"plugin.json": `{"name":"off"}`})
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x good" {
		t.Errorf("%q", got)
	}
	if i := r.info(t, "bad"); i.Loaded || i.Origin != "unsigned" || !slices.Equal(i.Errors, []string{"it is not signed"}) {
		t.Errorf("%+v", i)
	}
	if i := r.info(t, "off"); i.Origin != "official" || len(i.Errors) > 0 {
		t.Errorf("%+v", i)
	}
	if want := []string{"bad", "good", "off"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	for name, load := range map[string]func() error{
		"reload": func() error { return r.Reload(t.Context(), "bad") },
		"enable": func() error { return r.SetEnabled(t.Context(), "bad", true) },
	} {
		if err := load(); err == nil || !strings.Contains(err.Error(), "it is not signed") || r.info(t, "bad").Loaded {
			t.Errorf("%s: %v", name, err)
		}
	}

	// One that changed and is not admitted any more doesn't go on as it was.
	refused["good"] = true
	if err := r.Reload(t.Context(), "good"); err == nil {
		t.Error("reloaded")
	}
	if got := r.fire(t, "post_stt", "x"); got != "x" || r.info(t, "good").Loaded {
		t.Errorf("%q", got)
	}
	clear(refused)
	for _, name := range []string{"bad", "good"} {
		if err := r.Reload(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if got := r.fire(t, "post_stt", "x"); got != "x bad good" && got != "x good bad" {
		t.Errorf("%q", got)
	}
	if err := os.RemoveAll(filepath.Join(r.o.UserDir, "bad")); err != nil {
		t.Fatal(err)
	}
	r.scan(t)
	if got := r.fire(t, "post_stt", "x"); got != "x good" {
		t.Errorf("%q", got)
	}
}

package plugins_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellbird/plugins"
)

func TestConsentAsksForWhatIsMore(t *testing.T) {
	agreed := plugins.Consent{
		Permissions: []string{"transcript:agent"}, Hooks: []string{"transcript", "turnComplete"}, Apps: []string{"transcript:shop", "turnComplete:*"},
		Server: "python3 server.py", Hash: "1",
	}
	for _, test := range []struct {
		name   string
		change func(*plugins.Consent)
		want   string
	}{
		{"the same", func(*plugins.Consent) {}, ""},
		{"another version", func(c *plugins.Consent) { c.Hash = "2" }, ""},
		{"less", func(c *plugins.Consent) { c.Permissions, c.Hooks, c.Apps = nil, nil, nil }, ""},
		{"only in some apps", func(c *plugins.Consent) { c.Apps = []string{"turnComplete:shop"} }, ""},
		{"a permission", func(c *plugins.Consent) { c.Permissions = []string{"transcript:all"} }, "the permission transcript:all"},
		{"a hook", func(c *plugins.Consent) { c.Hooks = []string{"preToolUse"} }, "the hook preToolUse"},
		{"another app", func(c *plugins.Consent) { c.Apps = []string{"transcript:bank"} }, "while in front transcript:bank"},
		{"everywhere", func(c *plugins.Consent) { c.Apps = []string{"transcript:*"} }, "while in front transcript:*"},
		{"another server", func(c *plugins.Consent) { c.Server = "https://evil.example" }, "the server https://evil.example"},
		{"private chats", func(c *plugins.Consent) { c.Private = true }, "private chats"},
	} {
		wants := agreed
		test.change(&wants)
		if got := strings.Join(wants.Beyond(agreed), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", plugins.LedgerName)
	l := plugins.NewLedger(path)
	if d, err := l.Of("shop"); err != nil || d.Agreed != nil || d.Silenced {
		t.Fatalf("of nothing: %+v, %v", d, err)
	}
	consent := plugins.Consent{Hooks: []string{"transcript"}, Hash: "1"}
	if err := l.Agree("shop", consent); err != nil {
		t.Fatal(err)
	}
	if err := l.Silence("shop", true); err != nil {
		t.Fatal(err)
	}
	if err := l.Agree("shop", consent); err != nil { // agreeing again is not to give access back
		t.Fatal(err)
	}
	l = plugins.NewLedger(path)
	if d, err := l.Of("shop"); err != nil || d.Agreed == nil || !slices.Equal(d.Agreed.Hooks, consent.Hooks) || !d.Silenced {
		t.Errorf("read again: %+v, %v", d, err)
	}
	if err := l.Forget("shop"); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Of("shop"); err != nil || d.Agreed != nil || d.Silenced {
		t.Errorf("forgotten: %+v, %v", d, err)
	}
	if err := os.WriteFile(path, []byte(`{"shop": {"agreed": 7`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Of("shop"); err == nil || d.Agreed != nil {
		t.Errorf("of a broken file: %+v, %v", d, err)
	}
	if err := l.Silence("shop", true); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file is overwritten: %v", err)
	}
}

package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bellbird/plugins"
	"bellbird/plugins/mcp"
)

// manifest is one with these fields besides what each needs.
func manifest(name, fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return `{"name": "` + name + `", "version": "1", "server": {"command": ["x"]}` + fields + `}`
}

const agent = `"permissions": [{"kind": "transcript", "scope": "agent"}]`

func TestManifestIsRefused(t *testing.T) {
	for _, test := range []struct{ name, manifest, want string }{
		{"no JSON", `{`, "unexpected end"},
		{"no name", `{}`, "name: "},
		{"a name with a path", `{"name": "../x"}`, "name: "},
		{"no server", `{"name": "x"}`, "server: "},
		{"two servers", `{"name": "x", "server": {"command": ["y"], "url": "https://x"}}`, "server: "},
		{"an empty program", `{"name": "x", "server": {"command": [""]}}`, "server.command[0]: "},
		{"another scheme", `{"name": "x", "server": {"url": "file:///etc/passwd"}}`, "server.url: "},
		{"a password in the address", `{"name": "x", "server": {"url": "https://me:secret@x"}}`, "server.url: "},
		{"in the clear", `{"name": "x", "server": {"url": "http://example.org/mcp"}}`, "server.url: "},
		{"a hook without the permission", manifest("x", `"hooks": {"turnComplete": {}}`), "permissions: hooks.turnComplete "},
		{"another kind", manifest("x", `"permissions": [{"kind": "camera", "scope": "all"}]`), "permissions[0].kind: "},
		{"another scope", manifest("x", `"permissions": [{"kind": "transcript", "scope": "everything"}]`), "permissions[0].scope: "},
		{"no scope", manifest("x", `"permissions": [{"kind": "transcript"}]`), "permissions[0].scope: "},
		{"dictation with agent", manifest("x", agent+`, "hooks": {"dictation": {"apps": ["a"]}}`), "hooks.dictation: "},
		{"transcript with dictation", manifest("x", `"permissions": [{"kind": "transcript", "scope": "dictation"}], "hooks": {"transcript": {}}`), "hooks.transcript: "},
		{"a tap with dictation", manifest("x", `"permissions": [{"kind": "transcript", "scope": "dictation"}], "hooks": {"preToolUse": {}}`), "hooks.preToolUse: "},
		{"all dictation", manifest("x", `"permissions": [{"kind": "transcript", "scope": "all"}], "hooks": {"dictation": {}}`), "hooks.dictation.apps: "},
		{"an app for all", manifest("x", `"permissions": [{"kind": "transcript", "scope": "all"}], "hooks": {"dictation": {"apps": ["*"]}}`), "hooks.dictation.apps[0]: "},
		{"an empty app", manifest("x", agent+`, "hooks": {"transcript": {"apps": ["a", " "]}}`), "hooks.transcript.apps[1]: "},
		{"others' tools", manifest("x", agent+`, "hooks": {"preToolUse": {"scope": "all"}}`), "hooks.preToolUse.scope: "},
		{"others' results", manifest("x", agent+`, "hooks": {"postToolUse": {"scope": "any"}}`), "hooks.postToolUse.scope: "},
		{"a scope where there is none", manifest("x", agent+`, "hooks": {"transcript": {"scope": "own"}}`), "hooks.transcript.scope: "},
		{"an unknown hook", manifest("x", agent+`, "hooks": {"keystroke": {}}`), "hooks.keystroke: "},
	} {
		m, err := mcp.ParseManifest([]byte(test.manifest))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %+v, error %v, want %q…", test.name, m, err, test.want)
		}
	}
}

func TestManifest(t *testing.T) {
	text := `{"name": "acme", "server": {"url": "http://nas.local:8080/mcp"}, "permissions": [{"kind": "transcript", "scope": "all"}],
		"hooks": {"transcript": {"apps": ["com.acme.desktop"]}, "preToolUse": {"scope": "own"}, "turnComplete": null, "dictation": {"apps": ["a", "b"]}}}`
	m, err := mcp.ParseManifest([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := plugins.Consent{
		Permissions: []string{"transcript:all"},
		Hooks:       []string{"dictation", "preToolUse", "transcript", "turnComplete"},
		Apps:        []string{"dictation:a", "dictation:b", "preToolUse:*", "transcript:com.acme.desktop", "turnComplete:*"},
		Server:      "http://nas.local:8080/mcp",
		Hash:        m.Hash,
	}
	if diff := cmp.Diff(want, m.Consent()); diff != "" || len(m.Hash) != 64 {
		t.Errorf("hash %q, consent (-want +got):\n%s", m.Hash, diff)
	}
}

func TestManifestsOfTheExamples(t *testing.T) {
	dirs, err := filepath.Glob("../examples/integrations/*")
	if err != nil || len(dirs) < 2 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for _, dir := range dirs {
		m, err := mcp.ReadManifest(dir)
		if err != nil || m.Name != filepath.Base(dir) || m.Summary == "" || m.Author == "" || m.Version == "" {
			t.Errorf("%s: %+v, %v", dir, m, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	for _, path := range []string{"shopping", "orders"} {
		text, err := os.ReadFile(filepath.Join("../examples/integrations", path, mcp.ManifestName))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(manifest("x", agent+`, "hooks": {"dictation": {"apps": ["a"]}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := mcp.ParseManifest(text)
		if err != nil {
			return
		}
		scopes := map[string]bool{}
		for _, p := range m.Permissions {
			scopes[p.Scope] = true
		}
		for name, h := range m.Hooks {
			switch {
			case name == "dictation" && (len(h.Apps) == 0 || !scopes["dictation"] && !scopes["all"]):
				t.Errorf("it may hear dictation: %s", text)
			case name != "dictation" && !scopes["agent"] && !scopes["all"]:
				t.Errorf("it has %s without a permission: %s", name, text)
			}
		}
		if more := m.Consent().Beyond(m.Consent()); len(more) > 0 {
			t.Errorf("beyond itself: %q", more)
		}
	})
}

func FuzzResult(f *testing.F) {
	for _, text := range []string{
		``, `null`, `{}`, `{"decision": "handled", "responseText": "x", "view": {"blocks": [{"type": "text"}]}}`, `{"requireConfirmation": true, "reason": "x"}`,
		`{"updatedArgs": {"a": 1}, "updatedResult": [1]}`, `{"decision": "approve"}`, `[]`, `{"view": null, "updatedText": null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := mcp.ParseResult(text)
		if err != nil {
			return
		}
		switch r.Decision {
		case "", "continue", "block", "handled":
		default:
			t.Errorf("decision %q", r.Decision)
		}
		if len(r.Reason) > 300 || len(r.UpdatedText) > 16<<10 || len(r.ResponseText) > 4<<10 || len(r.AdditionalContext) > 2<<10 {
			t.Errorf("more than there may be: %.1000s", text)
		}
	})
}

func TestResultIsRefused(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for _, test := range []struct{ answer, want string }{
		{`"yes"`, "the answer is no object"},
		{`{"decision": "approve"}`, "decision: "},
		{`{"updatedText": ` + long(17<<10) + `}`, "updatedText: "},
		{`{"additionalContext": ` + long(3<<10) + `}`, "additionalContext: "},
		{`{"responseText": ` + long(5<<10) + `}`, "responseText: "},
		{`{"updatedArgs": {"a": ` + long(65<<10) + `}}`, "updatedArgs: "},
		{`{"view": {"blocks": [` + long(17<<10) + `]}}`, "view: "},
		{`{"view": {"blocks": [` + strings.Repeat("1,", 40) + `1]}}`, "view: "},
		{`{"reason": ` + long(300<<10) + `}`, "an answer of "},
	} {
		if _, err := mcp.ParseResult([]byte(test.answer)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%.60s: %v, want %q…", test.answer, err, test.want)
		}
	}
}

package mcp_test

import (
	"os"
	"strings"
	"testing"

	"bellbird/plugins/mcp"
)

// The guide has each hook, with a manifest that is one.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/integrations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	manifest, _, _ := strings.Cut(rest, "```")
	if m, err := mcp.ParseManifest([]byte(manifest)); err != nil || len(m.Hooks) != 3 {
		t.Errorf("its manifest: %+v, %v", m, err)
	}
	for hook, budget := range map[string]string{
		"transcript": "500 ms", "dictation": "250 ms", "preToolUse": "2 s", "postToolUse": "2 s", "turnComplete": "not waited for",
	} {
		_, row, found := strings.Cut(string(text), "| `voiceos_hook_"+hook+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found || !strings.HasSuffix(row, "| "+budget+" |") {
			t.Errorf("%s: %q", hook, row)
		}
	}
}

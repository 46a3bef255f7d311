package hooks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bellbird/hooks"
)

// The guide for plugin authors has each point of the pipeline, with its budget.
func TestGuideHasThePoints(t *testing.T) {
	text, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			rows[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[3])
		}
	}
	for _, p := range hooks.Points() {
		if !p.System && !p.Config && p.Name != "tools_filter" && p.Name != "plugins_ready" {
			continue // the lifecycle of chats, which there are none of yet
		}
		want := fmt.Sprintf("%d ms", p.Budget.Milliseconds())
		if p.Budget >= time.Second {
			want = fmt.Sprintf("%d s", int(p.Budget.Seconds()))
		}
		if !p.Waits {
			want += ", not waited for"
		}
		if got := rows[p.Name]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: the guide says %q, the table %q", p.Name, got, want)
		}
	}
}

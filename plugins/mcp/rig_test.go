package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
	"bellbird/plugins/mcp"
)

// A fake is a server by its hooks, each of which returns its answer as JSON. The real ones are in server_test.go.
type fake map[string]func(ctx context.Context, input map[string]any) (string, error)

func (f fake) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (f fake) Hooks() []string {
	var names []string
	for name := range f {
		names = append(names, "voiceos_hook_"+name)
	}
	return names
}

func (f fake) CallHook(ctx context.Context, tool string, input any) (json.RawMessage, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	var in map[string]any
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	answer, err := f[strings.TrimPrefix(tool, "voiceos_hook_")](ctx, in)
	return json.RawMessage(answer), err
}

func (f fake) OwnName(offered string) (string, bool) {
	return strings.ReplaceAll(offered, "_", "."), true
}
func (f fake) Connected() (bool, error) { return true, nil }

// says is a hook that answers this.
func says(answer string) func(context.Context, map[string]any) (string, error) {
	return func(context.Context, map[string]any) (string, error) { return answer, nil }
}

// A rig is a set that runs in a runner. Tools are their integration's if they begin with its name.
type rig struct {
	*mcp.Set
	runner *hooks.Runner
	ledger *plugins.Ledger
	dir    string
	ctx    context.Context
	owns   func(integration, tool string) bool

	mu     sync.Mutex
	trace  []string
	views  []string
	opened []string
}

// newRig writes the manifests, agrees to them, and runs their servers. end stops it all.
func newRig(t testing.TB, manifests map[string]string, connect func(m *mcp.Manifest, dir string) (mcp.Server, error)) (r *rig, end func()) {
	t.Helper()
	r = &rig{runner: hooks.New(hooks.Options{}), dir: t.TempDir(), ledger: plugins.NewLedger(filepath.Join(t.TempDir(), plugins.LedgerName))}
	for name, text := range manifests {
		r.write(t, name, text)
		r.agree(t, name)
	}
	r.owns = func(integration, tool string) bool { return strings.HasPrefix(tool, integration+"_") }
	r.Set = mcp.New(mcp.Options{
		Dir: r.dir, Ledger: r.ledger, Runner: r.runner, Connect: connect,
		Owns: func(integration, tool string) bool { return r.owns(integration, tool) },
		OnView: func(name string, v mcp.View, private bool) {
			r.note(&r.views, fmt.Sprintf("%s: %s %v", name, v.Blocks, private))
		},
		OnBreaker: func(name, point string, d time.Duration) { r.note(&r.opened, fmt.Sprint(name, " ", point, " ", d)) },
		OnTrace: func(trace hooks.Trace) {
			for _, c := range trace {
				r.note(&r.trace, c.Plugin+": "+string(c.Outcome))
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	if err := r.Scan(ctx); err != nil { // it has begun then
		t.Fatal(err)
	}
	return r, func() {
		cancel()
		<-done
		r.runner.Close()
	}
}

func (r *rig) note(list *[]string, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, line)
}

// take returns what is in a list, and empties it.
func (r *rig) take(list *[]string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := *list
	*list = nil
	return all
}

func (r *rig) write(t testing.TB, name, manifest string) {
	t.Helper()
	dir := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, mcp.ManifestName), []byte(manifest), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) agree(t testing.TB, name string) {
	t.Helper()
	m, err := mcp.ReadManifest(filepath.Join(r.dir, name))
	if err == nil {
		err = mcp.Agree(r.dir, r.ledger, name, m.Hash)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withFakes is a rig of these servers, each with a manifest that subscribes to what it has.
func withFakes(t testing.TB, fakes map[string]fake) (r *rig, end func()) {
	manifests := make(map[string]string)
	for name, f := range fakes {
		var all []string
		for _, hook := range slices.Sorted(maps.Keys(f)) {
			apps := ""
			if hook == "dictation" {
				apps = `"apps": ["notes"]`
			}
			all = append(all, fmt.Sprintf("%q: {%s}", hook, apps))
		}
		manifests[name] = manifest(name, `"permissions": [{"kind": "transcript", "scope": "all"}], "hooks": {`+strings.Join(all, ", ")+`}`)
	}
	return newRig(t, manifests, func(m *mcp.Manifest, _ string) (mcp.Server, error) { return fakes[m.Name], nil })
}

// said is an event of a chat that isn't private.
func said(text string) *hooks.Event { return &hooks.Event{Input: text, ChatPrivate: new(false)} }

func show(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

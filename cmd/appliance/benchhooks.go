package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bellbird/hooks"
	"bellbird/plugins"
)

// benchHooks measures what a fire of post_stt costs the turn: with handlers that do nothing, and with scripts that do
// what scripts at this point usually do, in this process and in the worker.
func benchHooks(ctx context.Context) ([]figure, error) {
	var rows []figure
	for _, n := range []int{0, 1, 10} {
		r := hooks.New(hooks.Options{System: "powers", Config: "settings"})
		for range n {
			if err := r.Register(hooks.Handler{Plugin: "bench", Point: "post_stt", Func: func(context.Context, *hooks.Event) error { return nil }}); err != nil {
				return nil, err
			}
		}
		median, best, err := timeFires(ctx, r, n)
		r.Close()
		if err != nil {
			return nil, err
		}
		target := "-"
		if n == 10 {
			target = "5µs"
		}
		rows = append(rows, figure{fmt.Sprintf("fire, %d Go handlers, median (best)", n), fireTimes(median, best), target})
	}
	for _, where := range []struct {
		what, target string
		band         hooks.Band
	}{{"in process", "15µs", hooks.System}, {"in the worker", "100µs", hooks.User}} {
		for _, n := range []int{1, 10} {
			median, best, err := timeScripts(ctx, n, where.band)
			if err != nil {
				return nil, fmt.Errorf("%d scripts %s: %w", n, where.what, err)
			}
			each := time.Duration(n)
			what := fmt.Sprintf("fire, %d Starlark handlers %s, for each of them, median (best)", n, where.what)
			rows = append(rows, figure{what, fireTimes(median/each, best/each), where.target})
		}
	}
	return rows, nil
}

func fireTimes(median, best time.Duration) string {
	if best == 0 {
		return "not measured: handlers miss their deadlines, the machine is too busy"
	}
	return fmt.Sprintf("%v (%v)", median, best)
}

const benchScript = `
FIXES = {"bell bird": "Bellbird", "tea tea ess": "TTS", "hey i": "AI"}

def post_stt(event):
    text = event.input
    for heard, meant in FIXES.items():
        text = text.replace(heard, meant)
    event.input = text
`

// timeScripts times fires with n plugins of one script each, which are loaded as the appliance loads them.
func timeScripts(ctx context.Context, n int, band hooks.Band) (median, best time.Duration, err error) {
	dir, err := os.MkdirTemp("", "bellbird-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	p := Plugins{SystemDir: filepath.Join(dir, "system"), UserDir: filepath.Join(dir, "user"), StateDir: filepath.Join(dir, "state")}
	top := p.SystemDir
	if band == hooks.User {
		top = p.UserDir
	}
	for i := range n {
		name := fmt.Sprintf("bench-%d", i)
		manifest := fmt.Sprintf(`{"name": %q, "version": "1.0.0", "description": "Is measured.", "author": "Bellbird", `+
			`"default_enabled": true, "capabilities": {"hooks": {"post_stt": "fix.star"}}}`, name)
		for file, text := range map[string]string{"plugin.json": manifest, "fix.star": benchScript} {
			path := filepath.Join(top, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return 0, 0, err
			}
		}
	}
	log := slog.New(slog.DiscardHandler)
	runtimes := newRuntimes(p, nil, log)
	defer runtimes.Close()
	r := hooks.New(hooks.Options{})
	defer r.Close()
	l := plugins.New(runtimes.options(p, r, log))
	if err := l.Scan(ctx); err != nil {
		return 0, 0, err
	}
	for _, info := range l.List() {
		if len(info.Errors) > 0 {
			return 0, 0, errors.New(info.Errors[0])
		}
	}
	return timeFires(ctx, r, n)
}

// timeFires returns how long a fire with n handlers takes, of many batches the median and the best. On a machine that has
// other things to do the best says more of the program, and the median of the machine. A batch in which a handler missed
// its deadline does not count; if there are hardly any others the times are 0.
func timeFires(ctx context.Context, r *hooks.Runner, n int) (mid, best time.Duration, err error) {
	const batches, fires, patience = 500, 20, 5 * time.Second
	var all []time.Duration
	for began := time.Now(); len(all) < batches && time.Since(began) < patience; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		committed := true
		at := time.Now()
		for range fires {
			trace := r.Fire(ctx, "post_stt", &hooks.Event{Input: "tell bell bird what time it is"})
			for _, c := range trace {
				committed = committed && c.Outcome == hooks.Committed
			}
		}
		if took := time.Since(at); committed {
			all = append(all, took/fires)
		}
	}
	if len(all) < 5 {
		return 0, 0, nil
	}
	mid = median(all) // which sorts them
	return mid, all[0], nil
}

package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"bellbird/hooks"
	"bellbird/plugins/schedule"
)

// A Releaser is a Runtime that keeps something for a plugin, such as a process, as long as its units may be called.
type Releaser interface {
	// Release is told that the units of an owner are not called any more.
	Release(owner *Owner)
}

// release tells the runtimes that an owner's units are not called any more; nil is nobody.
func (l *Loader) release(owner *Owner) {
	if owner == nil {
		return
	}
	told := make(map[Releaser]bool)
	for _, runtimes := range []map[string]Runtime{l.o.SystemRuntimes, l.o.UserRuntimes} {
		for _, r := range runtimes {
			if r, ok := r.(Releaser); ok && !told[r] {
				told[r] = true
				r.Release(owner)
			}
		}
	}
}

// jobs are what the manifest has scheduled.
func (l *Loader) jobs(p *plugin, load func(file string) (Unit, error)) (jobs []schedule.Job, err error) {
	for _, entry := range p.Manifest.Capabilities.Schedule {
		unit, err := load(entry.Handler)
		if errors.Is(err, fs.ErrNotExist) {
			continue // told already
		}
		if err != nil {
			return nil, err
		}
		run, err := unit.Func("run")
		if err != nil {
			return nil, err
		}
		settings := p.settings
		jobs = append(jobs, schedule.Job{
			Entry:    entry,
			Settings: func() map[string]any { return settings.Now().ByKey },
			Call: func(ctx context.Context, task map[string]any) (string, error) {
				e := &hooks.Event{Metadata: map[string]any{"task": task}}
				if l.o.System != nil {
					e.Metadata["system"] = l.o.System
				}
				if err := run(ctx, e); err != nil || e.Result == nil {
					return "", err
				}
				return *e.Result, nil
			},
		})
	}
	return jobs, nil
}

// scheduled has a plugin's jobs called from now on, in place of those that it had.
func (l *Loader) scheduled(plugin string, jobs []schedule.Job) {
	if l.o.Schedules != nil {
		l.o.Schedules(plugin, jobs)
	}
}

// checkSchedules checks the schedules of a manifest.
func checkSchedules(entries []schedule.Entry) error {
	const most = 32
	if len(entries) > most {
		return fmt.Errorf("%d schedules, the most are %d", len(entries), most)
	}
	for i := range entries {
		if err := checkFile(entries[i].Handler); err != nil {
			return fmt.Errorf("[%d].handler: %w", i, err)
		}
		if err := entries[i].Check(); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

package schedule

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"bellbird/clock"
)

// A Job is an entry of a plugin, and what is to be called.
type Job struct {
	Entry    Entry
	Settings func() map[string]any // as they are now; nil: there are none

	// Call calls the function. What it returns is for the log.
	Call func(ctx context.Context, task map[string]any) (result string, err error)
}

// Options are what a scheduler works with. The zero value is usable.
type Options struct {
	Clock  clock.Clock               // default clock.System
	Zone   func(time.Time) time.Time // puts a time into the zone of its user; nil: that of the clock
	Known  func() bool               // whether the clock has been set; nil: yes. Until then nothing is called
	Random func() float64            // from 0 to 1, for chances; nil: rand.Float64
	Limit  time.Duration             // that a call may take; default 5 min
	Logger *slog.Logger              // nil: none
}

const defaultLimit = 5 * time.Minute

// A Scheduler calls jobs when it is time. It may be used by several goroutines.
type Scheduler struct {
	o Options

	mu      sync.Mutex
	plugins map[string]*jobs
	last    time.Time // minute that was looked at
	wg      sync.WaitGroup
}

// jobs are those of a plugin, as it is loaded now.
type jobs struct {
	ctx    context.Context // of what is called
	cancel context.CancelFunc
	list   []*job
}

type job struct {
	Job
	running bool
	warned  string // of what is wrong with its settings
}

// New returns a scheduler without jobs.
func New(o Options) *Scheduler {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	return &Scheduler{o: o, plugins: make(map[string]*jobs)}
}

// Put replaces the jobs of a plugin; with none they are removed. The context of those that are being called ends.
func (s *Scheduler) Put(plugin string, list []Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.plugins[plugin]; old != nil {
		old.cancel()
		delete(s.plugins, plugin)
	}
	if len(list) == 0 {
		return
	}
	p := new(jobs)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, j := range list {
		p.list = append(p.list, &job{Job: j})
	}
	s.plugins[plugin] = p
}

// Run calls what is due, until ctx ends; then it ends what is being called, and waits for that.
func (s *Scheduler) Run(ctx context.Context) error {
	ring := make(chan func(), 1)
	defer func() {
		s.mu.Lock()
		for _, p := range s.plugins {
			p.cancel()
		}
		s.mu.Unlock()
		s.wg.Wait()
	}()
	// The work begins in the alarm and ends when the next one is set, so that a virtual clock doesn't run past a minute.
	alarm := func() (stop func() bool) {
		now := s.now()
		return s.o.Clock.AfterFunc(now.Truncate(time.Minute).Add(time.Minute).Sub(now), func() { ring <- s.o.Clock.Work() })
	}
	stop := alarm()
	s.mu.Lock()
	s.last = s.now().Truncate(time.Minute) // it may have been called already, before a restart
	s.mu.Unlock()
	for {
		select {
		case done := <-ring:
			s.look(s.now())
			stop = alarm()
			done()
		case <-ctx.Done():
			if !stop() {
				(<-ring)()
			}
			return nil
		}
	}
}

func (s *Scheduler) now() time.Time {
	now := s.o.Clock.Now()
	if s.o.Zone != nil {
		now = s.o.Zone(now)
	}
	return now
}

// look calls what is due in the minute of now, if that is a new one. A clock that was set back a little does not make
// it call anything twice.
func (s *Scheduler) look(now time.Time) {
	minute := now.Truncate(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	if back := s.last.Sub(minute); back >= 0 && back < time.Hour || s.o.Known != nil && !s.o.Known() {
		return
	}
	s.last = minute
	for _, name := range slices.Sorted(maps.Keys(s.plugins)) {
		p := s.plugins[name]
		for _, j := range p.list {
			s.try(name, p, j, minute)
		}
	}
}

// try calls a job if it is due. It is called with the lock held.
func (s *Scheduler) try(plugin string, p *jobs, j *job, minute time.Time) {
	log := s.o.Logger.With("plugin", plugin, "schedule", j.Entry.Name)
	var settings map[string]any
	if j.Settings != nil {
		settings = j.Settings()
	}
	due, err := j.Entry.due(minute, settings)
	if err != nil && j.warned != err.Error() {
		j.warned = err.Error()
		log.Warn("a setting doesn't fit", "err", err)
	}
	switch {
	case !due:
		return
	case j.running:
		log.Warn("it is still at it since the last time, and left out")
		return
	case j.Entry.Chance != nil && s.o.Random()*100 >= float64(*j.Entry.Chance):
		return
	}
	j.running = true
	done := s.o.Clock.Work()
	s.wg.Go(func() {
		defer done()
		ctx, cancel := context.WithTimeout(p.ctx, s.o.Limit)
		defer cancel()
		result, err := j.Call(ctx, j.Entry.task())
		if err != nil {
			log.Warn("schedule failed", "err", err)
		} else if result != "" {
			log.Debug("schedule ran", "result", result)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		j.running = false
	})
}

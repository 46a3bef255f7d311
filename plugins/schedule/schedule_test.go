package schedule

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"bellbird/clock"
)

func TestCheck(t *testing.T) {
	chance := func(n int) *int { return &n }
	for _, e := range []Entry{
		{}, {Name: "x", Cron: "* * * *"}, {Name: "x", Cron: "@daily"}, {Name: "x", Cron: "TZ=UTC * * * *"}, {Name: "x", Cron: "61 * * * *"},
		{Name: "x", Cron: "* * * * * *"}, {Name: "x", Cron: strings.Repeat("1,", 60) + "1 * * * *"}, {Name: "x", Chance: chance(0)}, {Name: "x", Chance: chance(101)},
	} {
		if e.Check() == nil {
			t.Errorf("%+v: no error", e)
		}
	}
	for _, e := range []Entry{{Name: "x"}, {Name: "x", Cron: "*/5 8-18 * * MON-FRI", Chance: chance(30)}} {
		if err := e.Check(); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

func TestDue(t *testing.T) {
	off := false
	for _, c := range []struct {
		entry    Entry
		settings map[string]any
		at       string
		want     bool
		warns    bool
	}{
		{at: "09:00", want: true},
		{at: "09:01"},
		{entry: Entry{Cron: "*/15 * * * *"}, at: "10:45", want: true},
		{entry: Entry{Cron: "0 10 * * SUN"}, at: "10:00"}, // it is a Monday
		{entry: Entry{Cron: "0 10 * * MON"}, at: "10:00", want: true},
		{entry: Entry{Enabled: &off}, at: "09:00"},
		{entry: Entry{Enabled: &off, EnabledSetting: "on"}, settings: map[string]any{"on": true}, at: "09:00", want: true},
		{entry: Entry{EnabledSetting: "on"}, settings: map[string]any{"on": false}, at: "09:00"},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": "7:30"}, at: "07:30", want: true},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": "7:30"}, at: "09:00"},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": "6"}, at: "06:00", want: true},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": 22.0}, at: "22:00", want: true},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": ""}, at: "09:00", want: true},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": "soon"}, at: "09:00", want: true, warns: true},
		{entry: Entry{TimeSetting: "at"}, settings: map[string]any{"at": "24:00"}, at: "09:00", want: true, warns: true},
	} {
		at, err := time.Parse("2006-01-02 15:04", "2026-03-02 "+c.at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.entry.due(at, c.settings)
		if got != c.want || (err != nil) != c.warns {
			t.Errorf("%+v with %v at %s: %v, %v", c.entry, c.settings, c.at, got, err)
		}
	}
}

// record notes what was called, and when by the clock.
type record struct {
	mu    sync.Mutex
	calls []string
}

func (r *record) job(c clock.Clock, e Entry) Job {
	return Job{Entry: e, Call: func(_ context.Context, task map[string]any) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, task["name"].(string)+" "+c.Now().Format("15:04"))
		return "done", nil
	}}
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.calls, ", ")
}

// start runs a scheduler on a virtual clock.
func start(t *testing.T, o Options) (*Scheduler, *clock.Virtual) {
	v := clock.NewVirtual(time.Date(2026, 3, 2, 8, 0, 30, 0, time.UTC))
	o.Clock = v
	s := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for begun := false; !begun; runtime.Gosched() {
		s.mu.Lock()
		begun = !s.last.IsZero()
		s.mu.Unlock()
	}
	return s, v
}

// pass lets time pass. The clock waits for what is due, each time that it is moved on.
func pass(v *clock.Virtual, d time.Duration) {
	for end := v.Elapsed() + d; v.Elapsed() < end; {
		v.Advance(15 * time.Second)
	}
}

func TestScheduler(t *testing.T) {
	s, v := start(t, Options{})
	var r record
	s.Put("p", []Job{r.job(v, Entry{Name: "daily"}), r.job(v, Entry{Name: "half", Cron: "30 * * * *"})})
	pass(v, 2*time.Hour)
	if got := r.String(); got != "half 08:30, daily 09:00, half 09:30" {
		t.Errorf("called: %s", got)
	}
	s.Put("p", nil)
	pass(v, time.Hour)
	if got := r.String(); got != "half 08:30, daily 09:00, half 09:30" {
		t.Errorf("called after it was removed: %s", got)
	}
}

func TestChance(t *testing.T) {
	numbers := []float64{0.29, 0.3, 0.9}
	s, v := start(t, Options{Random: func() float64 { n := numbers[0]; numbers = numbers[1:]; return n }})
	var r record
	percent := 30
	s.Put("p", []Job{r.job(v, Entry{Name: "x", Cron: "* * * * *", Chance: &percent})})
	pass(v, 3*time.Minute)
	if got := r.String(); got != "x 08:01" {
		t.Errorf("called: %s", got)
	}
}

// Nothing is called twice when the clock is set back a little, nor before it was set at all.
func TestClockIsSet(t *testing.T) {
	known := false
	s := New(Options{Known: func() bool { return known }})
	var r record
	s.Put("p", []Job{r.job(clock.System, Entry{Name: "x"})})
	count := func() int { s.wg.Wait(); r.mu.Lock(); defer r.mu.Unlock(); return len(r.calls) }
	nine := time.Date(2026, 3, 2, 9, 0, 10, 0, time.UTC)
	if s.look(nine); count() != 0 {
		t.Error("it was called before the clock was set")
	}
	known = true
	s.look(nine)
	s.look(nine.Add(20 * time.Second))
	s.look(nine.Add(-time.Minute))
	s.look(nine)
	if n := count(); n != 1 {
		t.Errorf("it was called %d times", n)
	}
	s.look(nine.AddDate(-1, 0, 0)) // the clock was wrong by a year
	if n := count(); n != 2 {
		t.Errorf("it was called %d times", n)
	}
}

// One that is still at it is not called again, and is ended when its plugin goes.
func TestSlow(t *testing.T) {
	s := New(Options{})
	began, calls := make(chan struct{}, 10), make(chan error, 10)
	s.Put("p", []Job{{Entry: Entry{Name: "x", Cron: "* * * * *"}, Call: func(ctx context.Context, _ map[string]any) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		calls <- ctx.Err()
		return "", ctx.Err()
	}}})
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	s.look(at)
	<-began
	s.look(at.Add(time.Minute))
	s.Put("p", nil)
	s.wg.Wait()
	if len(calls) != 1 || len(began) != 0 {
		t.Errorf("it was called %d times", len(calls)+len(began))
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 9 * * *", "*/5 1-2 1,15 JAN MON", "TZ=0 * * * *", "TZ=", "? ? ? ? ?", "1/0 * * * *"} {
		f.Add(s)
	}
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		e := Entry{Name: "x", Cron: s}
		if e.Check() == nil {
			if _, err := e.due(at, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

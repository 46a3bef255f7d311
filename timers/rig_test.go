package timers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/timers"
)

// A disk keeps what is saved on it.
type disk struct {
	mu    sync.Mutex
	data  []byte
	saves int
	full  bool
}

func (d *disk) Load() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.data, nil
}

func (d *disk) Save(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return errors.New("no space left on device")
	}
	d.data = data
	d.saves++
	return nil
}

// copy is the disk as it is when the power fails.
func (d *disk) copy() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{data: d.data}
}

// A rig is a keeper that runs on a virtual clock, in a synctest bubble.
type rig struct {
	*timers.Keeper
	t     *testing.T
	clock *clock.Virtual
	disk  *disk
	sane  bool
	zone  *time.Location
	facts *event.Subscription
	rings []bool
	end   func() // stops the keeper as the program does
}

// boot starts a keeper when the clock shows now, rightly or not.
func boot(t *testing.T, d *disk, now time.Time, sane bool) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewVirtual(now), disk: d, sane: sane, zone: now.Location()}
	bus := new(event.Bus)
	r.facts = bus.Subscribe(1000)
	o := timers.Options{
		Clock: r.clock, Bus: bus, Sane: func() bool { return r.sane }, Zone: func() *time.Location { return r.zone },
		Ring: func(on bool) { r.rings = append(r.rings, on) },
	}
	if d != nil {
		o.Records = d
	}
	r.Keeper = timers.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return r
}

// pass lets time pass, and returns what became known meanwhile and before, with the time since the start.
func (r *rig) pass(d time.Duration) []string {
	said := r.told()
	for end := r.clock.Elapsed() + d; r.clock.Elapsed() < end; {
		r.clock.Advance(min(5*time.Second, end-r.clock.Elapsed()))
		synctest.Wait()
		said = append(said, r.told()...)
	}
	return said
}

// told is what became known just now.
func (r *rig) told() []string {
	synctest.Wait()
	var said []string
	for len(r.facts.C) > 0 {
		f := (<-r.facts.C).(event.TimerChanged)
		s := fmt.Sprintf("%v %s %s", r.clock.Elapsed(), f.Name, f.What)
		if f.Late {
			s += " late"
		}
		said = append(said, s)
	}
	return said
}

func (r *rig) ringing() bool { return len(r.rings) > 0 && r.rings[len(r.rings)-1] }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

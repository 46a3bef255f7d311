package ring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/gpio/led"
)

// Options are what a Ring needs.
type Options struct {
	Count int // of LEDs
	// Send puts a frame on the LEDs. It is called by one goroutine at a time, and must not keep the slice.
	Send func([]led.Color) error

	// Heard and Spoken are how loud the user and the appliance speak now, 0 to 1. They don't wait. Nil: half as loud
	// as can be.
	Heard, Spoken func() float64

	// OnFault is told when frames can't be sent any more, and with nil when they can again. It doesn't wait.
	OnFault func(error)
}

// A Ring shows the highest rung that something holds. Its methods may be called by any goroutine, and never wait for the
// LEDs.
type Ring struct {
	o    Options
	wake chan struct{} // holds one: further changes are seen with it

	mu    sync.Mutex
	board board
	loan  loan

	frames atomic.Uint64

	// Of Run.
	level float64
	next  []led.Color
	shown []led.Color
	valid bool // shown is what the LEDs show
}

// New returns a ring that shows that it boots.
func New(o Options) *Ring {
	half := func() float64 { return 0.5 }
	if o.Heard == nil {
		o.Heard = half
	}
	if o.Spoken == nil {
		o.Spoken = half
	}
	if o.OnFault == nil {
		o.OnFault = func(error) {}
	}
	r := &Ring{o: o, wake: make(chan struct{}, 1), next: make([]led.Color, o.Count), shown: make([]led.Color, o.Count)}
	r.board.hold(Idle, Args{}, 0, time.Now())
	r.board.hold(Booting, Args{}, 0, time.Now())
	return r
}

// Show lets a rung show for a time. Zero, or more than the rung lasts, is for as long as it lasts.
func (r *Ring) Show(rung Rung, a Args, for_ time.Duration) {
	if rung < 0 || rung >= Idle {
		return // Idle always shows last
	}
	r.change(func(b *board, now time.Time) { b.hold(rung, a, for_, now) })
}

// Hide ends what Show began.
func (r *Ring) Hide(rungs ...Rung) {
	r.change(func(b *board, _ time.Time) {
		for _, rung := range rungs {
			if rung >= 0 && rung < Idle {
				b.claims[rung] = claim{}
			}
		}
	})
}

// replace hides some rungs and shows one, at once.
func (r *Ring) replace(hide []Rung, rung Rung, a Args) {
	r.change(func(b *board, now time.Time) {
		for _, h := range hide {
			if h != rung {
				b.claims[h] = claim{}
			}
		}
		b.hold(rung, a, 0, now)
	})
}

// SetMuted shows whether the microphone is muted, which nothing else can hide.
func (r *Ring) SetMuted(muted bool) { r.change(func(b *board, _ time.Time) { b.muted = muted }) }

// SetNight dims everything to a brightness, from nearly 0 to 1. Zero ends the night.
func (r *Ring) SetNight(brightness float64) {
	r.change(func(b *board, _ time.Time) { b.night = min(max(brightness, 0), 1) })
}

// Frames is the number of frames that were sent.
func (r *Ring) Frames() uint64 { return r.frames.Load() }

// Showing is what shows now.
func (r *Ring) Showing() Scene {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, _ := r.board.top(time.Now())
	return s
}

func (r *Ring) change(f func(*board, time.Time)) {
	r.mu.Lock()
	f(&r.board, time.Now())
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// A lamp is what may be shown by others: a colour, with its brightness in it, and how it moves.
type lamp struct {
	Color  led.Color
	Effect Effect
}

func (l lamp) check() error {
	switch l.Effect {
	case "", Solid, Breathe, Spin:
		return nil
	}
	return fmt.Errorf("effect %q: there are only solid, breathe and spin", l.Effect)
}

// SetLight uses the ring as a lamp, as long as nothing above has to be shown. brightness goes from 0 to 1.
func (r *Ring) SetLight(on bool, c led.Color, brightness float64, e Effect) error {
	if err := (lamp{c, e}).check(); err != nil {
		return err
	}
	if !on {
		r.Hide(Light)
		return nil
	}
	r.Show(Light, Args{Color: c.Scale(brightness), Effect: e}, 0)
	return nil
}

// MaxBorrow is how long the ring may be borrowed.
const MaxBorrow = 30 * time.Second

// ErrLent is returned when the ring is lent to another, or was lent so recently that it rests.
var ErrLent = errors.New("the ring is lent out, or was until just now")

// A loan is who has borrowed the ring.
type loan struct {
	owner       string
	until, rest time.Time
}

// Borrow lets somebody, a plugin say, show a colour for a time, as long as nothing above has to be shown. After a loan the
// ring rests for as long as it was lent, so that it can't be borrowed for ever; while it lasts, its owner can change
// what shows, but not make it longer.
func (r *Ring) Borrow(owner string, c led.Color, e Effect, for_ time.Duration) error {
	if err := (lamp{c, e}).check(); err != nil {
		return err
	}
	if for_ <= 0 || for_ > MaxBorrow {
		return fmt.Errorf("borrow for %v: the ring is lent for up to %v", for_, MaxBorrow)
	}
	var err error
	r.change(func(b *board, now time.Time) {
		switch {
		case now.Before(r.loan.until) && r.loan.owner == owner:
			for_ = min(for_, r.loan.until.Sub(now))
		case now.Before(r.loan.rest):
			err = ErrLent
			return
		default:
			r.loan = loan{owner, now.Add(for_), now.Add(2 * for_)}
		}
		b.hold(Borrowed, Args{Color: c, Effect: e}, for_, now)
	})
	return err
}

// Return ends a loan early.
func (r *Ring) Return(owner string) {
	r.change(func(b *board, now time.Time) {
		if r.loan.owner == owner && now.Before(r.loan.until) {
			b.claims[Borrowed] = claim{}
		}
	})
}

const (
	// gap is the least time between two frames, however often something changes.
	gap = 10 * time.Millisecond
	// retry is how soon a frame that could not be sent is tried again, at first and at last.
	retryFirst, retryLast = time.Second, time.Minute
)

// Run animates the ring until ctx is done, and leaves it dark. While nothing moves it sleeps, and sends nothing.
func (r *Ring) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	retry := retryFirst
	faulty := false
	for {
		select {
		case <-ctx.Done():
			clear(r.next)
			return ignoreFault(r.o.Send(r.next), faulty)
		case <-timer.C:
		case <-r.wake:
			if early := gap - time.Since(last); early > 0 && !last.IsZero() {
				timer.Reset(early)
				continue
			}
		}
		last = time.Now()
		wait, err := r.step(last)
		switch {
		case err != nil:
			if !faulty {
				r.o.OnFault(err)
			}
			faulty = true
			wait = retry
			retry = min(2*retry, retryLast)
		case faulty:
			faulty, retry = false, retryFirst
			r.o.OnFault(nil)
		}
		if wait > 0 {
			timer.Reset(max(wait-time.Since(last), time.Millisecond))
		} else {
			timer.Stop()
		}
	}
}

// ignoreFault is the error of the last frame, unless it is known already.
func ignoreFault(err error, known bool) error {
	if known || err == nil {
		return nil
	}
	return fmt.Errorf("ring: %w", err)
}

// step draws the frame of now and sends it, if it is another than the one before. wait is the time until the next; zero:
// until something changes.
func (r *Ring) step(now time.Time) (wait time.Duration, err error) {
	r.mu.Lock()
	s, changes := r.board.top(now)
	r.mu.Unlock()

	row := &ladder[s.Rung]
	r.follow(row.hears)
	s.Level = r.level
	Draw(r.next, s)
	if !r.valid || !slices.Equal(r.next, r.shown) {
		if err := r.o.Send(r.next); err != nil {
			r.valid = false
			return 0, err
		}
		copy(r.shown, r.next)
		r.valid = true
		r.frames.Add(1)
	}

	wait = row.every
	if row.rests > 0 && s.Elapsed > row.rests || (s.Rung == Light || s.Rung == Borrowed) && s.Args.Effect != Breathe && s.Args.Effect != Spin {
		wait = 0
	}
	if changes > 0 && (wait == 0 || changes < wait) {
		wait = changes
	}
	return wait, nil
}

// follow takes the level of who is heard: it rises at once and falls slowly, as eyes expect it.
func (r *Ring) follow(whose source) {
	level := 0.0
	switch whose {
	case microphone:
		level = r.o.Heard()
	case loudspeaker:
		level = r.o.Spoken()
	}
	r.level = max(min(max(level, 0), 1), r.level*0.85)
	if r.level < 0.01 {
		r.level = 0
	}
}

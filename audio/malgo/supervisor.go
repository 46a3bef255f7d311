package malgo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bellbird/audio"
)

// How a Supervisor keeps a device alive, in the order of the functions below. Each side has a goroutine of its own that
// does this, so that neither can take the other along:
//
//  1. Run starts both.
//  2. keep goes round: open, attend, close, and wait, longer each time.
//  3. open opens the device, and tells of it if that takes for ever.
//  4. attend starts it and looks after it until something is wrong with it.
//  5. standIn takes what the loudspeaker would have played while there is none, or one that hasn't begun to play, at the
//     same pace, so that turns and rings come to their end unheard and nobody waits for ever.

const (
	firstWait = time.Second
	lastWait  = 30 * time.Second

	// steady is how long a device must be well before the next trouble counts as the first.
	steady = 30 * time.Second

	// opening is how long it may take to open a device before that is told.
	opening = 5 * time.Second

	// hopeless is how many times in a row a device may be opened without ever working before something else than the
	// device is taken to be wrong.
	hopeless = 5
)

// A Supervisor owns the microphone and the loudspeaker: it opens them, notices within two seconds what goes wrong with
// them, and opens them again. It works without either.
type Supervisor struct {
	o       Options
	out     *audio.Output
	log     *slog.Logger
	frames  chan audio.Frame // waits; the callback has a ring before it
	groups  chan audio.Group
	keepers []*keeper
}

// A keeper looks after one side.
type keeper struct {
	*Supervisor
	side Side
	open func() (*half, error)

	half   atomic.Pointer[half] // that is open now, or nil
	opened atomic.Uint64        // how often
	seen   atomic.Int64         // when it was last looked after, in Unix nanoseconds
	flows  atomic.Bool
	wedged atomic.Bool

	// Counts of halves that are closed.
	mu   sync.Mutex
	past SideStats

	// Of the keeper's goroutine.
	trouble Reason // that was told last; empty: none
	wait    time.Duration
	fails   int // openings since it last worked
}

// NewSupervisor returns an error if the options make no sense. It opens nothing.
func NewSupervisor(o Options, out *audio.Output) (*Supervisor, error) {
	return newSupervisor(o, out, openHalf)
}

func newSupervisor(o Options, out *audio.Output, open func(Options, Side, *audio.Output) (*half, error)) (*Supervisor, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.OnTrouble == nil {
		o.OnTrouble = func(*Fault) {}
	}
	if o.OnWell == nil {
		o.OnWell = func(Side) {}
	}
	s := &Supervisor{o: o, out: out, log: o.logger(), frames: make(chan audio.Frame), groups: make(chan audio.Group)}
	sides := []Side{Loudspeaker, Microphone}
	if o.PlaybackOnly {
		sides = sides[:1]
	}
	for _, side := range sides {
		options := o // the keeper's own: once a backend has worked, it is the one that is meant
		s.keepers = append(s.keepers, &keeper{Supervisor: s, side: side, wait: firstWait, open: func() (*half, error) {
			h, err := open(options, side, out)
			if err == nil {
				options.Backend = h.backend
			}
			return h, err
		}})
	}
	for _, k := range s.keepers {
		k.alive()
	}
	return s, nil
}

// Frames is what the microphone hears, while there is one. A listener that is more than a second late loses the newest
// frames. It is never closed.
func (s *Supervisor) Frames() <-chan audio.Frame { return s.frames }

// Groups is what all channels of the microphone hear, if Options.Channel is Best. Then there are no Frames.
func (s *Supervisor) Groups() <-chan audio.Group { return s.groups }

// Info says what is open now.
func (s *Supervisor) Info() Info {
	i := Info{Latency: s.o.latency()}
	for _, k := range s.keepers {
		if h := k.half.Load(); h != nil {
			h.describe(&i)
		}
	}
	return i
}

// Flowing reports whether samples come from the microphone and go to the loudspeaker, and somebody looks after them. A
// microphone that is switched off delivers samples too, all of them the same.
func (s *Supervisor) Flowing() bool {
	for _, k := range s.keepers {
		if !k.flows.Load() || !k.watched() {
			return false
		}
	}
	return true
}

// Wedged reports whether there is a fault that starting the program again might cure, which is what a watchdog should ask:
// a device that can be opened time and again but never works, one that cannot be closed, or nobody who looks after it. A
// device that isn't there is no such fault.
func (s *Supervisor) Wedged() bool {
	for _, k := range s.keepers {
		if k.wedged.Load() || !k.watched() {
			return true
		}
	}
	return false
}

// watched reports whether the keeper has shown life lately.
func (k *keeper) watched() bool {
	return time.Since(time.Unix(0, k.seen.Load())) < lastWait+opening+closing+5*time.Second
}

// Run keeps both devices until ctx is done, whether there are any or not. It may be called once. Meanwhile GOMAXPROCS is
// higher by two.
func (s *Supervisor) Run(ctx context.Context) error {
	defer reserve()()
	var wg sync.WaitGroup
	hangs := make([]error, len(s.keepers))
	for i, k := range s.keepers {
		wg.Go(func() { hangs[i] = k.keep(ctx) })
	}
	wg.Wait()
	for _, err := range hangs {
		if err != nil {
			return err
		}
	}
	return nil
}

// keep goes round until ctx is done. It returns an error if the device can't be closed then.
func (k *keeper) keep(ctx context.Context) error {
	stop := k.standIn()
	defer func() { stop() }()
	for ctx.Err() == nil {
		k.alive()
		h, fault := k.openWithin(ctx)
		if h != nil {
			k.opened.Add(1)
			k.half.Store(h)
			fault = k.attend(ctx, h, stop)
			k.flows.Store(false)
			hangs := h.end()
			k.retire(h)
			stop()
			stop = k.standIn()
			if hangs != nil {
				k.wedged.Store(true)
				k.log.Warn("a sound device can't be closed", "error", hangs)
				if ctx.Err() != nil {
					return hangs
				}
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if fault != nil && fault.Reason != Constant { // the waiting is done, see attend
			k.tell(fault)
			k.pause(ctx, k.wait)
		}
		k.wait = min(2*k.wait, lastWait)
	}
	return nil
}

// retire keeps the counts of what has been closed.
func (k *keeper) retire(h *half) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.past = k.past.plus(h)
	k.half.Store(nil)
}

// openWithin opens the device. It doesn't return before that is done, because two at a time would be in each other's
// way, but tells if it takes too long.
func (k *keeper) openWithin(ctx context.Context) (*half, *Fault) {
	type result struct {
		half *half
		err  error
	}
	done := make(chan result, 1)
	go func() {
		h, err := k.open()
		done <- result{h, err}
	}()
	timer := time.NewTimer(opening)
	defer timer.Stop()
	for {
		select {
		case r := <-done:
			if r.err != nil {
				k.fails = 0
				k.wedged.Store(false) // a device that isn't there is not cured by starting again
				return nil, k.fault(Missing, r.err)
			}
			return r.half, nil
		case <-timer.C:
			k.wedged.Store(true)
			k.tell(k.fault(Hangs, fmt.Errorf("opening the %s takes longer than %v: the sound system hangs", k.side, opening)))
		case <-ctx.Done():
			go func() { // whenever it comes, nobody wants it any more
				if r := <-done; r.half != nil {
					r.half.end()
				}
			}()
			return nil, nil
		}
	}
}

func (k *keeper) fault(r Reason, err error) *Fault {
	name := k.o.wanted(k.side)
	if name == "" {
		name = "default"
	}
	return &Fault{k.side, name, r, err}
}

// attend starts the device and looks after it. It returns what made it useless, or nil if ctx is done. When a loudspeaker
// begins to take samples, the stand-in is stopped and it gets real ones.
func (k *keeper) attend(ctx context.Context, h *half, stopStandIn func()) *Fault {
	began := time.Now()
	if h.playback != nil {
		h.playback.shut()
	}
	if f := h.begin(); f != nil {
		return f
	}
	ctx, cancel := context.WithCancel(ctx)
	handed := make(chan struct{})
	defer func() { cancel(); <-handed }()
	if h.capture != nil {
		go func() {
			defer close(handed)
			h.capture.hand(ctx, k.frames, k.groups)
		}()
	} else {
		close(handed)
		k.out.SetLatency(k.o.latency())
	}
	k.log.Info("sound device opened", "side", k.side, "name", h.name, "backend", h.backend, "format", h.shape)

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w := newWatch(h.side, h.name, began)
	working := false
	var since time.Time // when it began to be constant
	var lively uint64   // frames with sound up to then
	k.fails++
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-h.messages:
			k.log.Debug(says, "device", k.side, "message", m)
			continue
		case <-h.stopped: // look at once, don't wait for the tick
		case <-tick.C:
		}
		k.alive()
		if a := h.priority.news(); a != nil {
			k.log.Debug("priority of a sound device's thread", "side", k.side, "raised", a.err == nil, "why not", a.err)
		}
		now, v := time.Now(), h.vitals()
		if h.playback != nil && v.moments > 0 {
			stopStandIn()
			h.playback.admit()
		}
		f := w.look(now, v)
		switch {
		case f != nil && f.Reason == Constant:
			k.flows.Store(true)
			if since.IsZero() {
				since, lively = now, v.lively
				k.tell(f)
			}
			if now.Sub(since) >= k.wait {
				return f // what was opened may have been the wrong thing; until now it was all there was
			}
		case f != nil:
			k.flows.Store(false)
			k.wedged.Store(k.wedged.Load() || k.fails >= hopeless)
			return f
		case h.side == Microphone && v.lively < lively+aliveFrames, v.moments < uint64(v.rate)/5,
			k.trouble == Rate && now.Sub(began) < 2*time.Second:
			// Too early to tell.
		default:
			since, lively = time.Time{}, 0
			working = true
			k.fails = 0
			k.flows.Store(true)
			k.wedged.Store(false)
			k.well(h)
		}
		if working && since.IsZero() && now.Sub(began) >= steady {
			k.wait = firstWait
		}
	}
}

// tell tells of a trouble, unless that is what was told last.
func (k *keeper) tell(f *Fault) {
	if k.trouble == f.Reason {
		k.log.Debug("sound device", "side", k.side, "reason", string(f.Reason), "error", f.Err)
		return
	}
	k.trouble = f.Reason
	k.log.Warn("trouble with a sound device", "side", k.side, "reason", string(f.Reason), "error", f.Err)
	k.o.OnTrouble(f)
}

// well tells that the trouble is over.
func (k *keeper) well(h *half) {
	if k.trouble == "" {
		return
	}
	k.trouble = ""
	k.log.Info("sound device is well again", "side", k.side, "name", h.name)
	k.o.OnWell(k.side)
}

func (k *keeper) alive() { k.seen.Store(time.Now().UnixNano()) }

// pause waits.
func (k *keeper) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// standIn pulls from the output in real time until stop is called, which waits for the end of that. For a microphone
// there is nothing to do.
func (k *keeper) standIn() (stop func()) {
	if k.side != Loudspeaker {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	k.out.SetAbsent(true)
	go func() {
		defer close(done)
		tick := time.NewTicker(audio.FrameDuration)
		defer tick.Stop()
		began, pulled := time.Now(), 0
		var f audio.Frame
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			for ; pulled < int(time.Since(began)/audio.FrameDuration); pulled++ {
				k.out.Pull(&f)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		<-done
		k.out.SetAbsent(false)
	})
}

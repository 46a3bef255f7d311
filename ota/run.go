package ota

import (
	"context"
	"errors"
	"time"

	"bellbird/event"
)

const (
	beat        = 30 * time.Second // between looks at what is to be done
	pause       = time.Hour        // after something that failed, until it is tried again
	slotsWait   = time.Minute      // for RAUC to answer at the start
	slotsAgain  = 2 * time.Second
	othersEvery = 5 * time.Minute // between looks at what other programs have installed
	askedAgain  = 2 * time.Minute // for a restart that was asked for and doesn't come
)

// Run decides a trial, if there is one, and then looks for updates, installs them and restarts, each when it may. It
// returns when ctx is done.
func (u *Updater) Run(ctx context.Context) error {
	if err := u.begin(ctx); err != nil && ctx.Err() == nil {
		u.complain("what became of the last update can't be found out", err)
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	first := time.Now().Add(u.due)
	for {
		u.step(ctx, time.Now().After(first))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case q := <-u.asked:
			if err := u.Install(ctx, q); err != nil && ctx.Err() == nil {
				u.o.Logger.Error("update", "err", err)
			}
		}
	}
}

// begin is settle, for which the slots have to answer.
func (u *Updater) begin(ctx context.Context) error {
	for end := time.Now().Add(slotsWait); ; {
		err := u.settle(ctx)
		u.settled = err == nil || errors.Is(err, ErrNoSlots) && !u.Status().InProgress()
		if u.settled || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slotsAgain):
		}
	}
}

func (u *Updater) complain(what string, err error) {
	switch {
	case errors.Is(u.failed(err), ErrNoSlots):
		u.o.Logger.Info("there are no slots to update", "err", err)
	default:
		u.o.Logger.Error(what, "err", err)
	}
}

// step does what is to be done now. look is whether the server may be asked already.
func (u *Updater) step(ctx context.Context, look bool) {
	s, err := u.load()
	if err != nil {
		u.complain("updates", err)
		return
	}
	u.report(ctx, s.Last)
	if ctx.Err() != nil || time.Now().Before(u.again) {
		return
	}
	if !u.settled && s.Phase != event.UpdateNone && s.Phase != event.UpdateRollingBack {
		// Whether the restart has been is not known, and another one could be one too many.
		if err = u.settle(ctx); err != nil {
			u.complain("what became of the last update can't be found out", err)
			return
		}
		u.settled = true
		return
	}
	may := u.windowOpen() && u.o.Automatic || s.Request != nil && s.Request.Asked
	switch s.Phase {
	case event.UpdateInstalled:
		if may || s.Request == nil && u.windowOpen() {
			err = u.restart(ctx, s.Request)
		}
	case event.UpdateRestarting:
		err = u.restart(ctx, s.Request)
	case event.UpdateRollingBack:
		err = u.restart(ctx, nil)
	case event.UpdateDownloading, event.UpdateInstalling:
		if may && s.Request != nil {
			err = u.resume(ctx, s)
		}
	case event.UpdateNone:
		if err = u.adopt(ctx); err == nil {
			err = u.seek(ctx, s, look)
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrInProgress) && !errors.Is(err, ErrBusy) {
		u.again = time.Now().Add(pause)
		u.complain("an update is put off", err)
	}
}

// adopt notices what another program has installed, such as hawkBit's: it is tried like any other update.
func (u *Updater) adopt(ctx context.Context) error {
	if time.Now().Before(u.looked.Add(othersEvery)) {
		return nil
	}
	u.looked = time.Now()
	slots, err := u.slots(ctx)
	if errors.Is(err, ErrNoSlots) {
		return nil
	} else if err != nil {
		return err
	}
	if !slots.other.Primary || !slots.other.Good {
		return nil
	}
	return u.locked(func(s *state) error {
		if s.Phase != event.UpdateNone || s.Good != slots.booted.Name {
			return nil
		}
		s.To, s.Version, s.FromVersion = slots.other.Name, slots.other.Version, u.o.Version
		return u.enter(s, event.UpdateInstalled)
	})
}

// seek looks for a release, and installs it if it may.
func (u *Updater) seek(ctx context.Context, s *state, look bool) error {
	if u.o.URL == "" {
		return nil
	}
	now := time.Now()
	if old := now.Sub(s.Checked); look && (old >= u.o.Every || old < 0) {
		if _, err := u.Check(ctx); err != nil {
			return err
		}
		return nil // the next step may install it
	}
	l := s.Latest
	if l == nil || !u.o.Automatic || !u.windowOpen() || u.o.Busy() || compare(l.Version, u.o.Version) <= 0 ||
		s.Refused == l.Version || s.Refused == l.SHA256 {
		return nil
	}
	return u.Install(ctx, Request{})
}

// resume goes on with what was interrupted.
func (u *Updater) resume(ctx context.Context, s *state) error {
	if !discarded(s) {
		return u.Install(ctx, *s.Request)
	}
	return u.locked(func(s *state) error {
		if !discarded(s) {
			return nil
		}
		return u.end(s, Outcome{Result: Failed, Version: s.Version, From: s.FromVersion, Told: true,
			Reason: &Reason{Kind: Interrupted, Detail: s.Request.File + " is gone"}})
	})
}

// windowOpen tells whether now is the time for what nobody has asked for. A part of the window's first half is left out,
// another one on each device: so many that have the same window don't begin in the same minute.
func (u *Updater) windowOpen() bool {
	return u.o.ClockKnown() && u.o.Window.Over(u.now()) >= u.late/2
}

// ErrNoRestart is returned if the machine can't be restarted from here.
var ErrNoRestart = errors.New("the device can't restart itself: do it by hand, with \"sudo systemctl reboot\"")

// restart begins a restart, unless the device is in use.
func (u *Updater) restart(ctx context.Context, q *Request) error {
	if u.o.Busy() && !(q != nil && q.Interrupt) {
		return nil
	}
	if u.o.Restart == nil {
		return ErrNoRestart
	}
	err := u.locked(func(s *state) error {
		switch s.Phase {
		case event.UpdateInstalled:
			if s.Excused = u.ailing(ctx); len(s.Excused) > 0 {
				u.o.Logger.Warn("what doesn't work now is not expected of the update", "parts", s.Excused)
			}
			return u.enter(s, event.UpdateRestarting)
		case event.UpdateRestarting, event.UpdateRollingBack:
			return nil
		}
		return ErrInProgress // it was decided otherwise meanwhile
	})
	if err != nil {
		return err
	}
	u.o.Logger.Info("the machine is restarted for an update")
	u.again = time.Now().Add(askedAgain)
	return u.o.Restart(ctx)
}

// report tells people what became of an update.
func (u *Updater) report(ctx context.Context, o *Outcome) {
	if o == nil || o.Told || u.o.Report == nil {
		return
	}
	if err := u.o.Report(ctx, *o); err != nil {
		u.o.Logger.Debug("what became of an update could not be told yet", "err", err)
		return
	}
	err := u.locked(func(s *state) error {
		if s.Last == nil || !s.Last.At.Equal(o.At) {
			return nil
		}
		s.Last.Told = true
		return u.save(s)
	})
	if err != nil && !errors.Is(err, ErrInProgress) {
		u.complain("updates", err)
	}
}

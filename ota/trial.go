package ota

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bellbird/event"
)

// What is done at the start, when it turns out which slot the boot loader took:
//
//	what was known         the slot that proved itself runs      the other one runs
//	nothing is going on    –                                     a trial, of what another installer has written
//	downloading            goes on                               a trial
//	installing             goes on                               a trial: the power was cut just after the last byte
//	installed, restarting  this start of the machine: waits      a trial
//	                       another one: it didn't start
//	trial                  it was cut off: it is gone back       the trial begins anew, but not for ever
//	rolling back           done                                  goes on

const maxStarts = 4 // of the program in a trial, before it counts as crashing

// settle finds out where the device is in the life of an update, and does what that demands. The trial takes place in it.
func (u *Updater) settle(ctx context.Context) error {
	trial := false
	var excused []string
	err := u.locked(func(s *state) error {
		slots, err := u.slots(ctx)
		if err != nil {
			return err
		}
		if s.Good == "" {
			s.Good = slots.booted.Name
			if err := u.save(s); err != nil {
				return err
			}
		}
		if slots.booted.Name == s.Good {
			return u.settleGood(ctx, s, slots)
		}
		s.To = slots.booted.Name
		if s.Phase == event.UpdateRollingBack {
			return u.goBackAgain(ctx, s, slots)
		}
		if s.Phase == event.UpdateNone { // hawkBit's, or somebody with "rauc install"
			s.Version, s.FromVersion, s.Starts = u.o.Version, slots.other.Version, 0
		}
		if s.Starts++; s.Starts > maxStarts {
			s.Reason = &Reason{Kind: Crashed, Detail: fmt.Sprintf("it was started %d times", s.Starts)}
			return u.rollBack(ctx, s)
		}
		trial, excused = true, s.Excused
		return u.enter(s, event.UpdateTrial)
	})
	if err != nil || !trial {
		return err
	}
	reason, err := u.prove(ctx, excused)
	if err != nil {
		return err
	}
	return u.locked(func(s *state) error {
		if s.Phase != event.UpdateTrial {
			return nil // it was decided by hand meanwhile
		}
		if reason == nil {
			err := u.commit(ctx, s)
			if err == nil {
				return nil
			}
			reason = &Reason{Kind: NotMarked, Detail: err.Error()}
		}
		s.Reason = reason
		return u.rollBack(ctx, s)
	})
}

// settleGood is settle in the slot that has proved itself.
func (u *Updater) settleGood(ctx context.Context, s *state, slots pair) error {
	// Boot loaders count the starts since this was said last.
	if err := u.o.Slots.Mark(ctx, slots.booted.Name, Good); err != nil {
		return err
	}
	why := DidNotStart
	switch s.Phase {
	case event.UpdateRollingBack:
		return u.wentBack(ctx, s)
	case event.UpdateTrial:
		why = Stopped
	case event.UpdateInstalled, event.UpdateRestarting:
		if s.Boot == u.o.BootID() {
			return nil
		}
		// Somebody took the power away before the restart, and the boot loader takes a slot that is to be tried only when it
		// is told to.
		if s.Phase == event.UpdateInstalled && slots.other.Primary && slots.other.Good {
			return nil
		}
	default:
		return nil
	}
	s.Reason = &Reason{Kind: why}
	if err := u.enter(s, event.UpdateRollingBack); err != nil {
		return err
	}
	return u.wentBack(ctx, s)
}

// commit makes the slot that runs the one to stay in, and believes that only when it reads it back.
func (u *Updater) commit(ctx context.Context, s *state) error {
	slots, err := u.slots(ctx)
	if err != nil {
		return err
	}
	if err := u.o.Slots.Mark(ctx, slots.booted.Name, Good); err != nil {
		return err
	}
	if slots, err = u.slots(ctx); err != nil {
		return err
	}
	if slots.booted.Good && !slots.booted.Primary {
		if err := u.o.Slots.Mark(ctx, slots.booted.Name, Active); err != nil {
			return err
		}
		if slots, err = u.slots(ctx); err != nil {
			return err
		}
	}
	if !slots.booted.Good || !slots.booted.Primary {
		return fmt.Errorf("slot %s was marked good, and isn't when that is read back: see the backend of the boot loader", slots.booted.Name)
	}
	s.Good, s.Refused = slots.booted.Name, ""
	return u.end(s, Outcome{Result: Committed, Version: s.Version, From: s.FromVersion, Reason: s.Reason})
}

// rollBack begins to go back from the slot that runs. s.Reason says why.
func (u *Updater) rollBack(ctx context.Context, s *state) error {
	slots, err := u.slots(ctx)
	if err != nil {
		return err
	}
	if !slots.named(s.Good).Good {
		return u.keep(ctx, s, slots)
	}
	u.o.Logger.Warn("a version is gone back from", "version", s.Version, "reason", s.Reason.String())
	s.Refused = s.Version
	if err := u.enter(s, event.UpdateRollingBack); err != nil {
		return err
	}
	return u.goBack(ctx, s)
}

// keep stays in a slot that is faulty, since no other one can be started.
func (u *Updater) keep(ctx context.Context, s *state, slots pair) error {
	s.Good = slots.booted.Name
	err := u.o.Slots.Mark(ctx, slots.booted.Name, Good)
	return errors.Join(err, u.end(s, Outcome{Result: Kept, Version: s.Version, From: s.FromVersion, Reason: s.Reason}))
}

// goBack tells the boot loader what to take. Run restarts.
func (u *Updater) goBack(ctx context.Context, s *state) error {
	if err := u.o.Slots.Mark(ctx, s.Good, Active); err != nil {
		return err
	}
	if s.Reason == nil || s.Reason.Kind != ByHand {
		if err := u.o.Slots.Mark(ctx, s.To, Bad); err != nil {
			return err
		}
	}
	slots, err := u.slots(ctx)
	if err != nil {
		return err
	}
	if good := slots.named(s.Good); !good.Primary {
		return fmt.Errorf("slot %s is to be gone back to, and the boot loader doesn't take it: see \"rauc status\"", s.Good)
	}
	return nil
}

// goBackAgain is for a start in the slot that should have been left. A boot loader that can't be told is not asked for ever.
func (u *Updater) goBackAgain(ctx context.Context, s *state, slots pair) error {
	if s.Boot != u.o.BootID() {
		if s.Starts++; s.Starts > 2*maxStarts {
			return u.keep(ctx, s, slots)
		}
		if err := u.enter(s, event.UpdateRollingBack); err != nil {
			return err
		}
	}
	return u.goBack(ctx, s)
}

// wentBack ends a rollback in the slot that was gone back to.
func (u *Updater) wentBack(ctx context.Context, s *state) error {
	if err := u.goBack(ctx, s); err != nil {
		return err
	}
	if err := u.o.Slots.Mark(ctx, s.Good, Good); err != nil {
		return err
	}
	s.Refused = s.Version
	return u.end(s, Outcome{Result: RolledBack, Version: s.Version, From: s.FromVersion, Reason: s.Reason})
}

// Commit makes the version that is on trial the one to stay, without waiting for its proof.
func (u *Updater) Commit(ctx context.Context) error {
	return u.locked(func(s *state) error {
		slots, err := u.slots(ctx)
		if err != nil {
			return err
		}
		if s.Good == "" || s.Good == slots.booted.Name {
			return errors.New("no version is on trial: what runs has been committed already")
		}
		if s.Phase == event.UpdateNone {
			s.Version, s.FromVersion = u.o.Version, slots.other.Version
		}
		s.Reason = &Reason{Kind: ByHand}
		return u.commit(ctx, s)
	})
}

// Rollback goes back to the other version: from one that is on trial, from one that waits for its restart, or from one
// that has been committed. Unless it returns false a restart is needed, which Run does when the device is idle.
func (u *Updater) Rollback(ctx context.Context) (restart bool, err error) {
	err = u.locked(func(s *state) error {
		slots, err := u.slots(ctx)
		if err != nil {
			return err
		}
		if s.Good == "" {
			s.Good = slots.booted.Name
		}
		s.Reason = &Reason{Kind: ByHand}
		switch {
		case s.Phase == event.UpdateRollingBack:
		case s.Good != slots.booted.Name: // on trial
			s.To = slots.booted.Name
		case s.Phase == event.UpdateInstalled, s.Phase == event.UpdateRestarting:
			if err := u.o.Slots.Mark(ctx, s.Good, Active); err != nil {
				return err
			}
			s.Refused = s.Version
			return u.end(s, Outcome{Result: RolledBack, Version: s.Version, From: s.FromVersion, Reason: s.Reason, Told: true})
		case s.Phase != event.UpdateNone:
			return u.end(s, Outcome{Result: Failed, Version: s.Version, From: s.FromVersion, Reason: s.Reason, Told: true})
		default:
			if !slots.other.Good {
				return fmt.Errorf("there is no version to go back to: slot %s is bad", slots.other.Name)
			}
			s.Good, s.To, s.Version, s.FromVersion = slots.other.Name, slots.booted.Name, u.o.Version, slots.other.Version
		}
		restart = true
		return u.rollBack(ctx, s)
	})
	return restart, err
}

// StartFailed is for a device that can't even begin, such as when its configuration can't be read: if that happens in a
// trial, the former version is gone back to. It returns whether a restart is needed for that.
func (u *Updater) StartFailed(ctx context.Context, part string, why error) (restart bool, err error) {
	err = u.locked(func(s *state) error {
		slots, err := u.slots(ctx)
		if err != nil {
			return err
		}
		if s.Good == "" || s.Good == slots.booted.Name {
			return nil
		}
		if s.Phase == event.UpdateNone {
			s.Version, s.FromVersion = u.o.Version, slots.other.Version
		}
		s.To, s.Reason = slots.booted.Name, &Reason{Kind: Unhealthy, Parts: []string{part}, Detail: why.Error()}
		if err := u.rollBack(ctx, s); err != nil {
			return err
		}
		restart = s.Phase == event.UpdateRollingBack
		return nil
	})
	return restart, err
}

// discarded tells whether what is being installed is gone.
func discarded(s *state) bool {
	if s.Phase != event.UpdateInstalling || s.Request == nil {
		return false
	}
	_, err := os.Stat(s.Request.File)
	return err != nil
}

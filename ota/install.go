package ota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bellbird/event"
)

// A Request is what is to be installed.
type Request struct {
	// File is a bundle on this machine; "" is what the server offers.
	File string `json:"file,omitempty"`

	// Asked is whether somebody wants it now, at whatever time of day.
	Asked bool `json:"asked,omitempty"`

	// Downgrade allows a version that isn't newer. Interrupt doesn't wait until the device is idle.
	Downgrade bool `json:"downgrade,omitempty"`
	Interrupt bool `json:"interrupt,omitempty"`

	Release *Release `json:"release,omitempty"` // what the server offered
}

// Check asks the server what it offers. It returns nil if that is nothing newer than what is installed.
func (u *Updater) Check(ctx context.Context) (*Release, error) {
	var r *Release
	err := u.locked(func(s *state) (err error) {
		r, err = u.check(ctx, s)
		return err
	})
	if err := u.failed(err); err != nil {
		return nil, err
	}
	if compare(r.Version, u.o.Version) <= 0 {
		return nil, nil
	}
	return r, nil
}

// ErrNoSource is returned if no server is configured.
var ErrNoSource = errors.New(`there is nowhere to look for updates: set url and public_key in [ota], or name a file`)

func (u *Updater) check(ctx context.Context, s *state) (*Release, error) {
	if u.o.URL == "" {
		return nil, ErrNoSource
	}
	r, err := u.offer(ctx)
	if err != nil {
		return nil, err
	}
	// A system without slots can still be told that there is a newer version.
	compatible, err := u.o.Slots.Compatible(ctx)
	if errors.Is(err, ErrNoSlots) {
		compatible = r.Compatible
	} else if err != nil {
		return nil, err
	}
	if err := r.fits(u.o.Channel, compatible); err != nil {
		return nil, err
	}
	s.Latest, s.Checked = r, u.now()
	return r, u.save(s)
}

// Install has an update installed, and returns when all that is missing is a restart, for which Run waits for a good
// moment. Another call goes on with what was interrupted.
func (u *Updater) Install(ctx context.Context, q Request) error {
	return u.failed(u.locked(func(s *state) error {
		switch s.Phase {
		case event.UpdateNone, event.UpdateDownloading, event.UpdateInstalling:
			return u.install(ctx, s, q)
		case event.UpdateInstalled, event.UpdateRestarting:
			return fmt.Errorf("version %s is installed and waits for a restart: restart the device, or \"bellbird ota rollback\"", s.Version)
		}
		return ErrInProgress
	}))
}

// Begin has Run install an update, and doesn't wait for it.
func (u *Updater) Begin(q Request) error {
	if u.Status().InProgress() {
		return ErrInProgress
	}
	select {
	case u.asked <- q:
		return nil
	default:
		return ErrInProgress
	}
}

// install goes all the way from a request to a slot that can be tried.
func (u *Updater) install(ctx context.Context, s *state, q Request) (err error) {
	slots, err := u.slots(ctx)
	if err != nil {
		return err
	}
	if s.Good != "" && s.Good != slots.booted.Name {
		return fmt.Errorf("the version that runs has not proved itself yet: wait, or \"bellbird ota commit\"")
	}
	if !q.Interrupt && u.o.Busy() {
		return ErrBusy
	}
	s.Good, s.To, s.FromVersion, s.Request = slots.booted.Name, slots.other.Name, u.o.Version, &q
	defer func() {
		// What the power or the network has cut off is gone on with. What can't be is over.
		if err != nil && ctx.Err() == nil && !goesOn(err) {
			err = errors.Join(err, u.giveUp(s, err))
		}
	}()
	path := q.File
	if path == "" {
		if path, err = u.obtain(ctx, s); err != nil {
			return err
		}
	} else if path, err = filepath.Abs(path); err != nil {
		return err
	} else if _, err := os.Stat(path); err != nil {
		return err
	}
	q.File = path
	if err := u.inspect(ctx, s, path); err != nil {
		return err
	}
	if err := u.enter(s, event.UpdateInstalling); err != nil {
		return err
	}
	from := 50
	if s.Request.Release == nil {
		from = 0
	}
	u.advance(s, from)
	if err := u.o.Slots.Install(ctx, path, func(percent int) { u.advance(s, from+percent*(100-from)/100) }); err != nil {
		return fmt.Errorf("install version %s: %w", s.Version, err)
	}
	if slots, err = u.slots(ctx); err != nil {
		return err
	}
	if to := slots.named(s.To); !to.Primary || !to.Good {
		return fmt.Errorf("version %s is installed, but the boot loader doesn't take it: see \"rauc status\" and the log of rauc", s.Version)
	}
	if err := u.enter(s, event.UpdateInstalled); err != nil {
		return err
	}
	return u.discard()
}

// obtain gets what the server offers, and returns the path of the bundle.
func (u *Updater) obtain(ctx context.Context, s *state) (string, error) {
	r := s.Request.Release // of one that was interrupted
	if r == nil {
		var err error
		if r, err = u.check(ctx, s); err != nil {
			return "", err
		}
	}
	if err := follows(r.Version, r.Minimum, u.o.Version, s.Request.Downgrade); err != nil {
		return "", err
	}
	if !s.Request.Asked && (s.Refused == r.Version || s.Refused == r.SHA256) {
		return "", fmt.Errorf("version %s: %w: ask for it with \"bellbird ota install\"", r.Version, ErrRefused)
	}
	s.Request.Release, s.Version = r, r.Version
	if err := u.enter(s, event.UpdateDownloading); err != nil {
		return "", err
	}
	return u.download(ctx, r, func(done int64) { u.advance(s, int(done*50/r.Size)) })
}

// inspect refuses a bundle that isn't for this device, whatever the manifest says.
func (u *Updater) inspect(ctx context.Context, s *state, path string) error {
	b, err := u.o.Slots.Inspect(ctx, path)
	if err != nil {
		return err
	}
	compatible, err := u.o.Slots.Compatible(ctx)
	if err != nil {
		return err
	}
	if err := fitsBoard(b.Version, b.Compatible, compatible); err != nil {
		return err
	}
	if r := s.Request.Release; r != nil && compare(r.Version, b.Version) != 0 {
		return fmt.Errorf("the manifest says version %s, and the bundle is %s: its publisher has to correct that", r.Version, b.Version)
	}
	s.Version = b.Version
	return follows(b.Version, "", u.o.Version, s.Request.Downgrade)
}

// ErrBusy is returned while somebody talks with the device or it rings.
var ErrBusy = errors.New("the device is in use: try again when it is idle, or add --now")

// goesOn tells whether an error will be gone by itself.
func goesOn(err error) bool {
	for _, e := range []error{ErrStalled, ErrCutOff, ErrNoSpace, ErrClock} {
		if errors.Is(err, e) && !errors.Is(err, ErrSize) {
			return true
		}
	}
	return false
}

// giveUp ends an update that can't be installed. One that nothing was done for yet leaves no trace.
func (u *Updater) giveUp(s *state, why error) error {
	if s.Phase == event.UpdateNone {
		return nil
	}
	if r := s.Request.Release; r != nil {
		s.Refused = r.SHA256
	}
	return u.end(s, Outcome{
		Result: Failed, Version: s.Version, From: s.FromVersion, Told: true, Reason: &Reason{Kind: BadBundle, Detail: why.Error()},
	})
}

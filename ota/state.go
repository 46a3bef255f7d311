package ota

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bellbird/event"
)

// A state is what must not be forgotten when the power is cut: a file on the data partition, which both systems see. It is
// written as a whole before each step is taken, so that the next start knows which one it may have been. An older version
// that finds it after a rollback ignores what it doesn't know.
type state struct {
	Phase event.UpdatePhase `json:"phase,omitempty"`

	Good string `json:"good,omitempty"` // the slot that has proved itself, and that is gone back to
	To   string `json:"to,omitempty"`   // the slot that is written, tried or left

	Request     *Request `json:"request,omitempty"` // what is being installed
	Version     string   `json:"version,omitempty"` // of that
	FromVersion string   `json:"from_version,omitempty"`

	Boot   string  `json:"boot,omitempty"`   // the start of the machine in which Phase was entered
	Starts int     `json:"starts,omitempty"` // of the program in the trial
	Reason *Reason `json:"reason,omitempty"` // for which it is gone back

	// Excused are the parts that didn't work before the update either.
	Excused []string `json:"excused,omitempty"`

	Refused string    `json:"refused,omitempty"` // the version, or the SHA-256, of what is not installed again by itself
	Latest  *Release  `json:"latest,omitempty"`  // what the server offers
	Checked time.Time `json:"checked,omitzero"`
	Last    *Outcome  `json:"last,omitempty"`
}

const (
	stateFile  = "state.json"
	lockFile   = "lock"
	bundlePart = "bundle.part"
	bundleFile = "bundle.raucb"
	maxState   = 256 << 10
)

// ErrInProgress is returned while something else is being done about updates, in this process or another one.
var ErrInProgress = errors.New("an update is in progress already: see \"bellbird ota status\"")

// locked calls f with the state while nothing else may change it.
func (u *Updater) locked(f func(*state) error) error {
	if err := os.MkdirAll(u.o.Dir, 0o750); err != nil {
		return u.storage(err)
	}
	lock, err := os.OpenFile(filepath.Join(u.o.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return u.storage(err)
	}
	defer lock.Close() // which lets go of it, as the end of the process does
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrInProgress
	case err != nil:
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	s, err := u.load()
	if err != nil {
		return err
	}
	return f(s)
}

// load reads the state. One that can't be understood is as good as none.
func (u *Updater) load() (*state, error) {
	path := filepath.Join(u.o.Dir, stateFile)
	s := new(state)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		u.show(s)
		return s, nil
	case err != nil:
		return nil, u.storage(err)
	}
	text := []byte(nil)
	if info.Size() <= maxState {
		if text, err = os.ReadFile(path); err != nil {
			return nil, u.storage(err)
		}
	}
	if err := json.Unmarshal(text, s); err != nil {
		u.o.Logger.Error("what was known of updates is unreadable, it is taken as none", "file", path, "err", err)
		s = new(state)
	}
	u.show(s)
	return s, nil
}

// save keeps the state, and returns when it is safe from a power cut.
func (u *Updater) save(s *state) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(u.o.Dir, stateFile), text); err != nil {
		return u.storage(err)
	}
	u.show(s)
	if u.saved != nil {
		u.saved()
	}
	return nil
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(0o640); err != nil { // its group may know how it stands
		return err
	}
	if _, err = f.Write(text); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// storage says what to do about an error of the data partition.
func (u *Updater) storage(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("keep what is known of updates: %w: see \"systemctl status bellbird-data\"", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("keep what is known of updates: %w: use the user that the appliance runs as: sudo -u bellbird bellbird ota …", err)
	}
	return fmt.Errorf("keep what is known of updates: %w", err)
}

// ErrNoSpace is returned if the data partition has no room for an update.
var ErrNoSpace = errors.New("the data partition is full: delete chats or recordings")

// bootID tells this start of the machine from others; "" where that can't be told.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// enter goes to a phase, and keeps that.
func (u *Updater) enter(s *state, p event.UpdatePhase) error {
	s.Phase, s.Boot = p, u.o.BootID()
	return u.save(s)
}

// end is the end of an update, whatever became of it.
func (u *Updater) end(s *state, o Outcome) error {
	o.At = u.now()
	o.Asked = s.Request != nil && s.Request.Asked || o.Reason != nil && o.Reason.Kind == ByHand
	s.Phase, s.Boot, s.To, s.Request, s.Version, s.FromVersion, s.Starts, s.Reason = event.UpdateNone, "", "", nil, "", "", 0, nil
	s.Excused = nil
	s.Last = &o
	if err := u.save(s); err != nil {
		return err
	}
	u.o.Logger.Info("an update has ended", "result", o.Result, "version", o.Version, "from", o.From, "reason", o.Reason.String())
	if u.o.Bus != nil {
		u.o.Bus.Publish(event.UpdateEnded{At: o.At, Version: o.Version, From: o.From, Result: string(o.Result), Reason: o.Reason.String()})
	}
	return u.discard()
}

// discard removes what was downloaded.
func (u *Updater) discard() error {
	for _, name := range []string{bundlePart, bundleFile} {
		if err := os.Remove(filepath.Join(u.o.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return u.storage(err)
		}
	}
	return nil
}

// Package ota brings the device to another version of its whole system, and back if that one doesn't work: it finds a
// release, downloads it, has it written into the slot that doesn't run, restarts into it, and lets it stay only if the
// device works with it. What is known lies in a file of its own on the data partition, so that the power may be cut at any
// moment. docs/update.md has the whole life of an update.
//
// It is not what writes slots or talks to a boot loader, which is RAUC (ota/rauc), and it restarts nothing by itself. It
// knows no other part of the device: what it needs of them are functions.
package ota

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
)

// Options are where updates come from and what they may do. The zero value looks for none, but can install one from a
// file.
type Options struct {
	// URL is the address of the manifest; "" is nowhere.
	URL string `toml:"url"`

	// PublicKey is the key that the manifest is signed with, 32 bytes in base64. It must be set if URL is.
	PublicKey string `toml:"public_key"`

	Channel   string        `toml:"channel"`     // default "stable"
	Automatic bool          `toml:"automatic"`   // whether what is found is installed without being asked for
	Window    clock.Hours   `toml:"window"`      // when that is done; default 03:00-05:00
	Every     time.Duration `toml:"check_every"` // between looks at URL; default 24h, at least 1m
	Trial     time.Duration `toml:"trial"`       // how long a new version has to prove itself; default 3m

	// Dir is where the state and the bundle are kept, on the data partition, which is the same for both slots. It must
	// be set.
	Dir string `toml:"-"`

	Version string `toml:"-"` // of the system that runs
	Slots   Slots  `toml:"-"` // nil: there are none

	// Restart begins a restart of the machine; nil: it can't be done from here.
	Restart func(ctx context.Context) error `toml:"-"`

	// Health are the parts of the device that must work for a version to stay.
	Health []Part `toml:"-"`

	// Busy tells whether now is no moment to install or to restart: somebody talks with the device, or it rings. nil: it
	// never is.
	Busy func() bool `toml:"-"`

	// ClockKnown tells whether the time of day is known; nil: it is. Zone is where the user is; nil: where the machine is.
	ClockKnown func() bool           `toml:"-"`
	Zone       func() *time.Location `toml:"-"`

	// Report tells people what became of an update. It is called every half minute until it has returned nil.
	Report func(ctx context.Context, o Outcome) error `toml:"-"`

	BootID    func() string         `toml:"-"` // which start of the machine this is; nil: as Linux says
	Free      func() (int64, error) `toml:"-"` // bytes that there are for a bundle; nil: as the file system of Dir says
	Transport http.RoundTripper     `toml:"-"` // nil: the usual one
	Bus       *event.Bus            `toml:"-"` // nil: nobody is told
	Logger    *slog.Logger          `toml:"-"` // nil: none
}

const (
	defaultChannel = "stable"
	defaultEvery   = 24 * time.Hour
	defaultTrial   = 3 * time.Minute
	maxTrial       = 9 * time.Minute // deploy/rauc/bellbird-trial.timer puts an end to it after ten
)

func (o *Options) trial() time.Duration {
	if o.Trial == 0 {
		return defaultTrial
	}
	return o.Trial
}

// An Updater is the one that looks after updates. Its methods may be called by several goroutines, and several processes
// may have one of the same directory; only one of them does something at a time, and others get ErrInProgress.
type Updater struct {
	o   Options
	key ed25519.PublicKey

	late   float64       // of the window's first half, that passes before it opens here
	asked  chan Request  // by Begin
	again  time.Time     // before which nothing is tried again that has failed
	due    time.Duration // from the start to the first look at the server
	looked time.Time     // at what other programs have installed
	saved  func()        // for tests: the state was saved

	settled bool // it is known which slot runs, and what that means; of Run

	mu      sync.Mutex
	shown   state // as it was saved
	percent int   // of what is being installed
	problem error // of what was tried last
}

// New returns an Updater. It starts nothing.
func New(o Options) (*Updater, error) {
	u := &Updater{o: o, late: rand.Float64(), asked: make(chan Request, 1), due: time.Duration(rand.Int64N(int64(10 * time.Minute)))}
	if o.URL != "" {
		if address, err := url.Parse(o.URL); err != nil || !fetchable(address) {
			return nil, fmt.Errorf("[ota] url = %q: it must be an address with http or https", o.URL)
		}
		if o.PublicKey == "" {
			return nil, errors.New("[ota] public_key is missing: without it nothing that a server offers can be trusted (see deploy/rauc/publish.sh)")
		}
	}
	if o.PublicKey != "" {
		var err error
		if u.key, err = parseKey(o.PublicKey); err != nil {
			return nil, fmt.Errorf("[ota] %w", err)
		}
	}
	if o.Every != 0 && o.Every < time.Minute {
		return nil, fmt.Errorf("[ota] check_every = %q: at least 1m", o.Every)
	}
	if o.Trial < 0 || o.Trial > maxTrial {
		return nil, fmt.Errorf("[ota] trial = %q: from 1s to %v", o.Trial, maxTrial)
	}
	if o.Dir == "" {
		return nil, errors.New("ota: no directory")
	}
	u.setDefaults()
	if _, err := u.load(); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return u, nil
}

func (u *Updater) setDefaults() {
	o := &u.o
	if o.Channel == "" {
		o.Channel = defaultChannel
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Window == (clock.Hours{}) {
		o.Window = clock.Between(3*time.Hour, 5*time.Hour)
	}
	if o.Slots == nil {
		o.Slots = noSlots{}
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	if o.ClockKnown == nil {
		o.ClockKnown = func() bool { return true }
	}
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.Local }
	}
	if o.BootID == nil {
		o.BootID = bootID
	}
	if o.Free == nil {
		o.Free = func() (int64, error) { return freeOn(o.Dir) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (u *Updater) now() time.Time { return time.Now().In(u.o.Zone()) }

// A Status is how things stand.
type Status struct {
	Installed string // the version that runs
	Latest    string // what the server offers, if that is newer; else Installed

	Title, Summary, NotesURL string // of Latest, if it is newer

	Phase   event.UpdatePhase
	Version string // that Phase is about
	Percent int    // of downloading and installing together, while that is going on in this process; else 0
	Checked time.Time

	Last    *Outcome // what became of the update before; nil: there was none
	Problem error    // of what was tried last; nil: there was none
}

// InProgress tells whether something is being done.
func (s Status) InProgress() bool { return s.Phase != event.UpdateNone }

// Status never waits.
func (u *Updater) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := Status{
		Installed: u.o.Version, Latest: u.o.Version, Phase: u.shown.Phase, Version: u.shown.Version, Percent: u.percent,
		Checked: u.shown.Checked, Last: u.shown.Last, Problem: u.problem,
	}
	if u.newer(&u.shown) != "" {
		l := u.shown.Latest
		s.Latest, s.Title, s.Summary, s.NotesURL = l.Version, l.Title, l.Summary, l.NotesURL
	}
	return s
}

// show makes s what Status tells, and tells it if it is another phase.
func (u *Updater) show(s *state) {
	u.mu.Lock()
	was := u.shown
	u.shown = *s
	if s.Phase != event.UpdateDownloading && s.Phase != event.UpdateInstalling {
		u.percent = 0
	}
	percent := u.percent
	u.mu.Unlock()
	if was.Phase != s.Phase || was.Version != s.Version || u.newer(&was) != u.newer(s) {
		u.tell(s, percent)
	}
}

// newer is the version that the server offers, if it is newer than what runs; else "".
func (u *Updater) newer(s *state) string {
	if l := s.Latest; l != nil && compare(l.Version, u.o.Version) > 0 {
		return l.Version
	}
	return ""
}

func (u *Updater) tell(s *state, percent int) {
	if u.o.Bus == nil {
		return
	}
	version := s.Version
	if s.Phase == event.UpdateNone {
		version = u.newer(s)
	}
	u.o.Bus.Publish(event.UpdateChanged{At: u.now(), Phase: s.Phase, Version: version, Percent: percent})
}

// advance sets the percentage.
func (u *Updater) advance(s *state, percent int) {
	percent = max(0, min(percent, 100))
	u.mu.Lock()
	changed := u.percent != percent
	u.percent = percent
	u.mu.Unlock()
	if changed {
		u.tell(s, percent)
	}
}

// failed keeps the error of what was tried, or that it went well.
func (u *Updater) failed(err error) error {
	if errors.Is(err, ErrInProgress) || errors.Is(err, context.Canceled) {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.problem = err
	return err
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/internal/run"
	"bellbird/mqtt"
	"bellbird/ota"
	"bellbird/ota/rauc"
)

// Updates of the whole system: what the running appliance does about them.

// restartFile asks deploy/rauc/bellbird-restart.path for a restart of the machine, which the appliance may not do itself.
const restartFile = "/run/bellbird/restart"

// updateOptions completes o by what is so for the appliance and for the commands.
func updateOptions(o ota.Options, c Config, log *slog.Logger) ota.Options {
	o.Dir = filepath.Join(filepath.Dir(c.Store.Path), "ota")
	o.Version, o.Slots = systemVersion("/etc/os-release"), rauc.Slots{}
	o.ClockKnown, o.Zone, o.Logger = rememberKnown(clock.Known), userZone(), log.With("part", "updates")
	return o
}

// systemVersion is the version of the image that the device was started from, or of this program if it isn't in one.
func systemVersion(release string) string {
	f, err := os.Open(release)
	if err != nil {
		return version
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "IMAGE_VERSION="); ok && strings.Trim(v, `"'`) != "" {
			return strings.Trim(v, `"'`)
		}
	}
	return version
}

// rememberKnown stays true once the time was known: a clock that was set doesn't become wrong when the network goes.
func rememberKnown(known func() bool) func() bool {
	var once sync.Mutex
	was := false
	return func() bool {
		once.Lock()
		defer once.Unlock()
		was = was || known()
		return was
	}
}

// requestRestart asks for a restart of the machine. What has been asked for and didn't come is an error.
func requestRestart(path string) func(context.Context) error {
	return func(context.Context) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist):
			return fmt.Errorf("%w (%s was asked for already: is bellbird-restart.path enabled?)", ota.ErrNoRestart, path)
		case err != nil:
			return fmt.Errorf("%w (%v)", ota.ErrNoRestart, err)
		}
		return f.Close()
	}
}

// updating is what keeps the running appliance up to date. The part has to be run.
func (a *appliance) updating(o ota.Options, c Config, card *card, log *slog.Logger) (*ota.Updater, run.Part, error) {
	w := &updateWatch{a: a, condition: condition{state: event.Idle}}
	o = updateOptions(o, c, log)
	o.Bus, o.Busy, o.Report = a.bus, w.busy, w.report
	o.Restart = requestRestart(restartFile)
	o.Health = w.health(func() bool { return card == nil || !card.Wedged() })
	u, err := ota.New(o)
	if err != nil {
		return nil, run.Part{}, err
	}
	return u, run.Part{Name: "updates", Run: func(ctx context.Context) error {
		facts := a.bus.Subscribe(64)
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			for f := range facts.C {
				w.learn(f)
			}
		}()
		err := u.Run(ctx)
		facts.Close()
		<-followed
		return err
	}}, nil
}

// An updateWatch knows of the appliance what updates depend on.
type updateWatch struct {
	a *appliance

	mu        sync.Mutex
	condition condition
	mute      bool      // the loudspeaker doesn't work
	talked    time.Time // when a turn ended last

	heard, pulled uint64 // frames, when they were looked at last
}

func (w *updateWatch) learn(f event.Fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.condition.learn(f)
	switch f.(type) {
	case event.TurnEnded:
		w.talked = w.a.clock.Now()
	case event.LoudspeakerFault:
		w.mute = true
	case event.LoudspeakerWell:
		w.mute = false
	}
}

// busy tells whether somebody talks with the appliance, or something sounds.
func (w *updateWatch) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.condition.state != event.Idle || len(w.condition.ringing) > 0 || w.a.output.Sounding()
}

// somebodyThere is for how long after a turn there is somebody who hears a report.
const somebodyThere = 2 * time.Minute

var errNobody = errors.New("nobody is there to be told")

// report says what became of an update: at once if somebody has asked for it, else when there is somebody to hear it. That
// an update at night went well isn't worth a word.
func (w *updateWatch) report(ctx context.Context, o ota.Outcome) error {
	sentence := o.Sentence()
	if sentence == "" || o.Result == ota.Committed && !o.Asked {
		return nil
	}
	w.mu.Lock()
	away := w.talked.IsZero() || w.a.clock.Now().Sub(w.talked) > somebodyThere
	w.mu.Unlock()
	if away && !o.Asked {
		return errNobody
	}
	_, err := w.a.turns.Say(ctx, sentence)
	return err
}

// health are the parts without which an update is gone back from. That the configuration parses and that the engines
// open was decided before; startFailed is for when they don't.
func (w *updateWatch) health(flowing func() bool) []ota.Part {
	parts := []ota.Part{
		{Name: "storage", Works: func(context.Context) error {
			if w.a.forgetful {
				return errors.New("the store can't be opened")
			}
			_, err := w.a.store.Chats()
			return err
		}},
		{Name: "sound", Works: func(context.Context) error {
			if !flowing() {
				return errors.New("its loop stands still, and the watchdog isn't fed")
			}
			return nil
		}},
		{Name: "loudspeaker", Works: func(context.Context) error {
			now := w.a.output.Stats().Pulled
			w.mu.Lock()
			defer w.mu.Unlock()
			was := w.pulled
			w.pulled = now
			if now == was || w.mute {
				return errors.New("it takes no sound")
			}
			return nil
		}},
	}
	if w.a.ears == nil {
		return parts
	}
	return append(parts, ota.Part{Name: "microphone", Works: func(context.Context) error {
		now := w.a.ears.Heard() // what the wake word's engine has judged
		w.mu.Lock()
		defer w.mu.Unlock()
		was := w.heard
		w.heard = now
		switch {
		case w.condition.deaf != "":
			return errors.New(w.condition.deaf)
		case now == was:
			return errors.New("the wake word is not listened for")
		}
		return nil
	}})
}

// startFailed has the former version gone back to if the appliance can't begin in a trial, and returns why, which is why.
func startFailed(ctx context.Context, f *flags, part string, why error) error {
	state := defaultState
	if f.state != "" {
		state = f.state
	}
	log := f.logger(slog.LevelInfo)
	dir := filepath.Join(state, "ota")
	if _, err := os.Stat(dir); err != nil {
		return why // there has never been an update
	}
	u, err := ota.New(ota.Options{Dir: dir, Version: systemVersion("/etc/os-release"), Slots: rauc.Slots{}, Logger: log.With("part", "updates")})
	if err != nil {
		return why
	}
	restart, err := u.StartFailed(ctx, part, why)
	if restart && err == nil {
		err = requestRestart(restartFile)(ctx)
	}
	if err != nil && !errors.Is(err, ota.ErrNoSlots) {
		log.Error("the former version can't be gone back to", "err", err)
	}
	return why
}

// homeUpdate is the firmware for Home Assistant.
func homeUpdate(u *ota.Updater) (show func() mqtt.Update, install func() error) {
	show = func() mqtt.Update {
		s := u.Status()
		m := mqtt.Update{Installed: s.Installed, Latest: s.Latest, Title: s.Title, Summary: s.Summary, URL: s.NotesURL, InProgress: s.InProgress()}
		if s.Phase == event.UpdateDownloading || s.Phase == event.UpdateInstalling {
			m.Percent = new(s.Percent)
		}
		if s.InProgress() && s.Version != "" {
			m.Latest = s.Version
		}
		return m
	}
	return show, func() error { return u.Begin(ota.Request{Asked: true}) }
}

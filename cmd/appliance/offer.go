package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"bellbird/api"
	"bellbird/console"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/internal/run"
	"bellbird/timers"
	"bellbird/turns"
)

// What the API shows of the appliance, besides what the command line is for.

// turnDir is where the records of turns are kept.
func (c *Config) turnDir() string { return filepath.Join(filepath.Dir(c.Store.Path), "turns") }

// served are the parts by which the running appliance can be reached. One that fails is told: it can still hear and answer.
func (a *appliance) served(c Config, log *slog.Logger) []run.Part {
	o := a.offer(c, api.Options{
		Turns: a.turns, Chats: chatControl{a.store, a.turns}, Vault: vaultControl{a.store}, Logger: log.With("part", "api"),
	}, log.With("part", "turn records"))
	var parts []run.Part
	socket, err := a.control(c.API, o)
	if err != nil {
		log.Warn("the command line can't reach this appliance", "err", err)
	} else {
		parts = append(parts, socket)
	}
	web, server, err := a.web(c.API, o)
	if err != nil {
		log.Warn("programs can't reach this appliance over TCP", "err", err)
	} else if server != nil {
		log.Info("programs can reach this appliance", "at", server.Addr())
	}
	return append(parts, web...)
}

// offer adds to o what the appliance has to show, and has the follower run that knows it. It must be called before the
// appliance runs.
func (a *appliance) offer(c Config, o api.Options, log *slog.Logger) api.Options {
	f := &follower{
		began: a.clock.Now(), state: event.Idle, since: a.clock.Now(), faults: make(map[string]string),
		models: engines(c), mayTell: make(map[int]bool), facts: a.bus.Subscribe(followerQueue), log: log,
	}
	a.onClose(f.facts.Close)
	ring, err := turns.Open(c.turnDir())
	if err != nil {
		log.Error("the turns are not recorded", "err", err)
		o.Records = func() ([]api.TurnRecord, error) {
			return nil, api.Errorf(http.StatusInsufficientStorage, "%v", err)
		}
	} else {
		a.onClose(func() { ring.Close() })
		f.ring = ring
		o.Records = func() ([]api.TurnRecord, error) { return recordsOf(ring.All()) }
	}
	a.more = append(a.more, run.Part{Name: "turn records", Run: f.run})

	volume := loudness{a.output, a.bus, a.clock}
	o.Volume = func() api.Volume { return api.Volume{Percent: volume.Volume(), Muted: volume.Muted()} }
	o.SetVolume = func(v api.VolumeChange) error {
		if v.Percent != nil {
			volume.SetVolume(*v.Percent)
		}
		if v.Muted != nil {
			volume.SetMuted(*v.Muted)
		}
		return nil
	}
	if a.body != nil {
		mute := a.body.mute
		o.Mute = func() api.Mute { return api.Mute{Muted: mute.Muted(), Switch: mute.BySwitch()} }
		o.SetMute = func(m bool) error {
			err := mute.Set(m)
			if errors.Is(err, gpio.ErrSwitch) {
				return api.Errorf(http.StatusConflict, "%v", err)
			}
			return err
		}
	}
	o.Timers = func() []api.Timer { return f.named(timersOf(a.timers)) }
	o.SetTimer = func(name string, d time.Duration) error {
		_, err := a.timers.Set(name, d)
		return timerRefusal(err)
	}
	o.CancelTimer = a.timers.Cancel
	o.Models = f.engines
	o.State = func() api.State {
		s := f.seen()
		s.Chat, s.Private, s.Volume = homeChats{a.store}.active(), isPrivate(a.store)(), o.Volume()
		if o.Mute != nil {
			m := o.Mute()
			s.Mute = &m
		}
		if loss := a.loss(); loss != "" {
			s.Problems = append(s.Problems, loss)
		}
		return s
	}
	o.Pages = console.Handler()
	o.Metrics = (&figures{a, f, o}).write
	return o
}

// recordsOf makes the API's records of those that are kept.
func recordsOf(kept []turns.Kept, err error) ([]api.TurnRecord, error) {
	all := make([]api.TurnRecord, 0, len(kept))
	for _, k := range kept {
		all = append(all, api.TurnRecord(k))
	}
	return all, err
}

// engines are those that are configured.
func engines(c Config) []api.Model {
	yes := true
	local := api.Model{Kind: "llm", Name: "offline", Active: true, Reached: &yes}
	list := []api.Model{local}
	server := func(name, model, address string) {
		if u, err := url.Parse(address); err == nil && address != "" {
			u.User, u.RawQuery = nil, ""
			address = u.String()
		}
		list[0].Active = false
		list = append([]api.Model{{Kind: "llm", Name: name, Model: model, Address: address, Active: true}}, list...)
	}
	switch c.Model.Kind {
	case "openai":
		server("openai", c.Model.OpenAI.Model, c.Model.OpenAI.BaseURL)
	case "anthropic":
		server("anthropic", c.Model.Anthropic.Model, c.Model.Anthropic.BaseURL)
	}
	return append(list, speechEngines(c)...)
}

// timersOf are the timers, and then the alarms.
func timersOf(k *timers.Keeper) []api.Timer {
	list := []api.Timer{}
	for _, t := range k.List() {
		list = append(list, api.Timer{ID: t.ID, Name: t.Name, Ends: t.Ends, Total: t.Total.Seconds(), Ringing: t.Ringing, Snoozed: t.Snoozed})
	}
	for _, t := range k.Alarms() {
		one := api.Timer{ID: t.ID, Name: t.Name, Alarm: true, Ends: t.Next, Ringing: t.Ringing, Snoozed: t.Snoozed}
		for _, d := range t.Days {
			one.Days = append(one.Days, d.String())
		}
		list = append(list, one)
	}
	return list
}

// timerRefusal gives an error of the timers the status that belongs to it.
func timerRefusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, timers.ErrNotKept):
		return api.Errorf(http.StatusInsufficientStorage, "%v", err)
	case errors.Is(err, timers.ErrNotReady):
		return api.Errorf(http.StatusServiceUnavailable, "%v", err)
	}
	return api.Errorf(http.StatusConflict, "%v", err)
}

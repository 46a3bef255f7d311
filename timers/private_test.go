package timers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/timers"
)

// TestPrivate: what was set in a private chat is known to be so for as long as it is there, also after a restart and when
// the chat is another one by then.
func TestPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
		d := new(disk)
		told := make(map[string]map[event.TimerChange]bool)
		run := func(do func(k *timers.Keeper, private *bool)) {
			bus := new(event.Bus)
			facts := bus.Subscribe(1000)
			private := false
			v := clock.NewVirtual(now)
			k := timers.New(timers.Options{Clock: v, Bus: bus, Records: d, Private: func() bool { return private }})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- k.Run(ctx) }()
			synctest.Wait()
			do(k, &private)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			facts.Close()
			for f := range facts.C {
				c := f.(event.TimerChanged)
				if told[c.Name] == nil {
					told[c.Name] = make(map[event.TimerChange]bool)
				}
				told[c.Name][c.What] = c.Private
			}
		}
		run(func(k *timers.Keeper, private *bool) {
			set := func(name string) {
				if _, err := k.Set(name, time.Minute); err != nil {
					t.Error(err)
				}
				if _, err := k.SetAlarm(name+" alarm", timers.AlarmTime{Hour: 7}); err != nil {
					t.Error(err)
				}
			}
			set("open")
			*private = true
			set("secret")
		})
		run(func(k *timers.Keeper, private *bool) {
			for _, timer := range k.List() {
				k.Cancel(timer.ID)
			}
		})
		for name, private := range map[string]bool{"open": false, "open alarm": false, "secret": true, "secret alarm": true} {
			for _, what := range []event.TimerChange{event.TimerSet, event.TimerRestored} {
				if is, was := told[name][what]; !was || is != private {
					t.Errorf("%q, %s: told %v, private %v", name, what, was, is)
				}
			}
		}
		if !told["secret"][event.TimerCancelled] {
			t.Error("it was cancelled, and its name told")
		}
	})
}

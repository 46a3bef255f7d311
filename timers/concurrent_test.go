package timers_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/timers"
)

// Whatever is done at the same time, the ring begins and ends in turn, and is over when nothing rings.
func TestAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		r := boot(t, d, monday(), true)
		for round := range 8 {
			var all sync.WaitGroup
			for n := range 4 {
				rnd := rand.New(rand.NewPCG(uint64(round), uint64(n)))
				all.Go(func() {
					for range 20 {
						switch rnd.IntN(7) {
						case 0, 1:
							_, _ = r.Set("", time.Duration(1+rnd.IntN(60))*time.Second) // there may be too many
						case 2:
							_, _ = r.SetAlarm("", timers.AlarmTime{Hour: 22, Minute: rnd.IntN(10), Repeat: rnd.IntN(2) == 0})
						case 3:
							_, _ = r.Snooze(time.Minute) // there may be nothing
						case 4:
							r.Silence()
						case 5:
							r.Cancel(1 + rnd.IntN(200))
						case 6:
							r.List()
							r.Alarms()
						}
					}
				})
			}
			r.clock.Advance(20 * time.Second)
			all.Wait()
		}
		r.Silence()
		for i, on := range r.rings {
			if on != (i%2 == 0) {
				t.Fatalf("ring %d of %d is %v", i, len(r.rings), on)
			}
		}
		if r.ringing() || len(r.rings) == 0 {
			t.Errorf("ringing is %v after %d changes", r.ringing(), len(r.rings))
		}
		timers, alarms := len(r.List()), len(r.Alarms())
		r.end()
		again := boot(t, d, r.clock.Now(), true)
		if len(again.List()) != timers || len(again.Alarms()) != alarms {
			t.Errorf("%d timers and %d alarms after a restart, want %d and %d", len(again.List()), len(again.Alarms()), timers, alarms)
		}
		again.end()
	})
}

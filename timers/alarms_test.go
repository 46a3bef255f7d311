package timers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/timers"
)

func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, new(disk), monday(), true)
		daily := must(r.SetAlarm("up", timers.AlarmTime{Hour: 7, Repeat: true}))
		once := must(r.SetAlarm("bus", timers.AlarmTime{Hour: 6, Minute: 45}))
		never := must(r.SetAlarm("never", timers.AlarmTime{Hour: 6}))
		if len(daily.Days) != 7 || len(once.Days) != 0 {
			t.Errorf("days %v and %v", daily.Days, once.Days)
		}
		if list := r.Alarms(); len(list) != 3 || list[0].ID != never.ID || list[2].ID != daily.ID {
			t.Errorf("alarms %+v", list)
		}
		if !r.Cancel(never.ID) || r.Cancel(never.ID) {
			t.Error("Cancel reports the wrong thing")
		}
		r.told()
		got := r.pass(9 * time.Hour) // both ring, and only one of them is done with
		if list := r.Alarms(); len(list) != 1 || !list[0].Ringing {
			t.Errorf("alarms %+v", list)
		}
		r.Cancel(daily.ID)
		if list := r.Alarms(); len(list) != 1 || list[0].Ringing || !list[0].Next.Equal(monday().Add(33*time.Hour)) {
			t.Errorf("after it was cancelled while it rang: %+v", list)
		}
		r.Cancel(daily.ID)
		got = append(got, r.pass(24*time.Hour)...)
		r.end()
		want := []string{"8h45m0s bus ringing", "9h0m0s up ringing", "9h0m0s bus silenced", "9h0m0s up silenced", "9h0m0s up cancelled"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if !slices.Equal(r.rings, []bool{true, false}) {
			t.Errorf("rings %v", r.rings)
		}
	})
}

func TestSnooze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, new(disk), monday(), true)
		if _, err := r.Snooze(0); err != timers.ErrNothingRings {
			t.Errorf("snooze with nothing that rings: %v", err)
		}
		daily := must(r.SetAlarm("up", timers.AlarmTime{Hour: 22, Minute: 1, Repeat: true}))
		must(r.Set("tea", time.Minute))
		r.told()
		got := r.pass(2 * time.Minute)
		if d := must(r.Snooze(0)); d != timers.DefaultSnooze || r.ringing() {
			t.Errorf("snoozed for %v, ringing is %v", d, r.ringing())
		}
		got = append(got, r.pass(9*time.Minute)...)

		// Calling the device silences it. What is said then is meant for what rang.
		if r.Hushed() || !r.Silence() || !r.Hushed() {
			t.Error("Hushed reports the wrong thing")
		}
		if len(r.List()) != 0 || !r.Alarms()[0].Next.Equal(monday().Add(24*time.Hour+time.Minute)) {
			t.Errorf("silenced: %v, %v", r.List(), r.Alarms())
		}
		got = append(got, r.pass(30*time.Second)...)
		if d := must(r.Snooze(5 * time.Minute)); d != 5*time.Minute {
			t.Errorf("snoozed for %v", d)
		}
		if list := r.List(); len(list) != 1 || !list[0].Snoozed || list[0].Left != 5*time.Minute {
			t.Errorf("snoozed timers %+v", list)
		}
		if list := r.Alarms(); !list[0].Snoozed {
			t.Errorf("snoozed alarms %+v", list)
		}
		r.Cancel(daily.ID) // the snooze, not the alarm
		got = append(got, r.pass(6*time.Minute)...)
		r.Silence()
		got = append(got, r.pass(2*time.Minute)...)
		if _, err := r.Snooze(0); err != timers.ErrNothingRings || r.Hushed() {
			t.Errorf("two minutes later: %v", err)
		}
		if len(r.List()) != 0 || len(r.Alarms()) != 1 {
			t.Errorf("left: %v, %v", r.List(), r.Alarms())
		}
		r.end()
		want := []string{
			"1m0s up ringing", "1m0s tea ringing", "2m0s up snoozed", "2m0s tea snoozed",
			"11m0s up ringing", "11m0s tea ringing", "11m0s up silenced", "11m0s tea silenced",
			"11m30s up snoozed", "11m30s tea snoozed", "11m30s up silenced", "16m30s tea ringing", "17m30s tea silenced",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, d := range []time.Duration{-1, timers.MaxSnooze + 1} {
			if _, err := r.Snooze(d); err == nil {
				t.Errorf("a snooze of %v: no error", d)
			}
		}
	})
}

// What can't be saved is said to be so, and rings all the same.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{full: true}
		r := boot(t, d, monday(), true)
		if _, err := r.Set("tea", time.Minute); !errors.Is(err, timers.ErrNotKept) {
			t.Errorf("set: %v", err)
		}
		if _, err := r.SetAlarm("up", timers.AlarmTime{Hour: 22, Minute: 1}); !errors.Is(err, timers.ErrNotKept) {
			t.Errorf("set alarm: %v", err)
		}
		r.pass(time.Minute)
		if _, err := r.Snooze(0); !r.List()[0].Snoozed || !errors.Is(err, timers.ErrNotKept) {
			t.Errorf("snooze: %v", err)
		}
		r.end()
	})
}

// Nothing is saved while timers and alarms only wait.
func TestNoSaveWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		r := boot(t, d, monday(), true)
		r.pass(time.Hour)
		if d.saves != 0 {
			t.Errorf("%d saves with nothing to save", d.saves)
		}
		must(r.SetAlarm("up", timers.AlarmTime{Hour: 7, Repeat: true}))
		must(r.Set("tea", 5*time.Hour))
		if d.saves != 2 {
			t.Errorf("%d saves for two that were set", d.saves)
		}
		for range 4 * 60 { // the clock is corrected by a second in each hour
			r.pass(time.Minute)
			r.clock.Step(time.Second / 60)
		}
		if d.saves != 2 {
			t.Errorf("%d saves in four hours of waiting", d.saves-2)
		}
		r.end()
	})
}

func TestNotReady(t *testing.T) {
	k := timers.New(timers.Options{Records: new(disk)})
	if _, err := k.Set("", time.Second); err != timers.ErrNotReady {
		t.Errorf("a timer before Run: %v", err)
	}
	if _, err := k.SetAlarm("", timers.AlarmTime{}); err != timers.ErrNotReady {
		t.Errorf("an alarm before Run: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, nil, monday(), true)
		must(r.Set("tea", time.Second))
		r.pass(time.Second)
		r.end()
		if r.ringing() {
			t.Error("it still rings")
		}
		r.pass(time.Hour)
		if _, err := r.Set("", time.Second); err != timers.ErrNotReady || r.ringing() {
			t.Errorf("a timer after the end: %v", err)
		}
	})
}

func TestAlarmBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, nil, monday(), true)
		for _, at := range []timers.AlarmTime{{Hour: 24}, {Hour: -1}, {Minute: 60}, {Minute: -1}} {
			if _, err := r.SetAlarm("", at); err == nil {
				t.Errorf("%+v: no error", at)
			}
		}
		long := strings.Repeat("x", timers.MaxName+1)
		if _, err := r.SetAlarm(long, timers.AlarmTime{}); err != timers.ErrNameTooLong {
			t.Errorf("an alarm of a long name: %v", err)
		}
		if _, err := r.Set(long, time.Second); err != timers.ErrNameTooLong {
			t.Errorf("a timer of a long name: %v", err)
		}
		for range timers.MaxAlarms {
			must(r.SetAlarm("", timers.AlarmTime{}))
		}
		if _, err := r.SetAlarm("", timers.AlarmTime{}); err != timers.ErrTooManyAlarms {
			t.Errorf("one more: %v", err)
		}
		r.end()
	})
}

// What was saved, and may have been damaged, is never worse than lost.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"version":1,"at":"2030-01-07T22:00:00Z","items":[{"id":1,"state":"waiting","left":60,"ends":"2030-01-07T22:01:00Z","total":60}]}`))
	f.Add([]byte(`{"version":1,"at":"2030-01-07T22:00:00Z","items":[{"id":1,"state":"snoozed","left":-1e300,"alarm":{"hour":7,"minute":0,"days":62,"repeat":true,"date":"2030-01-08"}}]}`))
	f.Add([]byte(`{"version":1,"items":[{"id":1,"state":"ringing","alarm":{"hour":7,"minute":0,"date":"0001-01-01","dated":true}}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{data: data}
			r := boot(t, d, monday(), len(data)%2 == 0)
			r.pass(10 * time.Second)
			r.sane = true
			r.clock.Step(time.Hour)
			r.pass(time.Minute)
			if len(r.List()) > timers.MaxTimers+timers.MaxAlarms {
				t.Errorf("%d timers", len(r.List()))
			}
			must(r.SetAlarm("new", timers.AlarmTime{Hour: 7}))
			r.end()
			r = boot(t, d, r.clock.Now(), true)
			if !slices.ContainsFunc(r.Alarms(), func(a timers.Alarm) bool { return a.Name == "new" }) {
				t.Errorf("what was set after %s is lost: %s", data, d.data)
			}
			r.end()
		})
	})
}

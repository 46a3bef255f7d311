package timers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/clock"
	"bellbird/event"
	"bellbird/timers"
)

// monday is Monday, 7 January 2030, 10 PM.
func monday() time.Time { return time.Date(2030, 1, 7, 22, 0, 0, 0, time.UTC) }

var weekdays = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}

// What becomes of timers and alarms when the device is off for a while, and starts with a clock that is right, or behind
// until it learns the time.
func TestBoot(t *testing.T) {
	const day = 24 * time.Hour
	timer := func(name string, d time.Duration) func(*rig) {
		return func(r *rig) { must(r.Set(name, d)) }
	}
	alarm := func(at timers.AlarmTime) func(*rig) {
		return func(r *rig) { must(r.SetAlarm("up", at)) }
	}
	seven := timers.AlarmTime{Hour: 7}
	tests := []struct {
		name   string
		set    func(*rig)    // on monday, with the right time
		on     time.Duration // for so long after that
		clean  bool          // stopped rather than cut off
		off    time.Duration
		behind time.Duration // the clock, when it starts again
		sync   time.Duration // it learns the time after so long; 0: it has it from the start
		after  time.Duration // it is watched for so long
		want   []string
	}{
		{
			name: "timer, clock right", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, off: time.Minute, after: 8 * time.Minute,
			want: []string{"0s tea restored", "7m0s tea ringing"},
		},
		{
			name: "timer that ended while it was off", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, off: time.Hour, after: 20 * time.Minute,
			want: []string{"0s tea restored", "0s tea ringing late", "15m0s tea silenced late"},
		},
		{
			name: "timer that ended two days ago", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, off: 2 * day, after: time.Minute,
			want: []string{"0s tea restored", "0s tea missed late"},
		},
		{ // until it knows the time it goes by what was left when it was set
			name: "timer, clock a day behind, then set", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, off: time.Minute,
			behind: day, sync: 40 * time.Second, after: 8 * time.Minute,
			want: []string{"0s tea restored", "7m0s tea ringing"},
		},
		{
			name: "timer that ended while it was off, clock a day behind, then set", set: timer("tea", 10*time.Minute), on: 2 * time.Minute,
			off: time.Hour, behind: day, sync: 40 * time.Second, after: 2 * time.Minute,
			want: []string{"0s tea restored", "1m0s tea ringing late"},
		},
		{ // a stop says exactly how much is left
			name: "timer, clock never set", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, clean: true, off: time.Minute,
			behind: day, sync: day, after: 9 * time.Minute,
			want: []string{"0s tea restored", "8m0s tea ringing"},
		},
		{
			name: "timer, cut off, clock never set", set: timer("tea", 10*time.Minute), on: 2 * time.Minute, off: time.Minute,
			behind: day, sync: day, after: 11 * time.Minute,
			want: []string{"0s tea restored", "10m0s tea ringing"},
		},
		{
			name: "ringing", set: timer("tea", time.Minute), on: 2 * time.Minute, off: 30 * time.Second, after: 15 * time.Minute,
			want: []string{"0s tea restored", "0s tea ringing late", "13m30s tea silenced late"},
		},
		{
			name: "ringing, stopped", set: timer("tea", time.Minute), on: 11 * time.Minute, clean: true, off: time.Hour, after: 15 * time.Minute,
			want: []string{"0s tea restored", "0s tea ringing late", "5m0s tea silenced late"},
		},
		{
			name: "ringing, clock a day behind", set: timer("tea", time.Minute), on: 2 * time.Minute, off: 30 * time.Second,
			behind: day, sync: 40 * time.Second, after: 20 * time.Minute,
			want: []string{"0s tea restored", "0s tea ringing late", "15m0s tea silenced late"},
		},
		{
			name: "snoozed", on: time.Minute, off: time.Minute, after: 10 * time.Minute,
			set: func(r *rig) {
				must(r.Set("tea", time.Minute))
				r.pass(2 * time.Minute)
				must(r.Snooze(0))
			},
			want: []string{"0s tea restored", "7m0s tea ringing"},
		},
		{
			name: "snoozed alarm of weekdays, which would have rung while it was off", off: 20 * time.Minute, after: 20 * time.Minute,
			set: func(r *rig) {
				must(r.SetAlarm("up", timers.AlarmTime{Hour: 7, Days: weekdays, Repeat: true}))
				r.pass(9*time.Hour + time.Minute)
				must(r.Snooze(0))
			},
			want: []string{"0s up restored", "0s up ringing late", "15m0s up silenced"},
		},
		{
			name: "alarm, clock right", set: alarm(seven), on: time.Hour, off: time.Hour, after: 8 * time.Hour,
			want: []string{"0s up restored", "7h0m0s up ringing", "7h15m0s up silenced"},
		},
		{
			name: "alarm, clock a day behind, then set", set: alarm(seven), on: time.Hour, off: time.Hour,
			behind: day, sync: 40 * time.Second, after: 7 * time.Hour,
			want: []string{"0s up restored", "7h0m0s up ringing"},
		},
		{
			name: "alarm that was missed", set: alarm(seven), on: time.Hour, off: 10 * time.Hour, after: time.Minute,
			want: []string{"0s up restored", "0s up ringing late"},
		},
		{
			name: "alarm that was missed, clock a day behind, then set", set: alarm(seven), on: time.Hour, off: 10 * time.Hour,
			behind: day, sync: 40 * time.Second, after: time.Minute,
			want: []string{"0s up restored", "1m0s up ringing late"},
		},
		{
			name: "alarm two days ago", set: alarm(seven), on: time.Hour, off: 50 * time.Hour, after: time.Minute,
			want: []string{"0s up restored", "0s up missed late"},
		},
		{ // at the latest time known to have been it was 10 PM, so it rings an hour after that of the power cut
			name: "alarm, clock never set", set: alarm(seven), on: time.Hour, off: time.Hour, behind: day, sync: 2 * day, after: 10 * time.Hour,
			want: []string{"0s up restored", "9h0m0s up ringing", "9h15m0s up silenced"},
		},
		{ // of Tuesday's, Wednesday's and Thursday's the last counts
			name: "alarm of weekdays that was missed three times", set: alarm(timers.AlarmTime{Hour: 7, Days: weekdays, Repeat: true}),
			on: time.Hour, off: 2*day + 9*time.Hour, after: day,
			want: []string{"0s up restored", "0s up ringing late", "15m0s up silenced", "23h0m0s up ringing", "23h15m0s up silenced"},
		},
		{
			name: "alarm of Mondays that was missed two days ago", set: alarm(timers.AlarmTime{Hour: 23, Days: []time.Weekday{1}, Repeat: true}),
			on: time.Minute, off: 2 * day, after: time.Minute,
			want: []string{"0s up restored", "0s up missed late"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := boot(t, new(disk), monday(), true)
				test.set(first)
				first.pass(test.on)
				if test.clean {
					first.end()
				}
				left := first.disk.copy()
				first.end()

				now := first.clock.Now().Add(test.off)
				second := boot(t, left, now.Add(-test.behind), test.sync == 0)
				var got []string
				if test.sync > 0 && test.sync < test.after {
					got = second.pass(test.sync)
					second.clock.Step(test.behind)
					second.sane = true
				}
				got = append(got, second.pass(test.after-second.clock.Elapsed())...)
				second.end()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s", diff)
				}
			})
		})
	}
}

// What was set before the clock was right means what it says once it is.
func TestSetBeforeTheTimeIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		r := boot(t, d, monday().Add(-30*24*time.Hour), false)
		must(r.SetAlarm("up", timers.AlarmTime{Hour: 7}))
		must(r.SetAlarm("fair", timers.AlarmTime{Hour: 9, Days: []time.Weekday{time.Saturday}}))
		must(r.Set("tea", 10*time.Minute))
		r.pass(time.Minute)
		r.clock.Step(30 * 24 * time.Hour)
		r.sane = true
		r.pass(time.Minute)
		cut := d.copy() // which must know when the timer ends
		r.end()

		r = boot(t, cut, monday().Add(7*time.Minute), true)
		want := []string{
			"0s up restored", "0s fair restored", "0s tea restored", "3m0s tea ringing", "8h53m0s up ringing",
		}
		got := r.pass(10 * time.Minute)
		r.Silence()
		r.told()
		got = append(got, r.pass(8*time.Hour+45*time.Minute)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if list := r.Alarms(); len(list) != 2 || !list[1].Next.Equal(time.Date(2030, 1, 12, 9, 0, 0, 0, time.UTC)) {
			t.Errorf("alarms %+v, want that of Saturday", list)
		}
		r.end()
	})
}

// Without Sane, a clock that is earlier than what was saved is known to be wrong.
func TestClockBehindWhatWasSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		r := boot(t, d, monday(), true)
		must(r.Set("tea", 10*time.Minute))
		r.end()

		v := clock.NewVirtual(monday().Add(-24 * time.Hour))
		k := timers.New(timers.Options{Clock: v, Bus: new(event.Bus), Records: d})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		synctest.Wait()
		if now, known := k.Now(); known || !now.Equal(monday()) || k.List()[0].Left != 10*time.Minute {
			t.Errorf("%v, known is %v, %v left", now, known, k.List()[0].Left)
		}
		v.Step(24*time.Hour + 3*time.Minute)
		if now, known := k.Now(); !known || !now.Equal(v.Now()) || k.List()[0].Left != 7*time.Minute {
			t.Errorf("after the clock was set: %v, known is %v, %v left", now, known, k.List()[0].Left)
		}
		cancel()
		<-done
	})
}

// Steps while it runs: timers pass over them, alarms go by them.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, new(disk), monday(), true)
		must(r.Set("tea", 10*time.Minute))
		must(r.SetAlarm("up", timers.AlarmTime{Hour: 7, Days: weekdays, Repeat: true}))
		must(r.SetAlarm("once", timers.AlarmTime{Hour: 8}))
		r.told()
		r.clock.Step(9*time.Hour - 2*time.Minute) // it is 6:58 AM
		got := r.pass(3 * time.Minute)
		r.Silence()
		got = append(got, r.told()...)
		r.clock.Step(-2 * time.Minute) // a little back: it is 6:59, and it has rung for that already
		got = append(got, r.pass(2*time.Minute)...)
		r.clock.Step(-24 * time.Hour)
		if list := r.Alarms(); !list[0].Next.Equal(monday().Add(9 * time.Hour)) {
			t.Errorf("next %v after the clock was set back by a day, want the 7 AM that is next", list[0].Next)
		}
		got = append(got, r.pass(6*time.Minute)...)
		r.end()
		want := []string{
			"30s tea moved", "2m0s up ringing", "3m0s up silenced", "3m30s tea moved", "5m0s tea moved", "5m0s up moved", "10m0s tea ringing",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// The clock may step by days while an alarm rings that rings again on one of them.
func TestStepWhileRinging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, new(disk), monday(), true)
		must(r.SetAlarm("up", timers.AlarmTime{Hour: 22, Minute: 1, Days: []time.Weekday{time.Monday, time.Tuesday}, Repeat: true}))
		r.told()
		got := r.pass(2 * time.Minute)
		r.clock.Step(4 * 24 * time.Hour)
		got = append(got, r.pass(time.Minute)...)
		if !r.ringing() || !r.Silence() || r.ringing() || r.Silence() {
			t.Error("it rang, and was silenced, or not")
		}
		got = append(got, r.told()...)
		if next := r.Alarms()[0].Next; !next.Equal(monday().Add(7*24*time.Hour + time.Minute)) {
			t.Errorf("next %v", next)
		}
		r.end()
		if diff := cmp.Diff([]string{"1m0s up ringing", "3m0s up silenced"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

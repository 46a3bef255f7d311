package timers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/timers"
)

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("no time zones: %v; apt install tzdata", err)
	}
	return zone
}

// When an alarm that is set at a moment rings.
func TestAlarmTimes(t *testing.T) {
	berlin, lordHowe := load(t, "Europe/Berlin"), load(t, "Australia/Lord_Howe")
	in := func(zone *time.Location, s string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04:05", s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	weekend := []time.Weekday{time.Saturday, time.Sunday}
	tests := []struct {
		name string
		zone *time.Location
		now  string
		at   timers.AlarmTime
		want string // in UTC
	}{
		{"later today", time.UTC, "2030-01-07 06:00:00", timers.AlarmTime{Hour: 7}, "2030-01-07 07:00:00"},
		{"tomorrow, since it has passed", time.UTC, "2030-01-07 07:00:00", timers.AlarmTime{Hour: 7}, "2030-01-08 07:00:00"},
		{"tomorrow, since it was asked for", time.UTC, "2030-01-07 06:00:00", timers.AlarmTime{Hour: 7, Tomorrow: true}, "2030-01-08 07:00:00"},
		{"seven in the evening comes first", time.UTC, "2030-01-07 08:00:00", timers.AlarmTime{Hour: 7, EitherHalf: true}, "2030-01-07 19:00:00"},
		{"seven in the morning comes first", time.UTC, "2030-01-07 22:00:00", timers.AlarmTime{Hour: 7, EitherHalf: true}, "2030-01-08 07:00:00"},
		{"twelve is noon", time.UTC, "2030-01-07 08:00:00", timers.AlarmTime{Hour: 12, EitherHalf: true}, "2030-01-07 12:00:00"},
		{"twelve is midnight", time.UTC, "2030-01-07 22:00:00", timers.AlarmTime{Hour: 12, EitherHalf: true}, "2030-01-08 00:00:00"},
		{"seven on weekdays is in the morning", time.UTC, "2030-01-07 08:00:00", timers.AlarmTime{Hour: 7, EitherHalf: true, Days: weekdays, Repeat: true}, "2030-01-08 07:00:00"},
		{"four on weekdays is in the afternoon", time.UTC, "2030-01-07 20:00:00", timers.AlarmTime{Hour: 4, EitherHalf: true, Days: weekdays, Repeat: true}, "2030-01-08 16:00:00"},
		{"Friday evening to Monday", time.UTC, "2030-01-11 20:00:00", timers.AlarmTime{Hour: 7, Days: weekdays, Repeat: true}, "2030-01-14 07:00:00"},
		{"once, on the next of the days", time.UTC, "2030-01-07 08:00:00", timers.AlarmTime{Hour: 9, Days: weekend}, "2030-01-12 09:00:00"},
		{"in local time", berlin, "2030-01-07 08:00:00", timers.AlarmTime{Hour: 9}, "2030-01-07 08:00:00"},
		{"on the night before summer", berlin, "2030-03-30 23:00:00", timers.AlarmTime{Hour: 7}, "2030-03-31 05:00:00"},
		{"a time there isn't", berlin, "2030-03-30 23:00:00", timers.AlarmTime{Hour: 2, Minute: 30}, "2030-03-31 01:00:00"},
		{"a time there is twice", berlin, "2030-10-26 23:00:00", timers.AlarmTime{Hour: 2, Minute: 30}, "2030-10-27 00:30:00"},
		{"the last minute before it is there twice", berlin, "2030-10-26 23:00:00", timers.AlarmTime{Hour: 1, Minute: 59}, "2030-10-26 23:59:00"},
		{"the first that is there once again", berlin, "2030-10-26 23:00:00", timers.AlarmTime{Hour: 3}, "2030-10-27 02:00:00"},
		{"half an hour that there isn't", lordHowe, "2030-10-05 23:00:00", timers.AlarmTime{Hour: 2, Minute: 15}, "2030-10-05 15:30:00"},
		{"half an hour that there is twice", lordHowe, "2030-04-06 23:00:00", timers.AlarmTime{Hour: 1, Minute: 45}, "2030-04-06 14:45:00"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, nil, in(test.zone, test.now), true)
				a := must(r.SetAlarm("", test.at))
				r.end()
				if want := in(time.UTC, test.want); !a.Next.Equal(want) {
					t.Errorf("rings at %v, want %v", a.Next.UTC(), want)
				}
			})
		})
	}
}

// An alarm rings once on each day, on those without its time and on those with two of it as well.
func TestSummerTime(t *testing.T) {
	berlin := load(t, "Europe/Berlin")
	for _, test := range []struct {
		begin time.Time
		want  []string
	}{
		{time.Date(2030, 3, 30, 2, 0, 0, 0, berlin), []string{"30m0s up ringing", "24h0m0s up ringing", "47h30m0s up ringing"}},
		{time.Date(2030, 10, 26, 2, 0, 0, 0, berlin), []string{"30m0s up ringing", "24h30m0s up ringing", "49h30m0s up ringing"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := boot(t, nil, test.begin, true)
			must(r.SetAlarm("up", timers.AlarmTime{Hour: 2, Minute: 30, Repeat: true}))
			r.told()
			var got []string
			for range 100 {
				got = append(got, r.pass(30*time.Minute)...)
				r.Silence()
				r.told()
			}
			r.end()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("from %v: %s", test.begin, diff)
			}
		})
	}
}

// An alarm for seven rings at seven, wherever the device has been brought.
func TestZoneChanges(t *testing.T) {
	berlin := load(t, "Europe/Berlin")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, nil, monday(), true)
		must(r.SetAlarm("up", timers.AlarmTime{Hour: 7}))
		must(r.Set("tea", 10*time.Minute))
		r.told()
		r.zone = berlin
		got := r.pass(9 * time.Hour)
		r.end()
		want := []string{"30s up moved", "10m0s tea ringing", "25m0s tea silenced", "8h0m0s up ringing", "8h15m0s up silenced"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

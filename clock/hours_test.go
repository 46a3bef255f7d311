package clock_test

import (
	"testing"
	"time"

	"bellbird/clock"
)

func TestHours(t *testing.T) {
	for _, test := range []struct {
		hours   string
		in, out []string
	}{
		{"22:00-07:00", []string{"22:00", "23:59", "00:00", "06:59"}, []string{"07:00", "12:00", "21:59"}},
		{"03:00-05:30", []string{"03:00", "05:29"}, []string{"02:59", "05:30", "23:00"}},
		{"8:15 - 00:00", []string{"08:15", "23:59"}, []string{"00:00", "08:14"}},
		{"", nil, []string{"00:00", "12:00"}},
	} {
		var h clock.Hours
		if err := h.UnmarshalText([]byte(test.hours)); err != nil {
			t.Errorf("%q: %v", test.hours, err)
			continue
		}
		for want, times := range map[bool][]string{true: test.in, false: test.out} {
			for _, s := range times {
				at, err := time.ParseInLocation("2006-01-02 15:04", "2026-03-29 "+s, time.UTC)
				if err != nil {
					t.Fatal(err)
				}
				if got := h.Contain(at); got != want {
					t.Errorf("%q contain %s: %v", test.hours, s, got)
				}
			}
		}
		var again clock.Hours
		if err := again.UnmarshalText([]byte(h.String())); err != nil || again != h {
			t.Errorf("%q is written %q, and read as %q, %v", test.hours, h, again, err)
		}
	}
	var h clock.Hours
	if err := h.UnmarshalText([]byte("23:30-00:30")); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]float64{"23:29": -1, "23:30": 0, "00:00": 0.5, "00:15": 0.75, "00:30": -1} {
		c, err := time.Parse("15:04", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Over(c); got != want {
			t.Errorf("at %s %v of %s are over, want %v", at, got, h, want)
		}
	}
	for _, wrong := range []string{"22:00", "22-7", "24:00-07:00", "late-early", "-", "07:00-07:00", "22:00-07:00-08:00"} {
		var h clock.Hours
		if err := h.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q: no error, but %q", wrong, h)
		}
	}
}

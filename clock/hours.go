package clock

import (
	"fmt"
	"strings"
	"time"
)

// Hours are a part of each day, by the local time, such as "22:00-07:00". The zero value is no time at all.
type Hours struct {
	from, to time.Duration // of the day. If to is before from they last past midnight.
}

// Between are the hours from one time of day to another, each given as the time since midnight on an ordinary day.
func Between(from, to time.Duration) Hours { return Hours{from, to} }

// UnmarshalText reads "22:00-07:00". The first minute belongs to them, the last doesn't. Empty is no time at all.
func (h *Hours) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = Hours{}
		return nil
	}
	from, to, found := strings.Cut(string(text), "-")
	if !found {
		return fmt.Errorf("hours %q: they are written as 22:00-07:00", text)
	}
	var read Hours
	for _, end := range []struct {
		text string
		of   *time.Duration
	}{{from, &read.from}, {to, &read.to}} {
		t, err := time.Parse("15:04", strings.TrimSpace(end.text))
		if err != nil {
			return fmt.Errorf("hours %q: %q is no time of day: they are written as 22:00-07:00", text, end.text)
		}
		*end.of = ofDay(t)
	}
	if read.from == read.to {
		return fmt.Errorf("hours %q: they end as they begin", text)
	}
	*h = read
	return nil
}

// String is as UnmarshalText reads it.
func (h Hours) String() string {
	if h == (Hours{}) {
		return ""
	}
	write := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
	return write(h.from) + "-" + write(h.to)
}

// Contain reports whether t is within them, by the time of day in t's own zone.
func (h Hours) Contain(t time.Time) bool {
	d := ofDay(t)
	if h.from <= h.to {
		return h.from <= d && d < h.to
	}
	return h.from <= d || d < h.to
}

// Over is the share of them that is over at t, from 0 up to 1; negative outside of them.
func (h Hours) Over(t time.Time) float64 {
	if !h.Contain(t) {
		return -1
	}
	const day = 24 * time.Hour
	return float64((ofDay(t)-h.from+day)%day) / float64((h.to-h.from+day)%day)
}

// ofDay is what a clock on the wall shows, which on the days when it is set is not the time since midnight.
func ofDay(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
}

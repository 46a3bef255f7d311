package gpio_test

import (
	"testing"
	"testing/synctest"
	"time"

	"bellbird/clock"
	body "bellbird/gpio"
)

func TestNight(t *testing.T) {
	var hours clock.Hours
	if err := hours.UnmarshalText([]byte("00:10-00:20")); err != nil {
		t.Fatal(err)
	}
	try(t, body.Options{Night: body.Night{Hours: hours, Brightness: 0.3}}, nil, func(s *subject) { // a bubble begins at midnight, UTC
		after := func(d time.Duration) float64 {
			time.Sleep(d)
			synctest.Wait()
			return s.Ring().Showing().Night
		}
		if !s.HasNight() {
			t.Error("it has no night")
		}
		if got := after(9 * time.Minute); got != 0 {
			t.Errorf("before the night it is dimmed to %v", got)
		}
		if got := after(2 * time.Minute); got != 0.3 {
			t.Errorf("at night it is dimmed to %v", got)
		}
		if err := s.SetNightBrightness(0.1); err != nil {
			t.Fatal(err)
		}
		if got := after(0); got != 0.1 || s.NightBrightness() != 0.1 {
			t.Errorf("when it is set to 0.1 it is dimmed to %v", got)
		}
		for _, wrong := range []float64{0, -1, 1.1} {
			if err := s.SetNightBrightness(wrong); err == nil {
				t.Errorf("%v is accepted", wrong)
			}
		}
		if got := after(10 * time.Minute); got != 0 {
			t.Errorf("after the night it is dimmed to %v", got)
		}
	})
	if _, err := (body.Options{Night: body.Night{Brightness: 2}}).Resolve(); err == nil {
		t.Error("a brightness of 2 is accepted")
	}
}

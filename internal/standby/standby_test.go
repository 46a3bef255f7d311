package standby_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/internal/standby"
)

func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := standby.New(standby.Options{Primary: "remote", Second: "local", MinBackoff: time.Second, MaxBackoff: 5 * time.Second,
			OnSwitch: func(name string, why error) { told = append(told, fmt.Sprint(name, " ", why)) }})
		expect := func(want ...string) {
			t.Helper()
			if !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		}
		s.Works()
		expect() // it is the primary at first
		for _, rest := range []time.Duration{1, 2, 4, 5, 5} {
			s.Failed(errors.New("gone"))
			if !s.Resting() || !s.Instead() {
				t.Error("it isn't left alone")
			}
			time.Sleep(rest*time.Second - 1)
			if !s.Resting() {
				t.Errorf("it isn't left alone for %d s", rest)
			}
			time.Sleep(time.Nanosecond)
			if s.Resting() || !s.Instead() {
				t.Errorf("after %d s it is still left alone, or works already", rest)
			}
		}
		expect("local gone")
		s.Works()
		expect("local gone", "remote <nil>")
		s.Failed(errors.New("again"))
		time.Sleep(time.Second)
		if s.Resting() {
			t.Error("a success doesn't make the next rest short")
		}
		expect("local gone", "remote <nil>", "local again")
	})
}

package timers_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/event"
	"bellbird/timers"
)

// keeper returns a keeper whose ring and facts are noted.
func keeper() (k *timers.Keeper, rings func() []bool, facts *event.Subscription) {
	var mu sync.Mutex
	var calls []bool
	bus := new(event.Bus)
	k = timers.New(timers.Options{Bus: bus, Ring: func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, on)
	}})
	rings = func() []bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(calls)
	}
	return k, rings, bus.Subscribe(100)
}

func changes(facts *event.Subscription) []event.TimerChange {
	var all []event.TimerChange
	for len(facts.C) > 0 {
		all = append(all, (<-facts.C).(event.TimerChanged).What)
	}
	return all
}

func set(t *testing.T, k *timers.Keeper, name string, d time.Duration) timers.Timer {
	t.Helper()
	timer, err := k.Set(name, d)
	if err != nil {
		t.Fatal(err)
	}
	return timer
}

func TestRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, rings, facts := keeper()
		set(t, k, "tea", time.Minute)
		set(t, k, "", 30*time.Second)
		if list := k.List(); len(list) != 2 || list[0].Total != 30*time.Second || list[1].Name != "tea" {
			t.Errorf("list %+v", list)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if len(rings()) > 0 {
			t.Error("it rings too early")
		}
		time.Sleep(32 * time.Second)
		synctest.Wait()
		if !slices.Equal(rings(), []bool{true}) {
			t.Errorf("rings %v, want one for both timers", rings())
		}
		if !k.Silence() || k.Silence() {
			t.Error("Silence reports the wrong thing")
		}
		if !slices.Equal(rings(), []bool{true, false}) || len(k.List()) > 0 {
			t.Errorf("rings %v, list %v", rings(), k.List())
		}
		want := []event.TimerChange{"set", "set", "ringing", "ringing", "silenced", "silenced"}
		if got := changes(facts); !slices.Equal(got, want) {
			t.Errorf("facts %v, want %v", got, want)
		}
	})
}

func TestRingingEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, rings, _ := keeper()
		set(t, k, "", time.Second)
		time.Sleep(time.Second + timers.MaxRinging - time.Millisecond)
		synctest.Wait()
		if len(rings()) != 1 {
			t.Errorf("rings %v", rings())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(rings()) != 2 || len(k.List()) > 0 {
			t.Errorf("rings %v, list %v", rings(), k.List())
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, rings, facts := keeper()
		a := set(t, k, "a", time.Second)
		b := set(t, k, "b", time.Second)
		if !k.Cancel(a.ID) || k.Cancel(a.ID) || k.Cancel(99) {
			t.Error("Cancel reports the wrong thing")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if list := k.List(); len(list) != 1 || !list[0].Ringing {
			t.Errorf("list %+v", list)
		}
		k.Cancel(b.ID)
		if !slices.Equal(rings(), []bool{true, false}) {
			t.Errorf("rings %v", rings())
		}
		want := []event.TimerChange{"set", "set", "cancelled", "ringing", "silenced"}
		if got := changes(facts); !slices.Equal(got, want) {
			t.Errorf("facts %v, want %v", got, want)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _, _ := keeper()
		for _, d := range []time.Duration{0, -time.Second, timers.MaxDuration + 1} {
			if _, err := k.Set("", d); err == nil {
				t.Errorf("a timer of %v: no error", d)
			}
		}
		for range timers.MaxTimers {
			set(t, k, "", time.Hour)
		}
		if _, err := k.Set("", time.Hour); err != timers.ErrTooMany {
			t.Errorf("one more: %v", err)
		}
		for _, timer := range k.List() {
			k.Cancel(timer.ID)
		}
	})
}

package mqtt_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"bellbird/event"
)

// BenchmarkAnnounce measures from the beginning of the connection to the last message of the discovery, as another client
// of the broker sees it.
func BenchmarkAnnounce(b *testing.B) {
	m := broker(b)
	w := watch(b, m.addr())
	h := newHouse()
	for b.Loop() {
		n := w.mark()
		d := begin(b, h.appliance(), at(m.url()))
		n = w.payload(n, d.availability(), "online")
		b.StopTimer()
		d.stop()
		w.payload(n, d.availability(), "offline")
		b.StartTimer()
	}
}

// BenchmarkFact measures from a fact on the bus to its message at another client of the broker.
func BenchmarkFact(b *testing.B) {
	m := broker(b)
	w := watch(b, m.addr(), "bellbird/+/state", "bellbird/+/availability")
	d := begin(b, newHouse().appliance(), at(m.url()))
	n := w.payload(0, d.availability(), "online")
	states := []event.State{event.Listening, event.Thinking, event.Speaking, event.Idle}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		d.bus.Publish(event.StateChanged{To: states[i%4]})
		n = w.payload(n, d.base+"/state", fmt.Sprint(states[i%4]))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99_ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50_ms")
}

// BenchmarkMemory measures what a connected device with all entities holds, of the heap and of goroutines' stacks.
func BenchmarkMemory(b *testing.B) {
	m := broker(b)
	w := watch(b, m.addr(), "bellbird/+/availability")
	used := func() float64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc+s.StackInuse) / 1024
	}
	var most float64
	for b.Loop() {
		before, n := used(), w.mark()
		d := begin(b, newHouse().appliance(), at(m.url()))
		n = w.payload(n, d.availability(), "online")
		most = max(most, used()-before)
		d.stop()
		w.payload(n, d.availability(), "offline")
	}
	b.ReportMetric(most, "KiB")
}

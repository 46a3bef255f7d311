package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkFire is a fire of pre_chat that one integration hears: what it costs to ask it.
func BenchmarkFire(b *testing.B) {
	for _, name := range []string{"shopping", "orders"} {
		for _, transport := range exampleTransports {
			b.Run(name+"/"+transport, func(b *testing.B) {
				r := example(b, name, transport)
				for b.Loop() {
					r.runner.Fire(b.Context(), "pre_chat", said("what time is it"))
				}
			})
		}
	}
	b.Run("none", func(b *testing.B) { // subscribes
		r := newRealRig(b, map[string]string{"good": strings.Replace(peer("good"), `"transcript":{}`, `"transcript":{"apps":["elsewhere"]}`, 1)})
		for b.Loop() {
			r.runner.Fire(b.Context(), "pre_chat", said("what time is it"))
		}
	})
}

// BenchmarkHostile is how long a turn waits for five integrations that don't answer in time: the first three times, and
// then, when they are left out.
func BenchmarkHostile(b *testing.B) {
	for range b.N {
		manifests := make(map[string]string)
		var names []string
		for i := range 5 {
			name := fmt.Sprintf("slow%d", i)
			manifests[name] = strings.Replace(peer("slow"), `"name":"slow"`, fmt.Sprintf(`"name":%q`, name), 1)
			names = append(names, name)
		}
		r := newRealRig(b, manifests)
		r.ready(b, names...)
		longest := func(turns int) float64 {
			var most time.Duration
			for range turns {
				began := time.Now()
				r.runner.Fire(b.Context(), "pre_chat", said("hello"))
				most = max(most, time.Since(began))
			}
			return float64(most.Microseconds()) / 1000
		}
		b.ReportMetric(longest(3), "ms/turn-at-first")
		b.ReportMetric(longest(10), "ms/turn-then")
	}
}

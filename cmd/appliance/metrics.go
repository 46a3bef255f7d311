package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"bellbird/api"
	"bellbird/event"
	"bellbird/turns"
)

// What is measured, for Prometheus.

// figures are those of the follower, and what the parts count themselves.
type figures struct {
	a *appliance
	f *follower
	o api.Options
}

func (g *figures) write(w io.Writer) error {
	all := []turns.Family{
		{Name: "bellbird_info", Help: "The version of the firmware.", Type: "gauge", Samples: []turns.Sample{{Labels: []string{"version", version}, Value: 1}}},
		turns.Gauge("process_start_time_seconds", "When the program was started, in seconds since 1970.", float64(g.f.began.UnixMilli())/1000),
	}
	if rss, ok := resident(); ok {
		all = append(all, turns.Gauge("process_resident_memory_bytes", "Memory that the program holds, without its children.", rss))
	}
	all = append(all, g.state(), turns.Gauge("bellbird_volume_percent", "How loud it is.", float64(g.o.Volume().Percent)))
	if g.o.Mute != nil {
		all = append(all, turns.Gauge("bellbird_microphone_muted", "Whether the microphone is muted.", truth(g.o.Mute().Muted)))
	}
	all = append(all, g.f.meter.Families()...)
	sound := g.a.output.Stats()
	all = append(all,
		turns.Counter("bellbird_played_frames_total", "Frames of 20 ms that the loudspeaker took.", float64(sound.Pulled)),
		turns.Counter("bellbird_underruns_total", "Frames of speech that came too late for the loudspeaker.", float64(sound.Underruns)),
		turns.Counter("bellbird_late_calls_total", "Calls that came when the turn that they were for was over.", float64(g.a.turns.Late())),
		turns.Counter("bellbird_facts_missed_total", "Facts that these figures lack because there were too many at once.", float64(g.f.facts.Dropped())),
		g.reached(),
	)
	return turns.WriteText(w, append(all, g.a.tally.families()...))
}

func (g *figures) state() turns.Family {
	s := turns.Family{Name: "bellbird_state", Help: "What it is doing: 1 for one of the states, 0 for the others.", Type: "gauge"}
	now := g.f.seen().State
	for _, one := range []event.State{event.Idle, event.Listening, event.Thinking, event.Speaking, event.FollowUp, event.Failed} {
		s.Samples = append(s.Samples, turns.Sample{Labels: []string{"state", string(one)}, Value: truth(one == now)})
	}
	return s
}

func (g *figures) reached() turns.Family {
	r := turns.Family{Name: "bellbird_engine_reached", Help: "Whether an engine answered when it was last wanted.", Type: "gauge"}
	for _, m := range g.f.engines() {
		if m.Reached != nil {
			r.Samples = append(r.Samples, turns.Sample{Labels: []string{"kind", m.Kind, "name", m.Name}, Value: truth(*m.Reached)})
		}
	}
	return r
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// families are what the hooks did and cost.
func (t *tally) families() []turns.Family {
	calls := turns.Family{Name: "bellbird_hook_calls_total", Help: "Calls of plugins' hooks.", Type: "counter"}
	misses := turns.Family{Name: "bellbird_hook_misses_total", Help: "Calls of hooks that missed their deadline.", Type: "counter"}
	failures := turns.Family{Name: "bellbird_hook_failures_total", Help: "Calls of hooks that failed.", Type: "counter"}
	took := turns.Family{Name: "bellbird_hook_seconds_total", Help: "What calls of hooks took, all together.", Type: "counter"}
	worst := turns.Family{Name: "bellbird_hook_worst_seconds", Help: "What the slowest call of a hook took.", Type: "gauge"}
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys [][2]string
	for k := range t.hooks {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		n, labels := t.hooks[k], []string{"plugin", k[0], "point", k[1]}
		if n.calls == 0 {
			continue
		}
		for f, v := range map[*turns.Family]float64{
			&calls: float64(n.calls), &misses: float64(n.misses), &failures: float64(n.failures), &took: n.total.Seconds(), &worst: n.worst.Seconds(),
		} {
			f.Samples = append(f.Samples, turns.Sample{Labels: labels, Value: v})
		}
	}
	return []turns.Family{calls, misses, failures, took, worst}
}

// resident is how much memory the program holds, in bytes.
func resident() (float64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err == nil
}

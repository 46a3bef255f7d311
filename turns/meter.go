package turns

import (
	"maps"
	"slices"
	"sync"

	"bellbird/event"
)

// A Meter makes figures of facts. Those of private chats it ignores. It may be used by several goroutines; the zero
// value is ready for use.
type Meter struct {
	mu sync.Mutex

	outcomes, errors, modelErrors counts
	wakes, nearMisses             counts // by word
	left                          counts // times that plugins were left out
	spans, scores, peaks          map[string]*window
	gaps                          float64
	model                         event.ModelUse
}

// maxLabels bounds how many values a label can have: a metric is not for what comes from outside.
const maxLabels = 100

type counts map[string]float64

func (c *counts) add(key string, n float64) {
	if *c == nil {
		*c = make(counts)
	}
	if _, there := (*c)[key]; there || len(*c) < maxLabels {
		(*c)[key] += n
	}
}

func observe(m *map[string]*window, key string, v float64) {
	if *m == nil {
		*m = make(map[string]*window)
	}
	w := (*m)[key]
	if w == nil {
		if len(*m) == maxLabels {
			return
		}
		w = new(window)
		(*m)[key] = w
	}
	w.add(v)
}

// Tell counts a fact.
func (m *Meter) Tell(f event.Fact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch f := f.(type) {
	case event.TurnEnded:
		if !f.Record.Private {
			m.turn(f.Record)
		}
	case event.Woke:
		m.wakes.add(f.Word, 1)
		observe(&m.scores, f.Word, f.Score)
	case event.NearMiss:
		m.nearMisses.add(f.Word, 1+float64(f.Untold))
		observe(&m.peaks, f.Word, f.Peak)
	case event.HookMissed:
		m.left.add(f.Plugin, 1)
	}
}

func (m *Meter) turn(r event.Record) {
	m.outcomes.add(string(r.Outcome), 1)
	if r.Error != "" {
		m.errors.add(string(r.Error), 1)
	}
	m.gaps += float64(r.Gaps)
	for _, s := range Spans(r.Stages) {
		observe(&m.spans, s.Name, (s.To - s.From).Seconds())
	}
	if u := r.Model; u != nil {
		m.model.Requests += u.Requests
		m.model.Input += u.Input
		m.model.CacheRead += u.CacheRead
		m.model.CacheWrite += u.CacheWrite
		m.model.Output += u.Output
		if u.Error != "" {
			m.modelErrors.add(u.Error, 1)
		}
	}
}

// Families are the figures.
func (m *Meter) Families() []Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	byLabel := func(name, help, label string, c counts) Family {
		f := Family{Name: name, Help: help, Type: "counter"}
		for _, key := range slices.Sorted(maps.Keys(c)) {
			f.Samples = append(f.Samples, Sample{Labels: []string{label, key}, Value: c[key]})
		}
		return f
	}
	summary := func(name, help, label string, ws map[string]*window) Family {
		f := Family{Name: name, Help: help, Type: "summary"}
		for _, key := range slices.Sorted(maps.Keys(ws)) {
			f.Samples = append(f.Samples, ws[key].samples(label, key)...)
		}
		return f
	}
	tokens := Family{Name: "bellbird_model_tokens_total", Help: "Tokens of the model's requests; input is with what was cached.", Type: "counter"}
	for _, t := range []struct {
		kind string
		n    int
	}{{"input", m.model.Input}, {"cache_read", m.model.CacheRead}, {"cache_write", m.model.CacheWrite}, {"output", m.model.Output}} {
		tokens.Samples = append(tokens.Samples, Sample{Labels: []string{"kind", t.kind}, Value: float64(t.n)})
	}
	return []Family{
		byLabel("bellbird_turns_total", "Turns that are over, without those in private chats, of which nothing is counted.", "outcome", m.outcomes),
		byLabel("bellbird_turn_errors_total", "Turns that failed, by what failed them.", "kind", m.errors),
		summary("bellbird_turn_seconds", "What the last turns took, from stage to stage.", "stage", m.spans),
		Counter("bellbird_speech_gaps_total", "Holes in the speech of turns.", m.gaps),
		byLabel("bellbird_wakes_total", "Times that a wake word was heard.", "word", m.wakes),
		summary("bellbird_wake_score", "How sure the model of a wake word was when it was heard.", "word", m.scores),
		byLabel("bellbird_near_misses_total", "Times that a wake word was nearly heard.", "word", m.nearMisses),
		summary("bellbird_near_miss_score", "How sure the model of a wake word was when it was nearly heard.", "word", m.peaks),
		byLabel("bellbird_hooks_left_out_total", "Times that hooks of a plugin were left out for a while.", "plugin", m.left),
		Counter("bellbird_model_requests_total", "Requests to language models.", float64(m.model.Requests)),
		tokens,
		byLabel("bellbird_model_errors_total", "Turns whose request to the model failed, by the kind of error.", "kind", m.modelErrors),
	}
}

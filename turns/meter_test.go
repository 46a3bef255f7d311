package turns_test

import (
	"bytes"
	"strings"
	"testing"

	"bellbird/event"
	"bellbird/turns"
)

func text(t *testing.T, families []turns.Family) string {
	t.Helper()
	var b bytes.Buffer
	if err := turns.WriteText(&b, families); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is told is in the figures, but for private turns.
func TestMeter(t *testing.T) {
	var m turns.Meter
	for i := range 100 {
		r := record(uint64(i))
		r.Stages.End = ms(1000 * (i + 1))
		r.Gaps = 1
		r.Model = &event.ModelUse{Requests: 2, Input: 30, CacheRead: 20, Output: 10}
		m.Tell(event.TurnEnded{Record: r})
	}
	m.Tell(event.TurnEnded{Record: event.Record{Outcome: event.FailedTurn, Error: event.ModelFailed, Model: &event.ModelUse{Requests: 1, Error: "overloaded"}}})
	m.Tell(event.TurnEnded{Record: event.Record{Outcome: event.Interrupted, Private: true, Stages: event.Stages{End: ms(999_000)}}})
	m.Tell(event.Woke{Word: "okay_nabu", Score: 0.9})
	m.Tell(event.NearMiss{Word: "okay_nabu", Peak: 0.4, Untold: 2})
	m.Tell(event.HookMissed{Plugin: "weather"})
	got := text(t, m.Families())
	for _, want := range []string{
		"# TYPE bellbird_turns_total counter\nbellbird_turns_total{outcome=\"completed\"} 100\nbellbird_turns_total{outcome=\"failed\"} 1\n",
		`bellbird_turn_errors_total{kind="model"} 1`,
		`bellbird_turn_seconds{stage="answer",quantile="0.5"} 1.2`,
		`bellbird_turn_seconds{stage="turn",quantile="0.5"} 50`,
		`bellbird_turn_seconds{stage="turn",quantile="0.95"} 95`,
		`bellbird_turn_seconds{stage="turn",quantile="0.99"} 99`,
		`bellbird_turn_seconds_sum{stage="turn"} 5050`,
		`bellbird_turn_seconds_count{stage="turn"} 100`,
		`bellbird_speech_gaps_total 100`,
		`bellbird_wakes_total{word="okay_nabu"} 1`,
		`bellbird_wake_score{word="okay_nabu",quantile="0.99"} 0.9`,
		`bellbird_near_misses_total{word="okay_nabu"} 3`,
		`bellbird_near_miss_score_count{word="okay_nabu"} 1`,
		`bellbird_hooks_left_out_total{plugin="weather"} 1`,
		`bellbird_model_requests_total 201`,
		`bellbird_model_tokens_total{kind="input"} 3000`,
		`bellbird_model_tokens_total{kind="cache_read"} 2000`,
		`bellbird_model_errors_total{kind="overloaded"} 1`,
	} {
		if !strings.Contains(got, want+"\n") && !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "interrupted") {
		t.Error("a private turn is counted")
	}
}

// The quantiles are of the last ones, and the words that there can be are bounded.
func TestMeterIsBounded(t *testing.T) {
	var m turns.Meter
	for i := range 2000 {
		m.Tell(event.Woke{Word: "w", Score: float64(i)})
		m.Tell(event.NearMiss{Word: strings.Repeat("x", i)})
	}
	got := text(t, m.Families())
	if !strings.Contains(got, `bellbird_wake_score{word="w",quantile="0.5"} 1743`) || !strings.Contains(got, `bellbird_wake_score_count{word="w"} 2000`) {
		t.Error(got[:500])
	}
	if n := strings.Count(got, "bellbird_near_misses_total{"); n != 100 {
		t.Errorf("%d words", n)
	}
}

// What is in a label can't break the format.
func TestLabels(t *testing.T) {
	got := text(t, []turns.Family{
		{Name: "a", Help: "one\ntwo \\", Type: "gauge", Samples: []turns.Sample{{Labels: []string{"x", "say \"hi\"\n\\ \xff", "y", "z"}, Value: 1e9}}},
		{Name: "empty", Type: "gauge"},
	})
	want := "# HELP a one\\ntwo \\\\\n# TYPE a gauge\na{x=\"say \\\"hi\\\"\\n\\\\ �\",y=\"z\"} 1e+09\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

package llm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/dialog"
	"bellbird/llm"
)

// script is a model that does as it is told, the last of it again and again.
type script struct {
	steps []step
	asked int
}

type step struct {
	wait time.Duration // before the first word
	text string
	err  error // after the text
}

func (s *script) Generate(ctx context.Context, _ dialog.Request) iter.Seq2[dialog.Delta, error] {
	now := s.steps[min(s.asked, len(s.steps)-1)]
	s.asked++
	return func(yield func(dialog.Delta, error) bool) {
		t := time.NewTimer(now.wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			yield(dialog.Delta{}, context.Cause(ctx))
			return
		}
		if now.text != "" && !yield(dialog.Delta{Text: now.text}, nil) {
			return
		}
		if now.err != nil {
			yield(dialog.Delta{}, now.err)
		}
	}
}

func fault(kind dialog.ModelErrorKind) error {
	return &dialog.ModelError{Kind: kind, Err: errors.New("as told")}
}

func say(ctx context.Context, m llm.Model) (text string, err error) {
	for d, e := range m.Generate(ctx, dialog.Request{}) {
		text += d.Text
		err = e
	}
	return text, err
}

func TestFallback(t *testing.T) {
	gone, slow := step{err: fault(dialog.Unreachable)}, step{wait: time.Minute, text: "late"}
	fine, second := step{text: "first"}, step{text: "second"}
	lost := step{err: dialog.ErrNotUnderstood}
	type turn struct {
		after      time.Duration // since the turn before
		text       string
		kind       dialog.ModelErrorKind
		inUse      string
		tookAtMost time.Duration
	}
	tests := []struct {
		name            string
		primary, second []step
		turns           []turn
	}{
		{"fine", []step{fine}, []step{second}, []turn{{0, "first", "", "A", 0}}},
		{"unreachable", []step{gone}, []step{second}, []turn{{0, "second", "", "B", 0}}},
		{"slow", []step{slow}, []step{second}, []turn{{0, "second", "", "B", 8 * time.Second}}},
		{"no key", []step{{err: fault(dialog.NoKey)}}, []step{second}, []turn{{0, "second", "", "B", 0}}},
		{"both", []step{gone}, []step{lost}, []turn{{0, "", dialog.Unreachable, "A", 0}, {time.Second, "", dialog.Unreachable, "A", 0}}},
		{"slow and not understood", []step{slow}, []step{lost}, []turn{{0, "", dialog.Stalled, "A", 8 * time.Second}}},
		{"in mid-sentence", []step{{text: "So ", err: fault(dialog.CutOff)}}, []step{second}, []turn{{0, "So ", dialog.CutOff, "A", 0}}},
		{"the request's fault", []step{{err: fault(dialog.ContextTooLong)}, fine}, []step{second},
			[]turn{{0, "", dialog.ContextTooLong, "A", 0}, {0, "first", "", "A", 0}}},
		{"back", []step{gone, fine}, []step{second},
			[]turn{{0, "second", "", "B", 0}, {4 * time.Second, "second", "", "B", 0}, {time.Second, "first", "", "A", 0}}},
		{"twice as long", []step{gone, slow, fine}, []step{second},
			[]turn{{0, "second", "", "B", 0}, {5 * time.Second, "second", "", "B", 8 * time.Second}, {9 * time.Second, "second", "", "B", 0},
				{time.Second, "first", "", "A", 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inUse, switches := "A", 0
				f := llm.NewFallback(llm.FallbackOptions{
					Primary: &script{steps: test.primary}, Second: &script{steps: test.second}, PrimaryName: "A", SecondName: "B",
					OnSwitch: func(name string) {
						if name == inUse {
							t.Errorf("switched from %s to itself", name)
						}
						inUse = name
						switches++
					},
				})
				for i, turn := range test.turns {
					time.Sleep(turn.after)
					began := time.Now()
					text, err := say(t.Context(), f)
					var e *dialog.ModelError
					var kind dialog.ModelErrorKind
					if errors.As(err, &e) {
						kind = e.Kind
					}
					if text != turn.text || kind != turn.kind || (err == nil) != (kind == "") || inUse != turn.inUse {
						t.Errorf("turn %d: %q, %v by %s, want %+v", i, text, err, inUse, turn)
					}
					if took := time.Since(began); took > turn.tookAtMost {
						t.Errorf("turn %d took %v", i, took)
					}
				}
			})
		})
	}
}

func TestFallbackBackoffIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := &script{steps: []step{{err: fault(dialog.Unreachable)}}}
		f := llm.NewFallback(llm.FallbackOptions{
			Primary: primary, Second: &script{steps: []step{{text: "second"}}}, PrimaryName: "A", SecondName: "B",
		})
		var waits []time.Duration
		last := time.Now()
		for len(waits) < 12 {
			before := primary.asked
			if _, err := say(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			if primary.asked > before {
				waits = append(waits, time.Since(last))
				last = time.Now()
			}
			time.Sleep(time.Second)
		}
		if waits[1] != 5*time.Second || waits[2] != 10*time.Second || slices.Max(waits) != 2*time.Minute {
			t.Errorf("the primary was tried after %v", waits)
		}
	})
}

func TestFallbackCancelled(t *testing.T) {
	why := errors.New("barge-in")
	synctest.Test(t, func(t *testing.T) {
		second := &script{steps: []step{{text: "second"}}}
		f := llm.NewFallback(llm.FallbackOptions{
			Primary: &script{steps: []step{{wait: time.Minute}}}, Second: second, PrimaryName: "A", SecondName: "B",
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if text, err := say(ctx, f); text != "" || !errors.Is(err, why) || second.asked > 0 {
			t.Errorf("%q, %v; the second was asked %d times", text, err, second.asked)
		}
	})
}

func ExampleFallback() {
	f := llm.NewFallback(llm.FallbackOptions{
		Primary:     &script{steps: []step{{err: &dialog.ModelError{Kind: dialog.Unreachable, Err: errors.New("no route")}}}},
		Second:      &script{steps: []step{{text: "It is noon."}}},
		PrimaryName: "ollama", SecondName: "offline",
		OnSwitch: func(name string) { fmt.Println("now:", name) },
	})
	for d, err := range f.Generate(context.Background(), dialog.Request{}) {
		fmt.Println(d.Text, err)
	}
	// Output:
	// now: offline
	// It is noon. <nil>
}

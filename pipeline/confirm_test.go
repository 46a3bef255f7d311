package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/pipeline"
)

// means knows two words.
func means(text string) (yes, no bool) { return text == "yes", text == "no" }

// A questioned turn is one in which the model asks for a tool, and what came of it.
type questioned struct {
	ran    int // how often the tool did
	answer string
	asked  []event.ConfirmationAsked
	ended  []event.ConfirmationEnded
	said   []string
	took   time.Duration
}

// question runs such a turn. What is heard one after the other after a question are the texts; "…" is nobody speaking.
func question(t *testing.T, s *spy, texts []string, change func(*pipeline.Options), meanwhile func(r *rig, c *pipeline.Confirmations)) (q questioned) {
	c := &pipeline.Confirmations{Means: means}
	r := hooked(t, s, func(o *pipeline.Options) {
		o.Confirmations = c
		o.Model = model(asksForTheTime)
		o.Tools = toolbox(func(ctx context.Context, c dialog.ToolCall) dialog.ToolResult { q.ran++; return tellsTheTime(ctx, c) })
		o.Ears = ears(func(ctx context.Context, from uint64, to func(audio.Frame)) (bool, time.Duration, error) {
			if len(texts) == 0 || texts[0] == "…" {
				return false, 0, sleep(ctx, time.Hour)
			}
			return hearSentence(ctx, from, to)
		})
		o.Recognizer = recognizer(func(ctx context.Context, frames <-chan audio.Frame) (string, error) {
			for range frames {
			}
			if len(texts) == 0 {
				return "", nil
			}
			text := texts[0]
			texts = texts[1:]
			return text, nil
		})
		if change != nil {
			change(o)
		}
	})
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		record, err := r.Ask(t.Context(), "what time is it")
		if err != nil {
			t.Error(err)
		}
		q.answer, q.took = record.Answer, time.Since(began)
	}()
	if meanwhile != nil {
		meanwhile(r, c)
	}
	<-done
	for len(r.facts.C) > 0 {
		switch f := (<-r.facts.C).(type) {
		case event.ConfirmationAsked:
			q.asked = append(q.asked, f)
		case event.ConfirmationEnded:
			q.ended = append(q.ended, f)
		case event.Said:
			q.said = append(q.said, f.Text)
		}
	}
	if c.Answer(true) {
		t.Error("the question is still open")
	}
	return q
}

const (
	asked      = "It is dangerous. Shall I really do this: get time?"
	refused    = "The user was asked, and said no. It was not done."
	unanswered = "The user was asked to confirm this, and didn't. It was not done."
	unaskable  = "This needs the user's confirmation, and there is no way to ask for it. It was not done."
)

func TestConfirmation(t *testing.T) {
	press := func(yes bool, after time.Duration) func(*rig, *pipeline.Confirmations) {
		return func(_ *rig, c *pipeline.Confirmations) {
			time.Sleep(after)
			if !c.Answer(yes) {
				panic("nothing is asked")
			}
			c.Answer(!yes) // the first counts
		}
	}
	deaf := func(o *pipeline.Options) { o.MayFollowUp = func() bool { return false } }
	for _, test := range []struct {
		name      string
		texts     []string
		change    func(*pipeline.Options)
		meanwhile func(*rig, *pipeline.Confirmations)
		want      string // the beginning of the answer
		by        string
	}{
		{"yes", []string{"yes"}, nil, nil, "It is late already", "voice"},
		{"no", []string{"no"}, nil, nil, refused, "voice"},
		{"something else, then yes", []string{"what", "", "yes"}, nil, nil, "It is late already", "voice"},
		{"something else", []string{"what", "do", "you", "want", "from", "me", "…"}, nil, nil, unanswered, ""},
		{"nobody", nil, nil, nil, unanswered, ""},
		{"a button", nil, nil, press(true, 5*time.Second), "It is late already", "button"},
		{"a button that says no", nil, nil, press(false, 5*time.Second), refused, "button"},
		{"a button before the question was heard", []string{"no"}, nil, press(true, 200*time.Millisecond), "It is late already", "button"},
		{"a button while nothing can be heard", []string{"no"}, deaf, press(true, 5*time.Second), "It is late already", "button"},
		{"nothing can be heard", []string{"yes"}, deaf, nil, unanswered, ""},
		{"the recogniser fails", []string{"yes"}, func(o *pipeline.Options) {
			o.Recognizer = recognizer(func(context.Context, <-chan audio.Frame) (string, error) { return "", errors.New("broken") })
		}, nil, unanswered, ""},
		{"the voice fails", []string{"yes"}, func(o *pipeline.Options) {
			o.Voice = voice(func(_ context.Context, text string, _ func(audio.Frame) error) error { return errors.New("broken") })
		}, nil, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpy(t)
				s.at("pre_execute", func(e *hooks.Event) { e.Confirm = hooks.String("It is dangerous.") })
				q := question(t, s, test.texts, test.change, test.meanwhile)
				ran := strings.HasPrefix(test.want, "It is late")
				if !strings.HasPrefix(q.answer, test.want) || (q.ran == 1) != ran || q.ran > 1 {
					t.Errorf("answer %q, the tool ran %d times", q.answer, q.ran)
				}
				if len(q.asked) != 1 || q.asked[0].Text != asked || len(q.ended) != 1 || q.ended[0].By != test.by || q.ended[0].Confirmed != ran {
					t.Errorf("asked %+v, ended %+v", q.asked, q.ended)
				}
				if test.want != "" && !slices.Contains(q.said, asked) {
					t.Errorf("said %q", q.said)
				}
				if strings.Contains(q.answer, "dangerous") {
					t.Error("the model was told the reason")
				}
				if test.want == unanswered && (q.took < 10*time.Second || q.took > 25*time.Second) {
					t.Errorf("it took %v", q.took)
				}
			})
		})
	}
}

// Hooks have no part in the answer, nor in how the question sounds.
func TestHooksCannotConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_execute", func(e *hooks.Event) { e.Confirm = hooks.String("It is dangerous.") })
		s.at("post_stt", func(e *hooks.Event) { e.Input = "yes" })
		s.at("tts_chunk_text", func(e *hooks.Event) {
			if strings.Contains(*e.TTSText, "dangerous") {
				e.SkipTTS = true
			}
		})
		s.at("pre_tts", func(e *hooks.Event) { e.SkipTTS = true })
		q := question(t, s, []string{"no"}, nil, nil)
		if q.ran != 0 || !slices.Contains(q.said, asked) {
			t.Errorf("the tool ran %d times; said %q", q.ran, q.said)
		}
	})
}

// The user's own lock holds whatever a hook says, also one that is not there.
func TestLockedTool(t *testing.T) {
	lock := func(o *pipeline.Options) {
		o.Confirmations.Locked = func(tool string) bool { return tool == "get_time" }
	}
	for _, answer := range []string{"yes", "no"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSpy(t)
			s.at("pre_execute", func(e *hooks.Event) { e.Confirm = nil })
			q := question(t, s, []string{answer}, lock, nil)
			if q.ran == 1 != (answer == "yes") || len(q.asked) != 1 || q.asked[0].Text != "Shall I really do this: get time?" {
				t.Errorf("%s: the tool ran %d times; asked %+v", answer, q.ran, q.asked)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			q := question(t, newSpy(t, "on_wake"), []string{answer}, lock, nil)
			if q.ran == 1 != (answer == "yes") || len(q.asked) != 1 {
				t.Errorf("without hooks, %s: the tool ran %d times; asked %+v", answer, q.ran, q.asked)
			}
		})
	}
}

// The question comes after what was said before, and a call ends it.
func TestQuestionAfterSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_execute", func(e *hooks.Event) { e.Confirm = hooks.String("It is dangerous.") })
		q := question(t, s, []string{"yes"}, func(o *pipeline.Options) {
			o.Model = model(func(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				if last := req.Messages[len(req.Messages)-1]; last.Role != dialog.Tool && !yield(dialog.Delta{Text: "Let me look at the clock in the hall. "}, nil) {
					return
				}
				asksForTheTime(ctx, req, yield)
			})
		}, nil)
		at := slices.Index(q.said, asked)
		if q.ran != 1 || at < 1 || !strings.HasPrefix(q.said[0], "Let me look") || !strings.HasPrefix(q.answer, "Let me look at the clock in the hall. It is late already") {
			t.Errorf("the tool ran %d times; said %q, answer %q", q.ran, q.said, q.answer)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_execute", func(e *hooks.Event) { e.Confirm = hooks.String("It is dangerous.") })
		q := question(t, s, nil, nil, func(r *rig, _ *pipeline.Confirmations) {
			time.Sleep(5 * time.Second)
			r.Stop()
		})
		if q.ran != 0 || q.took > 6*time.Second {
			t.Errorf("stopped: the tool ran %d times, and it took %v", q.ran, q.took)
		}
	})
}

// The receipt of a turn names the tools.
func TestReceiptNamesTheTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		r := hooked(t, s, func(o *pipeline.Options) { o.Model, o.Tools = model(asksForTheTime), toolbox(tellsTheTime) })
		if _, err := r.Ask(t.Context(), "what time is it"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if used, _ := s.seen["post_chat"].Metadata["tools_used"].([]any); !slices.Equal(used, []any{"get_time"}) {
			t.Errorf("tools used: %v", used)
		}
	})
}

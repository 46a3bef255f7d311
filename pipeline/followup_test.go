package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/pipeline"
)

// patientEars hear a sentence when they are called, and what reply does in a follow-up.
type patientEars struct {
	reply ears
	out   *audio.Output

	waits   []time.Duration // of the follow-ups
	opened  []time.Time
	sounded bool // while one began, the loudspeaker made a sound
}

func (e *patientEars) Listen(ctx context.Context, from uint64, wait time.Duration, to func(audio.Frame)) (bool, time.Duration, error) {
	if wait == 0 {
		return hearSentence(ctx, from, to)
	}
	e.waits, e.opened = append(e.waits, wait), append(e.opened, time.Now())
	e.sounded = e.sounded || e.out.Sounding()
	if from != 4711 {
		return false, 0, errors.New("it doesn't begin now")
	}
	return e.reply(ctx, from, to)
}

func (*patientEars) Heard() uint64 { return 4711 }

// hearNobody hears nobody in the time of a follow-up.
func hearNobody(ctx context.Context, _ uint64, to func(audio.Frame)) (bool, time.Duration, error) {
	for range audio.Frames(5 * time.Second) {
		if err := sleep(ctx, audio.FrameDuration); err != nil {
			return false, 0, err
		}
		to(audio.Frame{})
	}
	return false, 5 * time.Second, nil
}

// startAsking runs a pipeline whose model answers with these, one after the other, and then with the last.
func startAsking(t *testing.T, reply ears, change func(*pipeline.Options), answers ...string) (*rig, *patientEars) {
	e := &patientEars{reply: reply}
	var asked atomic.Int32
	r := start(t, func(o *pipeline.Options) {
		e.out = o.Output
		o.Ears, o.WakeSound = e, audio.WakeTone
		o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
			n := int(asked.Add(1)) - 1
			yield(dialog.Delta{Text: answers[min(n, len(answers)-1)]}, nil)
		})
		if change != nil {
			change(o)
		}
	})
	return r, e
}

// course waits until the appliance is idle, and returns the states that it was in and the turns that ended.
func (r *rig) course(t *testing.T) (states []event.State, records []event.Record) {
	t.Helper()
	limit := time.After(time.Hour)
	for {
		select {
		case f := <-r.facts.C:
			switch f := f.(type) {
			case event.StateChanged:
				states = append(states, f.To)
				if f.To == event.Idle {
					return states, records
				}
			case event.TurnEnded:
				records = append(records, f.Record)
			}
		case <-limit:
			t.Fatal("never idle")
		}
	}
}

// After a question the microphone opens, when the loudspeaker is done and the room is quiet. What is said is a turn of its
// own in the same chat, and an answer that asks nothing ends it.
func TestFollowUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := startAsking(t, hearSentence, nil, "Shall I do that?", "Done, it is set.")
		r.Wake("okay_nabu", 1, 0)
		states, records := r.course(t)
		want := []event.State{
			event.Listening, event.Thinking, event.Speaking, event.FollowUp, event.Thinking, event.Speaking, event.Idle,
		}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if len(records) != 2 {
			t.Fatalf("turns: %+v", records)
		}
		first, second := records[0], records[1]
		if first.Outcome != event.Completed || second.Outcome != event.Completed ||
			second.WakeWord != "follow_up" || second.Heard != "what is up" || second.Answer != "Done, it is set." || second.Chat != "kitchen" {
			t.Errorf("turns: %+v", records)
		}
		if diff := cmp.Diff([]time.Duration{5 * time.Second}, e.waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
		ended := first.Began.Add(time.Duration(first.Stages.End))
		if d := e.opened[0].Sub(ended); d != 400*time.Millisecond || e.sounded {
			t.Errorf("opened %v after the loudspeaker was done; a sound then: %v", d, e.sounded)
		}
		// Four words, four words, and one wake sound.
		if n := r.heard(); n < 40 || n > 40+6 {
			t.Errorf("%d loud frames", n)
		}
	})
}

// If nobody speaks, or the microphone fails, it is over in silence.
func TestFollowUpEndsInSilence(t *testing.T) {
	for name, reply := range map[string]ears{
		"nobody speaks": hearNobody,
		"no microphone": func(context.Context, uint64, func(audio.Frame)) (bool, time.Duration, error) {
			return false, 0, errors.New("unplugged")
		},
		"no frames": func(ctx context.Context, _ uint64, _ func(audio.Frame)) (bool, time.Duration, error) {
			<-ctx.Done()
			return false, 0, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, e := startAsking(t, reply, func(o *pipeline.Options) { o.WakeSound, o.ErrorSound = nil, audio.ErrorTone() }, "Shall I do that?")
				r.Wake("okay_nabu", 1, 0)
				states, records := r.course(t)
				want := []event.State{event.Listening, event.Thinking, event.Speaking, event.FollowUp, event.Idle}
				if diff := cmp.Diff(want, states); diff != "" {
					t.Errorf("states (-want +got):\n%s", diff)
				}
				if len(records) != 2 || records[1].Outcome != event.NothingHeard || records[1].Answer != "" {
					t.Errorf("turns: %+v", records)
				}
				if len(e.waits) != 1 || r.heard() != 20 {
					t.Errorf("%d follow-ups, %d loud frames", len(e.waits), r.heard())
				}
			})
		})
	}
}

// When there is no follow-up.
func TestNoFollowUp(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		change func(*pipeline.Options)
		later  func(*rig)
	}{
		"nothing was asked":   {answer: "It is done."},
		"a question before":   {answer: "Which one? I took the first."},
		"off":                 {answer: "Yes?", change: func(o *pipeline.Options) { o.Follow = pipeline.FollowNone }},
		"switched off":        {answer: "Yes?", later: func(r *rig) { r.SetFollow(pipeline.FollowNone) }},
		"no time":             {answer: "Yes?", later: func(r *rig) { r.SetFollowUpTime(0) }},
		"muted microphone":    {answer: "Yes?", change: func(o *pipeline.Options) { o.MayFollowUp = func() bool { return false } }},
		"muted loudspeaker":   {answer: "Yes?", later: func(r *rig) { r.out.SetMuted(true) }},
		"no loudspeaker":      {answer: "Yes?", later: func(r *rig) { r.out.SetAbsent(true) }},
		"volume 0":            {answer: "Yes?", later: func(r *rig) { r.out.SetVolume(0) }},
		"nothing was played":  {answer: "", change: func(o *pipeline.Options) { o.Follow = pipeline.FollowAll }},
		"the voice is broken": {answer: "Yes?", change: func(o *pipeline.Options) { o.Voice = voice(broken) }},
		"not understood": {answer: "Yes?", change: func(o *pipeline.Options) {
			o.Follow, o.Recognizer = pipeline.FollowAll, recognize("")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, e := startAsking(t, hearNobody, test.change, test.answer)
				if test.later != nil {
					test.later(r)
				}
				r.Wake("okay_nabu", 1, 0)
				states, records := r.course(t)
				if len(records) != 1 || len(e.waits) != 0 {
					t.Errorf("states %v, turns %+v", states, records)
				}
			})
		})
	}
}

func broken(context.Context, string, func(audio.Frame) error) error { return errors.New("no voice") }

// A turn that wasn't spoken isn't followed up: there may be nobody in the room.
func TestAskIsNotFollowedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, e := startAsking(t, hearNobody, nil, "Shall I?")
		if _, err := r.Ask(t.Context(), "do it"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Say(t.Context(), "Is anybody there?"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(e.waits) > 0 {
			t.Error("the microphone opened")
		}
	})
}

// After any answer, if it is wanted so. What isn't understood then may have been meant for others.
func TestFollowUpAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		r, e := startAsking(t, hearSentence, func(o *pipeline.Options) {
			o.Follow, o.FollowUpTime = pipeline.FollowAll, 8*time.Second
			o.Recognizer = recognizer(func(ctx context.Context, frames <-chan audio.Frame) (string, error) {
				text := "what is up"
				if calls.Add(1) == 3 {
					text = ""
				}
				return recognize(text)(ctx, frames)
			})
		}, "It is done.")
		r.Wake("okay_nabu", 1, 0)
		_, records := r.course(t)
		if len(records) != 3 || records[1].Outcome != event.Completed || records[2].Outcome != event.NotUnderstood || records[2].Answer != "" {
			t.Errorf("turns: %+v", records)
		}
		if diff := cmp.Diff([]time.Duration{8 * time.Second, 8 * time.Second}, e.waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
	})
}

// The reply to a question that isn't understood is asked for again no further, but that is said.
func TestReplyNotUnderstood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		r, _ := startAsking(t, hearSentence, func(o *pipeline.Options) {
			o.Recognizer = recognizer(func(ctx context.Context, frames <-chan audio.Frame) (string, error) {
				return recognize([]string{"what is up", ""}[calls.Add(1)-1])(ctx, frames)
			})
		}, "Shall I?")
		r.Wake("okay_nabu", 1, 0)
		_, records := r.course(t)
		if len(records) != 2 || records[1].Outcome != event.NotUnderstood || !strings.HasPrefix(records[1].Answer, "Sorry") {
			t.Errorf("turns: %+v", records)
		}
	})
}

// Something that answers every question doesn't keep the appliance talking for ever.
func TestFollowUpsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startAsking(t, hearSentence, nil, "Shall I?")
		r.Wake("okay_nabu", 1, 0)
		if _, records := r.course(t); len(records) != 1+25 {
			t.Errorf("%d turns", len(records))
		}
	})
}

// A call while a follow-up waits, or before it does, begins a turn of its own; a stop ends it; and who has been waiting for his turn comes first.
func TestFollowUpGivesWay(t *testing.T) {
	for name, test := range map[string]struct {
		during event.State
		do     func(*testing.T, *rig)
		want   []event.Outcome
	}{
		"a call while it waits": {event.FollowUp, func(_ *testing.T, r *rig) { r.Wake("okay_nabu", 1, 0) },
			[]event.Outcome{event.Completed, event.Interrupted, event.Completed}},
		"a stop while it waits": {event.FollowUp, func(_ *testing.T, r *rig) { r.Stop() },
			[]event.Outcome{event.Completed, event.Interrupted}},
		"a call while it settles": {"", func(_ *testing.T, r *rig) { r.Wake("okay_nabu", 1, 0) },
			[]event.Outcome{event.Completed, event.Interrupted, event.Completed}},
		"muted while it settles": {"", func(_ *testing.T, r *rig) { r.SetFollowUpTime(0) },
			[]event.Outcome{event.Completed, event.NothingHeard}},
		"somebody waits": {event.Speaking, func(t *testing.T, r *rig) {
			go func() {
				if _, err := r.Say(t.Context(), "Dinner is ready."); err != nil {
					t.Error(err)
				}
			}()
		}, []event.Outcome{event.Completed, event.Completed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := startAsking(t, hearNobody, nil, "Shall I?", "It is done.")
				r.Wake("okay_nabu", 1, 0)
				var outcomes []event.Outcome
				if test.during != "" {
					for done := false; !done; {
						switch f := (<-r.facts.C).(type) {
						case event.StateChanged:
							done = f.To == test.during
						case event.TurnEnded:
							outcomes = append(outcomes, f.Record.Outcome)
						}
					}
				} else {
					outcomes = append(outcomes, r.ended(t).Outcome)
					time.Sleep(200 * time.Millisecond)
				}
				test.do(t, r)
				_, records := r.course(t)
				for _, record := range records {
					outcomes = append(outcomes, record.Outcome)
				}
				if diff := cmp.Diff(test.want, outcomes); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A follow-up stays in the chat in which the question was asked, and a private one stays private.
func TestFollowUpInPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := &chat{name: "secret", private: true}
		r, _ := startAsking(t, hearSentence, func(o *pipeline.Options) {
			o.Chats = &chat{others: []*chat{secret}}
		}, "Shall I?", "Done, it is set.")
		r.WakeIn("secret", "alexa", 1, 0)
		_, records := r.course(t)
		if len(records) != 2 || !records[0].Private || !records[1].Private || records[1].Chat != "" {
			t.Errorf("turns: %+v", records)
		}
		if n := len(secret.texts()); n != 4 {
			t.Errorf("%d messages in the private chat", n)
		}
	})
}

func TestFollowReadsItsNames(t *testing.T) {
	var f pipeline.Follow
	for _, name := range []string{"off", "question", "always"} {
		if err := f.UnmarshalText([]byte(name)); err != nil || string(f) != name {
			t.Errorf("%q is %q, error %v", name, f, err)
		}
	}
	if err := f.UnmarshalText([]byte("sometimes")); err == nil || f != pipeline.FollowAll {
		t.Errorf(`"sometimes" is %q, error %v`, f, err)
	}
}

func TestFollowUpTimeIsBounded(t *testing.T) {
	p := pipeline.New(pipeline.Options{})
	for set, want := range map[time.Duration]time.Duration{-1: 0, 0: 0, 8 * time.Second: 8 * time.Second, time.Hour: pipeline.MostFollowUpTime} {
		if p.SetFollowUpTime(set); p.FollowUpTime() != want {
			t.Errorf("%v is %v, not %v", set, p.FollowUpTime(), want)
		}
	}
}

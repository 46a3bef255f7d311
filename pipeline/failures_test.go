package pipeline_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/pipeline"
)

func TestWhatGoesWrong(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		break_  func(o *pipeline.Options, hang chan struct{}) // hang: for engines that look at nothing
		outcome event.Outcome
		kind    event.ErrorKind
		answer  string
		within  time.Duration
	}{
		"nobody speaks": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Ears = ears(func(ctx context.Context, _ uint64, _ func(audio.Frame)) (bool, time.Duration, error) {
					return false, 0, sleep(ctx, 5*time.Second)
				})
			}, event.NothingHeard, "", "", 6 * time.Second,
		},
		"nothing is understood": {
			func(o *pipeline.Options, hang chan struct{}) { o.Recognizer = recognize("") },
			event.NotUnderstood, "", "Sorry, I didn't catch that.", 4 * time.Second,
		},
		"the model does not understand": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
					yield(dialog.Delta{}, dialog.ErrNotUnderstood)
				})
			}, event.NotUnderstood, "", "Sorry, I didn't catch that.", 4 * time.Second,
		},
		"the microphone is dead": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Ears = ears(func(ctx context.Context, _ uint64, _ func(audio.Frame)) (bool, time.Duration, error) {
					<-ctx.Done()
					return false, 0, ctx.Err()
				})
			}, event.FailedTurn, event.MicrophoneFailed, "I can't hear anything. Please check the microphone.", 25 * time.Second,
		},
		"the recogniser dies": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Recognizer = recognizer(func(context.Context, <-chan audio.Frame) (string, error) { return "", broken })
			}, event.FailedTurn, event.RecognizerFailed, "Sorry, I can't understand speech at the moment.", 3 * time.Second,
		},
		"the recogniser hangs": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Recognizer = recognizer(func(_ context.Context, frames <-chan audio.Frame) (string, error) {
					for range frames {
					}
					<-hang
					return "", nil
				})
			}, event.FailedTurn, event.RecognizerFailed, "Sorry, I can't understand speech at the moment.", 15 * time.Second,
		},
		"the model fails": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
					yield(dialog.Delta{}, broken)
				})
			}, event.FailedTurn, event.ModelFailed, "Sorry, I can't answer that at the moment.", 5 * time.Second,
		},
		"the model fails in mid-sentence": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
					_ = yield(dialog.Delta{Text: "The answer to your question is. Well, "}, nil) && yield(dialog.Delta{}, broken)
				})
			}, event.FailedTurn, event.ModelFailed, "The answer to your question is. Sorry, I can't answer that at the moment.", 7 * time.Second,
		},
		"the model hangs": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Model = model(func(context.Context, dialog.Request, func(dialog.Delta, error) bool) { <-hang })
			}, event.FailedTurn, event.ModelFailed, "Sorry, I can't answer that at the moment.", 35 * time.Second,
		},
		"the voice fails": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Voice = voice(func(context.Context, string, func(audio.Frame) error) error { return broken })
			}, event.FailedTurn, event.VoiceFailed, "", 3 * time.Second,
		},
		"the voice stalls": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Voice = voice(func(ctx context.Context, _ string, _ func(audio.Frame) error) error {
					<-ctx.Done()
					return ctx.Err()
				})
			}, event.FailedTurn, event.VoiceFailed, "", 15 * time.Second,
		},
		"the voice looks at nothing": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.TurnTimeout = time.Minute
				o.Voice = voice(func(context.Context, string, func(audio.Frame) error) error { <-hang; return nil })
			}, event.FailedTurn, event.TurnTooLong, "", 65 * time.Second,
		},
		"a tool hangs": {
			func(o *pipeline.Options, hang chan struct{}) {
				o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
					if last := req.Messages[len(req.Messages)-1]; last.Role == dialog.Tool {
						yield(dialog.Delta{Text: last.Content}, nil)
						return
					}
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "1", Name: "get_time"}}, nil)
				})
				o.Tools = toolbox(func(context.Context, dialog.ToolCall) dialog.ToolResult { <-hang; return dialog.ToolResult{} })
			}, event.Completed, "", "Sorry, that took too long.", 15 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				r := start(t, func(o *pipeline.Options) {
					o.ErrorSound = []audio.Frame{loud}
					good := *o
					test.break_(o, hang)
					breakFirstTurn(o, good, *o)
				})
				t.Cleanup(func() { close(hang) })
				began := time.Now()
				r.Wake("okay_nabu", 1, 0)
				record := r.ended(t)
				if record.Outcome != test.outcome || record.Error != test.kind || record.Answer != test.answer {
					t.Errorf("record %+v", record)
				}
				if d := time.Since(began); d > test.within {
					t.Errorf("it took %v", d)
				}
				if test.outcome == event.FailedTurn {
					r.until(t, event.Failed)
				}
				r.until(t, event.Idle)

				r.Wake("okay_nabu", 1, 0)
				if record := r.ended(t); record.Outcome != event.Completed {
					t.Errorf("the next turn: %+v", record)
				}
			})
		})
	}
}

// breakFirstTurn makes the engines of o be the bad ones until the second turn begins, and the good ones from then on.
func breakFirstTurn(o *pipeline.Options, good, bad pipeline.Options) {
	var turns atomic.Int32
	now := func() pipeline.Options {
		if turns.Load() > 1 {
			return good
		}
		return bad
	}
	o.Ears = ears(func(ctx context.Context, from uint64, to func(audio.Frame)) (bool, time.Duration, error) {
		turns.Add(1)
		return now().Ears.Listen(ctx, from, 0, to)
	})
	var utterances atomic.Int32 // it begins before the ears do
	o.Recognizer = recognizer(func(ctx context.Context, frames <-chan audio.Frame) (string, error) {
		if utterances.Add(1) > 1 {
			return good.Recognizer.Recognize(ctx, frames)
		}
		return bad.Recognizer.Recognize(ctx, frames)
	})
	o.Model = model(func(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
		now().Model.Generate(ctx, req)(yield)
	})
	o.Voice = voice(func(ctx context.Context, text string, to func(audio.Frame) error) error {
		return now().Voice.Synthesize(ctx, text, to)
	})
}

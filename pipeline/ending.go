package pipeline

import (
	"context"
	"errors"

	"bellbird/dialog"
	"bellbird/event"
	"bellbird/spoken"
)

// This file is how a turn ends: what is said, or shown, when there was no answer.

// What is said when a turn ends without an answer. It is chosen by kind; the error's text is for the log.
const notUnderstoodSentence = "Sorry, I didn't catch that."

var failureSentences = map[event.ErrorKind]string{
	event.RecognizerFailed: "Sorry, I can't understand speech at the moment.",
	event.ModelFailed:      "Sorry, I can't answer that at the moment.",
	event.MicrophoneFailed: "I can't hear anything. Please check the microphone.",
	event.TurnTooLong:      "Sorry, that took too long.",
	event.ChatLocked:       "This chat is private and locked. Please unlock it first.",
	event.ChatUnknown:      "I can't find that chat.",
}

// modelSentences are for what a user can do something about, or should know.
var modelSentences = map[dialog.ModelErrorKind]string{
	dialog.NoKey:          "I have no key for the language model. Please set one in the configuration.",
	dialog.WrongKey:       "The language model doesn't accept my key. Please check it in the configuration.",
	dialog.NoCredit:       "The account of the language model has run out of credit.",
	dialog.UnknownModel:   "The language model that I am set to use isn't there. Please check its name.",
	dialog.Unreachable:    "I can't reach the language model. Please check the network and its server.",
	dialog.RateLimited:    "The language model is being asked too much at the moment. Please try again in a minute.",
	dialog.ServerFault:    "The language model has a problem. Please try again later.",
	dialog.Stalled:        "The language model isn't answering. Please try again.",
	dialog.CutOff:         "Sorry, the answer broke off. Please ask again.",
	dialog.ContextTooLong: "This chat has become too long for the language model. Please clear it, or begin another.",
	dialog.Refused:        "The language model won't answer that.",
	dialog.BadRequest:     "The language model doesn't understand my request. Please check its settings.",
}

// apology is what is said of a failure.
func apology(kind event.ErrorKind, err error) string {
	var e *dialog.ModelError
	if errors.As(err, &e) && modelSentences[e.Kind] != "" {
		return modelSentences[e.Kind]
	}
	return failureSentences[kind]
}

// conclude says what is to be said of a turn that ended with err, and sets its outcome.
func (t *turn) conclude(ctx context.Context, err error) {
	r := &t.record
	var f *failure
	switch {
	case err == nil:
		r.Outcome = event.Completed
		if t.taken {
			r.Outcome = event.Handled
		}
		return
	case ctx.Err() != nil:
		r.Outcome = event.Interrupted
		if errors.Is(context.Cause(ctx), errTooLong) {
			r.Outcome, r.Error = event.FailedTurn, event.TurnTooLong
		}
		t.speech.abandon()
		return
	case errors.Is(err, errAnotherAnswers):
		r.Outcome = event.Yielded
		return
	case errors.Is(err, errNothingHeard):
		r.Outcome = event.NothingHeard
		return
	case t.unanswered():
		r.Outcome = event.NothingHeard
		t.p.o.Logger.Warn("follow-up could not listen", "run", r.Run, "err", err)
		return
	case errors.Is(err, dialog.ErrNotUnderstood):
		r.Outcome = event.NotUnderstood
		if t.followed == 0 || t.asked { // what is said without being called, or asked, may be meant for others
			t.explain(ctx, notUnderstoodSentence)
		}
		return
	case errors.As(err, &f):
		r.Error = f.kind
	default:
		r.Error = event.ModelFailed
	}
	r.Outcome = event.FailedTurn
	t.p.o.Logger.Error("turn failed", "run", r.Run, "kind", string(r.Error), "err", err)
	t.explain(ctx, apology(r.Error, err))
}

// explain says sentence, after what is being said already. Without a voice there is a sound instead.
func (t *turn) explain(ctx context.Context, sentence string) {
	o := &t.p.o
	if sentence != "" && !t.speech.failed() {
		t.speech.cleaner = spoken.Cleaner{}
		t.speech.chunker.flush() // half a sentence of the model's is left out
		t.speech.push(ctx, sentence)
		err := t.speech.finish(ctx)
		t.record.Answer = t.speech.spoken()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.record.Outcome = event.Interrupted
			return
		}
		o.Logger.Error("what went wrong could not be said", "run", t.record.Run, "err", err)
		t.record.Outcome, t.record.Error = event.FailedTurn, event.VoiceFailed
	}
	t.speech.abandon()
	if len(o.ErrorSound) > 0 {
		o.Output.Sound(o.ErrorSound, false)
	}
}

// cut silences the turn at once. Unlike everything else here it may be called by the loop.
func (t *turn) cut() {
	if s := t.stream.Load(); s != nil {
		s.Cut()
	}
}

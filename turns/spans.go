package turns

import (
	"time"

	"bellbird/event"
)

// A Span is what a turn did between two of its stages.
type Span struct {
	Name     string
	From, To time.Duration // since the turn began
}

// Spans are what a turn that reached these stages did, in their order. What it did not come to is left out.
//
//	endpoint    from the last voiced frame until the utterance was found to have ended
//	recognise   from there until its text was known
//	think       from there until the model's first word
//	speak       from there until the first sound of the answer
//	answer      from the last voiced frame to the first sound: what the user waits
//	turn        all of it
func Spans(s event.Stages) []Span {
	var spans []Span
	add := func(name string, from, to event.Millis) {
		if to > from {
			spans = append(spans, Span{name, time.Duration(from), time.Duration(to)})
		}
	}
	heard := s.Voiced > 0
	if heard {
		add("endpoint", s.Voiced, s.Endpoint)
	}
	if s.Endpoint > 0 {
		add("recognise", s.Endpoint, s.Recognised)
	}
	if s.FirstWord > 0 {
		add("think", s.Recognised, s.FirstWord) // a text that was typed is known from the beginning
		add("speak", s.FirstWord, s.FirstSound)
	}
	if heard {
		add("answer", s.Voiced, s.FirstSound)
	}
	add("turn", 0, s.End)
	return spans
}

// Slowest is the call of a hook that took longest; none: nil.
func Slowest(calls []event.HookCall) *event.HookCall {
	var slowest *event.HookCall
	for i := range calls {
		if slowest == nil || calls[i].Took > slowest.Took {
			slowest = &calls[i]
		}
	}
	return slowest
}

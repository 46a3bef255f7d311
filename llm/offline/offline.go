// Package offline is the agent that needs no network: it stands where a language model would, and understands what the
// sentence templates of package intents cover, in one sentence at a time. It acts on nothing itself; like any model it
// asks for tools, and speaks what they answer. It makes nothing up: outside of its templates it says that it did not
// understand, with dialog.ErrNotUnderstood.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"bellbird/dialog"
	"bellbird/intents"
)

// What the agent says by itself. Everything else it speaks was written by tools.
const (
	sayHelp = "I can set timers and alarms, tell the time and the date, and change the volume. " +
		"Try: set a timer for ten minutes. Wake me up at seven. What time is it? Or: turn it up."
	sayHowLong   = "For how long?"
	sayWhen      = "For what time?"
	sayNotYet    = "I haven't said anything yet."
	sayCannot    = "I can't do that here."
	volumeChange = 10 // percent, if the user does not say how much
)

// An Agent answers from sentence templates. It keeps nothing between requests and is safe for use by several
// goroutines.
type Agent struct{ sentences *intents.Set }

// New returns an agent that understands the sentences of the set.
func New(sentences *intents.Set) *Agent { return &Agent{sentences: sentences} }

// Generate answers the last message of the request: a user's with what the templates make of it, a tool's by speaking
// the results of the turn. Text comes one word at a time, so that the voice can begin before the end. It yields
// dialog.ErrNotUnderstood, and no text, if no template covers the sentence, and the context's error as soon as it is
// cancelled; it yields nothing after an error.
func (a *Agent) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(dialog.Delta{}, context.Cause(ctx))
			return
		}
		ans := a.answer(req)
		switch {
		case ans.unclear:
			yield(dialog.Delta{}, dialog.ErrNotUnderstood)
		case ans.call != nil:
			yield(dialog.Delta{Call: ans.call}, nil)
		default:
			speak(ctx, ans.text, yield)
		}
	}
}

// speak yields the text word by word, each with the space that follows it.
func speak(ctx context.Context, text string, yield func(dialog.Delta, error) bool) {
	for len(text) > 0 {
		if ctx.Err() != nil {
			yield(dialog.Delta{}, context.Cause(ctx))
			return
		}
		n := strings.IndexAny(text, " \n\t")
		if n < 0 {
			n = len(text) - 1
		}
		for n+1 < len(text) && strings.ContainsRune(" \n\t", rune(text[n+1])) {
			n++
		}
		if !yield(dialog.Delta{Text: text[:n+1]}, nil) {
			return
		}
		text = text[n+1:]
	}
}

// An answer is one of: a text, a call, or that the sentence was not understood.
type answer struct {
	text    string
	call    *dialog.ToolCall
	unclear bool
}

func (a *Agent) answer(req dialog.Request) answer {
	if len(req.Messages) == 0 {
		return answer{unclear: true}
	}
	switch last := req.Messages[len(req.Messages)-1]; last.Role {
	case dialog.Tool:
		return answer{text: results(req.Messages)}
	case dialog.User:
		m, ok := a.sentences.Match(last.Content)
		if !ok {
			return answer{unclear: true}
		}
		return act(m, req)
	}
	return answer{unclear: true}
}

// results are what the tools of this turn have to say. A turn begins with the user's message.
func results(messages []dialog.Message) string {
	var said []string
	for _, m := range slices.Backward(messages) {
		if m.Role == dialog.User {
			break
		}
		if text := strings.TrimSpace(m.Content); m.Role == dialog.Tool && text != "" {
			said = append(said, text)
		}
	}
	slices.Reverse(said)
	return strings.Join(said, " ")
}

// act is what a sentence asks for: something to say, or a tool to call.
func act(m intents.Match, req dialog.Request) answer {
	percent, hasPercent := m.Slots["percent"]
	switch m.Intent {
	case "set_timer":
		d, ok := m.Slots["duration"]
		if !ok {
			return answer{text: sayHowLong}
		}
		return call(req, "set_timer", setTimer{int(d.Duration / time.Second), m.Slots["name"].Text})
	case "cancel_timer":
		d := m.Slots["duration"]
		_, all := m.Slots["all"]
		return call(req, "cancel_timer", cancelTimer{m.Slots["name"].Text, int(d.Duration / time.Second), all})
	case "query_timer":
		return call(req, "query_timers", struct{}{})
	case "set_alarm":
		if _, ok := m.Slots["time"]; !ok {
			return answer{text: sayWhen}
		}
		return call(req, "set_alarm", newAlarm(m))
	case "cancel_alarm":
		return call(req, "cancel_alarm", whichAlarm(m))
	case "query_alarm":
		return call(req, "query_alarms", struct{}{})
	case "snooze":
		return call(req, "snooze", snooze{int(m.Slots["duration"].Duration / time.Second)})
	case "volume_up", "volume_down":
		by := volumeChange
		if hasPercent {
			by = percent.Number
		}
		if m.Intent == "volume_down" {
			by = -by
		}
		return call(req, "change_volume", changeVolume{by})
	case "set_volume":
		return call(req, "set_volume", setVolume{percent.Number})
	case "mute", "unmute":
		return call(req, "mute_sound", muteSound{m.Intent == "mute"})
	case "get_time", "get_date", "stop":
		return call(req, m.Intent, struct{}{})
	case "take_note":
		return call(req, "take_note", struct{}{})
	case "repeat":
		return answer{text: lastAnswer(req.Messages)}
	case "help":
		return answer{text: sayHelp}
	}
	return answer{unclear: true} // templates of an intent that is not ours
}

// The arguments of the tools.
type (
	setTimer struct {
		Seconds int    `json:"seconds"`
		Name    string `json:"name,omitempty"`
	}
	cancelTimer struct {
		Name    string `json:"name,omitempty"`
		Seconds int    `json:"seconds,omitempty"` // the length the timer was set to
		All     bool   `json:"all,omitempty"`
	}
	changeVolume struct {
		By int `json:"by"` // percent
	}
	setVolume struct {
		Percent int `json:"percent"`
	}
	muteSound struct {
		Muted bool `json:"muted"`
	}
)

// call asks for a tool, or says so if the request does not offer it. The id is unique within the conversation.
func call(req dialog.Request, name string, arguments any) answer {
	if !slices.ContainsFunc(req.Tools, func(t dialog.ToolSpec) bool { return t.Name == name }) {
		return answer{text: sayCannot}
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		return answer{text: sayCannot} // numbers, texts and booleans: cannot happen
	}
	id := fmt.Sprintf("offline-%d", len(req.Messages))
	return answer{call: &dialog.ToolCall{ID: id, Name: name, Arguments: data}}
}

// lastAnswer is what the assistant said last.
func lastAnswer(messages []dialog.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == dialog.Assistant && strings.TrimSpace(m.Content) != "" {
			return strings.TrimSpace(m.Content)
		}
	}
	return sayNotYet
}

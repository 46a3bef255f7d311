package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"

	"bellbird/dialog"
	"bellbird/event"
	"bellbird/hooks"
)

// This file is how a turn talks with the model: what it is asked, what becomes of its answer, and what the chat is told
// of both.

// maxAnswer bounds what a model may write in one turn, in bytes: about twenty minutes of speech.
const maxAnswer = 16 << 10

// converse asks the model, runs the tools that it wants, and speaks what it writes while it writes.
func (t *turn) converse(ctx context.Context) error {
	o := &t.p.o
	said := t.record.Heard
	pre := t.preChat(ctx)
	if pre.SkipLLM {
		return t.handled(ctx, said, pre)
	}
	messages := t.context(ctx, pre.Input, pre.ContextParts)
	user := dialog.Message{Role: dialog.User, Content: pre.Input, Time: t.began}
	t.saveMeanwhile(user) // a slow disk must not hold up the model

	written, err := t.rounds(ctx, append(messages, user))
	if errors.Is(err, dialog.ErrNotUnderstood) {
		return err
	}
	t.allSaved()
	if err != nil {
		// An answer that was cut short is remembered as far as it was heard: that is what the user will refer to.
		t.record.Answer = t.speech.spoken()
		if rest := t.unsaved(t.record.Answer); rest != "" {
			t.save(dialog.Message{Role: dialog.Assistant, Content: rest, Time: o.Clock.Now()})
		}
		return err
	}
	answer := dialog.Message{Role: dialog.Assistant, Time: o.Clock.Now()}
	answer.Content = t.postLLM(ctx, pre.Input, strings.TrimSpace(written))
	t.record.Answer = strings.TrimSpace(t.earlier + " " + answer.Content)
	t.save(answer)
	t.postChat(ctx, pre.Input, answer.Content)
	if o.streams() {
		err = t.speech.finish(ctx)
	} else {
		err = t.speech.whole(ctx, t.record.Answer)
	}
	return t.heard(err, true)
}

// context is what the model is told before the user's words: the system prompt, what was said before, and the ghost
// message, which goes into this request and nowhere else.
func (t *turn) context(ctx context.Context, input string, parts []string) []dialog.Message {
	o := &t.p.o
	var messages []dialog.Message
	if prompt := t.promptInject(ctx, parts); prompt != "" {
		messages = append(messages, dialog.Message{Role: dialog.System, Content: prompt})
	}
	messages = append(messages, t.chat.Messages()...)
	if contributions := t.ghostInject(ctx, input); o.Ghost != nil {
		if text := o.Ghost(t.chat, t.record.Run, contributions); text != "" {
			messages = append(messages, dialog.Message{Role: dialog.User, Content: string(text), PerTurn: true})
		}
	}
	return messages
}

// Preview is what a model would be asked if input were said next in a chat, "" being the active one. Nothing is sent, and
// nothing kept. pre_chat isn't fired: its handlers act. The calls of the hooks that were fired come with it.
func (p *Pipeline) Preview(ctx context.Context, chat, input string) (dialog.Request, []event.HookCall, error) {
	t := p.newTurn(p.o.Clock.Now())
	t.chatName = chat
	if err := t.enter(); err != nil {
		return dialog.Request{}, nil, err
	}
	messages := append(t.context(ctx, input, nil), dialog.Message{Role: dialog.User, Content: input})
	return dialog.Request{Messages: messages, Tools: t.toolsFilter(ctx, p.o.Tools.Specs())}, t.trace, nil
}

// heard keeps of an answer that was cut short, with err, only what was heard.
func (t *turn) heard(err error, saved bool) error {
	if err == nil {
		return nil
	}
	t.record.Answer = t.speech.spoken()
	if saved {
		if err := t.chat.Amend(t.unsaved(t.record.Answer)); err != nil {
			t.p.o.Logger.Error("the turn could not be saved", "run", t.record.Run, "err", err)
		}
	}
	return err
}

// unsaved is the part of what was spoken that is not in the chat yet.
func (t *turn) unsaved(spoken string) string {
	rest, ok := strings.CutPrefix(spoken, strings.Join(strings.Fields(t.earlier), " "))
	if !ok {
		return "" // not even the first part was heard to its end
	}
	return strings.TrimSpace(rest)
}

// handled speaks what a plugin answered in the model's place.
func (t *turn) handled(ctx context.Context, said string, e *hooks.Event) error {
	t.taken = true
	if e.Response == nil || strings.TrimSpace(*e.Response) == "" {
		if sound := t.p.o.DoneSound; t.listen && len(sound) > 0 {
			t.p.o.Output.Sound(sound, false)
		}
		return nil
	}
	t.record.Answer = strings.TrimSpace(*e.Response)
	if !e.Ephemeral {
		t.save(
			dialog.Message{Role: dialog.User, Content: said, Time: t.began},
			dialog.Message{Role: dialog.Assistant, Content: t.record.Answer, Time: t.p.o.Clock.Now()},
		)
	}
	return t.heard(t.speech.whole(ctx, t.record.Answer), !e.Ephemeral)
}

// saveMeanwhile saves on a goroutine of its own. What is saved next waits for it.
func (t *turn) saveMeanwhile(rows ...dialog.Message) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.append(rows...)
	}()
	t.saving = done
}

func (t *turn) save(rows ...dialog.Message) {
	t.allSaved()
	t.append(rows...)
}

// allSaved waits for what is being saved.
func (t *turn) allSaved() {
	if t.saving != nil {
		<-t.saving
		t.saving = nil
	}
}

func (t *turn) append(rows ...dialog.Message) {
	if err := t.chat.Append(rows...); err != nil {
		t.p.o.Logger.Error("the turn could not be saved", "run", t.record.Run, "err", err)
		return
	}
	t.saved = true
}

// rounds has the model write, and runs the tools that it asks for, until it asks for none. In the last round it must
// answer with what it knows. What it writes in that round is returned; what it wrote and asked for before is in the
// chat, with the results.
func (t *turn) rounds(ctx context.Context, messages []dialog.Message) (written string, err error) {
	o := &t.p.o
	total := 0
	for round := 0; ; round++ {
		req := dialog.Request{Messages: messages, Tools: t.toolsFilter(ctx, o.Tools.Specs()), NoCalls: round == o.ToolRounds}
		text, calls, err := t.generate(ctx, req, maxAnswer-total)
		if err != nil || len(calls) == 0 || req.NoCalls {
			return text, err
		}
		total += len(text)
		if text != "" && o.streams() {
			t.speech.flush(ctx) // it is said before the tools run; what comes next begins anew
		}
		rows := []dialog.Message{{Role: dialog.Assistant, Content: text, Calls: calls, Time: o.Clock.Now()}}
		results, err := t.executeAll(ctx, calls, req.Tools)
		if err != nil {
			return "", err
		}
		for i, r := range results {
			t.usedTools = append(t.usedTools, calls[i].Name)
			rows = append(rows, dialog.Message{Role: dialog.Tool, Content: r.Content, CallID: r.CallID, Name: calls[i].Name, Time: o.Clock.Now()})
		}
		t.save(rows...) // together: calls without results make no sense to a model
		if text != "" {
			t.earlier = strings.TrimSpace(t.earlier + " " + text)
		}
		messages = append(messages, rows...)
	}
}

// executeAll runs the tools of a round, side by side.
func (t *turn) executeAll(ctx context.Context, calls []dialog.ToolCall, offered []dialog.ToolSpec) ([]dialog.ToolResult, error) {
	results, errs := make([]dialog.ToolResult, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() { results[i], errs[i] = t.execute(ctx, call, offered) })
	}
	all.Wait()
	for i := range results {
		results[i].CallID = calls[i].ID
		if errs[i] != nil {
			return nil, errs[i]
		}
	}
	return results, nil
}

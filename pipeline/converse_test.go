package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/event"
	"bellbird/ghost"
	"bellbird/hooks"
	"bellbird/pipeline"
)

// Turns in different chats alternate, and each finds and leaves its own.
func TestAnotherChatsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		study := &chat{name: "study"}
		s := newSpy(t)
		told := ""
		s.at("pre_chat", func(e *hooks.Event) { told = *e.ChatName })
		r := hooked(t, s, func(o *pipeline.Options) {
			o.Chats.(*chat).others = []*chat{study}
			o.Prompt = func(c pipeline.Chat, _ []string) string { return "You are in the " + c.Name() + "." }
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				yield(dialog.Delta{Text: fmt.Sprintf("%d messages. %s", len(req.Messages), req.Messages[0].Content)}, nil)
			})
		})
		for i, turn := range []struct{ chat, answer string }{
			{"", "2 messages. You are in the kitchen."},
			{"study", "2 messages. You are in the study."},
			{"", "4 messages. You are in the kitchen."},
			{"study", "4 messages. You are in the study."},
		} {
			record, err := r.AskIn(t.Context(), turn.chat, "hello")
			name := turn.chat
			if name == "" {
				name = "kitchen"
			}
			if err != nil || record.Answer != turn.answer || record.Chat != name {
				t.Errorf("turn %d: %+v, error %v", i, record, err)
			}
			if told != name {
				t.Errorf("turn %d: pre_chat was told of %q", i, told)
			}
		}
		if len(r.chat.rows) != 4 || len(study.rows) != 4 {
			t.Errorf("%d and %d messages", len(r.chat.rows), len(study.rows))
		}
		if diff := cmp.Diff([]string{"completed", "completed"}, study.ended); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		record, err := r.AskIn(t.Context(), "attic", "hello")
		if err != nil || record.Error != event.ChatUnknown || record.Answer != "I can't find that chat." {
			t.Errorf("%+v, error %v", record, err)
		}
	})
}

func TestLockedChatIsRefusedInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *pipeline.Options) { o.Chats.(*chat).locked = true })
		r.Wake("okay_nabu", 1, 0)
		record := r.ended(t)
		if record.Error != event.ChatLocked || !record.Private || record.Chat != "" ||
			record.Answer != "This chat is private and locked. Please unlock it first." || len(r.chat.rows) != 0 {
			t.Errorf("%+v, chat %v", record, r.chat.rows)
		}
		record, err := r.Say(t.Context(), "Dinner is ready.")
		if err != nil || record.Outcome != event.Completed || record.Answer != "Dinner is ready." {
			t.Errorf("what needs no chat: %+v, error %v", record, err)
		}
	})
}

// Everything that is told of a private chat's turn says so, from the first word on.
func TestPrivateTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *pipeline.Options) { o.Chats.(*chat).private = true })
		r.Wake("okay_nabu", 1, 0)
		told := 0
		for f := range r.facts.C {
			switch f.(type) {
			case event.Heard, event.Said, event.TurnEnded:
				told++
				if !f.(interface{ OfPrivateChat() bool }).OfPrivateChat() {
					t.Errorf("%T is not private", f)
				}
			}
			if e, ok := f.(event.TurnEnded); ok {
				if e.Record.Chat != "" {
					t.Error("the record names the chat")
				}
				break
			}
		}
		if told < 3 {
			t.Errorf("%d facts of the turn", told)
		}
	})
}

// What the model wrote before it called tools, the calls and the results are history, and the tools of a round run side
// by side.
func TestRoundsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *pipeline.Options) {
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				if last := req.Messages[len(req.Messages)-1]; last.Role == dialog.User {
					yield(dialog.Delta{Text: "Let me look."}, nil)
					for _, id := range []string{"1", "2"} {
						yield(dialog.Delta{Call: &dialog.ToolCall{ID: id, Name: "get_time"}}, nil)
					}
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "3", Name: "get_time", Invalid: "No JSON."}}, nil)
					yield(dialog.Delta{Usage: &dialog.Usage{Input: 10, CacheRead: 4, Output: 2}}, nil)
					return
				}
				yield(dialog.Delta{Text: "It is late."}, nil)
				yield(dialog.Delta{Usage: &dialog.Usage{Input: 20, CacheRead: 10, Output: 3}}, nil)
			})
			o.Tools = toolbox(func(ctx context.Context, c dialog.ToolCall) dialog.ToolResult {
				sleep(ctx, 5*time.Second)
				return dialog.ToolResult{Content: "late " + c.ID}
			})
		})
		record, err := r.Ask(t.Context(), "what time is it")
		if err != nil || record.Answer != "Let me look. It is late." {
			t.Fatalf("%+v, error %v", record, err)
		}
		if took := time.Duration(record.Stages.End); took > 10*time.Second {
			t.Errorf("two tools of five seconds took %v", took)
		}
		want := []string{
			"user: what time is it", "assistant: Let me look.", "tool: late 1", "tool: late 2", "tool: No JSON.", "assistant: It is late.",
		}
		if diff := cmp.Diff(want, r.chat.texts()); diff != "" {
			t.Errorf("chat (-want +got):\n%s", diff)
		}
		if r.chat.rows[3].CallID != "2" || len(r.chat.rows[1].Calls) != 3 {
			t.Errorf("calls %+v", r.chat.rows[1:4])
		}
		if diff := cmp.Diff(&event.ModelUse{Requests: 2, Input: 30, CacheRead: 14, Output: 5}, record.Model); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	})
}

// An answer that is interrupted after a round of tools is remembered once.
func TestInterruptedAfterTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("One two three four five six seven eight nine ten. ", 5)
		r := start(t, func(o *pipeline.Options) {
			o.Tools = toolbox(tellsTheTime)
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				if last := req.Messages[len(req.Messages)-1]; last.Role == dialog.User {
					yield(dialog.Delta{Text: "Let me look that up."}, nil)
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "1", Name: "get_time"}}, nil)
					return
				}
				yield(dialog.Delta{Text: long}, nil)
			})
		})
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Speaking)
		time.Sleep(3 * time.Second)
		r.Stop()
		record := r.ended(t)
		texts := r.chat.texts()
		last := strings.TrimPrefix(texts[len(texts)-1], "assistant: ")
		if texts[1] != "assistant: Let me look that up." || record.Answer != "Let me look that up. "+last || !strings.HasPrefix(last, "One two") {
			t.Errorf("answer %q, chat %q", record.Answer, texts)
		}
		if diff := cmp.Diff([]string{"interrupted"}, r.chat.ended); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

// Each fault of a model is told in words that help, and the next turn works.
func TestModelErrorsAreTold(t *testing.T) {
	for _, kind := range []dialog.ModelErrorKind{
		dialog.NoKey, dialog.WrongKey, dialog.NoCredit, dialog.UnknownModel, dialog.Unreachable, dialog.RateLimited, dialog.ServerFault,
		dialog.Stalled, dialog.CutOff, dialog.ContextTooLong, dialog.Refused, dialog.BadRequest,
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := true
				r := start(t, func(o *pipeline.Options) {
					o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
						if failing {
							yield(dialog.Delta{}, &dialog.ModelError{Kind: kind, Err: errors.New("secret detail")})
							return
						}
						yield(dialog.Delta{Text: "All is well."}, nil)
					})
				})
				record, err := r.Ask(t.Context(), "hello")
				if err != nil || record.Outcome != event.FailedTurn || record.Error != event.ModelFailed || record.Model.Error != string(kind) {
					t.Errorf("%+v, error %v", record, err)
				}
				if record.Answer == "" || record.Answer == "Sorry, I can't answer that at the moment." || strings.Contains(record.Answer, "secret") {
					t.Errorf("said %q", record.Answer)
				}
				failing = false
				if record, err := r.Ask(t.Context(), "hello"); err != nil || record.Answer != "All is well." {
					t.Errorf("next turn: %+v, error %v", record, err)
				}
			})
		})
	}
}

// A preview is the request that the turn would make, and nothing comes of it.
func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_chat", func(*hooks.Event) { t.Error("pre_chat was fired") })
		s.at("prompt_inject", func(e *hooks.Event) { e.ContextParts = append(e.ContextParts, "Be brief.") })
		s.at("ghost_inject", func(e *hooks.Event) { e.GhostText = hooks.String("rain") })
		r := hooked(t, s, func(o *pipeline.Options) {
			o.Chats.(*chat).rows = []dialog.Message{{Role: dialog.User, Content: "hello"}, {Role: dialog.Assistant, Content: "Hi."}}
			o.Ghost = func(_ pipeline.Chat, _ uint64, list []hooks.Contribution) ghost.Message {
				return ghost.Message(list[0].Text)
			}
		})
		req, calls, err := r.Preview(t.Context(), "", "how are you")
		if err != nil || len(calls) != 3 {
			t.Errorf("%d hooks, error %v", len(calls), err)
		}
		want := []dialog.Message{
			{Role: dialog.System, Content: "Be brief."}, {Role: dialog.User, Content: "hello"}, {Role: dialog.Assistant, Content: "Hi."},
			{Role: dialog.User, Content: "rain", PerTurn: true}, {Role: dialog.User, Content: "how are you"},
		}
		if diff := cmp.Diff(want, req.Messages); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		if len(r.chat.rows) != 2 {
			t.Errorf("chat %q", r.chat.texts())
		}
	})
}

// A tool has as long as it says, and arguments that don't fit never reach it, nor the hooks.
func TestToolsPrepareAndTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_execute", func(e *hooks.Event) {
			if *e.FunctionName != "patient" {
				t.Error("the hooks were told of a call that can't be made")
			}
		})
		r := hooked(t, s, func(o *pipeline.Options) {
			o.Tools = patientTools{toolbox(func(ctx context.Context, c dialog.ToolCall) dialog.ToolResult {
				sleep(ctx, 30*time.Second)
				return dialog.ToolResult{Content: "done at last"}
			})}
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				if last := req.Messages[len(req.Messages)-1]; last.Role == dialog.User {
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "1", Name: "patient"}}, nil)
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "2", Name: "other", Arguments: []byte(`"nonsense"`)}}, nil)
					return
				}
				yield(dialog.Delta{Text: "All is done."}, nil)
			})
		})
		if _, err := r.Ask(t.Context(), "do it"); err != nil {
			t.Fatal(err)
		}
		want := []string{"user: do it", "assistant: ", "tool: done at last", "tool: The arguments don't fit.", "assistant: All is done."}
		if diff := cmp.Diff(want, r.chat.texts()); diff != "" {
			t.Errorf("chat (-want +got):\n%s", diff)
		}
	})
}

type patientTools struct{ toolbox }

func (patientTools) Specs() []dialog.ToolSpec {
	return []dialog.ToolSpec{{Name: "patient"}, {Name: "other"}}
}

// What can't be spoken never reaches the voice, however the model cuts it into pieces; the chat keeps what was written.
func TestOnlyWordsAreSpoken(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const written = "**Here** you go: see [the page](http://example.org/x). ```\ncode\n``` That is all 😀."
			var said []string
			r := start(t, func(o *pipeline.Options) {
				o.Streaming = &streaming
				o.Voice = voice(func(ctx context.Context, text string, to func(audio.Frame) error) error {
					said = append(said, text)
					return speak(ctx, text, to)
				})
				o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
					for _, letter := range strings.Split(written, "") {
						yield(dialog.Delta{Text: letter}, nil)
					}
				})
			})
			if _, err := r.Ask(t.Context(), "help"); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(said, " "); strings.ContainsAny(got, "*`[]😀") || strings.Contains(got, "code") || !strings.Contains(got, "Here you go: see the page.") {
				t.Errorf("streaming %v: said %q", streaming, got)
			}
			if got := r.chat.texts()[1]; got != "assistant: "+written {
				t.Errorf("kept %q", got)
			}
		})
	}
}

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// A spy notes each fire, and does what a test wants at a point.
type spy struct {
	*hooks.Runner
	mu    sync.Mutex
	fires []string
	seen  map[string]*hooks.Event
	do    map[string]hooks.Func
}

func newSpy(t *testing.T, points ...string) *spy {
	s := &spy{Runner: hooks.New(hooks.Options{System: "powers", Config: "settings"}), seen: map[string]*hooks.Event{}, do: map[string]hooks.Func{}}
	if len(points) == 0 {
		for _, p := range hooks.Points() {
			points = append(points, p.Name)
		}
	}
	for _, point := range points {
		err := s.Register(hooks.Handler{Plugin: "spy", Point: point, Func: func(ctx context.Context, e *hooks.Event) error {
			s.mu.Lock()
			s.fires = append(s.fires, point)
			s.seen[point] = e
			do := s.do[point]
			s.mu.Unlock()
			if do != nil {
				return do(ctx, e)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *spy) at(point string, f func(e *hooks.Event)) {
	s.do[point] = func(_ context.Context, e *hooks.Event) error { f(e); return nil }
}

func (s *spy) fired() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.fires)
}

func (s *spy) count(point string) int {
	n := 0
	for _, f := range s.fired() {
		if f == point {
			n++
		}
	}
	return n
}

// hooked starts a rig with the spy's hooks.
func hooked(t *testing.T, s *spy, change func(*pipeline.Options)) *rig {
	t.Cleanup(s.Close)
	return start(t, func(o *pipeline.Options) {
		o.Hooks = s.Runner
		o.Clock = nil
		if change != nil {
			change(o)
		}
	})
}

// asksForTheTime uses a tool and speaks its result.
func asksForTheTime(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == dialog.Tool {
		yield(dialog.Delta{Text: last.Content + " And that is that."}, nil)
		return
	}
	yield(dialog.Delta{Call: &dialog.ToolCall{ID: "1", Name: "get_time", Arguments: []byte(`{"zone":"here"}`)}}, nil)
}

func tellsTheTime(_ context.Context, c dialog.ToolCall) dialog.ToolResult {
	return dialog.ToolResult{CallID: c.ID, Content: "It is late already, with " + string(c.Arguments) + "."}
}

func TestPointsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		r := hooked(t, s, func(o *pipeline.Options) {
			o.Model, o.Tools = model(asksForTheTime), toolbox(tellsTheTime)
		})
		r.Wake("okay_nabu", 1, 0)
		record := r.ended(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		// What nobody waits for comes when it comes.
		waited := slices.DeleteFunc(s.fired(), func(p string) bool { return p == "post_chat" || p == "tts_stream_end" })
		want := []string{
			"on_wake", "post_stt", "pre_chat", "prompt_inject", "ghost_inject", "tools_filter", "pre_execute", "post_execute", "tools_filter",
			"tts_stream_start", "tts_chunk_text", "tts_chunk_audio", "tts_chunk_text", "tts_chunk_audio",
		}
		// post_llm comes when the model has ended, which is while the first chunks are spoken.
		withoutLLM := slices.DeleteFunc(slices.Clone(waited), func(p string) bool { return p == "post_llm" })
		if diff := cmp.Diff(want, withoutLLM); diff != "" {
			t.Errorf("points (-want +got):\n%s", diff)
		}
		for _, once := range []string{"post_llm", "post_chat", "tts_stream_end"} {
			if n := s.count(once); n != 1 {
				t.Errorf("%s fired %d times", once, n)
			}
		}
		if s.count("pre_tts")+s.count("post_tts") > 0 {
			t.Error("pre_tts and post_tts fired for a stream")
		}
		var traced []string
		for _, c := range record.Hooks {
			traced = append(traced, c.Point)
			if c.Plugin != "spy" || c.Outcome != "committed" {
				t.Errorf("trace: %+v", c)
			}
		}
		if !slices.Equal(sortedCopy(traced), sortedCopy(waited)) {
			t.Errorf("the record has %v, fired were %v", traced, waited)
		}

		// What each point is told.
		e := s.seen["pre_execute"]
		if *e.FunctionName != "get_time" || fmt.Sprint(e.Arguments) != "map[zone:here]" {
			t.Errorf("pre_execute: %+v", e)
		}
		if e = s.seen["post_execute"]; *e.Result != `It is late already, with {"zone":"here"}.` {
			t.Errorf("post_execute: %q", *e.Result)
		}
		if e = s.seen["tools_filter"]; *e.ChatName != "kitchen" || len(e.Tools) != 1 {
			t.Errorf("tools_filter: %+v", e)
		}
		if e = s.seen["ghost_inject"]; e.Input != "what is up" || *e.Surface != "chat" || e.Config != nil || e.Metadata["system"] != "powers" {
			t.Errorf("ghost_inject: %+v", e)
		}
		if e = s.seen["post_chat"]; e.Input != "what is up" || *e.Response != `It is late already, with {"zone":"here"}. And that is that.` {
			t.Errorf("post_chat: %+v", e)
		}
		end := s.seen["tts_stream_end"].Metadata
		if end["chunk_count"] != 2 || end["total_chars"] != len(`It is late already, with {"zone":"here"}.And that is that.`) || end["interrupted"] != false {
			t.Errorf("tts_stream_end: %v", end)
		}
		id, _ := end["stream_id"].(string)
		if len(id) != 32 || s.seen["tts_stream_start"].Metadata["stream_id"] != id || s.seen["tts_chunk_text"].Metadata["stream_id"] != id {
			t.Errorf("stream ids: %q", id)
		}
		if m := s.seen["tts_chunk_text"].Metadata; m["chunk_index"] != 1 || m["boundary"] != "end" || m["pause_after_ms"] != 0 {
			t.Errorf("tts_chunk_text: %v", m)
		}
	})
}

func sortedCopy(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

func TestWhatIsHonoured(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(s *spy)
		heard  string
		answer string
		rows   []string
		spoken int // frames
		ends   event.Outcome
	}{
		"post_stt changes the input": {
			func(s *spy) { s.at("post_stt", func(e *hooks.Event) { e.Input = "something else" }) },
			"something else", "Nothing.", []string{"user: something else", "assistant: Nothing."}, 5, event.Completed,
		},
		"post_stt empties it": {
			func(s *spy) { s.at("post_stt", func(e *hooks.Event) { e.Input = "" }) }, "", "", nil, 0, event.Handled,
		},
		"pre_chat changes the input": {
			func(s *spy) { s.at("pre_chat", func(e *hooks.Event) { e.Input = "changed" }) },
			"what is up", "Nothing.", []string{"user: changed", "assistant: Nothing."}, 5, event.Completed,
		},
		"pre_chat answers": {
			func(s *spy) {
				s.at("pre_chat", func(e *hooks.Event) {
					e.Input, e.SkipLLM, e.Response = "changed", true, hooks.String("By a plugin.")
				})
			}, "what is up", "By a plugin.", []string{"user: what is up", "assistant: By a plugin."}, 15, event.Handled,
		},
		"pre_chat answers without a trace": {
			func(s *spy) {
				s.at("pre_chat", func(e *hooks.Event) {
					e.SkipLLM, e.Response, e.Ephemeral = true, hooks.String("By a plugin."), true
				})
			}, "what is up", "By a plugin.", nil, 15, event.Handled,
		},
		"pre_chat answers nothing": {
			func(s *spy) { s.at("pre_chat", func(e *hooks.Event) { e.SkipLLM = true }) }, "what is up", "", nil, 0, event.Handled,
		},
		"post_llm changes the answer": {
			func(s *spy) { s.at("post_llm", func(e *hooks.Event) { *e.Response += " Hell yeah." }) },
			"what is up", "Nothing. Hell yeah.", []string{"user: what is up", "assistant: Nothing. Hell yeah."}, 5, event.Completed,
		},
		"post_llm may not blank it": {
			func(s *spy) { s.at("post_llm", func(e *hooks.Event) { e.Response = hooks.String(" ") }) },
			"what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 5, event.Completed,
		},
		"tts_stream_start mutes": {
			func(s *spy) { s.at("tts_stream_start", func(e *hooks.Event) { e.SkipTTS = true }) },
			"what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 0, event.Completed,
		},
		"tts_chunk_text changes": {
			func(s *spy) { s.at("tts_chunk_text", func(e *hooks.Event) { *e.TTSText += " at all" }) },
			"what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 15, event.Completed,
		},
		"tts_chunk_text drops": {
			func(s *spy) { s.at("tts_chunk_text", func(e *hooks.Event) { e.TTSText = hooks.String(" ") }) },
			"what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 0, event.Completed,
		},
		"tts_chunk_audio replaces": {
			func(s *spy) {
				s.at("tts_chunk_audio", func(e *hooks.Event) {
					e.Metadata["audio"].(map[string]any)["audio_bytes"] = audio.EncodeWAV(slices.Repeat([]audio.Frame{loud}, 8))
				})
			}, "what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 8, event.Completed,
		},
		"tts_chunk_audio drops": {
			func(s *spy) {
				s.at("tts_chunk_audio", func(e *hooks.Event) { e.Metadata["audio"].(map[string]any)["audio_bytes"] = []byte{} })
			}, "what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 0, event.Completed,
		},
		"tts_chunk_audio drops with none": {
			func(s *spy) {
				s.at("tts_chunk_audio", func(e *hooks.Event) { e.Metadata["audio"].(map[string]any)["audio_bytes"] = nil })
			}, "what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 0, event.Completed,
		},
		"tts_chunk_audio makes rubbish": {
			func(s *spy) {
				s.at("tts_chunk_audio", func(e *hooks.Event) { e.Metadata["audio"].(map[string]any)["audio_bytes"] = []byte("no sound") })
			}, "what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 5, event.Completed,
		},
		"a handler panics at each point": {
			func(s *spy) {
				for _, p := range hooks.Points() {
					s.do[p.Name] = func(_ context.Context, e *hooks.Event) error {
						e.Input, e.SkipLLM, e.SkipTTS, e.TTSText = "spoiled", true, true, nil
						panic("oh")
					}
				}
			}, "what is up", "Nothing.", []string{"user: what is up", "assistant: Nothing."}, 5, event.Completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpy(t)
				test.do(s)
				r := hooked(t, s, func(o *pipeline.Options) { o.Model = answer("Nothing.") })
				r.Wake("okay_nabu", 1, 0)
				record := r.ended(t)
				time.Sleep(time.Minute)
				if record.Heard != test.heard || record.Answer != test.answer || record.Outcome != test.ends {
					t.Errorf("record %+v", record)
				}
				if diff := cmp.Diff(test.rows, r.chat.texts()); diff != "" {
					t.Errorf("chat (-want +got):\n%s", diff)
				}
				if n := r.heard(); n != test.spoken {
					t.Errorf("%d frames of speech, want %d", n, test.spoken)
				}
				if starts, ends := s.count("tts_stream_start"), s.count("tts_stream_end"); starts != ends || starts > 1 {
					t.Errorf("%d streams began and %d ended", starts, ends)
				}
			})
		})
	}
}

// A plugin's answer that is interrupted is remembered as far as it was heard, like a model's.
func TestInterruptedPluginAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		long := strings.Repeat("One two three four five six seven eight nine ten. ", 5)
		s.at("pre_chat", func(e *hooks.Event) { e.SkipLLM, e.Response = true, hooks.String(long) })
		r := hooked(t, s, nil)
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Speaking)
		time.Sleep(1500 * time.Millisecond)
		r.Stop()
		record := r.ended(t)
		if n := len(strings.Fields(record.Answer)); n < 13 || n > 17 || r.chat.texts()[1] != "assistant: "+record.Answer {
			t.Errorf("answer %q, chat %q", record.Answer, r.chat.texts())
		}
	})
}

func TestToolsThroughHooks(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(s *spy)
		answer string
	}{
		"arguments are rewritten": {
			func(s *spy) { s.at("pre_execute", func(e *hooks.Event) { e.Arguments["zone"] = "there" }) },
			`It is late already, with {"zone":"there"}. And that is that.`,
		},
		"blocked with a text": {
			func(s *spy) {
				s.at("pre_execute", func(e *hooks.Event) { e.SkipLLM, e.Result = true, hooks.String("Not today.") })
			}, "Not today. And that is that.",
		},
		"blocked without": {
			func(s *spy) { s.at("pre_execute", func(e *hooks.Event) { e.SkipLLM = true }) }, "Execution skipped by plugin. And that is that.",
		},
		"a confirmation is asked for": {
			func(s *spy) {
				s.at("pre_execute", func(e *hooks.Event) { e.Confirm = hooks.String("it is dangerous") })
			},
			"This needs the user's confirmation, and there is no way to ask for it. It was not done. And that is that.",
		},
		"the result is replaced": {
			func(s *spy) { s.at("post_execute", func(e *hooks.Event) { e.Result = hooks.String("Never mind.") }) },
			"Never mind. And that is that.",
		},
		"withheld": {
			func(s *spy) { s.at("tools_filter", func(e *hooks.Event) { e.Tools = nil }) }, "There is no tool get_time. And that is that.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpy(t)
				test.do(s)
				ran := 0
				r := hooked(t, s, func(o *pipeline.Options) {
					o.Model = model(asksForTheTime)
					o.Tools = toolbox(func(ctx context.Context, c dialog.ToolCall) dialog.ToolResult { ran++; return tellsTheTime(ctx, c) })
				})
				record, err := r.Ask(t.Context(), "what time is it")
				if err != nil || record.Answer != test.answer {
					t.Errorf("answer %q, error %v", record.Answer, err)
				}
				if blocked := s.count("post_execute") == 0; blocked != (ran == 0) {
					t.Errorf("the tool ran %d times, post_execute fired %d times", ran, s.count("post_execute"))
				}
			})
		})
	}
}

func TestPromptAndGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t)
		s.at("pre_chat", func(e *hooks.Event) { e.ContextParts = append(e.ContextParts, "from pre_chat") })
		s.at("prompt_inject", func(e *hooks.Event) { e.ContextParts = append(e.ContextParts, "from prompt_inject") })
		s.at("ghost_inject", func(e *hooks.Event) { e.GhostText = hooks.String("light rain") })
		var request dialog.Request
		r := hooked(t, s, func(o *pipeline.Options) {
			o.Prompt = func(c pipeline.Chat, parts []string) string {
				return "Be brief in the " + c.Name() + ".\n\n" + strings.Join(parts, "\n")
			}
			o.Ghost = func(c pipeline.Chat, _ uint64, list []hooks.Contribution) ghost.Message {
				return ghost.Message(fmt.Sprint(c.Name(), " ", list))
			}
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				request = req
				yield(dialog.Delta{Text: "Yes."}, nil)
			})
		})
		if _, err := r.Ask(t.Context(), "is it raining"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range request.Messages {
			got = append(got, string(m.Role)+": "+m.Content)
		}
		want := []string{"system: Be brief in the kitchen.\n\nfrom pre_chat\nfrom prompt_inject", "user: kitchen [{spy light rain}]", "user: is it raining"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"user: is it raining", "assistant: Yes."}, r.chat.texts()); diff != "" {
			t.Errorf("the ghost is in the chat (-want +got):\n%s", diff)
		}
	})
}

// tts_stream_end comes exactly once for each stream that began, however the turn ends.
func TestStreamEndsExactlyOnce(t *testing.T) {
	long := strings.Repeat("One two three four five six seven eight nine ten. ", 5)
	for name, test := range map[string]struct {
		change      func(*pipeline.Options)
		meanwhile   func(r *rig)
		streams     int
		interrupted bool
	}{
		"finished":  {func(*pipeline.Options) {}, nil, 1, false},
		"stopped":   {func(*pipeline.Options) {}, func(r *rig) { r.Stop() }, 1, true},
		"barge-in":  {func(o *pipeline.Options) {}, func(r *rig) { r.Wake("okay_nabu", 1, 0) }, 2, true},
		"no answer": {func(o *pipeline.Options) { o.Model = answer("") }, nil, 0, false},
		"the voice fails": {func(o *pipeline.Options) {
			o.Voice = voice(func(context.Context, string, func(audio.Frame) error) error { return errors.New("broken") })
		}, nil, 1, true},
		"the model fails": {func(o *pipeline.Options) {
			o.Model = model(func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
				_ = yield(dialog.Delta{Text: "The first sentence is whole. And "}, nil) && yield(dialog.Delta{}, errors.New("gone"))
			})
		}, nil, 1, false},
		"whole answer": {func(o *pipeline.Options) { o.Streaming = new(false) }, nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpy(t)
				r := hooked(t, s, func(o *pipeline.Options) {
					o.Model = answer(long)
					test.change(o)
				})
				r.Wake("okay_nabu", 1, 0)
				if test.meanwhile != nil {
					r.until(t, event.Speaking)
					time.Sleep(1500 * time.Millisecond)
					test.meanwhile(r)
				}
				r.ended(t)
				time.Sleep(time.Minute)
				synctest.Wait()
				if starts, ends := s.count("tts_stream_start"), s.count("tts_stream_end"); starts != test.streams || ends != test.streams {
					t.Errorf("%d streams began and %d ended, want %d", starts, ends, test.streams)
				}
				if test.streams == 1 && s.seen["tts_stream_end"].Metadata["interrupted"] != test.interrupted {
					t.Errorf("tts_stream_end: %v", s.seen["tts_stream_end"].Metadata)
				}
				if name == "whole answer" && (s.count("pre_tts") != 1 || s.count("post_tts") != 1) {
					t.Errorf("fired %v", s.fired())
				}
			})
		})
	}
}

// The promise of the audio loop: whatever handlers do, two minutes of speech are played without a hole.
func TestHostileHandlersDontMakeItStutter(t *testing.T) {
	hostile := map[string]hooks.Func{
		"sleeps": func(ctx context.Context, _ *hooks.Event) error { <-ctx.Done(); return nil },
		"ignores everything": func(context.Context, *hooks.Event) error {
			time.Sleep(10 * time.Second)
			return nil
		},
		"panics":        func(context.Context, *hooks.Event) error { panic("oh") },
		"returns trash": func(_ context.Context, e *hooks.Event) error { e.Metadata["audio"] = 42; return nil },
		"fails":         func(context.Context, *hooks.Event) error { return errors.New("no") },
	}
	for name, handler := range hostile {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpy(t, "tts_stream_start", "tts_chunk_text", "tts_chunk_audio")
				for _, p := range []string{"tts_chunk_text", "tts_chunk_audio"} {
					s.do[p] = handler
				}
				text := strings.Repeat("One two three four five six seven eight nine ten. ", 120) // of 1 s each
				r := hooked(t, s, func(o *pipeline.Options) { o.Model = answer(text) })
				record, err := r.Ask(t.Context(), "go on")
				if err != nil || record.Outcome != event.Completed {
					t.Fatalf("record %+v, error %v", record.Outcome, err)
				}
				stats := r.out.Stats()
				if stats.Gaps > 0 {
					t.Errorf("%d holes", stats.Gaps)
				}
				if name != "returns trash" && r.heard() != 120*50 {
					t.Errorf("%d frames of speech, want %d", r.heard(), 120*50)
				}
				time.Sleep(30 * time.Second) // until the last handler has had enough
				// Three misses at each point, and then the breakers are open; once for each minute again.
				if d := time.Duration(record.Stages.End); d > 2*time.Minute+2*time.Second {
					t.Errorf("the turn took %v", d)
				}
			})
		})
	}
}

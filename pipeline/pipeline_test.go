package pipeline_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
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

// The engines of these tests. Each does by default what a good engine would; a test replaces what it is about.

// ears hear an utterance of one second, and its end 600 ms later.
type ears func(ctx context.Context, from uint64, to func(audio.Frame)) (bool, time.Duration, error)

func (e ears) Listen(ctx context.Context, from uint64, to func(audio.Frame)) (bool, time.Duration, error) {
	return e(ctx, from, to)
}

func hearSentence(ctx context.Context, _ uint64, to func(audio.Frame)) (bool, time.Duration, error) {
	for i := range 80 {
		if err := sleep(ctx, audio.FrameDuration); err != nil {
			return false, 0, err
		}
		to(audio.Frame{int16(i)})
	}
	return true, 600 * time.Millisecond, nil
}

type recognizer func(ctx context.Context, frames <-chan audio.Frame) (string, error)

func (r recognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	return r(ctx, frames)
}

func recognize(text string) recognizer {
	return func(_ context.Context, frames <-chan audio.Frame) (string, error) {
		for range frames {
		}
		return text, nil
	}
}

type model func(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool)

func (m model) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) { m(ctx, req, yield) }
}

func answer(text string) model {
	return func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
		for _, word := range strings.SplitAfter(text, " ") {
			if !yield(dialog.Delta{Text: word}, nil) {
				return
			}
		}
	}
}

// voice speaks a word in 100 ms, and needs 10 ms to make it.
type voice func(ctx context.Context, text string, to func(audio.Frame) error) error

func (v voice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	return v(ctx, text, to)
}

func speak(ctx context.Context, text string, to func(audio.Frame) error) error {
	for range strings.Fields(text) {
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		for range 5 {
			if err := to(loud); err != nil {
				return err
			}
		}
	}
	return nil
}

var loud = func() (f audio.Frame) {
	for i := range f {
		f[i] = 1000
	}
	return f
}()

type toolbox func(ctx context.Context, call dialog.ToolCall) dialog.ToolResult

func (toolbox) Specs() []dialog.ToolSpec { return []dialog.ToolSpec{{Name: "get_time"}} }
func (t toolbox) Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult {
	return t(ctx, call)
}

type chat struct {
	mu   sync.Mutex
	rows []dialog.Message
}

func (c *chat) Messages() []dialog.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rows)
}
func (c *chat) Append(rows ...dialog.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, rows...)
	return nil
}

func (c *chat) texts() []string {
	var texts []string
	for _, m := range c.Messages() {
		texts = append(texts, string(m.Role)+": "+m.Content)
	}
	return texts
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A rig is a pipeline with a loudspeaker that plays on the bubble's clock.
type rig struct {
	*pipeline.Pipeline
	chat  *chat
	facts *event.Subscription
	out   *audio.Output
	heard func() int // loud frames that the loudspeaker played so far
}

// start runs a pipeline until the test ends. It must be called in a synctest bubble.
func start(t *testing.T, change func(*pipeline.Options)) *rig {
	bus := new(event.Bus)
	r := &rig{chat: new(chat), facts: bus.Subscribe(1000), out: audio.NewOutput(40 * time.Millisecond)}
	o := pipeline.Options{
		Ears: ears(hearSentence), Recognizer: recognize("what is up"), Model: answer("Not very much, I am afraid."),
		Tools: toolbox(func(context.Context, dialog.ToolCall) dialog.ToolResult { return dialog.ToolResult{} }),
		Voice: voice(speak), Chat: r.chat, Output: r.out, Bus: bus,
	}
	if change != nil {
		change(&o)
	}
	r.Pipeline = pipeline.New(o)

	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	var mu sync.Mutex
	loudFrames := 0
	r.heard = func() int { mu.Lock(); defer mu.Unlock(); return loudFrames }
	parts.Go(func() {
		for tick := time.NewTicker(audio.FrameDuration); ; {
			select {
			case <-tick.C:
				var f audio.Frame
				r.out.Pull(&f)
				mu.Lock()
				if f[audio.FrameSize/2] > 500 {
					loudFrames++
				}
				mu.Unlock()
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); parts.Wait() })
	return r
}

// ended waits for the end of a turn.
func (r *rig) ended(t *testing.T) event.Record {
	t.Helper()
	limit := time.After(time.Hour)
	for {
		select {
		case f := <-r.facts.C:
			if e, ok := f.(event.TurnEnded); ok {
				return e.Record
			}
		case <-limit:
			t.Fatal("the turn doesn't end")
		}
	}
}

// until waits for a state.
func (r *rig) until(t *testing.T, want event.State) {
	t.Helper()
	limit := time.After(time.Hour)
	for {
		select {
		case f := <-r.facts.C:
			if s, ok := f.(event.StateChanged); ok && s.To == want {
				return
			}
		case <-limit:
			t.Fatalf("no state %q", want)
		}
	}
}

func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.Wake("okay_nabu", 0.99, 17)
		var states []event.State
		var record event.Record
		for record.Run == 0 || len(states) == 0 || states[len(states)-1] != event.Idle {
			switch f := (<-r.facts.C).(type) {
			case event.StateChanged:
				states = append(states, f.To)
			case event.TurnEnded:
				record = f.Record
			}
		}
		if diff := cmp.Diff([]event.State{event.Listening, event.Thinking, event.Speaking, event.Idle}, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		ms := func(n int) event.Millis { return event.Millis(time.Duration(n) * time.Millisecond) }
		want := event.Record{
			Run: 1, Began: record.Began, Outcome: event.Completed, WakeWord: "okay_nabu", Heard: "what is up",
			Answer: "Not very much, I am afraid.",
			Stages: event.Stages{
				Voiced: ms(1000), Endpoint: ms(1600), Recognised: ms(1600), FirstWord: ms(1600),
				// The first word is made in 10 ms, the device takes frames every 20; then 30 frames, and 40 ms of latency.
				FirstSound: record.Stages.FirstSound, End: record.Stages.End,
			},
		}
		if diff := cmp.Diff(want, record); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		if d := time.Duration(record.Stages.FirstSound - ms(1600)); d < 0 || d > 40*time.Millisecond {
			t.Errorf("first sound %v after the endpoint", d)
		}
		if d := time.Duration(record.Stages.End - record.Stages.FirstSound); d < 600*time.Millisecond || d > 720*time.Millisecond {
			t.Errorf("the end is %v after the first sound, which is not when the loudspeaker was done", d)
		}
		if n := r.heard(); n != 30 {
			t.Errorf("the loudspeaker played %d frames of speech, want 30", n)
		}
		if diff := cmp.Diff([]string{"user: what is up", "assistant: Not very much, I am afraid."}, r.chat.texts()); diff != "" {
			t.Errorf("chat (-want +got):\n%s", diff)
		}
	})
}

func TestSpeechBeginsBeforeTheAnswerIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Bool
		r := start(t, func(o *pipeline.Options) {
			o.Model = model(func(ctx context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
				_ = yield(dialog.Delta{Text: "This is the first sentence. T"}, nil) && sleep(ctx, 5*time.Second) == nil &&
					yield(dialog.Delta{Text: "his is the second."}, nil)
				written.Store(true)
			})
		})
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Speaking)
		if written.Load() {
			t.Error("the model had ended before the first sound")
		}
		record := r.ended(t)
		if record.Answer != "This is the first sentence. This is the second." || r.heard() != 9*5 {
			t.Errorf("answer %q, %d frames of speech", record.Answer, r.heard())
		}
	})
}

func TestBargeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("One two three four five six seven eight nine ten. ", 5)
		r := start(t, func(o *pipeline.Options) { o.Model = answer(long) })
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Speaking)
		if err := sleep(t.Context(), 1250*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		called, played := time.Now(), r.heard()
		r.Wake("okay_nabu", 1, 500)
		record := r.ended(t)
		if d := time.Since(called); d > 200*time.Millisecond {
			t.Errorf("the turn ended %v after the wake word", d)
		}
		if record.Outcome != event.Interrupted {
			t.Errorf("outcome %q", record.Outcome)
		}
		// Twelve and a half words were spoken.
		if n := len(strings.Fields(record.Answer)); n < 11 || n > 13 || !strings.HasPrefix(long, record.Answer) {
			t.Errorf("spoken: %q", record.Answer)
		}
		r.until(t, event.Listening)
		second := r.ended(t)
		if second.Run != 2 || second.Outcome != event.Completed {
			t.Errorf("the next turn: %+v", second)
		}
		if n := r.heard() - played - 5*10*5; n > 1 {
			t.Errorf("%d frames of the interrupted answer were heard after the barge-in", n)
		}
		if got := r.chat.texts()[1]; got != "assistant: "+record.Answer {
			t.Errorf("remembered: %q", got)
		}
	})
}

func TestBargeInWhileThinking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		thinking := make(chan struct{})
		r := start(t, func(o *pipeline.Options) {
			o.Model = model(func(ctx context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
				if asked.Add(1) == 1 {
					close(thinking)
					<-ctx.Done()
					yield(dialog.Delta{}, ctx.Err())
					return
				}
				yield(dialog.Delta{Text: "Yes?"}, nil)
			})
		})
		r.Wake("okay_nabu", 1, 0)
		<-thinking
		r.Wake("okay_nabu", 1, 0)
		if record := r.ended(t); record.Outcome != event.Interrupted || record.Answer != "" {
			t.Errorf("first turn: %+v", record)
		}
		if record := r.ended(t); record.Outcome != event.Completed || record.Answer != "Yes?" {
			t.Errorf("second turn: %+v", record)
		}
	})
}

func TestWakeWhileListeningIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Listening)
		time.Sleep(500 * time.Millisecond)
		r.Wake("okay_nabu", 1, 0)
		if record := r.ended(t); record.Run != 1 || record.Outcome != event.Completed {
			t.Errorf("record %+v", record)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for len(r.facts.C) > 0 {
			if e, ok := (<-r.facts.C).(event.TurnEnded); ok {
				t.Errorf("there was another turn: %+v", e.Record)
			}
		}
	})
}

func TestTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []dialog.Request
		r := start(t, func(o *pipeline.Options) {
			o.ToolRounds = 2
			o.Model = model(func(_ context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
				requests = append(requests, req)
				if len(req.Tools) > 0 {
					yield(dialog.Delta{Call: &dialog.ToolCall{ID: "7", Name: "get_time"}}, nil)
					return
				}
				yield(dialog.Delta{Text: req.Messages[len(req.Messages)-1].Content}, nil)
			})
			o.Tools = toolbox(func(_ context.Context, c dialog.ToolCall) dialog.ToolResult {
				return dialog.ToolResult{CallID: c.ID, Content: "It's late."}
			})
		})
		record, err := r.Ask(t.Context(), "what time is it")
		if err != nil || record.Answer != "It's late." || record.Outcome != event.Completed {
			t.Errorf("record %+v, error %v", record, err)
		}
		if len(requests) != 3 {
			t.Fatalf("the model was asked %d times, want twice with tools and once without", len(requests))
		}
		var roles []dialog.Role
		for _, m := range requests[2].Messages {
			roles = append(roles, m.Role)
		}
		if diff := cmp.Diff([]dialog.Role{"user", "assistant", "tool", "assistant", "tool"}, roles); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

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
		return now().Ears.Listen(ctx, from, to)
	})
	o.Recognizer = recognizer(func(ctx context.Context, frames <-chan audio.Frame) (string, error) {
		return now().Recognizer.Recognize(ctx, frames)
	})
	o.Model = model(func(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool) {
		now().Model.Generate(ctx, req)(yield)
	})
	o.Voice = voice(func(ctx context.Context, text string, to func(audio.Frame) error) error {
		return now().Voice.Synthesize(ctx, text, to)
	})
}

func TestSayIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		record, err := r.Say(t.Context(), "Dinner is ready.")
		if err != nil || record.Outcome != event.Completed || r.heard() != 15 {
			t.Errorf("record %+v, error %v, %d frames", record, err, r.heard())
		}
		if texts := r.chat.texts(); len(texts) > 0 {
			t.Errorf("remembered: %q", texts)
		}
	})
}

func TestAskWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		var asked sync.WaitGroup
		var mu sync.Mutex
		outcomes := map[string]int{}
		for range 12 { // one runs, eight wait, three are too many
			asked.Go(func() {
				_, err := r.Ask(t.Context(), "what is up")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					outcomes["answered"]++
				case errors.Is(err, pipeline.ErrBusy):
					outcomes["busy"]++
				default:
					t.Error(err)
				}
			})
		}
		asked.Wait()
		if diff := cmp.Diff(map[string]int{"answered": 9, "busy": 3}, outcomes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(o *pipeline.Options) { o.Model = answer(strings.Repeat("on and on it goes. ", 50)) })
		r.Wake("okay_nabu", 1, 0)
		r.until(t, event.Speaking)
		r.Stop()
		if record := r.ended(t); record.Outcome != event.Interrupted {
			t.Errorf("record %+v", record)
		}
		r.until(t, event.Idle)
	})
}

func TestShutdownEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *pipeline.Pipeline
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan struct{})
		p = pipeline.New(pipeline.Options{
			Chat: new(chat), Bus: new(event.Bus), Output: audio.NewOutput(0), Tools: toolbox(nil), Voice: voice(speak),
			Model: model(func(ctx context.Context, _ dialog.Request, _ func(dialog.Delta, error) bool) {
				close(started)
				<-ctx.Done()
			}),
		})
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		asked := make(chan error)
		go func() {
			record, err := p.Ask(t.Context(), "hello")
			if record.Outcome != event.Interrupted {
				t.Errorf("record %+v", record)
			}
			asked <- err
		}()
		<-started
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := <-asked; err != nil {
			t.Error(err)
		}
		if _, err := p.Ask(t.Context(), "anybody?"); err == nil {
			t.Error("Ask after the end: no error")
		}
	})
}

package pipeline_test

import (
	"context"
	"errors"
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
	"bellbird/hooks"
	"bellbird/pipeline"
)

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
		Voice: voice(speak), Chats: r.chat, Output: r.out, Bus: bus,
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
			Run: 1, Began: record.Began, Outcome: event.Completed, WakeWord: "okay_nabu", Heard: "what is up", Chat: "kitchen",
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
				if !req.NoCalls {
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
			Chats: new(chat), Bus: new(event.Bus), Output: audio.NewOutput(0), Tools: toolbox(nil), Voice: voice(speak),
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

// Of several appliances that were called, the one that isn't to answer ends in silence, at once and without a sound.
func TestContend(t *testing.T) {
	for _, wins := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(o *pipeline.Options) {
				o.WakeSound = audio.WakeTone
				o.Contend = func(word string, score float64, tell func(bool)) {
					if word != "okay_nabu" || score != 0.9 {
						t.Errorf("contends with %q, %v", word, score)
					}
					time.AfterFunc(200*time.Millisecond, func() { tell(wins) })
				}
			})
			r.Wake("okay_nabu", 0.9, 0)
			record := r.ended(t)
			want := event.Completed
			if !wins {
				want = event.Yielded
				if took := time.Duration(record.Stages.End); took > 300*time.Millisecond {
					t.Errorf("it gave way after %v", took)
				}
			}
			if record.Outcome != want || (r.heard() > 0) != wins {
				t.Errorf("wins %v: %+v, %d loud frames", wins, record, r.heard())
			}
		})
	}
}

// A plugin that did what was said and has nothing to say is confirmed by a sound, to whoever said it.
func TestDoneSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(t, "pre_chat")
		defer s.Close()
		s.at("pre_chat", func(e *hooks.Event) { e.SkipLLM = true })
		r := start(t, func(o *pipeline.Options) {
			o.Hooks, o.DoneSound = s.Runner, []audio.Frame{loud, loud}
		})
		if record, err := r.Ask(t.Context(), "do it"); err != nil || record.Outcome != event.Handled {
			t.Fatalf("%+v, error %v", record, err)
		}
		r.ended(t)
		time.Sleep(time.Second)
		if n := r.heard(); n != 0 {
			t.Errorf("%d loud frames for what was typed", n)
		}
		r.Wake("okay_nabu", 1, 0)
		if record := r.ended(t); record.Outcome != event.Handled {
			t.Fatalf("%+v", record)
		}
		time.Sleep(time.Second)
		if n := r.heard(); n != 2 {
			t.Errorf("%d loud frames, want the sound's 2", n)
		}
	})
}

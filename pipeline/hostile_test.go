package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/hooks"
	"bellbird/pipeline"
)

// Handlers that do what no handler should, and what becomes of the turn.

// sleepy is longer than any budget.
const sleepy = 10 * time.Second

// hostile are the kinds of them that the clock of a bubble can cope with.
func hostile() map[string]hooks.Func {
	return map[string]hooks.Func{
		"sleeps":         func(context.Context, *hooks.Event) error { time.Sleep(sleepy); return nil },
		"waits":          func(ctx context.Context, _ *hooks.Event) error { <-ctx.Done(); return nil },
		"panics":         func(context.Context, *hooks.Event) error { panic("oh") },
		"fails":          func(context.Context, *hooks.Event) error { return errors.New("no") },
		"returns trash":  trash,
		"late but whole": func(ctx context.Context, e *hooks.Event) error { <-ctx.Done(); return trash(ctx, e) },
	}
}

// trash writes nonsense into everything.
func trash(_ context.Context, e *hooks.Event) error {
	nonsense := strings.Repeat("\x00\xff~", 10000)
	var none *hooks.Event
	e.Metadata = map[string]any{"audio": map[string]any{"audio_bytes": []byte(nonsense), "content_type": 42}, "system": none, "": []any{nil, map[string]any{"": nonsense}}}
	e.Arguments = map[string]any{nonsense: func() {}}
	e.Tools = []map[string]any{nil, {"function": 42}, {"function": map[string]any{"name": 42}}}
	e.ContextParts = []string{nonsense, ""}
	e.GhostText, e.FunctionName, e.ChatName, e.ChatPrivate, e.Surface = &nonsense, nil, nil, nil, nil
	e.GhostContributions = make([]hooks.Contribution, 1000)
	return nil
}

// turnPoints are the points of a turn, without those of chats and of dictation.
func turnPoints() []hooks.Point {
	all := hooks.Points()
	all = all[:slices.IndexFunc(all, func(p hooks.Point) bool { return p.Name == "plugins_ready" })]
	return slices.DeleteFunc(all, func(p hooks.Point) bool { return p.Name == "dictation" })
}

// One hostile handler at any one point makes a turn no longer than that point's budget for each time that it is fired.
func TestHostileHandlerAtEachPoint(t *testing.T) {
	turn := func(t *testing.T, point string, handler hooks.Func) (took time.Duration, fires int) {
		synctest.Test(t, func(t *testing.T) {
			s := newSpy(t)
			s.do[point] = handler
			r := hooked(t, s, func(o *pipeline.Options) {
				o.Model = model(asksForTheTime)
				o.Tools = toolbox(tellsTheTime)
				o.Streaming = new(point != "pre_tts" && point != "post_tts")
			})
			r.Wake("okay_nabu", 1, 0)
			took = time.Duration(r.ended(t).Stages.End)
			time.Sleep(3 * sleepy) // until the last handler has had enough
			fires = s.count(point)
		})
		return took, fires
	}
	for _, point := range turnPoints() {
		usual, fires := turn(t, point.Name, nil)
		if fires == 0 {
			t.Errorf("%s is not fired", point.Name)
		}
		for name, handler := range hostile() {
			took, fires := turn(t, point.Name, handler)
			allowed := usual + audio.FrameDuration // the loudspeaker goes in frames
			if point.Waits {
				allowed += time.Duration(fires) * point.Budget
			}
			// A turn whose text was spoiled may say more or less than usual; it only has to end then.
			if took > allowed && !strings.Contains(name, "trash") {
				t.Errorf("%s %s: the turn took %v, usually %v", point.Name, name, took, usual)
			}
		}
	}
}

// menace registers one of each hostile kind at the points of the audio loop, the harmless ones first, so that those that
// take all the time come to it too.
func menace(t *testing.T, r *hooks.Runner, more map[string]hooks.Func) {
	for _, point := range []string{"tts_chunk_text", "tts_chunk_audio"} {
		for priority, all := range []map[string]hooks.Func{hostile(), more} {
			for name, f := range all {
				err := r.Register(hooks.Handler{Plugin: name, Point: point, Priority: priority, Func: f})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// speechOf is a text of which the voice makes that much sound.
func speechOf(d time.Duration) string {
	return strings.Repeat("One two three four five six seven eight nine ten. ", int(d/time.Second))
}

// Hours of speech with hostile handlers, on the clock of a bubble: BELLBIRD_SPEECH=10h is what make bench runs.
func TestHoursOfSpeechWithHostileHandlers(t *testing.T) {
	total := 10 * time.Minute
	if text := os.Getenv("BELLBIRD_SPEECH"); text != "" {
		var err error
		if total, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const answerLength = 5 * time.Minute
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		runner := hooks.New(hooks.Options{})
		defer runner.Close()
		menace(t, runner, nil)
		r := start(t, func(o *pipeline.Options) {
			o.Hooks = runner
			o.Model = answer(speechOf(answerLength))
		})
		missed := 0
		for range total / answerLength {
			record, err := r.Ask(t.Context(), "go on")
			if err != nil || record.Outcome != event.Completed {
				t.Fatalf("outcome %v, error %v", record.Outcome, err)
			}
			for _, c := range record.Hooks {
				if c.Outcome == string(hooks.Missed) {
					missed++
				}
			}
		}
		stats := r.out.Stats()
		if stats.Gaps > 0 || missed == 0 {
			t.Errorf("%d holes; %d handlers missed their deadlines", stats.Gaps, missed)
		}
		t.Logf("speech with hostile handlers: %v simulated, %d deadlines missed, %d holes (target 0)",
			time.Duration(stats.Spoken)*audio.FrameDuration, missed, stats.Gaps)
		time.Sleep(3 * sleepy) // until the last handler has had enough
	})
	t.Logf("it took %v of real time", time.Since(began).Round(time.Second))
}

// rough are the kinds that need a real clock: they take the machine's time and memory until they are released.
func rough(released *atomic.Bool) map[string]hooks.Func {
	return map[string]hooks.Func{
		"spins": func(context.Context, *hooks.Event) error {
			for !released.Load() {
			}
			return nil
		},
		"allocates": func(context.Context, *hooks.Event) error {
			for !released.Load() {
				all := make([][]byte, 64)
				for i := range all {
					all[i] = make([]byte, 1<<20)
				}
			}
			return nil
		},
	}
}

// real starts a rig on the real clock, with a loudspeaker that takes a frame in each period.
func real(t *testing.T, r *hooks.Runner, period time.Duration, change func(*pipeline.Options)) (*rig, *audio.Output) {
	out := audio.NewOutput(40 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var player sync.WaitGroup
	player.Go(func() { playInRealTime(ctx, out, period) })
	t.Cleanup(func() { cancel(); player.Wait() })
	return start(t, func(o *pipeline.Options) {
		o.Hooks, o.Output = r, out
		change(o)
	}), out
}

// Two minutes of speech on the real clock. make smoke runs it.
func TestHostileHandlersOnTheRealClock(t *testing.T) {
	if os.Getenv("BELLBIRD_REAL_CLOCK") == "" {
		t.Skip("it takes two minutes; BELLBIRD_REAL_CLOCK=1 runs it")
	}
	var released atomic.Bool
	runner := hooks.New(hooks.Options{})
	defer runner.Close()
	defer released.Store(true)
	menace(t, runner, rough(&released))
	r, out := real(t, runner, audio.FrameDuration, func(o *pipeline.Options) { o.Model = answer(speechOf(2 * time.Minute)) })
	record, err := r.Ask(t.Context(), "go on")
	if err != nil || record.Outcome != event.Completed {
		t.Fatalf("outcome %v, error %v", record.Outcome, err)
	}
	missed := 0
	for _, c := range record.Hooks {
		if c.Outcome == string(hooks.Missed) {
			missed++
		}
	}
	stats := out.Stats()
	if stats.Gaps > 0 || missed == 0 {
		t.Errorf("%d holes of %d frames; %d handlers missed their deadlines", stats.Gaps, stats.Underruns, missed)
	}
	t.Logf("speech with hostile handlers: %v in real time, %d deadlines missed, %d holes, %d underruns (target 0)",
		time.Duration(stats.Spoken)*audio.FrameDuration, missed, stats.Gaps, stats.Underruns)
}

// The longest that one hostile handler delays a turn, for each kind. It only fails if a turn doesn't end. make bench
// prints it.
func TestDelayByHostileHandlers(t *testing.T) {
	if os.Getenv("BELLBIRD_MEASURE") == "" {
		t.Skip("it takes a minute, and only measures; BELLBIRD_MEASURE=1 runs it")
	}
	turn := func(point, kind string) (took time.Duration, fires int) {
		runner := hooks.New(hooks.Options{})
		defer runner.Close()
		var released atomic.Bool
		defer released.Store(true)
		handler := hostile()[kind]
		if handler == nil {
			handler = rough(&released)[kind]
		}
		var fired atomic.Int32
		if handler != nil {
			err := runner.Register(hooks.Handler{Plugin: "hostile", Point: point, Func: func(ctx context.Context, e *hooks.Event) error {
				fired.Add(1)
				return handler(ctx, e)
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Run("turn", func(t *testing.T) { // so that its rig ends with it
			r, _ := real(t, runner, time.Millisecond, func(o *pipeline.Options) {
				o.Ears = ears(func(_ context.Context, _ uint64, to func(audio.Frame)) (bool, time.Duration, error) {
					to(audio.Frame{})
					return true, 0, nil
				})
				o.Voice = voice(func(_ context.Context, _ string, to func(audio.Frame) error) error { return to(loud) })
				o.Model, o.Tools = model(asksForTheTime), toolbox(tellsTheTime)
				o.Streaming = new(point != "pre_tts" && point != "post_tts")
			})
			r.Wake("okay_nabu", 1, 0)
			took = time.Duration(r.ended(t).Stages.End)
		})
		return took, int(fired.Load())
	}
	usual := func(point string) time.Duration {
		var all []time.Duration
		for range 5 {
			took, _ := turn(point, "")
			all = append(all, took)
		}
		slices.Sort(all)
		return all[2]
	}
	streamed, whole := usual("post_llm"), usual("pre_tts")

	for _, name := range []string{"sleeps", "spins", "allocates", "panics", "returns trash"} {
		worst, what := time.Duration(-1<<62), ""
		for _, point := range turnPoints() {
			base := streamed
			if point.Name == "pre_tts" || point.Name == "post_tts" {
				base = whole
			}
			var delay, budget time.Duration
			for try := range 3 { // a pause of the machine is not the handler's doing
				took, fires := turn(point.Name, name)
				if try > 0 && took-base >= delay {
					continue
				}
				delay, budget = took-base, 0
				if point.Waits {
					budget = time.Duration(fires) * point.Budget
				}
				if delay < budget+10*time.Millisecond {
					break
				}
			}
			if delay-budget > worst {
				worst = delay - budget
				what = fmt.Sprintf("%v at %s, of which budget %v", delay.Round(100*time.Microsecond), point.Name, budget)
			}
		}
		t.Logf("turn delay, one handler that %s, worst point, best of 3: %s (target: budget + 10ms)", name, what)
	}
}

// playInRealTime takes frames as a sound card does, which doesn't wait for a goroutine that is late: what became due
// meanwhile is taken at once.
func playInRealTime(ctx context.Context, out *audio.Output, period time.Duration) {
	began, taken := time.Now(), 0
	for tick := time.NewTicker(period / 4); ; {
		select {
		case <-tick.C:
			var f audio.Frame
			for ; taken < int(time.Since(began)/period); taken++ {
				out.Pull(&f)
			}
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

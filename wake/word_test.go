package wake

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
)

func ruled(w Word, cutoff float64) *word {
	x := &word{Word: w}
	x.setCutoff(cutoff)
	return x
}

// While the loudspeaker sounds, a wake word needs two windows above a higher bar, and one that stops needs any at all
// only then.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		name     string
		action   Action
		sounding bool
		scores   []float64
		want     []bool
	}{
		{"quiet", Listen, false, []float64{0.8, 0.81, 0.1}, []bool{false, true, false}},
		{"barge-in", Listen, true, []float64{0.89, 0.89, 0.91, 0.92}, []bool{false, false, false, true}},
		{"barge-in, with a gap", Listen, true, []float64{0.95, 0.89, 0.95, 0.95}, []bool{false, false, false, true}},
		{"stop, nothing sounds", Stop, false, []float64{0.9, 1, 1}, []bool{false, false, false}},
		{"stop", Stop, true, []float64{0.7, 0.81, 0.81}, []bool{false, false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := ruled(Word{Name: "x", Action: tt.action}, 0.8)
			for i, s := range tt.scores {
				if got := w.said(s, tt.sounding); got != tt.want[i] {
					t.Errorf("score %d, %v: %v", i, s, got)
				}
			}
		})
	}
}

func TestAllWords(t *testing.T) {
	o := Options{
		Words: []string{"alexa"}, Cutoff: map[string]float64{"alexa": 0.8},
		Word: []Word{{Name: "okay_nabu", Window: 7}, {Name: "stop"}, {Name: "computer", Action: RunRoutine, Routine: "goodnight"}},
	}
	if err := func() error { o.defaults(); return o.check() }(); err != nil {
		t.Fatal(err)
	}
	want := []Word{
		{Name: "alexa", Cutoff: 0.8, Action: Listen}, {Name: "okay_nabu", Window: 7, Action: Listen},
		{Name: "stop", Action: Stop}, {Name: "computer", Action: RunRoutine, Routine: "goodnight"},
	}
	all := o.All()
	for i, w := range want {
		if i >= len(all) || all[i] != w {
			t.Fatalf("got %+v", all)
		}
	}
	if d := (&Options{}).All(); len(d) != 1 || d[0].Name != "okay_nabu" {
		t.Errorf("without any: %+v", d)
	}
}

func TestBadWords(t *testing.T) {
	for want, w := range map[string][]Word{
		`wake word "a" is given twice`:                               {{Name: "a"}, {Name: "a"}},
		`cutoff of "a" is 2, not between 0 and 1`:                    {{Name: "a", Cutoff: 2}},
		`window of "a" is 1000, not 1 to 100`:                        {{Name: "a", Window: 1000}},
		`action of "a" is "sing", not one of ["listen" `:             {{Name: "a", Action: "sing"}},
		`wake word "a": action = "routine" and routine = "": `:       {{Name: "a", Action: RunRoutine}},
		`wake word "a": action = "routine" and routine = " ": `:      {{Name: "a", Action: RunRoutine, Routine: " "}},
		`routine of "a" has 1001 bytes, not at most 1000`:            {{Name: "a", Action: RunRoutine, Routine: strings.Repeat("a", 1001)}},
		`wake word "a": action = "listen" and routine = "goodnight"`: {{Name: "a", Routine: "goodnight"}},
		`a wake word has no name`:                                    {{Cutoff: 0.5}},
	} {
		if _, err := New(Options{Word: w}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, not %v", err, want)
		}
	}
}

// A word with a routine is part of an order while there is a listener, and else is heard.
func TestRoutineIsNoOrder(t *testing.T) {
	e, err := newEars(Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &word{Word: Word{Name: "computer", Action: RunRoutine, Routine: "goodnight"}}
	w.setCutoff(0.5)
	e.listener = new(listener)
	if e.judge(w, 0.9, 0, false) {
		t.Error("it is heard within an order")
	}
	e.listener = nil
	if !e.judge(w, 0.9, 1, false) {
		t.Error("it isn't heard")
	}
}

// callers feeds recordings, one after the other with quiet around them, to ears with real models, and returns the calls.
func callers(t *testing.T, o Options, change func(*Ears), recordings ...string) (calls []Call) {
	synctest.Test(t, func(t *testing.T) {
		o.ModelDirs = modelDirs()
		o.OnWake = func(c Call) { calls = append(calls, c) }
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(e)
		}
		feed, stop := hearing(t, e)
		for _, path := range recordings {
			feed(frames(inRoom(readFLAC(t, path), 2*sampleRate, 2*sampleRate))...)
		}
		stop()
	})
	return calls
}

func reference(t *testing.T, name string) string {
	return filepath.Join(filepath.Dir(recordings(t, "wake/reference_tests")[0]), name)
}

// Two words are heard at once, each with its own action and cutoff.
func TestSeveralWords(t *testing.T) {
	newDetector(t, "alexa") // skips
	newDetector(t, "okay_nabu")
	alexa, nabu := reference(t, "alexa_pymicro_1.flac"), reference(t, "okay_nabu_pymicro_1.flac")
	o := Options{Words: []string{"okay_nabu"}, Word: []Word{{Name: "alexa", Action: RunRoutine, Routine: "goodnight"}}}
	calls := callers(t, o, nil, alexa, nabu)
	if len(calls) != 2 || calls[0].Word != "alexa" || calls[0].Action != RunRoutine || calls[0].Routine != "goodnight" ||
		calls[1].Word != "okay_nabu" || calls[1].Action != Listen {
		t.Errorf("calls %+v", calls)
	}
	// Sounding: the recorded words are clear enough for the higher bar, too.
	o.Sounding = func() bool { return true }
	if calls = callers(t, o, nil, alexa, nabu); len(calls) != 2 {
		t.Errorf("while sounding, calls %+v", calls)
	}
	// A word that stops isn't listened for in the quiet.
	o = Options{Word: []Word{{Name: "alexa", Action: Stop}}}
	if calls = callers(t, o, nil, alexa); len(calls) != 0 {
		t.Errorf("in the quiet it stops %+v", calls)
	}
	o.Sounding = func() bool { return true }
	if calls = callers(t, o, nil, alexa); len(calls) != 1 || calls[0].Action != Stop {
		t.Errorf("while sounding, calls %+v", calls)
	}
}

func TestSetCutoff(t *testing.T) {
	newDetector(t, "alexa") // skips
	alexa := reference(t, "alexa_pymicro_1.flac")
	set := func(name string, c float64) error {
		var err error
		callers(t, Options{Words: []string{"alexa"}}, func(e *Ears) { err = e.SetCutoff(name, c) })
		return err
	}
	if err := set("computer", 0.5); err == nil || !strings.HasPrefix(err.Error(), `cutoff of "computer", which is none of the words ["alexa"`) {
		t.Errorf("error %v", err)
	}
	if err := set("alexa", 1.5); err == nil {
		t.Error("1.5 is accepted")
	}
	deaf := func(e *Ears) {
		if err := e.SetCutoff("alexa", 0.9999); err != nil {
			t.Error(err)
		}
	}
	if calls := callers(t, Options{Words: []string{"alexa"}}, deaf, alexa); len(calls) != 0 {
		t.Errorf("calls %+v", calls)
	}
}

// The stop word is added if there is a model, unless it is unwanted; wanted without a model is an error.
func TestStopWord(t *testing.T) {
	newDetector(t, "okay_nabu") // skips
	own := []string{"../models"}
	has := func(e *Ears) bool { return len(e.words) > 1 && e.words[1].Action == Stop }
	e, err := New(Options{ModelDirs: own, StopWord: new(true)})
	if err == nil || !strings.HasPrefix(err.Error(), `wake word model "stop": not found`) {
		t.Errorf("ears %v, error %v", e, err)
	}
	if e, err = New(Options{ModelDirs: own}); err != nil || has(e) {
		t.Errorf("error %v", err)
	}
	newDetector(t, "stop")
	if e, err = New(Options{ModelDirs: modelDirs()}); err != nil || !has(e) {
		t.Errorf("no stop word, error %v", err)
	}
	if e, err = New(Options{ModelDirs: modelDirs(), StopWord: new(false)}); err != nil || has(e) {
		t.Errorf("an unwanted stop word, error %v", err)
	}
}

func TestNearMiss(t *testing.T) {
	var e near
	write := func(scores ...float64) (over bool) {
		for i, s := range scores {
			over = e.write(s, 0.9, uint64(100+i))
		}
		return over
	}
	if write(0.1, 0.5, 0.4, 0.1) {
		t.Error("0.5 is near")
	}
	if write(0.3, 0.6, 0.8, 0.5, 0.3) || !write(0.1) {
		t.Error("0.8 is not near, or it has no end")
	}
	m, ok := e.tell("x", 105)
	if !ok || m.Peak != 0.8 || m.Frame != 102 || m.Bar != 0.9 || m.Duration != 4*audio.FrameDuration || len(m.Course) != 4 {
		t.Errorf("%v, %+v", ok, m)
	}
	write(0.7, 0)
	if _, ok := e.tell("x", 300); ok {
		t.Error("a second one is told too soon")
	}
	for i := range 50 { // a long one
		e.write(0.6+float64(i)/500, 0.9, 1000+uint64(i))
	}
	write(0)
	if m, ok = e.tell("x", 1100); !ok || m.Untold != 1 || len(m.Course) > nearCourse || m.Course[len(m.Course)-1] != 0.7 {
		t.Errorf("%v, %+v", ok, m)
	}
}

// A word that is not said well enough is told of, and one that is isn't.
func TestNearMissIsTold(t *testing.T) {
	newDetector(t, "alexa") // skips
	alexa := reference(t, "alexa_pymicro_1.flac")
	var missed []NearMiss
	o := Options{Words: []string{"alexa"}, StopWord: new(false), OnNearMiss: func(m NearMiss) { missed = append(missed, m) }}
	if calls := callers(t, o, nil, alexa); len(calls) != 1 || len(missed) != 0 {
		t.Errorf("calls %v, missed %v", calls, missed)
	}
	o.Cutoff = map[string]float64{"alexa": 0.9999}
	if calls := callers(t, o, nil, alexa); len(calls) != 0 || len(missed) != 1 || missed[0].Peak < 0.9 || missed[0].Word != "alexa" {
		t.Errorf("calls %v, missed %v", calls, missed)
	}
}

// A microphone that delivers nothing, or always the same, is told of, once, and so is its recovery.
func TestDeafMicrophone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faults []Fault
		e, err := newEars(Options{OnMicrophone: func(f Fault) { faults = append(faults, f) }})
		if err != nil {
			t.Fatal(err)
		}
		feed, stop := hearing(t, e)
		expect := func(want ...Fault) {
			t.Helper()
			synctest.Wait()
			if len(faults) != len(want) {
				t.Fatalf("faults %q, not %q", faults, want)
			}
			for i := range want {
				if faults[i] != want[i] {
					t.Fatalf("faults %q, not %q", faults, want)
				}
			}
			faults = nil
		}
		sound := frames(room(time.Second))
		feed(sound...)
		<-time.After(deafAfter - lookAfter)
		expect()
		feed(sound[0])
		<-time.After(deafAfter + 2*lookAfter)
		expect(NoFrames)
		<-time.After(time.Minute)
		expect()
		feed(sound...)
		expect(Well)

		var same audio.Frame
		for i := range same {
			same[i] = -7
		}
		for range 99 {
			feed(same)
		}
		expect()
		feed(same, same, same)
		expect(Constant)
		feed(sound[3])
		expect(Well)
		stop()
	})
}

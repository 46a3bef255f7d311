package tts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/tts"
)

// engine is a voice in memory that says ten frames, all with its mark.
type engine struct {
	mark  int16
	delay time.Duration // before the first frame
	fails int           // at which frame, from 1; 0: never
	mute  bool
	calls int

	has          []string
	name         string
	speed, pitch float64
	noSpeed      bool
}

var errGone = errors.New("gone")

func (e *engine) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	e.calls++
	select {
	case <-time.After(e.delay):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i := range 10 {
		if e.mute {
			break
		}
		if i+1 == e.fails {
			return errGone
		}
		if err := to(audio.Frame{e.mark}); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) SetVoice(name string) error {
	if name != "" && !slices.Contains(e.has, name) {
		return fmt.Errorf("%d has no %s", e.mark, name)
	}
	e.name = name
	return nil
}

func (e *engine) SetSpeed(factor float64) error {
	if e.noSpeed {
		return errors.New("no speed")
	}
	e.speed = factor
	return nil
}

func (e *engine) SetPitch(factor float64) error            { e.pitch = factor; return nil }
func (e *engine) Settings() (string, float64)              { return e.name, e.speed }
func (e *engine) Voices(context.Context) ([]string, error) { return e.has, nil }
func (e *engine) Named(name string) (tts.Voice, error) {
	other := *e
	return &other, other.SetVoice(name)
}

// said is who said how many frames.
func said(v tts.Voice, text string) (string, error) {
	var marks []int16
	err := v.Synthesize(context.Background(), text, func(f audio.Frame) error {
		marks = append(marks, f[0])
		return nil
	})
	if len(marks) == 0 {
		return "nothing", err
	}
	return fmt.Sprintf("%d frames of %v", len(marks), slices.Compact(marks)), err
}

func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		remote, local := &engine{mark: 1}, &engine{mark: 2}
		f := tts.NewFallback(tts.FallbackOptions{Primary: remote, Second: local, PrimaryName: "piper", SecondName: "espeak",
			Deadline: time.Second, MinBackoff: 10 * time.Second, OnSwitch: func(name string, why error) { told = append(told, fmt.Sprint(name, ": ", why)) }})
		for _, tt := range []struct {
			remote engine
			text   string
			want   string
		}{
			{engine{}, "hello", "10 frames of [1]"},
			{engine{delay: time.Second - 1}, "hello", "10 frames of [1]"},
			{engine{mute: true}, " … ", "nothing"}, // nor should it
			{engine{delay: time.Minute}, "hello", "10 frames of [2]"},
			{engine{fails: 1}, "hello", "10 frames of [2]"},
			{engine{mute: true}, "hello", "10 frames of [2]"},
			{engine{fails: 4}, "hello", "3 frames of [1]"}, // nobody wants to hear it again
		} {
			time.Sleep(10 * time.Minute)
			tt.remote.mark = 1
			*remote = tt.remote
			if got, err := said(f, tt.text); got != tt.want || err != nil {
				t.Errorf("%+v: %s, %v; want %s", tt.remote, got, err, tt.want)
			}
		}
		*remote = engine{mark: 1}
		if got, _ := said(f, "hello"); got != "10 frames of [2]" || remote.calls != 0 {
			t.Errorf("after a failure it isn't left alone: %s", got)
		}
		time.Sleep(10 * time.Minute)
		if got, _ := said(f, "hello"); got != "10 frames of [1]" {
			t.Errorf("it isn't tried again: %s", got)
		}
		want := []string{"espeak: the voice did not begin in time: context deadline exceeded", "piper: <nil>"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// That the listener has enough is no fault of the voice's, nor is it that the turn ends.
func TestFallbackListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		f := tts.NewFallback(tts.FallbackOptions{Primary: &engine{delay: time.Second}, Second: &engine{}, OnSwitch: func(string, error) { told++ }})
		enough := errors.New("enough")
		if err := f.Synthesize(t.Context(), "hello", func(audio.Frame) error { return enough }); err != enough {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(enough) })
		if err := f.Synthesize(ctx, "hello", func(audio.Frame) error { return nil }); err != enough {
			t.Errorf("got %v", err)
		}
		// A listener that takes his time once it has begun doesn't make it late.
		if err := f.Synthesize(t.Context(), "hello", func(audio.Frame) error { time.Sleep(time.Minute); return nil }); err != nil {
			t.Error(err)
		}
		if told != 0 {
			t.Errorf("%d switches", told)
		}
	})
}

func TestFallbackSettings(t *testing.T) {
	remote, local := &engine{mark: 1, has: []string{"joe", "both"}, noSpeed: true}, &engine{mark: 2, has: []string{"en-us", "both"}}
	f := tts.NewFallback(tts.FallbackOptions{Primary: remote, Second: local})
	for _, tt := range []struct{ name, remote, local string }{
		{"joe", "joe", ""}, {"en-us", "joe", "en-us"}, {"both", "both", "both"}, {"", "", ""},
	} {
		if err := f.SetVoice(tt.name); err != nil || remote.name != tt.remote || local.name != tt.local {
			t.Errorf("%q: %q and %q, %v", tt.name, remote.name, local.name, err)
		}
	}
	if err := f.SetVoice("robot"); err == nil || err.Error() != "1 has no robot" {
		t.Errorf("neither has it: %v", err)
	}
	if err := f.SetSpeed(2); err == nil || local.speed != 2 {
		t.Errorf("the first has no speed: %v, and the second has %v", err, local.speed)
	}
	if err := f.SetPitch(2); err != nil || remote.pitch != 2 || local.pitch != 2 {
		t.Errorf("pitch: %v, %v, %v", err, remote.pitch, local.pitch)
	}
	if names, err := f.Voices(t.Context()); err != nil || !slices.Equal(names, []string{"joe", "both", "en-us"}) {
		t.Errorf("%q, %v", names, err)
	}
	v, err := f.Named("en-us")
	if err != nil {
		t.Fatal(err)
	}
	if name, _ := v.Settings(); name != "" || local.name != "" {
		t.Errorf("the first is %q, and the usual second %q", name, local.name)
	}
	remote.fails = 1
	if got, err := said(f, "hello"); got != "10 frames of [2]" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if name, speed := v.Settings(); name != "en-us" || speed != 2 {
		t.Errorf("with the second at work: %q at %v", name, speed)
	}
	if err := f.SetSpeed(3); err != nil {
		t.Errorf("with the second at work: %v", err)
	}
	if _, err := f.Named("robot"); err == nil {
		t.Error("neither has it")
	}
}

package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/audio/echo/echotest"
	"bellbird/clock"
	"bellbird/event"
	"bellbird/gpio"
	"bellbird/tts/espeak"
)

// While the loudspeaker plays, the wake words hear what is left of the microphone after the echo was subtracted, and the
// recogniser that with the rest of it turned down. While it is silent both hear the microphone as it is.
func TestTwoFeedsOfTheCanceller(t *testing.T) {
	if underRace {
		t.Skip("the canceller takes a minute under the race detector")
	}
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("no espeak-ng")
	}
	var speech []audio.Frame
	voice, err := espeak.New(espeak.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = voice.Synthesize(t.Context(), strings.Repeat("It is ten past nine, and the alarm is set for seven tomorrow morning. ", 4), func(f audio.Frame) error {
		speech = append(speech, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	out := audio.NewOutput(0)
	own := newOwnVoice(out)
	defer own.played.Close()
	stream := out.Open()
	go func() {
		for _, f := range speech {
			if stream.Write(t.Context(), f) != nil {
				return
			}
		}
		stream.Finish()
	}()
	var mic, words, order []int16
	var last audio.Frame
	quiet, sounded := 0, 0
	room := audiotest.NewRoom(audiotest.RoomOptions{
		Output: out, Leak: 0.3, LeakDelay: 60 * time.Millisecond, Response: audiotest.Reverb(300*time.Millisecond, 0.7),
		Record: func(m, _ audio.Frame) { // in step: what is played and what is heard in the same moment
			w, o := own.split(m)
			if out.Sounding() {
				if sounded++; sounded <= 100 { // what is left is the most while it learns the room
					mic, words, order = append(mic, m[:]...), append(words, w[:]...), append(order, o[:]...)
				}
				quiet = 0
			} else if quiet++; quiet > 60 && (w != m || o != last) {
				t.Error("the loudspeaker has been silent, and the feeds aren't the microphone's")
			}
			last = m
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- room.RunVirtual(ctx, clock.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))) }()
	for range len(speech) + audio.Frames(2*time.Second) {
		<-room.Frames()
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if quiet < 60 || len(mic) != 100*audio.FrameSize {
		t.Fatalf("%d frames of silence at the end, %d samples of echo", quiet, len(mic))
	}
	cancelled, suppressed := echotest.Reduction(mic, words), echotest.Reduction(mic, order)
	t.Logf("%.1f dB less echo for the wake words, %.1f dB for the recogniser", cancelled, suppressed)
	if cancelled < 3 || suppressed < cancelled+5 {
		t.Error("that isn't enough, or not less for the recogniser")
	}
}

// The canceller is there unless it is switched off, and no follow-up opens while plugins want nothing to be listened to.
func TestAttune(t *testing.T) {
	a := &appliance{clock: clock.System, bus: new(event.Bus), output: audio.NewOutput(0)}
	defer a.close()
	for _, cancel := range []bool{true, false} {
		c := Config{Echo: Echo{Cancel: &cancel}, WakeSound: new(true)}
		a.attune(&c)
		if (c.Wake.Split != nil) != cancel || (c.Wake.Alone != nil) != cancel {
			t.Errorf("cancel %v: split %v, alone %v", cancel, c.Wake.Split != nil, c.Wake.Alone != nil)
		}
		for _, on := range []bool{true, false} {
			a.recognises.SetEnabled(on)
			if c.Turn.MayFollowUp() != on {
				t.Errorf("it may be listened to: %v, and a follow-up may open: %v", on, !on)
			}
		}
	}
}

// Each change of the microphone's switch is heard, and what is no change isn't.
func TestMuteSounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mute, err := gpio.NewMute(gpio.MuteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a := &appliance{bus: new(event.Bus), output: audio.NewOutput(0), body: &embodiment{mute: mute}}
		ctx, cancel := context.WithCancel(t.Context())
		facts := a.bus.Subscribe(8)
		done := make(chan error)
		go func() { done <- a.muteSounds(facts)(ctx) }()
		for _, step := range []struct {
			muted, heard bool
		}{{false, false}, {true, true}, {true, false}, {false, true}} {
			synctest.Wait()
			a.bus.Publish(event.MuteChanged{Muted: step.muted})
			synctest.Wait()
			loud := audio.Silence
			for range 25 {
				var f audio.Frame
				a.output.Pull(&f)
				loud = max(loud, audio.Measure(f[:]).Peak)
			}
			if a.output.Sounding() || (loud > -40) != step.heard {
				t.Errorf("muted %v: %.0f dB", step.muted, loud)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

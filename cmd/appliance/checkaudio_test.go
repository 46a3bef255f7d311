package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/audiotest"
	"bellbird/audio/malgo/malgotest"
	"bellbird/clock"
)

// The measurement in the virtual room, where all of it is known.
func TestMeasureLoop(t *testing.T) {
	out := audio.NewOutput(0)
	v := clock.NewVirtual(time.Unix(0, 0))
	room := audiotest.NewRoom(audiotest.RoomOptions{Output: out, Noise: -60, Leak: 0.5, LeakDelay: 80 * time.Millisecond})
	go room.RunVirtual(t.Context(), v)
	groups := make(chan audio.Group)
	go func() {
		for f := range room.Frames() {
			g := audio.Group{Channels: 3} // the room, nothing, and what is twice as loud as it can be
			for i, s := range f {
				g.Frames[0][i] = s
				g.Frames[2][i] = int16(max(-32768, min(32767, int(s)*1000)))
			}
			select {
			case groups <- g:
			case <-t.Context().Done():
				return
			}
		}
	}()
	l, err := measureLoop(t.Context(), groups, out)
	if err != nil {
		t.Fatal(err)
	}
	c := l.channels[0]
	if c.likeness < 0.9 || c.dead || c.clipped != 0 || c.noise.RMS < -61 || c.noise.RMS > -59 || c.tone.RMS < -25 || c.tone.RMS > -18 {
		t.Errorf("the room is %+v", c)
	}
	if d := c.delay; d < 60*time.Millisecond || d > 100*time.Millisecond {
		t.Errorf("the delay is %v, want 80ms to a frame", d)
	}
	if !l.channels[1].dead || l.channels[2].clipped == 0 {
		t.Errorf("a dead channel is %+v, a clipped one %+v", l.channels[1], l.channels[2])
	}
}

func TestJudgeLoop(t *testing.T) {
	good := loopChannel{noise: audio.Level{RMS: -60}, tone: audio.Level{RMS: -25, Peak: -15}, likeness: 0.6, delay: 120 * time.Millisecond}
	with := func(change func(*loopChannel)) loopChannel { c := good; change(&c); return c }
	dead := loopChannel{dead: true}
	for _, row := range []struct {
		channels []loopChannel
		want     string // verdicts but ok and there, with what they are about
	}{
		{[]loopChannel{good}, ""},
		{[]loopChannel{dead, dead}, "BAD channels"},
		{[]loopChannel{good, dead}, "look channels"},
		{[]loopChannel{good, with(func(c *loopChannel) { c.likeness = 1 })}, "look reference"},
		{[]loopChannel{with(func(c *loopChannel) { c.noise.RMS = -30 })}, "BAD noise, look tone"},
		{[]loopChannel{with(func(c *loopChannel) { c.noise.RMS = -45 })}, "look noise"},
		{[]loopChannel{with(func(c *loopChannel) { c.likeness = 0.05 })}, "BAD tone"},
		{[]loopChannel{with(func(c *loopChannel) { c.clipped = 3 })}, "BAD clipping"},
		{[]loopChannel{with(func(c *loopChannel) { c.delay = time.Second })}, "look delay"},
	} {
		var got []string
		loop{channels: row.channels, volume: 70}.judge(func(verdict, what, format string, args ...any) {
			if s := fmt.Sprintf(format, args...); strings.Contains(s, "%!") {
				t.Error(s)
			}
			if verdict != "ok" && verdict != "there" {
				got = append(got, verdict+" "+what)
			}
		})
		if s := strings.Join(got, ", "); s != row.want {
			t.Errorf("%+v: %q, want %q", row.channels, s, row.want)
		}
	}
}

// On a sound server: the loudspeaker's monitor is the microphone.
func TestCheckAudioOnPulse(t *testing.T) {
	malgotest.Pulse(t)
	var c Config
	c.Volume = new(100)
	c.Sound.Capture = "speaker.monitor"
	var buf bytes.Buffer
	bad := checkAudio(t.Context(), &buf, c)
	t.Logf("%d bad\n%s", bad, buf.String())
	for _, want := range []string{`capture = "ears"`, `playback = "speaker"`, "opened", "tone"} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(buf.String(), "not heard") {
		t.Error("the tone isn't heard")
	}
	buf.Reset()
	c.Sound.Capture = "nobody"
	if bad := checkAudio(t.Context(), &buf, c); bad != 1 || !strings.Contains(buf.String(), `none is called "nobody"`) {
		t.Errorf("%d bad: %s", bad, buf.String())
	}
}

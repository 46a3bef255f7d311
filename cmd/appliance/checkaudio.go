package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellbird/audio"
	"bellbird/audio/malgo"
	"bellbird/internal/run"
)

func checkAudioCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "audio",
		Short: "Play a tone and measure it through the microphone",
		Long: `Play a tone and measure it through the microphone: how loud it is and how long it takes, how noisy the room is, whether
anything is clipped, and which of the microphone's channels are alive. Nobody should speak meanwhile. The appliance must not
be running if the sound card can be opened only once.`,
		Args: onlyArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.load()
			if err != nil {
				return err
			}
			if bad := checkAudio(cmd.Context(), cmd.OutOrStdout(), c); bad > 0 {
				return fmt.Errorf("%d of the checks failed: docs/sound.md has more advice", bad)
			}
			return nil
		},
	}
}

const (
	sweepLength = 500 * time.Millisecond
	quietLength = time.Second // in which the noise is measured
	settling    = time.Second // before that: some microphones begin with a bang
	echoLength  = time.Second // after the tone: how late it may be heard

	// sureLikeness is from where a tone counts as heard: noise alone doesn't come near it.
	sureLikeness = 0.12
	// ownLikeness is from where a channel is no microphone but a copy of what is played: no room leaves a tone so alike.
	ownLikeness = 0.97
)

// checkAudio prints one line for each finding, and returns how many of them are bad.
func checkAudio(ctx context.Context, w io.Writer, c Config) (bad int) {
	line := func(verdict, what, format string, args ...any) {
		if verdict == "BAD" {
			bad++
		}
		fmt.Fprintf(w, "%-5s  %-14s %s\n", verdict, what, fmt.Sprintf(format, args...))
	}
	capture, playback, err := malgo.Devices(c.Sound.Backend)
	if err != nil {
		line("BAD", "devices", "%v", err)
		return bad
	}
	list := func(what, key string, devices []malgo.Device) {
		if len(devices) == 0 {
			line("BAD", what, "none: plug one in, and see %q", map[string]string{"capture": "arecord -l", "playback": "aplay -l"}[key])
		}
		for _, d := range devices {
			notes := ""
			if d.Default {
				notes += ", the default"
			}
			if d.Monitor {
				notes += ", which is what a loudspeaker plays"
			}
			line("there", what, "%s = %q (%q)%s", key, d.ID, d.Name, notes)
		}
	}
	list("microphone", "capture", capture)
	list("loudspeaker", "playback", playback)

	c.Sound.Channel = malgo.Best // all of them
	out := audio.NewOutput(0)
	out.SetVolume(*c.Volume)
	card, err := malgo.Open(c.Sound, out)
	if err != nil {
		line("BAD", "opening", "%v (or does the appliance have it? stop that first)", err)
		return bad
	}
	info := card.Info()
	line("ok", "opened", "%q at %s and %q at %s, by %s", info.Capture, info.CaptureFormat, info.Playback, info.PlaybackFormat, info.Backend)
	var l loop
	err = run.All(ctx, stopGrace,
		run.Part{Name: "sound", Run: card.Run},
		run.Part{Name: "measurement", Run: func(ctx context.Context) (err error) {
			if l, err = measureLoop(ctx, card.Groups(), out); err != nil {
				return err
			}
			return run.ErrFinished
		}})
	if err != nil {
		line("BAD", "measurement", "%v", err)
		return bad
	}
	if n := card.Dropped(); n > 0 {
		line("look", "drops", "%d frames of the microphone were lost: is the machine too busy?", n)
	}
	l.judge(line)
	return bad
}

// A loop is what came of the way from the loudspeaker to the microphone.
type loop struct {
	channels []loopChannel
	volume   int
}

type loopChannel struct {
	noise    audio.Level
	dead     bool // the same value all the time
	tone     audio.Level
	likeness float64
	delay    time.Duration
	clipped  int
}

// measureLoop listens to silence and to a tone.
func measureLoop(ctx context.Context, groups <-chan audio.Group, out *audio.Output) (loop, error) {
	// A device that delivers nothing is noticed sooner than this, and ends it.
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("it took too long: did the machine sleep?"))
	defer cancel()
	var heard [][]int16
	hear := func(d time.Duration, each func()) error {
		for range audio.Frames(d) {
			select {
			case g := <-groups:
				if heard == nil {
					heard = make([][]int16, g.Channels)
				}
				for i, f := range g.All() {
					heard[i] = append(heard[i], f[:]...)
				}
				if each != nil {
					each()
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	if err := hear(settling, nil); err != nil {
		return loop{}, err
	}
	heard = nil
	if err := hear(quietLength, nil); err != nil {
		return loop{}, err
	}
	quiet := heard
	heard = nil

	sweep := audio.Sweep(sweepLength)
	stream := out.Open()
	for _, f := range audio.Split(sweep) {
		if err := stream.Write(ctx, f); err != nil {
			return loop{}, err
		}
	}
	stream.Finish()
	began := -1 // sample of the microphone at which the loudspeaker was given the first of the tone
	err := hear(sweepLength+echoLength, func() {
		if began >= 0 {
			return
		}
		select {
		case <-stream.Started():
			began = max(0, len(heard[0])-int(stream.Age()*time.Duration(audio.SampleRate)/time.Second))
		default:
		}
	})
	if err != nil {
		return loop{}, err
	}
	if began < 0 {
		return loop{}, errors.New("the loudspeaker takes no sound")
	}

	l := loop{volume: out.Volume()}
	for i, s := range heard {
		c := loopChannel{noise: audio.Measure(quiet[i]), clipped: audio.Clipped(s)}
		c.dead = constant(quiet[i]) && constant(s)
		var at int
		at, c.likeness = audio.Find(sweep, s)
		c.tone = audio.Measure(s[at:min(len(s), at+len(sweep))])
		c.delay = time.Duration(at-began) * time.Second / time.Duration(audio.SampleRate)
		l.channels = append(l.channels, c)
	}
	return l, nil
}

func constant(s []int16) bool {
	for _, v := range s {
		if v != s[0] {
			return false
		}
	}
	return true
}

// judge says what is good and bad about it, and what to do.
func (l loop) judge(line func(verdict, what, format string, args ...any)) {
	best := 0
	var alive, dead, copies []string
	for i, c := range l.channels {
		name := fmt.Sprint(i)
		switch {
		case c.dead:
			dead = append(dead, name)
		case len(l.channels) > 1 && c.likeness >= ownLikeness:
			copies = append(copies, name)
		default:
			alive = append(alive, name)
		}
		if c.likeness > l.channels[best].likeness {
			best = i
		}
		if len(l.channels) > 1 {
			line("there", "channel "+name, "noise %.0f dB, tone %.0f dB, likeness %.2f", c.noise.RMS, c.tone.RMS, c.likeness)
		}
	}
	switch {
	case len(dead) == len(l.channels):
		line("BAD", "channels", "the microphone delivers the same value all the time: is it switched off, muted in alsamixer, or the wrong one?")
		return
	case len(dead) > 0:
		line("look", "channels", "%s of %d are dead: set channel to one of %s", strings.Join(dead, ", "), len(l.channels), strings.Join(append(alive, copies...), ", "))
	default:
		line("ok", "channels", "all %d are alive", len(l.channels))
	}
	if len(copies) > 0 && len(alive) > 0 {
		line("look", "reference", "channel %s seems to be what the loudspeaker plays and no microphone: set channel to one of %s",
			strings.Join(copies, ", "), strings.Join(alive, ", "))
	}

	c := l.channels[best]
	switch n := c.noise.RMS; {
	case n > -40:
		line("BAD", "noise", "%.0f dB is loud: lower gain, move it away from fans and power supplies, try another channel", n)
	case n > -50:
		line("look", "noise", "%.0f dB: a quiet room should be below -50; lower gain if speech is loud enough", n)
	default:
		line("ok", "noise", "%.0f dB", n)
	}
	if c.likeness < sureLikeness {
		line("BAD", "tone", "not heard at volume %d: is the loudspeaker on, and is this the right one? is the microphone muted?", l.volume)
		return
	}
	switch above := c.tone.RMS - c.noise.RMS; {
	case above < 10:
		line("look", "tone", "%.0f dB, only %.0f above the noise: raise the volume or gain", c.tone.RMS, above)
	default:
		line("ok", "tone", "%.0f dB, %.0f above the noise, at volume %d", c.tone.RMS, above, l.volume)
	}
	if c.clipped > 0 {
		line("BAD", "clipping", "%d samples are as loud as can be: lower gain, or the capture level in alsamixer", c.clipped)
	} else {
		line("ok", "clipping", "none, the loudest is at %.0f dB", c.tone.Peak)
	}
	switch ms := c.delay.Milliseconds(); {
	case ms > 400:
		line("look", "delay", "about %d ms from loudspeaker to microphone: that is long, is the sound going through Bluetooth or the network?", ms)
	default:
		line("ok", "delay", "about %d ms from loudspeaker to microphone", ms)
	}
}

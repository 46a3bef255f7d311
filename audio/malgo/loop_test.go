//go:build cgo

package malgo_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/malgo"
	"bellbird/audio/malgo/malgotest"
)

// The frames of this signal are numbered: each has a pitch of its own, which is that of the one before plus a step.
const (
	pitches    = 16
	lowPitch   = 600.0
	pitchStep  = 200.0
	pitchLevel = 12000
	hop        = 441 / 2 // samples at 44.1 kHz between two looks, 5 ms
)

func pitch(n int) float64 { return lowPitch + pitchStep*float64(n%pitches) }

// What is played comes out of the loudspeaker frame by frame: none is missing, and none is heard twice. Whatever the
// sound server is too late for is silence in between.
func TestOrderOnPulse(t *testing.T) {
	skipUnderRace(t)
	malgotest.Pulse(t)
	out := audio.NewOutput(0)
	s, err := malgo.NewSupervisor(malgo.Options{PlaybackOnly: true}, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}()
	rec := exec.CommandContext(ctx, "parec", "-d", "speaker.monitor", "--rate=44100", "--channels=1", "--format=s16le", "--latency-msec=200")
	sound, err := rec.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { rec.Process.Kill(); rec.Wait() }()
	const length = 6 * time.Second
	const tenth = 2 * 44100 / 10 // bytes of 100 ms
	heard := make([]byte, 0, 20*10*tenth)
	listen := func() {
		if _, err := io.ReadFull(sound, heard[len(heard):len(heard)+tenth]); err != nil {
			t.Fatal(err)
		}
		heard = heard[:len(heard)+tenth]
	}
	for range 5 { // it records
		listen()
	}
	stream := out.OpenMusic()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		phase := 0.0
		for n := range audio.Frames(length) {
			var f audio.Frame
			for i := range f {
				phase += 2 * math.Pi * pitch(n) / float64(audio.SampleRate)
				f[i] = int16(pitchLevel * math.Sin(phase))
			}
			if stream.Write(ctx, f) != nil {
				return
			}
		}
		stream.Finish()
		_ = stream.Drain(ctx)
	}()
	for left := 10; left > 0 && len(heard) < cap(heard); { // a second more, for what the recorder is behind
		listen()
		select {
		case <-drained:
			left--
		default:
		}
	}

	c, st, dev := courseOf(heard), out.Stats(), s.Stats().Loudspeaker
	t.Logf("%+v; %+v; %+v", c, st, dev)
	if c.twice > 0 {
		t.Errorf("%d frames are heard twice", c.twice)
	}
	if st.MusicGaps > 0 {
		t.Errorf("%d gaps in what was there in time", st.MusicGaps)
	}
	switch {
	case dev.Opened != 1 || st.MusicPlayed != uint64(audio.Frames(length)) || len(heard) == cap(heard):
		t.Skip("this machine is too busy for its sound server: it didn't take the sound in time")
	case c.lost > c.gaps || c.frames+c.cut+c.lost != audio.Frames(length): // a gap may be too short to be told
		t.Errorf("not all of the %d frames are heard", audio.Frames(length))
	}
}

// A course is what was heard of a numbered signal.
type course struct {
	frames int
	gaps   int // silences of the sound server's
	cut    int // frames that a gap cuts into pieces too short to be told
	lost   int // frames missing elsewhere
	twice  int // frames that are longer than one
}

func courseOf(heard []byte) (c course) {
	last, stay := -1, 0
	silent, gap := true, false
	for at := 0; at+2*hop <= len(heard)/2; at += hop {
		n, loud := pitchAt(heard[2*at:], 2*hop)
		if !loud && !silent && last >= 0 {
			c.gaps++
			gap = true
		}
		silent = !loud
		switch {
		case n < 0: // between two, or nothing
			continue
		case n == last:
			if stay++; stay == 9 { // 20 ms have at most 5 looks, and 3 more if they are cut in two
				c.twice++
			}
		default:
			if missing := (n - last - 1 + pitches) % pitches; last >= 0 && gap && missing <= 1 {
				c.cut += missing
			} else if last >= 0 {
				c.lost += missing
			}
			last, stay = n, 1
			c.frames++
		}
		gap = false
	}
	if silent && c.gaps > 0 {
		c.gaps-- // the end
	}
	return c
}

// pitchAt is the pitch of the next n samples, -1 if there is no clear one, and whether there is anything.
func pitchAt(b []byte, n int) (number int, loud bool) {
	all, best, most := 0.0, -1, 0.0
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(int16(binary.LittleEndian.Uint16(b[2*i:])))
		all += x[i] * x[i]
	}
	if math.Sqrt(all/float64(n)) < pitchLevel/20 {
		return -1, false
	}
	for k := range pitches {
		var sin, cos float64
		for i, v := range x {
			w := 2 * math.Pi * pitch(k) * float64(i) / 44100
			sin += v * math.Sin(w)
			cos += v * math.Cos(w)
		}
		if p := 2 * (sin*sin + cos*cos) / float64(n); p > most {
			best, most = k, p
		}
	}
	if most < 0.8*all {
		return -1, true
	}
	return best, true
}

// How long sound takes through all buffers, from the moment when it is pulled to the one when it is handed on by a
// microphone that hears it without any air in between. It is as long the other way round, from mouth to ear.
func TestLatencyOnPulse(t *testing.T) {
	skipUnderRace(t)
	malgotest.Pulse(t)
	out := audio.NewOutput(0)
	card, err := malgo.Open(malgo.Options{Capture: "speaker.monitor", Playback: "speaker"}, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- card.Run(ctx) }()
	sweep := audio.Sweep(200 * time.Millisecond)
	var took []time.Duration
	for range 9 {
		s := out.Open()
		for _, f := range audio.Split(sweep) {
			if err := s.Write(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish()
		var heard []int16
		var at []time.Time
		var pulled time.Time
		for range 60 {
			select {
			case f := <-card.Frames():
				heard, at = append(heard, f[:]...), append(at, time.Now())
			case err := <-over:
				t.Fatal(err)
			}
			select {
			case <-s.Started():
				if pulled.IsZero() {
					pulled = time.Now().Add(-s.Age())
				}
			default:
			}
		}
		from, likeness := audio.Find(sweep, heard)
		if likeness < 0.9 || pulled.IsZero() {
			continue // the sound server was late for some of it
		}
		took = append(took, at[from/audio.FrameSize].Sub(pulled))
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if len(took) == 0 {
		t.Fatal("it never came back whole")
	}
	slices.Sort(took)
	t.Logf("%d times: the best %v, the median %v", len(took), took[0], took[len(took)/2])
}

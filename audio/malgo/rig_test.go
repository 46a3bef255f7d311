//go:build cgo

package malgo_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/audio/malgo"
	"bellbird/audio/malgo/malgotest"
)

// hiss plays noise to the microphone until the test ends or the server dies.
func hiss(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hiss.wav")
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 * 50 {
		var f audio.Frame
		for i := range f {
			f[i] = int16(random.NormFloat64() * 100)
		}
		w.Write(f)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "paplay", "--latency-msec=50", "-d", "mic", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// The supervisor on a real sound server: what happens to it is noticed, told, and cured.
func TestSupervisorOnPulse(t *testing.T) {
	skipUnderRace(t)
	server := malgotest.Pulse(t)
	server.Kill() // start without anything
	news := make(chan string, 64)
	var at time.Time
	out := audio.NewOutput(0)
	s, err := malgo.NewSupervisor(malgo.Options{
		OnTrouble: func(f *malgo.Fault) { news <- fmt.Sprintf("%s %s", f.Side, f.Reason) },
		OnWell:    func(side malgo.Side) { news <- string(side) + " well" },
	}, out)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	go func() {
		for {
			select {
			case <-s.Frames():
			case <-ctx.Done():
				return
			}
		}
	}()
	// await takes news until all of these have come. Of faults there may be more, one after the other.
	await := func(what string, all ...string) {
		t.Helper()
		missing := map[string]bool{}
		for _, a := range all {
			missing[a] = true
		}
		limit := time.After(90 * time.Second)
		for len(missing) > 0 {
			select {
			case n := <-news:
				t.Logf("%s: %q after %v", what, n, time.Since(at).Round(time.Millisecond))
				delete(missing, n)
				if side, fault, _ := strings.Cut(n, " "); fault != "well" {
					delete(missing, side+" trouble")
				}
			case err := <-over:
				t.Fatalf("%s: the supervisor ended: %v", what, err)
			case <-limit:
				t.Fatalf("%s: never told of %v", what, missing)
			}
		}
		at = time.Now()
	}
	at = time.Now()
	await("no server", "microphone missing", "loudspeaker missing")
	if s.Flowing() || s.Wedged() {
		t.Errorf("without a server: flowing %v, wedged %v", s.Flowing(), s.Wedged())
	}

	server.Start()
	hiss(t)
	await("server started", "microphone well", "loudspeaker well")
	if !s.Flowing() {
		t.Error("not flowing")
	}
	t.Logf("%+v", s.Info())

	server.Unplug()
	await("unplugged", "microphone trouble")
	server.Plug()
	await("plugged in", "microphone well")

	server.Suspend(true)
	await("suspended", "loudspeaker stalled")
	stream := out.Open()
	if err := stream.Write(ctx, audio.Frame{1}); err != nil {
		t.Fatal(err)
	}
	stream.Finish()
	within, stop := context.WithTimeout(ctx, 20*time.Second)
	if err := stream.Drain(within); err != nil {
		t.Errorf("without a loudspeaker speech doesn't end: %v", err)
	}
	stop()
	server.Suspend(false)
	await("resumed", "loudspeaker well")

	server.Kill()
	await("killed", "microphone trouble", "loudspeaker trouble")
	server.Start()
	hiss(t)
	await("started again", "microphone well", "loudspeaker well")

	t.Logf("%+v; callback of the microphone p50 %v, p99.9 %v, of the loudspeaker %v, %v", s.Stats(),
		s.CallbackTime(malgo.Microphone, 0.5), s.CallbackTime(malgo.Microphone, 0.999),
		s.CallbackTime(malgo.Loudspeaker, 0.5), s.CallbackTime(malgo.Loudspeaker, 0.999))
	cancel()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("doesn't end")
	}
}

// Devices of other formats, out and in again, each in the form that it has.
func TestFormatsOnPulse(t *testing.T) {
	skipUnderRace(t)
	server := malgotest.Pulse(t)
	sweep := audio.Sweep(200 * time.Millisecond)
	for _, row := range []struct {
		name, format   string
		rate, channels int
		want           string
	}{
		{"hat", "s32le", 16000, 4, "16000 Hz, 4 channels, 32 bit"},
		{"usb", "s24le", 48000, 2, "48000 Hz, 2 channels, 24 bit"},
		{"array", "float32le", 48000, 8, "48000 Hz, 8 channels, 32 bit float"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server.Sink(row.name, row.format, row.rate, row.channels)
			out := audio.NewOutput(0)
			card, err := malgo.Open(malgo.Options{Capture: row.name + ".monitor", Playback: row.name, Channel: malgo.Best}, out)
			if err != nil {
				t.Fatal(err)
			}
			if i := card.Info(); i.CaptureFormat != row.want || i.PlaybackFormat != row.want || i.Channels != row.channels {
				t.Errorf("opened as %+v, want %q", i, row.want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- card.Run(ctx) }()
			// A busy sound server drops some of it, so it is played several times: one must come back whole.
			const times = 6
			s := out.Open()
			for n := range times * 20 {
				var f audio.Frame
				if n%20 < 10 {
					f = audio.Frame(sweep[n%20*audio.FrameSize:])
				}
				if err := s.Write(ctx, f); err != nil {
					t.Fatal(err)
				}
			}
			s.Finish()
			var first, last []int16
			for range times*20 + 10 {
				select {
				case g := <-card.Groups():
					if g.Channels != row.channels {
						t.Fatalf("%d channels", g.Channels)
					}
					first, last = append(first, g.Frames[0][:]...), append(last, g.Frames[g.Channels-1][:]...)
				case err := <-over:
					t.Fatal(err)
				}
			}
			_, a := audio.Find(sweep, first)
			_, b := audio.Find(sweep, last)
			t.Logf("likeness %.3f in the first channel, %.3f in the last", a, b)
			if a < 0.95 || b < 0.95 {
				t.Error("the tone never came back whole")
			}
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}

// The signal is one whose phase is known at every sample, so that what is missing, and what is there twice, is seen.
const (
	glitchHertz = 440.0
	glitchLevel = 12000
)

// Speech that never ends, through the server and back from its monitor, without a gap or a repeated piece, while both
// cores are busy. Ten minutes with BELLBIRD_SOAK=1, or as long as BELLBIRD_SOAK=1m says.
func TestNoGlitches(t *testing.T) {
	if os.Getenv("BELLBIRD_SOAK") == "" {
		t.Skip("it wants a machine that does nothing else: run it with make soak")
	}
	length, _ := time.ParseDuration(os.Getenv("BELLBIRD_SOAK"))
	if length <= 0 {
		length = 10 * time.Minute
	}
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
	for range runtime.NumCPU() {
		go func() {
			for x := 1.0; ctx.Err() == nil; x = math.Sin(x) {
			}
		}()
	}
	stream := out.OpenMusic()
	go func() {
		for n := 0; ; n++ {
			if stream.Write(ctx, signal(n)) != nil {
				return
			}
		}
	}()

	glitches := listen(t, length)
	st, dev := out.Stats(), s.Stats().Loudspeaker
	t.Logf("%d stretches of 10 ms with a glitch in %v; %+v; %+v; callback p50 %v, p99.9 %v", glitches, length, st, dev,
		s.CallbackTime(malgo.Loudspeaker, 0.5), s.CallbackTime(malgo.Loudspeaker, 0.999))
	if st.MusicGaps != 0 {
		t.Errorf("%d gaps", st.MusicGaps)
	}
	stream.Cut()
	if glitches == 0 {
		return
	}

	// A machine that is too busy for its sound server is no fault of ours: then the server's own player suffers too.
	path := filepath.Join(t.TempDir(), "signal.wav")
	w, err := audio.CreateWAV(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := range audio.Frames(length + 5*time.Second) {
		if err := w.Write(signal(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	play := exec.CommandContext(ctx, "paplay", "-d", "speaker", "--latency-msec=60", path)
	if err := play.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { play.Process.Kill(); play.Wait() }()
	if control := listen(t, length); control > 0 {
		t.Skipf("%d glitches, but paplay has %d too: this machine is too busy for its sound server", glitches, control)
	}
	t.Errorf("%d glitches, and none when paplay plays the same", glitches)
}

// signal is frame n of it.
func signal(n int) (f audio.Frame) {
	for i := range f {
		f[i] = int16(glitchLevel * math.Sin(2*math.Pi*glitchHertz*float64(n*audio.FrameSize+i)/16000))
	}
	return f
}

// listen records the loudspeaker, and counts the stretches of 10 ms in which the signal isn't what it should be. Each has a
// phase, which must be where the one before left off.
func listen(t *testing.T, length time.Duration) (glitches int) {
	t.Helper()
	rec := exec.CommandContext(t.Context(), "parec", "-d", "speaker.monitor", "--rate=44100", "--channels=1", "--format=s16le", "--latency-msec=200")
	sound, err := rec.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { rec.Process.Kill(); rec.Wait() }()
	const stretch = 441
	buf := make([]byte, 2*stretch)
	before, sounding, heard := 0.0, false, 0
	for n := 0; heard < int(length/(10*time.Millisecond)); n++ {
		if _, err := io.ReadFull(sound, buf); err != nil {
			t.Fatal(err)
		}
		var sin, cos float64
		for i := range stretch {
			w := 2 * math.Pi * glitchHertz * float64(n*stretch+i) / 44100
			v := float64(int16(binary.LittleEndian.Uint16(buf[2*i:])))
			sin += v * math.Sin(w)
			cos += v * math.Cos(w)
		}
		phase, level := math.Atan2(cos, sin), 2*math.Hypot(sin, cos)/stretch
		if !sounding {
			sounding = level > 0.98*glitchLevel
			before = phase
			if n > 3000 {
				t.Fatal("nothing is heard")
			}
			continue
		}
		heard++
		turn := math.Remainder(phase-before, 2*math.Pi)
		before = phase
		if math.Abs(turn) > 0.05 || level < 0.95*glitchLevel || level > 1.05*glitchLevel {
			glitches++
		}
	}
	return glitches
}

// skipUnderRace skips what happens in real time, for which the race detector is too slow. make smoke runs it without.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("it runs in real time: run it without the race detector")
	}
}

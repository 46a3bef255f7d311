// Compare puts the echo canceller beside speexdsp's and webrtc-audio-processing's: the same recordings, real and mixed, go
// through all of them, and a table tells how much echo each takes away and how many wake words are found in what is left.
// It is for measuring, not part of the appliance; run.sh beside it fetches the peers.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bellbird/audio"
	"bellbird/audio/echo"
	"bellbird/audio/echo/echotest"
	"bellbird/wake"
)

const second = int(audio.SampleRate)

func main() {
	data := flag.String("data", "../shared/data/speech", "directory of the recordings")
	models := flag.String("models", "models", "directory of the wake word models")
	peers := flag.String("peers", "", "directory of the peers' programs; none is run without")
	words := flag.Int("words", 80, "how many wake words are mixed in")
	flag.Parse()
	c := comparison{data: *data, models: *models, peers: *peers, words: *words}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type comparison struct {
	data, models, peers string
	words               int
}

// A feed is what a canceller gave.
type feed struct {
	name    string
	samples []int16
	took    time.Duration // for a frame; 0 if it is part of another feed's
}

func (c *comparison) run() error {
	if err := c.real(); err != nil {
		return err
	}
	return c.rooms()
}

// real is the recording of a device.
func (c *comparison) real() error {
	mics, err := c.read("aec/real/*_farend_singletalk_mic.flac")
	if err != nil {
		return err
	}
	played, err := c.read("aec/real/*_farend_singletalk_lpb.flac")
	if err != nil {
		return err
	}
	for i, mic := range mics {
		feeds, err := c.feeds(mic, played[i])
		if err != nil {
			return err
		}
		fmt.Printf("real device %d, echo taken away in dB\n%-20s %8s %8s %8s %10s\n", i+1, "", "whole", "from 3 s", "2nd half", "us a frame")
		for _, f := range feeds {
			fmt.Printf("%-20s", f.name)
			for _, from := range []int{0, 3 * second, len(mic) / 2} {
				fmt.Printf(" %8.1f", echotest.Reduction(mic[from:], f.samples[from:]))
			}
			fmt.Printf(" %10s\n", micros(f.took))
		}
		fmt.Println()
	}
	return nil
}

// What is mixed: start seconds of answers alone, then a wake word in every slot of them.
const start, slot = 10, 4

func (c *comparison) rooms() error {
	clips, err := c.read("wake/alexa/*.flac")
	if err != nil {
		return err
	}
	clips = clips[:min(len(clips), max(c.words, 1))]
	answers, err := c.read("negative/librispeech_test_other/*.flac")
	if err != nil {
		return err
	}
	n := (start + slot*len(clips)) * second
	played := slices.Concat(answers...)
	played = slices.Repeat(played, n/len(played)+1)[:n]

	for _, r := range []struct {
		name string
		echotest.Room
	}{
		{"dry room", echotest.Room{RT60: 150 * time.Millisecond, Seed: 1}},
		{"living room", echotest.Room{RT60: 400 * time.Millisecond, Seed: 2}},
		{"living room, clocks 100 ppm apart", echotest.Room{RT60: 400 * time.Millisecond, PPM: 100, Seed: 3}},
		{"living room, bad loudspeaker", echotest.Room{RT60: 400 * time.Millisecond, Clip: 5000, Seed: 4}},
		{"all of it", echotest.Room{RT60: 400 * time.Millisecond, PPM: 100, Clip: 8000, Seed: 5}},
	} {
		r.Delay, r.Gain, r.Noise = 120*time.Millisecond, 0.3, 8
		if err := c.room(r.name, r.Room, played, clips); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) room(name string, r echotest.Room, played []int16, clips [][]int16) error {
	back := r.Echo(played)
	near := make([]float64, len(played))
	level := active(back)
	for i, clip := range clips {
		wide := make([]float64, len(clip))
		for k, v := range clip {
			wide[k] = float64(v)
		}
		gain := level / active(wide)
		for k, v := range wide {
			near[(start+i*slot)*second+k] = gain * v
		}
	}
	alone, mic := r.Hear(back), r.Hear(back, near)
	single, err := c.feeds(alone, played)
	if err != nil {
		return err
	}
	double, err := c.feeds(mic, played)
	if err != nil {
		return err
	}
	without, err := c.found(r.Hear(near), len(clips))
	if err != nil {
		return err
	}
	fmt.Printf("%s; %d wake words over answers at 0 dB, of which %d are found without echo\n%-20s %8s %8s %8s\n", name, len(clips),
		count(without, without), "", "ERLE dB", "words", "level dB")
	raw, err := c.found(mic, len(clips))
	if err != nil {
		return err
	}
	fmt.Printf("%-20s %8s %8d\n", "no canceller", "", count(without, raw))
	from := start / 2 * second
	for i, f := range single {
		hits, err := c.found(double[i].samples, len(clips))
		if err != nil {
			return err
		}
		fmt.Printf("%-20s %8.1f %8d %8.1f\n", f.name, echotest.Reduction(alone[from:], f.samples[from:]), count(without, hits),
			c.kept(double[i].samples, near))
	}
	fmt.Println()
	return nil
}

// kept is how much louder the feed is than the wake words in it, while they are said: 0 is all of them and nothing else,
// less is that they were suppressed.
func (c *comparison) kept(x []int16, near []float64) float64 {
	var has, should float64
	for at := 0; at+audio.FrameSize <= min(len(x), len(near)); at += audio.FrameSize {
		var h, s float64
		for i := at; i < at+audio.FrameSize; i++ {
			h += float64(x[i]) * float64(x[i])
			s += near[i] * near[i]
		}
		if s > audio.FrameSize*300*300 {
			has += h
			should += s
		}
	}
	return 10 * math.Log10((has+1)/(should+1))
}

func count(a, b []bool) (n int) {
	for i := range a {
		if a[i] && b[i] {
			n++
		}
	}
	return n
}

// found tells which of the wake words are heard in x, at the bar of barge-in.
func (c *comparison) found(x []int16, words int) (hits []bool, err error) {
	hits = make([]bool, words)
	no := false
	var ears *wake.Ears
	ears, err = wake.New(wake.Options{
		Words: []string{"alexa"}, StopWord: &no, ModelDirs: []string{c.models},
		Sounding: func() bool { return true },
		OnWake: func(wake.Call) {
			if at := int(ears.Heard())/50 - start; at >= 0 && at/slot < words {
				hits[at/slot] = true
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return hits, hear(ears, x)
}

// feeds are those of all cancellers, in the same order each time.
func (c *comparison) feeds(mic, played []int16) ([]feed, error) {
	canceller := echo.New()
	var linear, suppressed []int16
	begin := time.Now()
	for at := 0; at+audio.FrameSize <= min(len(mic), len(played)); at += audio.FrameSize {
		m, p := audio.Frame(mic[at:]), audio.Frame(played[at:])
		canceller.Play(&p)
		l, s := canceller.Hear(&m)
		linear, suppressed = append(linear, l[:]...), append(suppressed, s[:]...)
	}
	took := time.Since(begin) / time.Duration(max(1, len(linear)/audio.FrameSize))
	all := []feed{{"ours, linear", linear, took}, {"ours, suppressed", suppressed[audio.FrameSize:], 0}}
	if c.peers == "" {
		return all, nil
	}
	dir, err := os.MkdirTemp("", "echo-compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := []string{filepath.Join(dir, "mic"), filepath.Join(dir, "played")}, []string{filepath.Join(dir, "1"), filepath.Join(dir, "2")}
	for i, x := range [][]int16{mic, played} {
		if err := os.WriteFile(in[i], encode(x), 0o600); err != nil {
			return nil, err
		}
	}
	for _, p := range []struct {
		program string
		args    []string
		feeds   []string
	}{
		{"speex", out, []string{"speexdsp, linear", "speexdsp, suppressed"}},
		{"webrtc", []string{out[0], "moderate"}, []string{"webrtc, moderate"}},
		{"webrtc", []string{out[0], "high"}, []string{"webrtc, high"}},
	} {
		text, err := exec.Command(filepath.Join(c.peers, p.program), append(slices.Clone(in), p.args...)...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.program, err)
		}
		took, err := time.ParseDuration(strings.TrimSpace(string(text)) + "ns")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.program, err)
		}
		for i, name := range p.feeds {
			b, err := os.ReadFile(out[i])
			if err != nil {
				return nil, err
			}
			all = append(all, feed{name, decode(b), took})
			took = 0
		}
	}
	return all, nil
}

func hear(ears *wake.Ears, x []int16) error {
	frames := make(chan audio.Frame)
	go func() {
		defer close(frames)
		for i := 0; i+audio.FrameSize <= len(x); i += audio.FrameSize {
			frames <- audio.Frame(x[i:])
		}
	}()
	return ears.Run(context.Background(), frames)
}

func (c *comparison) read(pattern string) (all [][]int16, err error) {
	paths, err := filepath.Glob(filepath.Join(c.data, pattern))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no recordings %s in %s: name the directory with -data", pattern, c.data)
	}
	for _, p := range paths {
		x, _, err := audio.ReadFile(p)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// active is the RMS of the frames that are within 20 dB of the loudest.
func active(x []float64) float64 {
	var powers []float64
	for at := 0; at+audio.FrameSize <= len(x); at += audio.FrameSize {
		sum := 0.0
		for _, v := range x[at : at+audio.FrameSize] {
			sum += v * v
		}
		powers = append(powers, sum/audio.FrameSize)
	}
	loudest := slices.Max(powers)
	sum, n := 0.0, 0
	for _, p := range powers {
		if p > loudest/100 {
			sum += p
			n++
		}
	}
	return math.Sqrt(sum / float64(n))
}

func micros(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond))
}

func encode(x []int16) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func decode(b []byte) (x []int16) {
	for ; len(b) >= 2; b = b[2:] {
		x = append(x, int16(binary.LittleEndian.Uint16(b)))
	}
	return x
}

//go:build cgo

package pocketsphinx_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/intents"
	"bellbird/stt/pocketsphinx"
)

// A tally counts utterances of one kind.
type tally struct {
	all, right, wrong int // what is neither right nor wrong was rejected
	sound, work       time.Duration
}

func (c *tally) add(t testing.TB, r *pocketsphinx.Recognizer, s *intents.Set, samples []int16, said string) {
	t.Helper()
	begin := time.Now()
	heard := recognize(t, r, samples)
	c.work += time.Since(begin)
	c.sound += time.Duration(len(samples)) * time.Second / time.Duration(audio.SampleRate)
	c.all++
	switch {
	case heard == "":
	case said != "" && same(s, heard, said):
		c.right++
	default:
		c.wrong++
		t.Logf("%q is heard as %q", said, heard)
	}
}

func (c tally) String() string {
	part := func(n int) float64 { return 100 * float64(n) / float64(max(c.all, 1)) }
	return fmt.Sprintf("%4d utterances: right %5.1f %%, wrong %5.1f %%, rejected %5.1f %%, %.3f of real time",
		c.all, part(c.right), part(c.wrong), part(c.all-c.right-c.wrong), c.work.Seconds()/c.sound.Seconds())
}

// TestUnderstands is a small measurement, with limits well below what TestMeasure finds.
func TestUnderstands(t *testing.T) {
	r, s := recognizer(t, pocketsphinx.Options{}), sentences(t)
	var commands, other tally
	for i, text := range lines(t, "commands.txt") {
		if i%4 == 0 {
			commands.add(t, r, s, say(t, "en-us+f2", text), text)
		}
	}
	for i, text := range lines(t, "other.txt") {
		if i%4 == 0 {
			other.add(t, r, s, say(t, "en-us+f2", text), "")
		}
	}
	t.Logf("commands: %v", commands)
	t.Logf("other:    %v", other)
	if commands.right*100 < commands.all*70 {
		t.Errorf("commands: %v; want 70 %% right", commands)
	}
	if other.wrong*100 > other.all*25 {
		t.Errorf("other: %v; want at most 25 %% taken for a command", other)
	}
}

// TestRejectsRealSpeech does the same with recordings of people who want nothing of us.
func TestRejectsRealSpeech(t *testing.T) {
	files := recordings(t)
	r, s := recognizer(t, pocketsphinx.Options{}), sentences(t)
	var other tally
	for i, f := range files {
		if i%7 == 0 {
			other.add(t, r, s, recording(t, f), "")
		}
	}
	t.Logf("other: %v", other)
	if other.wrong*100 > other.all*25 {
		t.Errorf("other: %v; want at most 25 %% taken for a command", other)
	}
}

// recordings are those in which nobody says a command of ours.
func recordings(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"negative/*/*.flac", "commands/coffee/*.flac", "wake/other/*.flac", "commands/home/[pt]*.flac"} {
		files, _ := filepath.Glob(filepath.Join(sharedData, pattern))
		out = append(out, files...)
	}
	if len(out) == 0 {
		t.Skipf("no recordings in %s", sharedData)
	}
	return out
}

// recording reads at most ten seconds of a file: an utterance never is longer.
func recording(t testing.TB, file string) []int16 {
	t.Helper()
	samples, _, err := audio.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return samples[:min(len(samples), 10*int(audio.SampleRate))]
}

// TestMeasure takes some minutes: BELLBIRD_MEASURE=1 go test -run Measure -v ./stt/pocketsphinx
func TestMeasure(t *testing.T) {
	if os.Getenv("BELLBIRD_MEASURE") == "" {
		t.Skip("a measurement of some minutes: set BELLBIRD_MEASURE=1")
	}
	r, s := recognizer(t, pocketsphinx.Options{}), sentences(t)
	noises, _ := filepath.Glob(filepath.Join(sharedData, "noise", "[dkr]*.flac"))
	table := []string{""}
	row := func(name string, c tally) { table = append(table, fmt.Sprintf("%-28s %v", name, c)) }

	noisy := map[int]*tally{20: {}, 15: {}, 10: {}}
	noisyOther := map[int]*tally{20: {}, 15: {}, 10: {}}
	for _, v := range voices(t) {
		var commands, other tally
		for i, text := range lines(t, "commands.txt") {
			samples := v.say(t, text)
			commands.add(t, r, s, samples, text)
			for j, snr := range []int{20, 15, 10} {
				if i%3 == j && len(noises) > 0 {
					noisy[snr].add(t, r, s, mix(t, samples, noises[i/3%len(noises)], snr), text)
				}
			}
		}
		for i, text := range lines(t, "other.txt") {
			samples := v.say(t, text)
			other.add(t, r, s, samples, "")
			for j, snr := range []int{20, 15, 10} {
				if i%3 == j && len(noises) > 0 {
					noisyOther[snr].add(t, r, s, mix(t, samples, noises[i/3%len(noises)], snr), "")
				}
			}
		}
		row("commands, "+v.name, commands)
		row("other, "+v.name, other)
	}
	for _, snr := range []int{20, 15, 10} {
		row(fmt.Sprintf("commands, noise at %d dB", snr), *noisy[snr])
		row(fmt.Sprintf("other, noise at %d dB", snr), *noisyOther[snr])
	}
	kinds := make(map[string]*tally)
	for _, f := range recordings(t) {
		kind := filepath.Base(filepath.Dir(f))
		if kinds[kind] == nil {
			kinds[kind] = new(tally)
		}
		kinds[kind].add(t, r, s, recording(t, f), "")
	}
	for kind, c := range kinds {
		row("people, "+kind, *c)
	}
	t.Log(strings.Join(table, "\n"))
}

// A voice is one of a synthesizer's.
type voice struct {
	name    string
	command func(file, text string) *exec.Cmd
}

func (v voice) say(t testing.TB, text string) []int16 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "said.wav")
	return spoken(t, file, v.command(file, text))
}

// voices are those of espeak-ng and, where it is installed, of flite, which are more like people's.
func voices(t testing.TB) []voice {
	t.Helper()
	var out []voice
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed: apt install espeak-ng")
	}
	for name, speed := range map[string]string{"en-us": "160", "en-us+f2": "170", "en-us+m3": "190", "en-gb": "150", "en-gb+f3": "180"} {
		out = append(out, voice{"espeak " + name, func(file, text string) *exec.Cmd {
			return exec.Command("espeak-ng", "-v", name, "-s", speed, "-w", file, text)
		}})
	}
	if _, err := exec.LookPath("flite"); err != nil {
		return out
	}
	for _, name := range []string{"slt", "rms", "awb", "kal16"} {
		out = append(out, voice{"flite " + name, func(file, text string) *exec.Cmd {
			return exec.Command("flite", "-voice", name, "-t", text, "-o", file)
		}})
	}
	return out
}

// mix adds a noise to speech, snr decibels below the loudness of what is spoken.
func mix(t testing.TB, speech []int16, noiseFile string, snr int) []int16 {
	t.Helper()
	noise, _, err := audio.ReadFile(noiseFile)
	if err != nil {
		t.Fatal(err)
	}
	power := func(samples []int16, least float64) float64 {
		sum, n := 0.0, 0
		for i := 0; i+audio.FrameSize <= len(samples); i += audio.FrameSize {
			e := 0.0
			for _, s := range samples[i : i+audio.FrameSize] {
				e += float64(s) * float64(s)
			}
			if e > least*audio.FrameSize {
				sum, n = sum+e, n+audio.FrameSize
			}
		}
		return sum / float64(max(n, 1))
	}
	noise = noise[:min(len(noise), len(speech))]
	gain := math.Sqrt(power(speech, 10000) / power(noise, 0) / math.Pow(10, float64(snr)/10))
	out := make([]int16, len(speech))
	for i, s := range speech {
		v := float64(s) + gain*float64(noise[i%len(noise)])
		out[i] = int16(max(-32768, min(32767, v)))
	}
	return out
}

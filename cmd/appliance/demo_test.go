package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/stt/pocketsphinx"
)

// modelDirs are where tests find wake word models: what make fetched, and what lies beside the checkout.
var modelDirs = []string{"../../models", "../../../shared/data/models/microwakeword"}

// needDemo skips a test on a machine where the appliance can't be assembled.
func needDemo(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(modelDirs[0], "okay_nabu.json")); err != nil {
		t.Skip(`no wake word models: run "make models"`)
	}
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("no espeak-ng")
	}
	r, err := pocketsphinx.New(pocketsphinx.Options{}, answers)
	if err != nil {
		t.Skip(err)
	}
	r.Close()
}

// answers is the grammar of what the appliance says in the demo.
var answers = pocketsphinx.Grammar{JSGF: `#JSGF V1.0;
grammar answers;
public <answer> = it's <hour> [o'clock | <minute> | oh <digit>] [(a | p) m] | timer set for <digit> seconds | timer set for (ten | twenty) seconds | sorry i didn't catch that | sorry i can't answer that at the moment;
<digit> = one | two | three | four | five | six | seven | eight | nine;
<hour> = <digit> | ten | eleven | twelve;
<tens> = twenty | thirty | forty | fifty;
<minute> = ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen | <tens> [<digit>];
`, Words: strings.Fields("it's o'clock oh a p m timer set for seconds sorry i didn't catch that can't answer at the moment one two three four " +
	"five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty")}

// runDemo runs the demo, in this process or, if BELLBIRD_BINARY names one, as a program, and returns the records of its
// turns and the path of its recording.
func runDemo(t *testing.T, flags ...string) ([]event.Record, string) {
	t.Helper()
	recording := filepath.Join(t.TempDir(), "demo.wav")
	args := append([]string{"demo", "--models", modelDirs[0], "--json", "--record", recording}, flags...)
	var stdout, stderr bytes.Buffer
	code := 0
	if binary := os.Getenv("BELLBIRD_BINARY"); binary != "" {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
	} else {
		code = execute(t.Context(), args, &stdout, &stderr)
	}
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var records []event.Record
	for line := range strings.Lines(stdout.String()) {
		t.Log(strings.TrimSpace(line))
		var r event.Record
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("record %q: %v", line, err)
		}
		records = append(records, r)
	}
	return records, recording
}

// The whole appliance: what the user says is understood, and what the appliance says is heard, by recognising it again
// in the recording.
func TestDemoIsHeard(t *testing.T) {
	needDemo(t)
	records, recording := runDemo(t, "--fast")
	for i, want := range []struct {
		outcome event.Outcome
		heard   string
		answer  *regexp.Regexp
	}{
		{event.Completed, "what time is it", regexp.MustCompile(`^It's \d+:\d\d [AP]M\.$`)},
		{event.Completed, "set a timer for twenty seconds", regexp.MustCompile(`^Timer set for 20 seconds\.$`)},
		{event.NotUnderstood, "", regexp.MustCompile(`^Sorry, I didn't catch that\.$`)},
		{event.NothingHeard, "", regexp.MustCompile(`^$`)},
	} {
		if i >= len(records) {
			t.Fatalf("only %d turns", len(records))
		}
		r := records[i]
		if r.Outcome != want.outcome || r.WakeWord != "okay_nabu" || r.Heard != want.heard || !want.answer.MatchString(r.Answer) {
			t.Errorf("turn %d: %+v", i+1, r)
		}
		s := r.Stages
		if r.Outcome == event.Completed &&
			!(0 < s.Voiced && s.Voiced < s.Endpoint && s.Endpoint <= s.Recognised && s.Recognised <= s.FirstWord && s.FirstWord < s.FirstSound && s.FirstSound < s.End) {
			t.Errorf("turn %d: stages out of order: %+v", i+1, s)
		}
	}

	spoken := recognizeSpeaker(t, recording)
	var want []*regexp.Regexp
	for _, r := range records {
		switch {
		case strings.HasPrefix(r.Answer, "It's "):
			// Which time it is changes from run to run, and not every one is recognised as well.
			want = append(want, regexp.MustCompile("^it's "))
		case r.Answer != "":
			want = append(want, regexp.MustCompile("^"+strings.NewReplacer(",", "", ".", "", "20", "twenty").Replace(strings.ToLower(r.Answer))+"$"))
		}
	}
	if len(spoken) != len(want) {
		t.Fatalf("the loudspeaker said %q", spoken)
	}
	for i, w := range want {
		if !w.MatchString(spoken[i]) {
			t.Errorf("the loudspeaker said %q, want %v", spoken[i], w)
		}
	}
}

// recognizeSpeaker recognises what is on the right channel of a recording of the demo.
func recognizeSpeaker(t *testing.T, recording string) []string {
	t.Helper()
	file, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	both := samplesOf(file[44:]) // after the header: left, right, left, right
	var right []int16
	for i := 1; i < len(both); i += 2 {
		right = append(right, both[i])
	}
	return recognizePieces(t, right)
}

func samplesOf(raw []byte) []int16 {
	samples := make([]int16, len(raw)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return samples
}

// recognizePieces finds the pieces of speech in sound, leaves out tones, and recognises them.
func recognizePieces(t *testing.T, sound []int16) []string {
	t.Helper()
	r, err := pocketsphinx.New(pocketsphinx.Options{Strictness: -1}, answers)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var spoken []string
	for _, piece := range pieces(sound) {
		frames := make(chan audio.Frame, len(piece)+20)
		var quiet audio.Frame
		for range 10 {
			frames <- quiet
		}
		for _, f := range piece {
			frames <- f
		}
		for range 10 {
			frames <- quiet
		}
		close(frames)
		text, err := r.Recognize(context.Background(), frames)
		if err != nil {
			t.Fatal(err)
		}
		spoken = append(spoken, text)
	}
	return spoken
}

// pieces cuts sound at half a second of silence. What is shorter than that itself is a tone, and what is cut into rounds
// a timer's ring: both are left out.
func pieces(sound []int16) [][]audio.Frame {
	const gap, shortest = 25, 45
	var all [][]audio.Frame
	var piece []audio.Frame
	quiet := 0
	flush := func() {
		if len(piece) >= shortest {
			all = append(all, piece)
		}
		piece = nil
	}
	for len(sound) >= audio.FrameSize {
		f := audio.Frame(sound[:audio.FrameSize])
		sound = sound[audio.FrameSize:]
		if audio.Measure(f[:]).RMS < -60 {
			if quiet++; quiet == gap {
				flush()
			}
			continue
		}
		quiet = 0
		piece = append(piece, f)
	}
	flush()
	return all
}

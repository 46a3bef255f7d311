package audio_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/audio"
)

func TestTape(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	out := audio.NewOutput(0)
	tape, err := audio.NewTape(audio.TapeOptions{Dir: dir, Turns: 2, Length: 200 * time.Millisecond, Before: 60 * time.Millisecond}, out)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	n := 0
	hear := func(times int) {
		for range times {
			n++
			s := out.Open() // what is played is 100 more than what is heard
			write(t, s, numbered(100+n))
			pull(out)
			tape.Hear(numbered(n))
		}
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.WriteFile(filepath.Join(dir, "0-note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	hear(5)
	tape.Begin(1, at)
	hear(2)
	tape.Recognise(numbered(77))
	if err := tape.End([]byte(`{"run":1}`)); err != nil {
		t.Fatal(err)
	}
	turn := filepath.Join(dir, "20300102T030405.000-1")
	for file, want := range map[string][]int{"heard": {3, 4, 5, 6, 7}, "played": {103, 104, 105, 106, 107}, "recogniser": {77}} {
		samples, _, err := audio.ReadFile(filepath.Join(turn, file+".wav"))
		if err != nil {
			t.Fatal(err)
		}
		frames := audio.Split(samples)
		if len(frames) != len(want) {
			t.Errorf("%s: %d frames, want %d", file, len(frames), len(want))
			continue
		}
		for i, w := range want {
			if frames[i][audio.FrameSize-1] != int16(w) {
				t.Errorf("%s: frame %d is %d, want %d", file, i, frames[i][audio.FrameSize-1], w)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(turn, "turn.json")); err != nil || string(text) != `{"run":1}` {
		t.Errorf("the record is %q, %v", text, err)
	}

	// Bounded: a turn in its length, and their number. A private one is not written, nor what was heard before it.
	for run := uint64(2); run <= 4; run++ {
		tape.Begin(run, at.Add(time.Duration(run)*time.Second))
		hear(30)
		if run == 3 {
			tape.Forget()
		}
		if err := tape.End(nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "0-note 20300102T030407.000-2 20300102T030409.000-4"; got != want {
		t.Errorf("left are %q, want %q", got, want)
	}
	samples, _, err := audio.ReadFile(filepath.Join(dir, names[2], "heard.wav"))
	if err != nil || len(samples) != 10*audio.FrameSize {
		t.Errorf("%d samples, %v: want 200 ms, and nothing of the private turn before", len(samples), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: others can read it", info.Mode(), err)
	}
	if err := tape.End(nil); err != nil {
		t.Errorf("no turn: %v", err)
	}
	if _, err := audio.NewTape(audio.TapeOptions{}, nil); err == nil {
		t.Error("no directory is no error")
	}
}

func ExampleTape() {
	out := audio.NewOutput(0)
	tape, err := audio.NewTape(audio.TapeOptions{Dir: filepath.Join(os.TempDir(), "bellbird-tape")}, out)
	if err != nil {
		return
	}
	defer tape.Close()
	tape.Hear(audio.Frame{}) // each frame, unless it is muted
	tape.Begin(1, time.Now())
	tape.Recognise(audio.Frame{})
	if err := tape.End([]byte("{}")); err != nil { // or Forget, if the turn was private
		return
	}
}

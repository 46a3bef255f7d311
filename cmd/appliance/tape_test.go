package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/wake"
)

// A turn is recorded with its record; a private one, and one during which the microphone was muted, leave nothing.
func TestFollowRecordsTurns(t *testing.T) {
	for name, test := range map[string]struct {
		facts []event.Fact
		kept  bool
	}{
		"a turn":         {[]event.Fact{event.TurnEnded{Record: event.Record{Run: 1, Heard: "hello"}}}, true},
		"a private turn": {[]event.Fact{event.TurnEnded{Record: event.Record{Run: 1, Private: true}}}, false},
		"muted meanwhile": {[]event.Fact{
			event.MuteChanged{}, event.TurnEnded{Record: event.Record{Run: 1}},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "recordings")
			tape, err := audio.NewTape(audio.TapeOptions{Dir: dir}, audio.NewOutput(0))
			if err != nil {
				t.Fatal(err)
			}
			defer tape.Close()
			facts := append([]event.Fact{event.StateChanged{To: event.Listening, Run: 1, At: time.Now()}}, test.facts...)
			for _, f := range facts {
				tape.Hear(audio.Frame{1, 2, 3})
				if err := follow(tape, f); err != nil {
					t.Fatal(err)
				}
			}
			files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			if err != nil {
				t.Fatal(err)
			}
			if kept := len(files) > 0; kept != test.kept {
				t.Errorf("kept %q", files)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("others may look into it: %v %v", info.Mode(), err)
			}
		})
	}
}

// A follow-up is a turn too. What was heard while the microphone wasn't admitted is not on the tape.
func TestTapeOfAFollowUp(t *testing.T) {
	dir := t.TempDir()
	tape, err := audio.NewTape(audio.TapeOptions{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	admitted := true
	o := wake.Options{
		Admit: func(*audio.Frame) bool { return admitted },
		Split: func(audio.Frame) (words, order audio.Frame) { return audio.Frame{1}, audio.Frame{2} },
	}
	recordHeard(&o, tape)
	if err := follow(tape, event.StateChanged{To: event.FollowUp, Run: 2, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, admitted = range []bool{true, false, true} {
		if f := (audio.Frame{3}); o.Admit(&f) != admitted {
			t.Fatal("admitted otherwise")
		}
		if words, order := o.Split(audio.Frame{3}); words[0] != 1 || order[0] != 2 {
			t.Errorf("split into %d and %d", words[0], order[0])
		}
	}
	if err := follow(tape, event.TurnEnded{Record: event.Record{Run: 2}}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "heard.wav"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recorded %q, error %v", files, err)
	}
	samples, _, err := audio.ReadFile(files[0])
	if err != nil || len(samples) != 2*audio.FrameSize || samples[0] != 1 || samples[audio.FrameSize] != 1 {
		t.Errorf("%d samples, error %v", len(samples), err)
	}
}

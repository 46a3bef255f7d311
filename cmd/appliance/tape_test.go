package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bellbird/audio"
	"bellbird/event"
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

package audio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// TapeOptions say how much a Tape keeps. Only Dir is needed.
type TapeOptions struct {
	Dir    string        // of the recordings; it is made, for its owner only
	Turns  int           // that are kept; 0 is 10
	Length time.Duration // of a turn that is recorded; 0 is a minute
	Before time.Duration // of what was heard before the turn began, with the wake word in it; 0 is 3 s
}

// A Tape records the last turns for whoever wants to know why the appliance didn't understand: what the wake word heard,
// what was played in the same moments, and what the recogniser got, as WAV files in a directory for each turn, with the
// turn's record beside them.
//
// It records what it is given. Who must not be recorded, because the microphone is muted or the chat is private, isn't
// given to it, and Forget drops what it has in memory. Nothing is written before End.
//
// All methods may be called from any goroutine. Hear and Recognise don't wait for files.
type Tape struct {
	o      TapeOptions
	played *Tap // of the loudspeaker, or nil

	mu     sync.Mutex
	before []moment // the last ones, the oldest first
	take   *take    // of the turn that is on, or nil
}

// A moment is what was heard and played in the same 20 ms.
type moment struct{ heard, played Frame }

type take struct {
	name       string
	moments    []moment
	recognised []Frame
}

// tapRoom is how far what is heard may be behind what is played.
const tapRoom = 50

// NewTape makes the directory. out is what is played; nil: nothing is recorded of that. Close must follow.
func NewTape(o TapeOptions, out *Output) (*Tape, error) {
	if o.Turns <= 0 {
		o.Turns = 10
	}
	if o.Length <= 0 {
		o.Length = time.Minute
	}
	if o.Before <= 0 {
		o.Before = 3 * time.Second
	}
	if o.Dir == "" {
		return nil, errors.New("tape: no directory is given for the recordings")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("tape: %w", err)
	}
	t := &Tape{o: o}
	if out != nil {
		t.played = out.Tap(tapRoom)
	}
	return t, nil
}

// Close ends it. What was not written is lost.
func (t *Tape) Close() {
	t.Forget()
	if t.played != nil {
		t.played.Close()
	}
}

// Hear is given every frame that the wake word hears.
func (t *Tape) Hear(f Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := moment{heard: f}
	if t.played != nil {
		t.played.Pop(&m.played)
		for t.played.Len() > tapRoom/2 { // the microphone has missed something, or was muted: catch up
			t.played.Pop(&m.played)
		}
	}
	if t.take != nil {
		if len(t.take.moments) < Frames(t.o.Length) {
			t.take.moments = append(t.take.moments, m)
		}
		return
	}
	if len(t.before) >= Frames(t.o.Before) {
		t.before = t.before[:copy(t.before, t.before[1:])]
	}
	t.before = append(t.before, m)
}

// Recognise is given every frame that the recogniser gets.
func (t *Tape) Recognise(f Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take != nil && len(t.take.recognised) < Frames(t.o.Length) {
		t.take.recognised = append(t.take.recognised, f)
	}
}

// Begin begins to record a turn, which starts with what was heard just before. One that was not ended is dropped.
func (t *Tape) Begin(run uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take = &take{
		name:    fmt.Sprintf("%s-%d", at.UTC().Format("20060102T150405.000"), run),
		moments: t.before,
	}
	t.before = nil
}

// Forget drops all that is in memory, and the turn that is on: nothing of it will be written.
func (t *Tape) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before, t.take = nil, nil
}

// End writes the turn that is on, if there is one, with its record as JSON, and removes the oldest that is too many. It
// waits for the files.
func (t *Tape) End(record []byte) error {
	t.mu.Lock()
	k := t.take
	t.take = nil
	t.mu.Unlock()
	if k == nil {
		return nil
	}
	dir := filepath.Join(t.o.Dir, k.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("tape: %w", err)
	}
	err := errors.Join(
		writeWAV(filepath.Join(dir, "heard.wav"), len(k.moments), func(i int) Frame { return k.moments[i].heard }),
		writeWAV(filepath.Join(dir, "played.wav"), len(k.moments), func(i int) Frame { return k.moments[i].played }),
		writeWAV(filepath.Join(dir, "recogniser.wav"), len(k.recognised), func(i int) Frame { return k.recognised[i] }),
		os.WriteFile(filepath.Join(dir, "turn.json"), record, 0o600),
		t.prune(),
	)
	if err != nil {
		return fmt.Errorf("tape: %w", err)
	}
	return nil
}

func writeWAV(path string, n int, frame func(int) Frame) error {
	w, err := CreateWAV(path, 1)
	if err != nil {
		return err
	}
	for i := range n {
		if err := w.Write(frame(i)); err != nil {
			break // Close tells
		}
	}
	return w.Close()
}

// prune removes the oldest recordings, whose names come first.
func (t *Tape) prune() error {
	entries, err := os.ReadDir(t.o.Dir) // sorted
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		_, err := os.Stat(filepath.Join(t.o.Dir, e.Name(), "heard.wav"))
		return err != nil // not one of ours
	})
	for _, e := range entries[:max(0, len(entries)-t.o.Turns)] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(t.o.Dir, e.Name())))
	}
	return err
}

// Package turns keeps what there is to know of the turns that are over: their records, in a bounded ring on disk, and
// figures of them, in the text format of Prometheus. It keeps nothing of turns in private chats, and of the others
// nothing that was said: chats are the store's. It measures nothing itself; the turn does.
package turns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bellbird/event"
)

// A Kept is the record of a turn in the ring. Its number goes on over restarts, which that of its run doesn't.
type Kept struct {
	ID uint64 `json:"id"`
	event.Record
}

// The ring is two files of JSON lines: the newer one, to which is appended, and the older one, which the newer one
// replaces when it is full. So between half of MaxKept and MaxKept records are there.
const (
	newer = "turns.jsonl"
	older = "turns.old.jsonl"

	MaxKept  = 1000
	maxFile  = 1 << 20  // bytes
	maxLine  = 32 << 10 // bytes of a record
	maxCalls = 256      // of hooks, of a record
	maxID    = 1 << 53  // beyond which JSON's numbers aren't exact everywhere
)

// A Ring keeps the records of the last turns in a directory. It may be used by several goroutines, but the directory
// by one Ring only.
type Ring struct {
	dir string

	mu    sync.Mutex
	file  *os.File
	size  int64 // of file
	count int   // of its records
	last  uint64
}

// Open opens the ring in dir, which is made if it isn't there. What is damaged in it is left out.
func Open(dir string) (*Ring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("turn records: %w", err)
	}
	r := &Ring{dir: dir}
	kept, err := Read(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		r.last = max(r.last, k.ID)
	}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("turn records: %w", err)
	}
	return r, nil
}

// open opens the newer file.
func (r *Ring) open() error {
	f, err := os.OpenFile(filepath.Join(r.dir, newer), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*maxFile))
	if err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
		// The power failed in the middle of a line. The next one must not become a part of it.
		_, err = f.Write([]byte("\n"))
	}
	info, err2 := f.Stat()
	if err := errors.Join(err, err2); err != nil {
		f.Close()
		return err
	}
	r.file, r.size, r.count = f, info.Size(), bytes.Count(text, []byte("\n"))
	return nil
}

// Add keeps the record of a turn, without what was said, and without the name of its chat, which may become a private
// one later. One of a private chat is not kept at all. The file isn't synced: a power cut may lose the last few.
func (r *Ring) Add(record event.Record) error {
	if record.Private {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return errors.New("turn records: the ring is closed")
	}
	k := Kept{r.last + 1, silent(record)}
	line, err := encode(&k)
	if err != nil {
		return fmt.Errorf("turn records: %w", err)
	}
	if r.size > 0 && (r.count >= MaxKept/2 || r.size+int64(len(line)) > maxFile) {
		if err := r.turnOver(); err != nil {
			return fmt.Errorf("turn records: %w", err)
		}
	}
	n, err := r.file.Write(line)
	r.size += int64(n)
	if err != nil {
		// What was written of the line goes, so that the next one begins at its beginning.
		r.size -= int64(n)
		return fmt.Errorf("turn records: %w", errors.Join(err, r.file.Truncate(r.size)))
	}
	r.count++
	r.last = k.ID
	return nil
}

// turnOver makes the newer file the older one.
func (r *Ring) turnOver() error {
	if err := os.Rename(filepath.Join(r.dir, newer), filepath.Join(r.dir, older)); err != nil {
		return err
	}
	full := r.file
	if err := r.open(); err != nil {
		return err // the full one goes on, under its other name
	}
	full.Close()
	return nil
}

// silent is a record without what was said. What a plugin says of its failure may contain it.
func silent(r event.Record) event.Record {
	r.Heard, r.Answer, r.Chat = "", "", ""
	r.Hooks = slices.Clone(r.Hooks[:min(len(r.Hooks), maxCalls)])
	for i := range r.Hooks {
		r.Hooks[i].Error = ""
	}
	return r
}

// encode makes a line of a record, with as many of its hooks as a line has room for.
func encode(k *Kept) ([]byte, error) {
	for {
		line, err := json.Marshal(k)
		if err != nil || len(line) < maxLine {
			return append(line, '\n'), err
		}
		if len(k.Hooks) == 0 {
			return nil, fmt.Errorf("the record has %d bytes, more than %d", len(line), maxLine)
		}
		k.Hooks = k.Hooks[:len(k.Hooks)/2]
	}
}

// All returns what is kept, the last turn first.
func (r *Ring) All() ([]Kept, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Read(r.dir)
}

// Close closes the ring.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Read returns what a ring kept in dir, the last turn first; nothing if there never was one. It is for when no Ring is
// open. Lines that can't be read are left out.
func Read(dir string) ([]Kept, error) {
	var all []Kept
	for _, name := range []string{older, newer} {
		text, err := readFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("turn records: %w", err)
		}
		all = append(all, decode(text)...)
	}
	slices.Reverse(all)
	return all, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*maxFile))
}

// decode reads the lines of a file, as far as they are records.
func decode(text []byte) []Kept {
	var all []Kept
	for line := range bytes.Lines(text) {
		var k Kept
		if len(line) > maxLine || json.Unmarshal(line, &k) != nil || k.ID == 0 || k.ID > maxID || k.Private {
			continue
		}
		if all = append(all, k); len(all) == MaxKept {
			break
		}
	}
	return all
}

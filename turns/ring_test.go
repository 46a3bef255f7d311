package turns_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/event"
	"bellbird/turns"
)

var began = time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)

func record(run uint64) event.Record {
	return event.Record{
		Run: run, Began: began, Outcome: event.Completed, WakeWord: "okay_nabu", Heard: "a secret", Answer: "a secret", Chat: "a secret",
		Stages: event.Stages{Voiced: ms(1000), Endpoint: ms(1500), Recognised: ms(1600), FirstWord: ms(2000), FirstSound: ms(2200), End: ms(4000)},
		Hooks:  []event.HookCall{{Point: "pre_chat", Plugin: "p", Outcome: "failed", Took: ms(3), Error: "a secret"}, {Point: "post_llm", Plugin: "q", Outcome: "committed", Took: ms(7)}},
	}
}

func ms(n int) event.Millis { return event.Millis(time.Duration(n) * time.Millisecond) }

func open(t testing.TB, dir string) *turns.Ring {
	t.Helper()
	r, err := turns.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func all(t testing.TB, r *turns.Ring) []turns.Kept {
	t.Helper()
	kept, err := r.All()
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// What is kept is there after a restart, goes on counting, and has nothing that was said; private turns leave no trace.
func TestRingKeepsNoSpeech(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "turns")
	r := open(t, dir)
	original := record(1)
	if err := r.Add(original); err != nil {
		t.Fatal(err)
	}
	if original.Hooks[0].Error == "" {
		t.Error("the turn's own record was changed")
	}
	private := record(2)
	private.Private, private.WakeWord = true, "private_word"
	if err := r.Add(private); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r.Add(record(3)) == nil {
		t.Error("a closed ring takes a record")
	}
	r = open(t, dir)
	if err := r.Add(record(1)); err != nil { // its run begins anew
		t.Fatal(err)
	}
	kept := all(t, r)
	if len(kept) != 2 || kept[0].ID != 2 || kept[1].ID != 1 || kept[1].Hooks[1].Took != ms(7) || kept[0].Stages.End != ms(4000) {
		t.Errorf("kept %+v", kept)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		info, err2 := os.Stat(f)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "private_word") {
			t.Errorf("%s: %s", f, text)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", f, info.Mode())
		}
	}
}

// It never has more than its bound, on disk or off it, and always the last ones.
func TestRingIsBounded(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	const n = 2*turns.MaxKept + 17
	big := record(1)
	for range 2000 {
		big.Hooks = append(big.Hooks, event.HookCall{Point: strings.Repeat("p", 300), Plugin: "p", Error: "a secret"})
	}
	for i := range n {
		one := record(uint64(i))
		if i%10 == 0 { // so that a file is full of bytes before it is full of records
			one.Hooks = big.Hooks
		}
		if err := r.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	kept := all(t, r)
	if len(kept) == 0 || len(kept) > turns.MaxKept {
		t.Errorf("%d are kept", len(kept))
	}
	for i, k := range kept {
		if k.ID != uint64(n-i) {
			t.Fatalf("at %d: %d", i, k.ID)
		}
	}
	var size int64
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if len(files) != 2 || size > 2<<20 {
		t.Errorf("%d files with %d bytes", len(files), size)
	}
	if again := all(t, open(t, dir)); len(again) != len(kept) {
		t.Errorf("after a restart: %d of %d", len(again), len(kept))
	}
}

// A power cut in the middle of a line costs that line only, wherever it was cut.
func TestRingAfterPowerCut(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	for i := range 3 {
		if err := r.Add(record(uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	path := filepath.Join(dir, "turns.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir)
		if err := r.Add(record(9)); err != nil {
			t.Fatal(err)
		}
		kept := all(t, r)
		if len(kept) != 3 || kept[0].Run != 9 || kept[0].ID != 3 || kept[1].ID != 2 {
			t.Fatalf("cut at %d: %d records, %+v", cut, len(kept), kept[0])
		}
		r.Close()
	}
}

// A directory that can't be is an error that names it.
func TestRingErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := turns.Open(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if kept, err := turns.Read(filepath.Join(t.TempDir(), "none")); err != nil || len(kept) != 0 {
		t.Errorf("nothing: %v %v", kept, err)
	}
}

// Whatever is in the files, reading them ends, stays within bounds, and gives records that can be written again.
func FuzzRing(f *testing.F) {
	good, err := json.Marshal(turns.Kept{ID: 7, Record: record(3)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, append(good, '\n'))
	f.Add([]byte("{}\n{\"id\":-1}\n{\"id\":1e9}"), []byte(`{"id":18446744073709551615}`))
	f.Add([]byte(`{"id":1,"stages":{"end_ms":1e300},"hooks":null}`), []byte(`{"id":1,"private":true}`))
	f.Fuzz(func(t *testing.T, older, newer []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{"turns.old.jsonl": older, "turns.jsonl": newer} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := turns.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		before := all(t, r)
		if len(before) > 2*turns.MaxKept {
			t.Fatalf("%d records", len(before))
		}
		if err := r.Add(record(5)); err != nil {
			t.Fatal(err)
		}
		after := all(t, r)
		if len(after) == 0 || after[0].Run != 5 {
			t.Fatalf("what was added last isn't there: %d before, %d after", len(before), len(after))
		}
		for _, k := range after {
			if k.Private {
				t.Fatal("a private one")
			}
			if _, err := json.Marshal(k); err != nil {
				t.Fatal(err)
			}
			_ = fmt.Sprint(turns.Spans(k.Stages))
		}
	})
}

func ExampleSpans() {
	for _, s := range turns.Spans(record(1).Stages) {
		fmt.Printf("%-9s %v\n", s.Name, s.To-s.From)
	}
	// Output:
	// endpoint  500ms
	// recognise 100ms
	// think     400ms
	// speak     200ms
	// answer    1.2s
	// turn      4s
}

package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellbird/dialog"
	"bellbird/store"
)

// A memory is what both do.
type memory interface {
	create(chat string) error
	rename(old, name string) error
	remove(chat string) error
	put(chat, key string, v json.RawMessage, batched bool) error
	add(chat, key string, v json.RawMessage, batched bool) error
	commit() error // what is batched
	fill(chat string, rows int) error
	turn(chat, heard, answer string) error
	close() error
}

type ours struct {
	*store.Store
	n int
}

func (o *ours) create(chat string) error      { return o.Create(chat) }
func (o *ours) rename(old, name string) error { return o.Rename(old, name) }
func (o *ours) remove(chat string) error      { return o.Delete(chat) }
func (o *ours) close() error                  { return o.Close() }

func (o *ours) rows(batched bool) *store.Rows {
	r := o.Rows("p")
	if batched {
		r = r.Batched()
	}
	return r
}

func (o *ours) put(chat, key string, v json.RawMessage, batched bool) error {
	return o.rows(batched).Put(chat, key, v)
}

func (o *ours) add(chat, key string, v json.RawMessage, batched bool) error {
	_, err := o.rows(batched).Append(chat, key, v)
	return err
}

// commit waits for something small, which takes along what is batched.
func (o *ours) commit() error {
	o.n++
	return o.Bucket("commit").Put("n", fmt.Append(nil, o.n))
}

func (o *ours) fill(chat string, rows int) error {
	for at := 0; at < rows; at += 10000 {
		var values []json.RawMessage
		for i := at; i < min(rows, at+10000); i++ {
			values = append(values, json.RawMessage(value(i)))
		}
		if _, err := o.Rows("p").AppendMany(chat, "k", values); err != nil {
			return err
		}
	}
	return nil
}

func (o *ours) turn(chat, heard, answer string) error {
	c, err := o.Chat(chat)
	if err != nil {
		return err
	}
	return c.Append(dialog.Message{Role: dialog.User, Content: heard, Time: time.Now()}, dialog.Message{Role: dialog.Assistant, Content: answer, Time: time.Now()})
}

var kinds = []struct {
	name string
	open func(path string) (memory, error)
}{
	{"store", func(path string) (memory, error) {
		s, err := store.Open(path, store.Options{MaxBytes: 1 << 30, BatchDelay: time.Hour})
		return &ours{Store: s}, err
	}},
	{"sqlite", func(path string) (memory, error) { return openLite(path) }},
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// each runs f for both, with a database in which there is a chat.
func each(b *testing.B, f func(b *testing.B, m memory)) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			m, err := kind.open(filepath.Join(b.TempDir(), "db"))
			must(b, err)
			must(b, m.create("chat"))
			f(b, m)
			must(b, m.close())
		})
	}
}

// sizes are numbers of rows. SQLite takes a minute for a rename of the largest.
func sizes() []int {
	if testing.Short() {
		return []int{10, 10_000}
	}
	return []int{10, 10_000, 1_000_000}
}

func BenchmarkRename(b *testing.B) {
	for _, rows := range sizes() {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			each(b, func(b *testing.B, m memory) {
				must(b, m.fill("chat", rows))
				names := []string{"chat", "other"}
				for i := 0; b.Loop(); i++ {
					must(b, m.rename(names[i%2], names[(i+1)%2]))
				}
			})
		})
	}
}

func BenchmarkDelete(b *testing.B) {
	for _, rows := range sizes() {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for _, kind := range kinds {
				b.Run(kind.name, func(b *testing.B) {
					full := filepath.Join(b.TempDir(), "full")
					m, err := kind.open(full)
					must(b, err)
					must(b, m.create("chat"))
					must(b, m.fill("chat", rows))
					must(b, m.close())
					path := filepath.Join(b.TempDir(), "db")
					for b.Loop() {
						b.StopTimer()
						must(b, copyFile(full, path))
						m, err := kind.open(path)
						must(b, err)
						b.StartTimer()
						must(b, m.remove("chat"))
						b.StopTimer()
						must(b, m.close())
						b.StartTimer()
					}
				})
			}
		})
	}
}

func copyFile(from, to string) error {
	for _, f := range []string{to, to + "-wal", to + "-shm"} {
		os.Remove(f)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}

func BenchmarkPut(b *testing.B) {
	writes(b, func(m memory, i int, batched bool) error {
		return m.put("chat", fmt.Sprint("key", i%100), json.RawMessage(value(i)), batched)
	})
}

func BenchmarkAppend(b *testing.B) {
	writes(b, func(m memory, i int, batched bool) error {
		return m.add("chat", "log", json.RawMessage(value(i)), batched)
	})
}

// writes measures them awaited, and with a commit for each thousand, which is more than a plugin does in a second.
func writes(b *testing.B, f func(m memory, i int, batched bool) error) {
	for _, batched := range []bool{false, true} {
		b.Run(map[bool]string{false: "awaited", true: "batched"}[batched], func(b *testing.B) {
			each(b, func(b *testing.B, m memory) {
				for i := 0; b.Loop(); i++ {
					must(b, f(m, i, batched))
					if i%1000 == 999 {
						must(b, m.commit())
					}
				}
				must(b, m.commit())
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		})
	}
}

// BenchmarkTurn is a user's and an assistant's message, in a chat with a history. What is written is as the kernel
// counts it for this process.
func BenchmarkTurn(b *testing.B) {
	each(b, func(b *testing.B, m memory) {
		for range 200 {
			must(b, m.turn("chat", "what time is it", strings.Repeat("It is noon. ", 20)))
		}
		before := written(b)
		for b.Loop() {
			must(b, m.turn("chat", "what time is it", strings.Repeat("It is noon. ", 20)))
		}
		b.ReportMetric(float64(written(b)-before)/float64(b.N), "written-B/turn")
	})
}

func written(b *testing.B) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	must(b, err)
	for line := range strings.Lines(string(text)) {
		fmt.Sscanf(line, "write_bytes: %d", &n)
	}
	return n
}

// BenchmarkOpen opens 100 MB of rows. The store reads through all of it, SQLite only as far as it must.
func BenchmarkOpen(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "db")
			m, err := kind.open(path)
			must(b, err)
			must(b, m.create("chat"))
			must(b, m.fill("chat", 1_000_000))
			must(b, m.close())
			info, err := os.Stat(path)
			must(b, err)
			for b.Loop() {
				m, err := kind.open(path)
				must(b, err)
				b.StopTimer()
				must(b, m.close())
				b.StartTimer()
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
		})
	}
}

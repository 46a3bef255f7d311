package pipeline_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/pipeline"
)

// The engines of these tests. Each does by default what a good engine would; a test replaces what it is about.

// ears hear an utterance of one second, and its end 600 ms later.
type ears func(ctx context.Context, from uint64, to func(audio.Frame)) (bool, time.Duration, error)

func (e ears) Listen(ctx context.Context, from uint64, _ time.Duration, to func(audio.Frame)) (bool, time.Duration, error) {
	return e(ctx, from, to)
}

func (ears) Heard() uint64 { return 0 }

func hearSentence(ctx context.Context, _ uint64, to func(audio.Frame)) (bool, time.Duration, error) {
	for i := range 80 {
		if err := sleep(ctx, audio.FrameDuration); err != nil {
			return false, 0, err
		}
		to(audio.Frame{int16(i)})
	}
	return true, 600 * time.Millisecond, nil
}

type recognizer func(ctx context.Context, frames <-chan audio.Frame) (string, error)

func (r recognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	return r(ctx, frames)
}

func recognize(text string) recognizer {
	return func(_ context.Context, frames <-chan audio.Frame) (string, error) {
		for range frames {
		}
		return text, nil
	}
}

type model func(ctx context.Context, req dialog.Request, yield func(dialog.Delta, error) bool)

func (m model) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) { m(ctx, req, yield) }
}

func answer(text string) model {
	return func(_ context.Context, _ dialog.Request, yield func(dialog.Delta, error) bool) {
		for _, word := range strings.SplitAfter(text, " ") {
			if !yield(dialog.Delta{Text: word}, nil) {
				return
			}
		}
	}
}

// voice speaks a word in 100 ms, and needs 10 ms to make it.
type voice func(ctx context.Context, text string, to func(audio.Frame) error) error

func (v voice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	return v(ctx, text, to)
}

func speak(ctx context.Context, text string, to func(audio.Frame) error) error {
	for range strings.Fields(text) {
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		for range 5 {
			if err := to(loud); err != nil {
				return err
			}
		}
	}
	return nil
}

var loud = func() (f audio.Frame) {
	for i := range f {
		f[i] = 1000
	}
	return f
}()

type toolbox func(ctx context.Context, call dialog.ToolCall) dialog.ToolResult

func (toolbox) Specs() []dialog.ToolSpec { return []dialog.ToolSpec{{Name: "get_time"}} }
func (t toolbox) Prepare(c dialog.ToolCall) (dialog.ToolCall, error) {
	if string(c.Arguments) == `"nonsense"` {
		return c, errors.New("The arguments don't fit.")
	}
	return c, nil
}

func (t toolbox) Timeout(name string) time.Duration {
	if name == "patient" {
		return time.Minute
	}
	return 0
}

func (t toolbox) Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult {
	return t(ctx, call)
}

// A chat is also the list of chats in which it is the active one.
type chat struct {
	name    string // "": kitchen
	private bool
	locked  bool
	others  []*chat

	mu    sync.Mutex
	rows  []dialog.Message
	ended []string
}

func (c *chat) Active() (pipeline.Chat, error) {
	if c.locked {
		return nil, pipeline.ErrLocked
	}
	return c, nil
}

func (c *chat) Named(name string) (pipeline.Chat, error) {
	for _, o := range append(c.others, c) {
		if o.Name() == name {
			return o.Active()
		}
	}
	return nil, errors.New("no such chat")
}

func (c *chat) Messages() []dialog.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rows)
}
func (c *chat) Append(rows ...dialog.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, rows...)
	return nil
}

func (c *chat) Name() string {
	if c.name == "" {
		return "kitchen"
	}
	return c.name
}

func (c *chat) Private() bool   { return c.private }
func (c *chat) Surface() string { return "chat" }

func (c *chat) End(outcome string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, outcome)
	return nil
}

func (c *chat) Amend(content string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows[len(c.rows)-1].Content = content
	return nil
}

func (c *chat) texts() []string {
	var texts []string
	for _, m := range c.Messages() {
		texts = append(texts, string(m.Role)+": "+m.Content)
	}
	return texts
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

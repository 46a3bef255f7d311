package main

import (
	"context"
	"iter"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/pipeline"
)

// A probe stands around the engines of a pipeline and adds up how long the user had to wait for them, between the end of
// the utterance and the first sound of the answer.
type probe struct {
	mu     sync.Mutex
	waited time.Duration
}

// take returns what was added up, and begins anew.
func (p *probe) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.waited
	p.waited = 0
	return d
}

func (p *probe) add(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited += time.Since(since)
}

// wrap puts the probe around the engines of o.
func (p *probe) wrap(o *pipeline.Options) {
	if o.Recognizer != nil {
		o.Recognizer = probedRecognizer{o.Recognizer, p}
	}
	o.Model = probedModel{o.Model, p}
	o.Tools = probedTools{o.Tools, p}
	o.Voice = probedVoice{o.Voice, p}
}

// probedRecognizer measures from the end of the frames to the text.
type probedRecognizer struct {
	pipeline.Recognizer
	p *probe
}

func (r probedRecognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	var ended time.Time
	passed := make(chan audio.Frame)
	go func() {
		defer close(passed)
		for f := range frames {
			select {
			case passed <- f:
			case <-ctx.Done():
			}
		}
		ended = time.Now()
	}()
	text, err := r.Recognizer.Recognize(ctx, passed)
	if !ended.IsZero() { // passed was read to its end, and so ended is written
		r.p.add(ended)
	}
	return text, err
}

// probedModel measures from the question to the first delta.
type probedModel struct {
	pipeline.Model
	p *probe
}

func (m probedModel) Generate(ctx context.Context, req dialog.Request) iter.Seq2[dialog.Delta, error] {
	return func(yield func(dialog.Delta, error) bool) {
		asked, first := time.Now(), true
		m.Model.Generate(ctx, req)(func(d dialog.Delta, err error) bool {
			if first {
				m.p.add(asked)
				first = false
			}
			return yield(d, err)
		})
	}
}

type probedTools struct {
	pipeline.Tools
	p *probe
}

func (t probedTools) Call(ctx context.Context, call dialog.ToolCall) dialog.ToolResult {
	defer t.p.add(time.Now())
	return t.Tools.Call(ctx, call)
}

// probedVoice measures from the text to the first frame.
type probedVoice struct {
	pipeline.Voice
	p *probe
}

func (v probedVoice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	began, first := time.Now(), true
	return v.Voice.Synthesize(ctx, text, func(f audio.Frame) error {
		if first {
			v.p.add(began)
			first = false
		}
		return to(f)
	})
}

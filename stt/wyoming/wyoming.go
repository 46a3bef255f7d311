// Package wyoming recognises speech with a service that speaks the Wyoming protocol, such as faster-whisper, somewhere on
// the network. The sound goes there while it is spoken. It finds no end of an utterance: package wake does.
package wyoming

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bellbird/audio"
	"bellbird/wyoming"
)

// Options say which service it is. Address must be set.
type Options struct {
	wyoming.Service

	// Model is the name of one that the service has; empty: the one it uses.
	Model string `toml:"model"`

	// Language is the language of what is said, as in "en"; empty leaves it to the service.
	Language string `toml:"language"`
}

// A Recognizer has a service turn utterances into text, each over a connection of its own. It is safe for use by several
// goroutines.
type Recognizer struct{ o Options }

// New returns a recogniser. It connects to nothing.
func New(o Options) (*Recognizer, error) {
	if err := o.SetDefaults(); err != nil {
		return nil, fmt.Errorf("recogniser: %w", err)
	}
	return &Recognizer{o}, nil
}

const (
	chunkFrames = 4        // that go over together: 80 ms
	maxText     = 64 << 10 // bytes of what was understood
)

// Recognize sends an utterance until frames is closed, and returns what the service understood; "" if that is nothing. The
// service has the Wait of its options from then on. When ctx is cancelled it returns its cause.
func (r *Recognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	text, err := r.recognize(ctx, frames)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("recogniser: %w", err)
	}
	return text, err
}

func (r *Recognizer) recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	c, err := r.o.Dial(ctx)
	if err != nil {
		return "", err
	}

	type result struct {
		text string
		err  error
	}
	answer := make(chan result, 1) // one value, even if nobody wants it any more
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err := heard(ctx, c)
		answer <- result{text, err}
	}()
	defer func() { c.Close(); <-done }()
	if err := c.Send(ctx,
		wyoming.NewEvent(wyoming.Transcribe, wyoming.Request{Name: r.o.Model, Language: r.o.Language}),
		wyoming.NewEvent(wyoming.AudioStart, wyoming.Inner),
	); err != nil {
		return "", err
	}

	early := answer // nil when it has come
	var got *result
	var chunk []audio.Frame
	for more := true; more; {
		var f audio.Frame
		select {
		case f, more = <-frames:
			if more && got == nil {
				chunk = append(chunk, f)
			}
			if got != nil || len(chunk) == 0 || more && len(chunk) < chunkFrames {
				continue
			}
			if err := c.Send(ctx, wyoming.Sound(chunk...)); err != nil {
				// It may have said why before it stopped to listen, or even what it understood.
				c.Expect()
				if a := <-answer; a.err == nil {
					got = &a
					continue
				}
				return "", err
			}
			chunk = chunk[:0]
		case a := <-early:
			if a.err != nil {
				return "", a.err
			}
			got, early = &a, nil // it found an end by itself: what follows is not for it
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	if got == nil {
		if err := c.Send(ctx, wyoming.Event{Type: wyoming.AudioStop}); err != nil {
			return "", err
		}
		c.Expect()
		a := <-answer
		got = &a
	}
	return strings.TrimSpace(got.text), got.err
}

// heard waits for what the service understood. One that tells it bit by bit tells the whole again at the end, or should.
func heard(ctx context.Context, c *wyoming.Conn) (string, error) {
	var bits strings.Builder
	for {
		e, err := c.Receive(ctx)
		if err != nil {
			return "", err
		}
		var t wyoming.Text
		switch e.Type {
		case wyoming.TranscriptStart:
			bits.Reset()
		case wyoming.TranscriptStop:
			return bits.String(), nil
		case wyoming.TranscriptChunk, wyoming.Transcript:
			if err := e.Into(&t); err != nil {
				return "", err
			}
			bits.WriteString(t.Text)
			switch {
			case len(t.Text) > maxText || bits.Len() > maxText:
				return "", errors.New("the service understood more than anybody can say")
			case e.Type == wyoming.Transcript:
				return t.Text, nil
			}
		}
	}
}

// Check asks the service what it has, and tells which recogniser that is. It is an error if it has none, or not the model
// of the options.
func (r *Recognizer) Check(ctx context.Context) (string, error) {
	info, err := r.o.Describe(ctx)
	if err != nil {
		return "", fmt.Errorf("recogniser: %w", err)
	}
	if len(info.Recognisers) == 0 {
		return "", fmt.Errorf("recogniser: %s: that service recognises nothing: is it the right port?", r.o.Address)
	}
	p := info.Recognisers[0]
	var names []string
	for _, m := range p.Models {
		if m.Name == r.o.Model {
			return fmt.Sprintf("%s with %s at %s", p.Name, m.Name, r.o.Address), nil
		}
		names = append(names, m.Name)
	}
	if r.o.Model != "" {
		return "", fmt.Errorf("recogniser: %s has no model %q, but %q", r.o.Address, r.o.Model, names)
	}
	return fmt.Sprintf("%s at %s", p.Name, r.o.Address), nil
}

// Package openai recognises speech with a server that has the transcriptions of OpenAI's API, as speaches, vLLM and
// whisper.cpp have it. A whole utterance goes there when it is over. It finds no end of an utterance: package wake does.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"time"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/internal/speechapi"
)

// Options say which server it is. Model must be set.
type Options struct {
	speechapi.Options

	// Language is the language of what is said, as in "en"; empty leaves it to the server.
	Language string `toml:"language"`

	// Prompt are words that are likely, such as names; empty: none.
	Prompt string `toml:"prompt"`
}

// A Recognizer has a server turn utterances into text. It is safe for use by several goroutines.
type Recognizer struct {
	o      Options
	server *speechapi.Server
}

// New returns a recogniser. It connects to nothing.
func New(o Options) (*Recognizer, error) {
	s, err := speechapi.New(o.Options)
	if err != nil {
		return nil, fmt.Errorf("recogniser: %w", err)
	}
	return &Recognizer{o, s}, nil
}

const (
	maxUtterance = time.Minute // of which more is not sent
	maxAnswer    = 256 << 10   // bytes
)

// Recognize reads an utterance until frames is closed, sends it, and returns what the server understood; "" if that is
// nothing. What is longer than a minute is cut off there. An error is ctx's cause, or has a *dialog.ModelError.
func (r *Recognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	var utterance []audio.Frame
	for more := true; more; {
		var f audio.Frame
		select {
		case f, more = <-frames:
			if more && len(utterance) < audio.Frames(maxUtterance) {
				utterance = append(utterance, f)
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	if len(utterance) == 0 {
		return "", nil
	}
	text, err := r.transcribe(ctx, utterance)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("recogniser: %w", err)
	}
	return text, err
}

func (r *Recognizer) transcribe(ctx context.Context, utterance []audio.Frame) (string, error) {
	contentType, form := r.form(utterance)
	a, err := r.server.Post(ctx, "audio/transcriptions", contentType, form, maxAnswer)
	if err != nil {
		return "", err
	}
	defer a.Close()
	body, err := io.ReadAll(a)
	if err != nil {
		return "", err
	}
	var answer struct{ Text *string }
	err = json.Unmarshal(body, &answer)
	if kind, _, _ := mime.ParseMediaType(a.Type); err != nil && kind == "text/plain" {
		return strings.TrimSpace(string(body)), nil // some know no other
	}
	if err == nil && answer.Text == nil {
		err = errors.New("there is no text in it")
	}
	if err != nil {
		return "", &dialog.ModelError{Kind: dialog.ServerFault, Err: fmt.Errorf("%s answers with no transcription: %w", r.server.Host(), err)}
	}
	return strings.TrimSpace(*answer.Text), nil
}

// form is what is posted.
func (r *Recognizer) form(utterance []audio.Frame) (contentType string, body []byte) {
	var b bytes.Buffer // writes to it never fail
	w := multipart.NewWriter(&b)
	for _, f := range [][2]string{{"model", r.server.Model}, {"language", r.o.Language}, {"prompt", r.o.Prompt}, {"response_format", "json"}} {
		if f[1] != "" {
			w.WriteField(f[0], f[1])
		}
	}
	file, _ := w.CreateFormFile("file", "utterance.wav")
	file.Write(audio.EncodeWAV(utterance))
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// Check sends half a second of silence, and tells who took it.
func (r *Recognizer) Check(ctx context.Context) (string, error) {
	if _, err := r.transcribe(ctx, make([]audio.Frame, 25)); err != nil {
		return "", fmt.Errorf("recogniser: %w", err)
	}
	return r.server.Model + " at " + r.server.Host(), nil
}

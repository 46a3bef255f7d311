// Package openai speaks with a server that has the speech of OpenAI's API, as Kokoro's and Piper's servers have it. The
// sound is handed on as it comes, as plain samples or WAV; it decodes no MP3 and no Opus.
package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bellbird/audio"
	"bellbird/dialog"
	"bellbird/internal/speechapi"
	"bellbird/tts"
)

// Options say which server it is, and how it speaks. Model must be set.
type Options struct {
	speechapi.Options

	// Voice is the name of one that the server has; default "alloy".
	Voice string `toml:"voice"`

	// Voices are the names of others that may be chosen: the API has no list of them.
	Voices []string `toml:"voices"`

	// Speed is 0.25 to 4; 0 is as the server likes, which means 1.
	Speed float64 `toml:"speed"`

	// Format is what the server shall send: "pcm", samples of 16 bit, or "wav"; default "pcm". Rate is the rate of "pcm",
	// unless the server tells; default 24000, as OpenAI's has.
	Format string     `toml:"format"`
	Rate   audio.Rate `toml:"rate"`
}

const (
	slowest, fastest = 0.25, 4
	maxText          = 4096 // bytes; what OpenAI's server takes of characters
	maxSound         = 64 << 20
)

// A Voice has a server speak.
type Voice struct {
	o      Options
	server *speechapi.Server
	cutter *tts.Cutter

	mu     sync.Mutex
	chosen string  // "": as configured
	factor float64 // of the configured speed
}

var _ tts.Voice = (*Voice)(nil)

// New returns a voice. It connects to nothing.
func New(o Options) (*Voice, error) {
	if o.Voice == "" {
		o.Voice = "alloy"
	}
	if o.Format == "" {
		o.Format = "pcm"
	}
	if o.Rate == 0 {
		o.Rate = 24000
	}
	switch {
	case o.Format != "pcm" && o.Format != "wav":
		return nil, fmt.Errorf(`voice: format = %q: it is "pcm" or "wav"`, o.Format)
	case o.Speed != 0 && !(o.Speed >= slowest && o.Speed <= fastest):
		return nil, fmt.Errorf("voice: speed = %v: choose %v to %v", o.Speed, slowest, fastest)
	}
	s, err := speechapi.New(o.Options)
	if err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	return &Voice{o: o, server: s, cutter: new(tts.Cutter), factor: 1}, nil
}

// Synthesize speaks text and hands it to to, frame by frame, as it comes; the last frame is filled up with silence. The
// server has the Wait of its options for the beginning and for each further piece; to may wait as long as it likes. It
// returns the first error of to, ctx's cause when that ends, or one that has a *dialog.ModelError.
func (v *Voice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	if len(text) > maxText {
		return fmt.Errorf("voice: a text of %d bytes is too long: cut it into pieces of at most %d", len(text), maxText)
	}
	var handed error
	err := v.speak(ctx, text, func(f audio.Frame) error {
		handed = to(f)
		return handed
	})
	var known *dialog.ModelError
	switch {
	case handed != nil:
		return handed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return nil
	case !errors.As(err, &known):
		err = &dialog.ModelError{Kind: dialog.ServerFault, Err: fmt.Errorf("%s: %w", v.server.Host(), err)}
	default:
		if said := strings.TrimSpace(text); len(said) > 3 && strings.Contains(err.Error(), said) {
			// What is said is nothing for a log.
			err = &dialog.ModelError{Kind: known.Kind, Err: fmt.Errorf("%s: the server repeats the text in its error", v.server.Host())}
		}
	}
	return fmt.Errorf("voice: %w", err)
}

func (v *Voice) speak(ctx context.Context, text string, to func(audio.Frame) error) error {
	name, speed := v.now()
	body, err := json.Marshal(map[string]any{
		"model": v.server.Model, "input": text, "voice": name, "response_format": v.o.Format, "speed": speed,
	})
	if err != nil {
		return err
	}
	a, err := v.server.Post(ctx, "audio/speech", "application/json", body, maxSound)
	if err != nil {
		return err
	}
	defer a.Close()
	return v.hear(a, a.Type, v.cutter.Cut(text, to))
}

// hear takes the sound to its end. Some servers send WAV whatever they are asked for, and some tell the rate.
func (v *Voice) hear(body io.Reader, contentType string, sound *tts.Sound) error {
	in := bufio.NewReaderSize(body, 8192)
	first, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	kind, params, _ := mime.ParseMediaType(contentType)
	switch {
	case len(first) == 0:
		return nil
	case string(first) == "RIFF":
		err = wav(in, sound)
	case kind == "application/json", kind == "text/html", kind == "text/plain":
		return fmt.Errorf("it answers with %s instead of sound: is that the address of a speech API?", kind)
	case bytes.HasPrefix(first, []byte("ID3")), kind == "audio/mpeg", string(first) == "OggS", string(first) == "fLaC":
		return errors.New(`it sends compressed sound: set format to what it can do of "pcm" and "wav"`)
	case v.o.Format == "wav":
		return errors.New("what it sends is no WAV")
	default:
		rate := v.o.Rate
		if n, err := strconv.Atoi(params["rate"]); err == nil {
			rate = audio.Rate(n)
		}
		err = pcm(in, rate, sound)
	}
	if err != nil {
		return err
	}
	return sound.Close()
}

func pcm(in io.Reader, rate audio.Rate, sound *tts.Sound) error {
	if err := sound.Format(rate, 1); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		if err := sound.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func wav(in io.Reader, sound *tts.Sound) error {
	w, err := audio.NewWAVReader(in)
	if err != nil {
		return err
	}
	if err := sound.Format(w.Format().Rate, w.Format().Channels); err != nil {
		return err
	}
	buf := make([]int16, 2048)
	for {
		n, err := w.Read(buf)
		if err := sound.WriteSamples(buf[:n]); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// now is how it speaks now.
func (v *Voice) now() (name string, speed float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name, speed = v.o.Voice, v.factor
	if v.chosen != "" {
		name = v.chosen
	}
	if v.o.Speed != 0 {
		speed *= v.o.Speed
	}
	return name, min(max(speed, slowest), fastest)
}

// SetVoice chooses a voice for the texts to come, by its name: the configured one, which "" is too, or one of Voices.
func (v *Voice) SetVoice(name string) error {
	if err := v.check(name); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.chosen = name
	return nil
}

func (v *Voice) check(name string) error {
	if name == "" || name == v.o.Voice || slices.Contains(v.o.Voices, name) {
		return nil
	}
	return fmt.Errorf("voice: %q is not one of the configured voices of %s", name, v.server.Host())
}

// SetSpeed makes the texts to come slower or faster than configured, by a factor of 0.25 to 4.
func (v *Voice) SetSpeed(factor float64) error {
	if !(factor >= slowest && factor <= fastest) {
		return fmt.Errorf("voice: speed %v: it goes from %v to %v, 1 being as configured", factor, slowest, fastest)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.factor = factor
	return nil
}

// SetPitch is an error, unless it is 1: the API doesn't know pitch.
func (v *Voice) SetPitch(factor float64) error {
	if factor != 1 {
		return fmt.Errorf("voice: the pitch of %s can't be changed", v.server.Host())
	}
	return nil
}

// Settings are the name of the voice and its speed, as a factor of the configured one.
func (v *Voice) Settings() (name string, speed float64) {
	name, _ = v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	return name, v.factor
}

// Voices are the configured ones.
func (v *Voice) Voices(context.Context) ([]string, error) {
	names := append([]string{v.o.Voice}, v.o.Voices...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Named is the same voice, with its present speed, under another of the configured names.
func (v *Voice) Named(name string) (tts.Voice, error) {
	if err := v.check(name); err != nil {
		return nil, err
	}
	_, speed := v.Settings()
	return &Voice{o: v.o, server: v.server, cutter: v.cutter, chosen: name, factor: speed}, nil
}

// Check has a word spoken, and tells who did it.
func (v *Voice) Check(ctx context.Context) (string, error) {
	frames := 0
	if err := v.Synthesize(ctx, "ready", func(audio.Frame) error { frames++; return nil }); err != nil {
		return "", err
	}
	if frames == 0 {
		return "", fmt.Errorf("voice: %s makes no sound", v.server.Host())
	}
	name, _ := v.now()
	return fmt.Sprintf("%s with %s at %s", v.server.Model, name, v.server.Host()), nil
}

// Package espeak speaks with espeak-ng, a small synthesizer that needs no network. It runs the program as a child process
// for each text and streams what it says; it is no binding to its library, whose licence (GPL) would reach into ours.
package espeak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"

	"bellbird/audio"
)

// The way from text to frames, in the order of the functions below:
//
//  1. clean makes the text harmless: espeak-ng takes some characters as commands.
//  2. The child gets it on its standard input, never as an argument, and writes a WAV of unknown length to its standard
//     output as fast as it is read.
//  3. The reader decodes it, the resampler brings it to 16 kHz, the trimmer drops the silence around it, and whole frames
//     go to the caller as soon as there are.
//  4. When the caller gives up, or the child does something odd, its whole process group is killed.

// Options say how the voice sounds. The zero value is usable.
type Options struct {
	// Command is the program; empty means espeak-ng.
	Command string `toml:"command"`

	// Voice is the name of a voice or a language as espeak-ng lists them; empty means en-us.
	Voice string `toml:"voice"`

	// WordsPerMinute is the speed, 80 to 450; 0 leaves it to espeak-ng, which means 175.
	WordsPerMinute int `toml:"words_per_minute"`

	// Pitch is 1 to 99; 0 leaves it to espeak-ng, which means 50.
	Pitch int `toml:"pitch"`

	// Pause is the silence left at the end of each text, so that sentences do not run into each other; 0 means 120
	// ms, less than 0 none. espeak-ng's own is 300 ms.
	Pause time.Duration `toml:"pause"`

	// Logger gets what the program complains about, at debug level. Nil means nowhere.
	Logger *slog.Logger `toml:"-"`
}

const (
	maxText  = 20000            // bytes; more than 20 minutes
	perByte  = time.Second      // the most sound a byte of text can reasonably make (a digit among symbols, spoken slowly)
	perText  = 10 * time.Second // and besides
	patience = 5 * time.Second  // with a child that says nothing
	killWait = time.Second      // for its pipes to close once it has been killed
	maxFault = 200              // bytes of its complaint that are kept
)

// A Voice speaks. It is safe for use by several goroutines at a time; each text has its own process.
type Voice struct {
	path  string
	name  string // as configured, for errors
	sound *sound
	pause time.Duration
	wait  time.Duration // patience, but for tests
	log   *slog.Logger

	usual *audio.Resampler // from the rate of nearly all voices; forked for each text
}

// usualRate is what espeak-ng's own voices have.
const usualRate audio.Rate = 22050

// New looks for the program. It doesn't start it.
func New(o Options) (*Voice, error) {
	v := &Voice{name: o.Command, pause: o.Pause, wait: patience, log: o.Logger}
	if v.name == "" {
		v.name = "espeak-ng"
	}
	if o.Voice == "" {
		o.Voice = "en-us"
	}
	if v.pause == 0 {
		v.pause = 120 * time.Millisecond
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	switch {
	case strings.HasPrefix(o.Voice, "-"):
		return nil, fmt.Errorf("voice: %q is not the name of a voice: see %s --voices", o.Voice, v.name)
	case o.WordsPerMinute != 0 && (o.WordsPerMinute < 80 || o.WordsPerMinute > 450):
		return nil, fmt.Errorf("voice: %d words per minute: choose 80 to 450", o.WordsPerMinute)
	case o.Pitch < 0 || o.Pitch > 99:
		return nil, fmt.Errorf("voice: pitch %d: choose 1 to 99", o.Pitch)
	}
	path, err := exec.LookPath(v.name)
	if err != nil {
		return nil, fmt.Errorf(`voice: %q not found: install it with "apt install espeak-ng"`, v.name)
	}
	v.path = path
	if v.usual, err = audio.NewResampler(usualRate, audio.SampleRate); err != nil {
		return nil, fmt.Errorf("voice: %w", err)
	}
	v.sound = newSound(o)
	return v, nil
}

// Synthesize speaks text and hands it to to, frame by frame, as it is made; the last frame is filled up with silence. It
// returns when to has had the last, when to returns an error, which it passes on, or when ctx ends, with the cause.
// Text without anything to be spoken makes no frames. to may wait as long as it likes.
func (v *Voice) Synthesize(ctx context.Context, text string, to func(audio.Frame) error) error {
	if len(text) > maxText {
		return fmt.Errorf("voice: a text of %d bytes is too long: cut it into pieces of at most %d", len(text), maxText)
	}
	text = clean(text)
	if text == "" {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A context of its own, so that any return kills the child.
	run, stop := context.WithCancel(ctx)
	defer stop()
	var fault tail
	cmd := exec.CommandContext(run, v.path, v.sound.args()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	cmd.Stdin = strings.NewReader(text)
	cmd.Stderr = &fault
	out, child, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("voice: %w", err)
	}
	defer out.Close()
	cmd.Stdout = child
	err = cmd.Start()
	child.Close()
	if err != nil {
		return fmt.Errorf("voice: start %q: %w", v.name, err)
	}
	// A read that waits for the child ends when nobody wants to hear it any more.
	defer context.AfterFunc(ctx, func() { out.SetReadDeadline(time.Unix(1, 0)) })()

	// The child has some time for each piece; the time that the listener takes doesn't count.
	silent := false // it has closed its output
	in := reader(func(b []byte) (int, error) {
		out.SetReadDeadline(time.Now().Add(v.wait))
		if ctx.Err() != nil { // and if it ends after this, the deadline is moved into the past after that
			return 0, os.ErrDeadlineExceeded
		}
		n, err := out.Read(b)
		silent = silent || err == io.EOF
		return n, err
	})
	limit := perText + time.Duration(len(text))*perByte
	var handed error
	err = v.stream(in, limit, func(f audio.Frame) error {
		handed = to(f)
		return handed
	})
	out.Close() // a child that still writes finds out now
	if handed != nil || ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		stop()
	} else {
		// It has nothing more to say, or nothing of use. Given a moment it tells by its exit status what was wrong.
		defer time.AfterFunc(killWait, stop).Stop()
	}
	ended := cmd.Wait()
	if fault.text() != "" {
		v.log.Debug("voice complains", "command", v.name, "said", fault.text())
	}
	var exit *exec.ExitError
	switch {
	case handed != nil:
		return handed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("voice: %q hangs: no sound for %v", v.name, v.wait)
	case err == nil && ended == nil:
		return nil
	case err != nil && !silent: // it was still writing, and its end is our doing
		return fmt.Errorf("voice: %q: %w", v.name, err)
	case errors.As(ended, &exit) && exit.Exited() && fault.text() != "":
		return fmt.Errorf("voice: %q failed: %v: %s", v.name, ended, fault.text())
	case errors.As(ended, &exit) && exit.Exited():
		return fmt.Errorf("voice: %q failed: %v", v.name, ended)
	case err != nil:
		return fmt.Errorf("voice: %q: %w", v.name, err)
	default:
		return fmt.Errorf("voice: %q: %w", v.name, ended)
	}
}

// clean takes out what espeak-ng would not read aloud but obey: control characters and phonemes in double brackets.
// What is not UTF-8 becomes a space.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	text = strings.ReplaceAll(text, "[[", "[ [")
	return strings.TrimSpace(text)
}

// stream reads the child's WAV to its end and cuts it into frames.
func (v *Voice) stream(in io.Reader, limit time.Duration, to func(audio.Frame) error) error {
	w, err := audio.NewWAVReader(in)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return fmt.Errorf("what it wrote is no sound: %w", err)
	}
	format := w.Format()
	if format.Channels != 1 {
		return fmt.Errorf("it speaks in %d channels, not one", format.Channels)
	}
	r := v.usual.Fork()
	if format.Rate != usualRate {
		if r, err = audio.NewResampler(format.Rate, audio.SampleRate); err != nil {
			return err
		}
	}
	cut := &trimmer{to: to, pause: int(max(v.pause, 0) * time.Duration(audio.SampleRate) / time.Second)}
	buf := make([]int16, 1024)
	pcm := make([]int16, 0, r.Max(len(buf)))
	for {
		n, err := w.Read(buf)
		pcm = r.Process(pcm[:0], buf[:n])
		if err == io.EOF {
			pcm = r.Flush(pcm)
		}
		if err := cut.write(pcm); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return cut.close()
		case err != nil:
			return err
		case w.Format().Length > limit:
			return fmt.Errorf("it doesn't stop: more than %v of sound for a short text", limit)
		}
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// A trimmer cuts sound into frames and drops the digital silence before the first sound and after the last, but for a
// pause. espeak-ng makes up to 12 ms before and 300 ms after.
type trimmer struct {
	to    func(audio.Frame) error
	pause int // samples
	begun bool
	quiet int // samples of silence that are held back until it is known whether more follows
	frame audio.Frame
	n     int
}

func (t *trimmer) write(pcm []int16) error {
	for _, s := range pcm {
		if s == 0 {
			if t.begun {
				t.quiet++
			}
			continue
		}
		t.begun = true
		for ; t.quiet > 0; t.quiet-- {
			if err := t.add(0); err != nil {
				return err
			}
		}
		if err := t.add(s); err != nil {
			return err
		}
	}
	return nil
}

func (t *trimmer) add(s int16) error {
	t.frame[t.n] = s
	t.n++
	if t.n < audio.FrameSize {
		return nil
	}
	t.n = 0
	return t.to(t.frame)
}

// close adds the pause and fills the last frame.
func (t *trimmer) close() error {
	if !t.begun {
		return nil
	}
	for i := 0; i < t.pause || t.n != 0; i++ {
		if err := t.add(0); err != nil {
			return err
		}
	}
	return nil
}

// A tail keeps the beginning of what a child complains about.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[:min(len(p), maxFault-len(t.b))]...)
	return len(p), nil
}

// text is the first line. It may be called once the child has been waited for.
func (t *tail) text() string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(t.b), []byte("\n"))
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, string(line)), "?")
}

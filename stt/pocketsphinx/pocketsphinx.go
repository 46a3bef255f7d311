//go:build cgo

package pocketsphinx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"bellbird/audio"
)

// A Recognizer turns utterances into text, one at a time.
type Recognizer struct {
	options Options
	grammar Grammar
	lead    map[string]bool
	log     *slog.Logger
	asks    chan struct{} // holds one value after Pause: another one asks for nothing more
	busy    chan struct{} // holds one value while somebody uses what follows

	command, phones *decoder // nil when they must be made anew, and after Close
	closed          bool
	sizes           map[string]int // phones of each word
	least           float64        // trust from which a sentence is believed
}

// New loads the model. It starts nothing; the memory it takes is freed by Close.
func New(o Options, g Grammar) (*Recognizer, error) {
	if o.ModelDir == "" {
		o.ModelDir = DefaultModelDir
	}
	if o.Strictness == 0 {
		o.Strictness = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recognizer{options: o, grammar: g, log: o.Logger, lead: make(map[string]bool), asks: make(chan struct{}, 1), busy: make(chan struct{}, 1)}
	for _, w := range g.Lead {
		r.lead[w] = true
	}
	r.least = leastTrust(o.Strictness)
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("recogniser: %w", err)
	}
	return r, nil
}

// load makes the decoders, through files that exist only meanwhile.
func (r *Recognizer) load() error {
	params, err := checkModel(r.options.ModelDir)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bellbird-stt-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "feat.params"), params, 0o600); err != nil {
		return err
	}

	dict, err := reduced(filepath.Join(r.options.ModelDir, "cmudict-en-us.dict"), r.grammar.Words)
	if err != nil {
		return err
	}
	// The library's own beams lose a tenth more of the commands in noise; the phones need far less.
	r.command, err = r.decoder(dir, "command", dict, r.grammar.JSGF, "-beam", "1e-64", "-pbeam", "1e-64", "-wbeam", "1e-48")
	if err != nil {
		return err
	}
	r.sizes = phoneCounts(dict)
	dict, jsgf := anyPhones()
	r.phones, err = r.decoder(dir, "phones", dict, jsgf, "-beam", "1e-20", "-pbeam", "1e-20", "-wbeam", "1e-12")
	if err != nil {
		r.unload()
	}
	return err
}

// decoder makes one, from files in dir.
func (r *Recognizer) decoder(dir, name string, dict []byte, jsgf string, more ...string) (*decoder, error) {
	dictFile, jsgfFile := filepath.Join(dir, name+".dict"), filepath.Join(dir, name+".jsgf")
	if err := errors.Join(os.WriteFile(dictFile, dict, 0o600), os.WriteFile(jsgfFile, []byte(jsgf), 0o600)); err != nil {
		return nil, err
	}
	d, err := newDecoder(append([]string{
		"-hmm", filepath.Join(r.options.ModelDir, "en-us"), "-dict", dictFile, "-jsgf", jsgfFile,
		"-featparams", filepath.Join(dir, "feat.params"), "-remove_noise", "no",
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("model %q with grammar %q: %w; if the grammar is the one of the appliance, %s", r.options.ModelDir, name, err, again)
	}
	return d, nil
}

func (r *Recognizer) unload() {
	for _, d := range []*decoder{r.command, r.phones} {
		if d != nil {
			d.free()
		}
	}
	r.command, r.phones = nil, nil
}

// Recognize reads an utterance until frames is closed, decoding as it comes, and returns what was said; "" if that was
// nothing or nothing of the grammar. When ctx is cancelled it returns at once, with its cause. A second call waits for
// the first.
func (r *Recognizer) Recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if r.closed {
		return "", errors.New("recogniser: closed")
	}
	text, err := r.recognize(ctx, frames)
	if err != nil && ctx.Err() == nil {
		r.unload() // whatever went wrong inside, the next utterance begins with fresh decoders
		return "", fmt.Errorf("recogniser: %w", err)
	}
	return text, err
}

func (r *Recognizer) recognize(ctx context.Context, frames <-chan audio.Frame) (string, error) {
	if r.command == nil {
		if err := r.load(); err != nil {
			return "", err
		}
	}
	select {
	case <-r.asks: // of the utterance before
	default:
	}
	u := utterance{command: r.command, phones: r.phones, asks: r.asks}
	u.tell = func(frames int) error {
		text, err := r.text(&u)
		if err == nil {
			r.options.OnPartial(text, frames)
		}
		return err
	}
	if err := u.listen(ctx, frames); err != nil {
		return "", err
	}
	return r.text(&u)
}

// Pause tells that the speaker pauses. It has OnPartial called, unless he goes on or ends meanwhile. It may be called at
// any time, from any goroutine, and doesn't wait.
func (r *Recognizer) Pause() {
	if r.options.OnPartial == nil {
		return
	}
	select {
	case r.asks <- struct{}{}:
	default:
	}
}

// text is what was understood of an utterance so far; "" if that is nothing to be trusted.
func (r *Recognizer) text(u *utterance) (string, error) {
	sentence, phones, err := u.result()
	if err != nil {
		return "", err
	}
	said := words(sentence, r.lead)
	if len(said) == 0 {
		return "", nil
	}
	f, ok := compare(sentence, phones, r.sizes)
	if trust := f.trust(); !ok || trust < r.least {
		r.log.Debug("rejected", "text", strings.Join(said, " "), "trust", trust, "least", r.least)
		return "", nil
	}
	return strings.Join(said, " "), nil
}

// Close frees the model, after the utterance under way. It may be called more than once.
func (r *Recognizer) Close() {
	r.busy <- struct{}{}
	defer func() { <-r.busy }()
	r.closed = true
	r.unload()
}

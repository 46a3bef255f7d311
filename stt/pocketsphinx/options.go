// Package pocketsphinx understands speech without a network: Debian's pocketsphinx (0.8+5prealpha) with a grammar. It
// hears the sentences of its grammar and nothing else, and tells when something else was said, which the library does
// not. It finds no beginning and no end of an utterance (package wake does) and knows no meaning (package intents does).
package pocketsphinx

import "log/slog"

// DefaultModelDir is where Debian's package pocketsphinx-en-us puts the model.
const DefaultModelDir = "/usr/share/pocketsphinx/model/en-us"

// Options of the recogniser. The zero value is usable.
type Options struct {
	// ModelDir has the dictionary cmudict-en-us.dict and the acoustic model en-us; default DefaultModelDir.
	ModelDir string `toml:"model_dir"`

	// Strictness is how much better a command must fit than arbitrary sounds before it is believed: 1 as measured to
	// be the best, more to reject more, less to accept more, negative to accept everything. Default 1.
	Strictness float64 `toml:"strictness"`

	// OnPartial is called with what was understood of an utterance so far, after Pause was called; "" if that is nothing
	// to be trusted. frames is how many frames of the utterance had been taken when it was. It runs on Recognize's
	// goroutine and must not wait. Nil: Pause does nothing.
	OnPartial func(text string, frames int) `toml:"-"`

	// Logger gets what was rejected and why, at debug level; nil discards it.
	Logger *slog.Logger `toml:"-"`
}

// A Grammar is what to listen for.
type Grammar struct {
	JSGF  string   // in the Java Speech Grammar Format, with one public rule
	Words []string // every word in it
	Lead  []string // words that belong to the wake word: taken away from the beginning of what was heard
}

// Package intents turns a sentence into what its speaker wants: set_timer with a duration and a name, volume_up, stop.
// It does so from sentence templates, which are data, and the same templates are the grammar that a speech recogniser
// listens for: what can be recognised and what can be understood cannot drift apart. It knows nothing of sound, keeps
// no state between sentences and acts on nothing; it is no language model either: what no template covers is not
// understood, and that is the answer.
//
// # Template files
//
// A file is text, one thing on a line; empty lines and lines that begin with # say nothing.
//
//	[set_timer]                              the templates below mean this intent
//	(set | start) a timer for {duration:duration}
//	~make me a timer of {duration:duration}  understood when written, but not listened for
//	<thing> = pasta | pizza                  a rule; a second line for it adds alternatives
//	~<thing> = <any>                         alternatives that are understood but not listened for
//	<duration:duration> = <1..99> minutes    a rule whose words have a value, here a time.Duration
//
// In templates and rules:
//
//	word          lower case, may have an apostrophe
//	a b           one after the other
//	(a | b)       one of them
//	[a | b]       one of them or nothing
//	<rule>        what the rule says; rules may stand anywhere in the file, but must not contain themselves
//	<1..99>       the words for a whole number in this range, which must lie within 0 and 999
//	<any>         one to three words, whatever they are; in lines that begin with ~ only
//	{slot:rule}   what the rule says, kept as the value of the slot
//	{slot=text}   nothing to say; the slot has the value text
//
// The type of a rule, after its name, is text, number, duration or time (of day); text if it is left out.
//
// Four rules are special, and may be absent: <wake>, <before> and <after> are optional around every template, in
// front of it in this order and behind it; <never> has the words that <any> doesn't take.
//
// A line marked ~ costs the recogniser nothing. Every other one makes it hear a command where there was none a little
// more often: see the measurements of package stt/pocketsphinx before adding to them.
//
// # Ambiguity
//
// A sentence that several templates cover belongs to the one that stands first in the file. Within a template the
// reading wins that takes the earlier alternative, and takes what is optional.
package intents

import (
	_ "embed"
	"slices"
	"time"
)

//go:embed templates/english.txt
var english string

// English returns the templates that come with the appliance.
func English() (*Set, error) { return Parse("english.txt", english) }

// A Set is a parsed template file. It is safe for use by several goroutines.
type Set struct {
	templates []template
	rules     map[string]*rule
	intents   []string         // in the order of the file
	vocab     map[string]int32 // word without apostrophes to its number
}

// A template is one line of a section.
type template struct {
	intent string
	line   int
	typed  bool // understood when written, not listened for
	expr   node
	prog   program
}

// A Match is what a sentence was found to mean.
type Match struct {
	Intent string
	Slots  map[string]Value // those which the sentence filled
}

// A Value is what a sentence put into a slot.
type Value struct {
	Text     string        // the words, numbers written out
	Number   int           // for rules of type number, and constants that are numbers
	Duration time.Duration // for rules of type duration
	Time     TimeOfDay     // for rules of type time
}

// Intents are the names of the intents, in the order of the file.
func (s *Set) Intents() []string { return slices.Clone(s.intents) }
